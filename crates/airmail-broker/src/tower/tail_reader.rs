//! The tail of a log: one reader of the storage, whose batches and gaps go to the gateway that is attached.

use super::log::TailReader;
use super::storage_calls::Owner;
use super::{Tower, TowerEffects};
use crate::keys::TowerLogKey;
use crate::link::{FromTower, Interest};
use airmail_log::{Call, GapWhy, Scope, ScopeFilter, Stored, WantEdit};
use airmail_model::bug;
use airmail_model::{Extent, LogId, Sequence};

impl Tower {
    /// Gives the gateway a log's tail, from `from` on.
    pub(super) fn attach(
        &mut self,
        log: LogId,
        generation: u64,
        from: Sequence,
        interest: Interest,
        out: &mut TowerEffects,
    ) {
        let Some(key) = self.logs.find_open(log) else {
            // Input: a log that was deleted before the gateway was told.
            return;
        };
        self.stop_tail(key, out);
        self.logs[key].tail = Some(TailReader {
            generation,
            interest,
            reader: None,
            next: from,
            given: 0,
        });
        self.read_tail(key, out);
    }

    /// The gateway does not need a log's tail any more.
    pub(super) fn detach(&mut self, log: LogId, generation: u64, out: &mut TowerEffects) {
        let Some(key) = self.logs.find(log) else {
            // Input: a log that was deleted before the gateway was told.
            return;
        };
        let tail = self.logs[key].tail;
        if tail.is_some_and(|tail| tail.generation == generation) {
            self.stop_tail(key, out);
        }
    }

    /// Ends a log's tail reader, if there is one.
    pub(super) fn stop_tail(&mut self, key: TowerLogKey, out: &mut TowerEffects) {
        let tail = self.logs[key].tail.take();
        if let Some(r) = tail.and_then(|tail| tail.reader) {
            out.call(Call::Stop { r });
            self.calls.give_up(r);
        }
    }

    /// Reads a tail on, from what the gateway has been given.
    pub(super) fn read_tail(&mut self, key: TowerLogKey, out: &mut TowerEffects) {
        let log = &mut self.logs[key];
        let Some(tail) = &mut log.tail else {
            bug!("{} has no tail to be read", log.id);
            return;
        };
        let r = self.calls.reader(Owner::Tail(key));
        tail.reader = Some(r);
        tail.given = 0;
        let filter = match tail.interest {
            Interest::All => ScopeFilter::All,
            Interest::Wanted => ScopeFilter::Wanted,
        };
        out.call(Call::Read {
            r,
            log: log.id,
            from: tail.next,
            scope: Box::new(Scope {
                filter,
                ..Scope::default()
            }),
            credit: self.config.tail_window_bytes,
        });
    }

    /// Starts a tail's reader again, which has failed: the gateway has to say anew what it wants.
    pub(super) fn read_tail_again(&mut self, key: TowerLogKey, out: &mut TowerEffects) {
        self.read_tail(key, out);
        self.tail_wants_lost(key, out);
    }

    /// The gateway changes what is wanted of a log.
    pub(super) fn want(
        &mut self,
        log: LogId,
        generation: u64,
        edit: u32,
        topics: Box<WantEdit>,
        out: &mut TowerEffects,
    ) {
        let tail = self.logs.find(log).and_then(|key| self.logs[key].tail);
        let tail = tail.filter(|tail| tail.generation == generation);
        if let Some(r) = tail.and_then(|tail| tail.reader) {
            out.call(Call::Want { r, edit, topics });
        }
    }

    /// A tail's reader gives what an edit wants, or cannot.
    pub(super) fn tail_effective(
        &mut self,
        key: TowerLogKey,
        edit: u32,
        at: Option<Sequence>,
        out: &mut TowerEffects,
    ) {
        let log = &self.logs[key];
        if let Some(tail) = log.tail {
            out.tell(FromTower::Effective {
                log: log.id,
                generation: tail.generation,
                edit,
                at,
            });
        }
    }

    /// It is not known any more what is wanted of a tail's reader.
    pub(super) fn tail_wants_lost(&mut self, key: TowerLogKey, out: &mut TowerEffects) {
        let log = &self.logs[key];
        if let Some(tail) = log.tail.filter(|tail| tail.interest == Interest::Wanted) {
            let (log, generation) = (log.id, tail.generation);
            out.tell(FromTower::WantsLost { log, generation });
        }
    }

    /// The next batch at the tail of a log.
    pub(super) fn tail_batch(&mut self, key: TowerLogKey, stored: Stored, out: &mut TowerEffects) {
        let bytes = stored.batch.bytes().len();
        self.stats.given_bytes += bytes as u64;
        self.grant_tail(key, bytes, out);
        let log = &mut self.logs[key];
        let next = stored.extent.next();
        log.end = log.end.max(next);
        let Some(tail) = &mut log.tail else {
            bug!("{} is read for nobody, up to {next}", log.id);
            return;
        };
        let previous = tail.next.before();
        tail.next = tail.next.max(next);
        out.tell(FromTower::Live {
            log: log.id,
            generation: tail.generation,
            previous,
            stored,
        });
    }

    /// Numbers at the tail that no reader will get.
    pub(super) fn tail_gap(
        &mut self,
        key: TowerLogKey,
        extent: Extent,
        why: GapWhy,
        out: &mut TowerEffects,
    ) {
        let log = &mut self.logs[key];
        let next = extent.next();
        log.end = log.end.max(next);
        let Some(tail) = &mut log.tail else {
            bug!("{} is read for nobody, up to {next}", log.id);
            return;
        };
        tail.next = tail.next.max(next);
        out.tell(FromTower::LiveGap {
            log: log.id,
            generation: tail.generation,
            extent,
            why,
        });
    }

    /// Lets a tail's reader give as much again as it has given.
    fn grant_tail(&mut self, key: TowerLogKey, bytes: usize, out: &mut TowerEffects) {
        let window = self.config.tail_window_bytes;
        let Some(tail) = &mut self.logs[key].tail else {
            bug!("{bytes} bytes of {key:?} are read for nobody");
            return;
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        tail.given = tail.given.saturating_add(bytes);
        if tail.given < window / 4 {
            return;
        }
        if let Some(r) = tail.reader {
            let bytes = std::mem::take(&mut tail.given);
            out.call(Call::Credit { r, bytes });
        }
    }
}
