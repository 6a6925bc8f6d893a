//! Events of whole logs and producers: seals, deletions, other settings, new lives; a producer that
//! begins anew while its former self is still about.

use super::answers::contract;
use super::{Asked, StorageRun, retention};
use crate::batching::{Part, batch, topic_name};
use crate::census::Kind;
use crate::invariants::{Checked, Violation};
use crate::tuning;
use airmail_log::{Bounds, Call, LogSpec, LogStorage, Refusal, Tag};
use airmail_model::batch::ProducerStamp;
use airmail_model::{
    Durability, Extent, Incarnation, MapEpoch, ProducerEpoch, ProducerId, ProducerSequence,
    Sequence, Synced,
};

/// The map that a sealed log names.
pub(super) const SEALED_FOR: MapEpoch = MapEpoch(2);

impl StorageRun {
    /// Lets the seed's events happen to a log or a producer.
    pub(super) fn upheave(&mut self) {
        let log = self.chance.index(self.logs.len());
        let line = self.chance.index(self.lines.len());
        if self.chance.chance(self.weather.swarm.restarted) {
            self.restart(line);
        }
        if self.chance.chance(1_000) {
            self.append_stale(line);
        }
        if self.logs[log].absent && self.chance.chance(20_000) {
            self.logs[log].absent = false;
            self.open_log(log);
        }
        if !self.logs[log].opened {
            return;
        }
        if self.chance.chance(self.weather.swarm.sealed) {
            self.seal(log);
        } else if self.chance.chance(self.weather.swarm.deleted) {
            self.delete(log);
        } else if self.chance.chance(self.weather.swarm.updated) && !self.volatile {
            self.respecify(log);
        }
    }

    fn seal(&mut self, log: usize) {
        let tag = self.tag(Asked::Seal(log));
        let state = &mut self.logs[log];
        state.seal.get_or_insert(tag);
        self.evidence.count(Kind::Sealed);
        let id = state.log;
        self.evidence.note(format_args!("seal {id}"));
        if let Some(storage) = &mut self.storage {
            storage.submit(Call::Seal {
                t: tag,
                log: id,
                next: SEALED_FOR,
            });
        }
    }

    /// Checks that nothing that was asked for after an answered seal is stored.
    pub(super) fn check_seal(&self, line: usize, tag: Tag, duplicate: bool) -> Checked {
        let state = &self.logs[self.lines[line].log];
        let later = state.seal.is_some_and(|seal| tag > seal);
        if duplicate || !state.sealed || !later {
            return Ok(());
        }
        let detail = format!("{} is sealed, and stored append {}", state.log, tag.0);
        Err(Violation::new("G1 a seal holds", detail))
    }

    fn delete(&mut self, log: usize) {
        let id = self.logs[log].log;
        self.evidence.note(format_args!("delete {id}"));
        self.evidence.count(Kind::Deleted);
        let about = |run: &StorageRun, call: &Asked| run.log_of(call) == log;
        let calls = self.calls.iter().filter(|(_, call)| about(self, call));
        let tags: Vec<Tag> = calls.map(|(tag, _)| *tag).collect();
        for tag in tags {
            self.calls.remove(&tag);
            self.orphans.insert(tag);
        }
        for reader in self.readers.values_mut().filter(|reader| reader.log == log) {
            (reader.stopping, reader.orphan) = (true, true);
        }
        let tag = self.tag(Asked::Delete(log));
        self.forget(log);
        let state = &mut self.logs[log];
        (state.opened, state.may_be_new) = (false, true);
        let older = state.spec;
        state.spec.as_of = older.as_of.plus(1);
        let as_of = state.spec.as_of;
        if let Some(storage) = &mut self.storage {
            storage.submit(Call::Delete {
                t: tag,
                log: id,
                as_of,
                origin: Box::default(),
            });
        }
        self.open_late(log, older);
    }

    /// Another one that has slept opens a log by what was said before.
    fn open_late(&mut self, log: usize, older: LogSpec) {
        let t = self.tag(Asked::OpenLate(log));
        self.evidence.count(Kind::OpenedLate);
        if let Some(storage) = &mut self.storage {
            storage.submit(Call::Open {
                t,
                log: self.logs[log].log,
                spec: Box::new(older),
            });
        }
    }

    /// A log is open, by what was said before: it has to be as it was.
    pub(super) fn opened_late(&self, log: usize) -> Checked {
        let state = &self.logs[log];
        if state.opened {
            return Ok(());
        }
        contract(&format!(
            "{} is deleted as of {}, and an older spec has made it anew",
            state.log, state.spec.as_of
        ))
    }

    /// A log is not opened by what was said before: right if it is deleted.
    pub(super) fn late_refused(&self, log: usize, why: &Refusal) -> Checked {
        let state = &self.logs[log];
        if state.opened && *why == Refusal::NoLog {
            return contract(&format!("{} is open, and is not there", state.log));
        }
        Ok(())
    }

    /// The deletion is durable: that life is over, and another may begin.
    pub(super) fn deleted(&mut self, log: usize) {
        let state = &mut self.logs[log];
        state.dead.insert(state.incarnation);
        state.absent = true;
    }

    fn log_of(&self, call: &Asked) -> usize {
        match *call {
            Asked::Append { line } | Asked::Doomed { line } => self.lines[line].log,
            Asked::Open(log)
            | Asked::OpenLate(log)
            | Asked::Bounds(log)
            | Asked::FindTime { log, .. }
            | Asked::Topics { log }
            | Asked::Trim(log)
            | Asked::Seal(log)
            | Asked::Delete(log) => log,
        }
    }

