//! The tail of a log: one reader of the storage, whose batches and gaps go to the gateway that is attached.

use super::log::TailReader;
use super::storage_calls::Owner;
use super::{Tower, TowerEffects};
use crate::keys::TowerLogKey;
use crate::link::FromTower;
use airmail_log::{Call, GapWhy, Stored};
use airmail_model::bug;
use airmail_model::{Extent, LogId, Sequence};

impl Tower {
    /// Gives the gateway a log's tail, from `from` on.
    pub(super) fn attach(
        &mut self,
        log: LogId,
        generation: u64,
        from: Sequence,
        out: &mut TowerEffects,
    ) {
        let Some(key) = self.logs.find_open(log) else {
            // Input: a log that was deleted before the gateway was told.
            return;
        };
        self.stop_tail(key, out);
        self.logs[key].tail = Some(TailReader {
            generation,
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
        out.call(Call::Read {
            r,
            log: log.id,
            from: tail.next,
            scope: Box::default(),
            credit: self.config.tail_window_bytes,
        });
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