    /// Excuses all records that a log has held.
    pub(super) fn forget(&mut self, log: usize) {
        let state = &mut self.logs[log];
        state.told = Sequence(1);
        self.evidence.ledger.forget(state.log);
        for line in self.lines.iter_mut().filter(|line| line.log == log) {
            // What it had sent is not sent again: should the deletion not last, it may be stored.
            line.restart();
        }
        self.waiting.retain(|reader| reader.log != log);
    }

    /// A log has been opened: in the life that it had, or in a new one.
    pub(super) fn begin_life(&mut self, log: usize, bounds: Bounds) -> Checked {
        let state = &mut self.logs[log];
        let life = bounds.incarnation;
        if state.dead.contains(&life) {
            return contract(&format!("{} has come back to life {life}", state.log));
        }
        if state.incarnation == life {
            return Ok(());
        }
        if state.incarnation != Incarnation(0) {
            if !state.may_be_new {
                return contract(&format!("{} has another life: {bounds:?}", state.log));
            }
            // One below `fsync` may have been made by the process before, and goes on higher.
            if bounds.next != Sequence::FIRST && !state.weak {
                return contract(&format!("{} begins a life with {bounds:?}", state.log));
            }
            self.evidence.count(if self.volatile {
                Kind::Reborn
            } else {
                Kind::Recreated
            });
            state.dead.insert(state.incarnation);
        }
        state.incarnation = life;
        state.may_be_new = self.volatile;
        (state.seal, state.sealed, state.trimmed) = (None, false, Sequence(0));
        Ok(())
    }

    /// A log is opened with other settings, as it stands.
    fn respecify(&mut self, log: usize) {
        let durability = tuning::durability(&mut self.chance, 3);
        let retention = retention(&mut self.chance);
        let state = &mut self.logs[log];
        let older = state.spec;
        state.changed |= state.spec.retention != retention;
        state.spec.as_of = older.as_of.plus(1);
        state.spec.retention = retention;
        state.spec.durability = Durability::single(durability);
        state.weak |= durability < Synced::Fsync;
        self.evidence.ledger.respecify(state.log, durability);
        self.evidence.count(Kind::Respecified);
        self.evidence
            .note(format_args!("{} is now {:?}", state.log, state.spec));
        self.open_log(log);
        self.open_late(log, older);
    }

    /// A producer begins anew, under a higher epoch.
    fn restart(&mut self, line: usize) {
        for tag in self.lines[line].restart() {
            self.calls.remove(&tag);
            self.orphans.insert(tag);
        }
    }

    /// Once the new epoch is known to the log, a batch of the old one comes.
    pub(super) fn haunt(&mut self, line: usize) {
        if let Some(stamp) = self.lines[line].ghost() {
            self.append_doomed(line, stamp, MapEpoch(1));
        }
    }

    /// A batch made with another map than the log's.
    fn append_stale(&mut self, line: usize) {
        if !self.logs[self.lines[line].log].opened {
            return;
        }
        let stamp = ProducerStamp {
            id: ProducerId(9_999),
            epoch: ProducerEpoch(1),
            sequence: ProducerSequence(0),
        };
        self.append_doomed(line, stamp, MapEpoch(7));
    }

    fn append_doomed(&mut self, line: usize, stamp: ProducerStamp, map: MapEpoch) {
        let state = &self.logs[self.lines[line].log];
        let (id, topic) = (state.log, topic_name(0));
        let message = self
            .evidence
            .ledger
            .create(9_999, id, &topic, state.spec.durability.synced);
        self.evidence.ledger.refuse(message);
        let part = Part {
            lane: id.lane,
            id: message,
            topic,
            filler: 0,
            ttl_ms: None,
            audience: Vec::new(),
            number: None,
        };
        let (batch, _) = batch(id, stamp, &[part]);
        let tag = self.tag(Asked::Doomed { line });
        if let Some(storage) = &mut self.storage {
            storage.submit(Call::Append {
                t: tag,
                log: id,
                map,
                batch,
                sole: false,
            });
        }
    }

    /// Reports a batch that was stored and should have been refused.
    pub(super) fn doomed_stored(&self, line: usize, extent: Extent) -> Checked {
        let log = self.logs[self.lines[line].log].log;
        let detail = format!(
            "{log} took a stale batch as {} to {}",
            extent.first, extent.last
        );
        Err(Violation::new("G3 what is stale is refused", detail))
    }

    /// Takes note of why something was refused.
    pub(super) fn count_refusal(&mut self, why: &Refusal) {
        self.evidence.count(match why {
            Refusal::Full { .. } => Kind::RefusedFull,
            Refusal::Busy { .. } => Kind::RefusedBusy,
            Refusal::Io(_) => Kind::RefusedIo,
            Refusal::OutcomeUnknown => Kind::RefusedUnknown,
            Refusal::OutOfOrder { .. } => Kind::RefusedOrder,
            Refusal::UnknownProducer => Kind::RefusedStranger,
            Refusal::Fenced => Kind::RefusedFenced,
            Refusal::Sealed { .. } => Kind::RefusedSealed,
            Refusal::StaleMap { .. } => Kind::RefusedStale,
            _ => return,
        });
    }
}
