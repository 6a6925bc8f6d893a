//! Taking up calls that change a log otherwise than by a batch: open, renew, trim, seal, delete.

use super::Journal;
use super::id::Slot;
use super::log::{Answer, LogState};
use super::meta::Meta;
use super::retention::trim;
use crate::contract::{Completion, LogSpec, Refusal, Tag};
use airmail_model::random::nth;
use airmail_model::{Incarnation, LogId, MapEpoch, Sequence, bug};

impl Journal {
    /// The life of a log that begins now.
    pub(super) fn incarnation(&self, slot: Slot) -> Incarnation {
        // Positive, so that it survives wherever a signed number carries it.
        Incarnation(nth(self.config.seed ^ 0x6c_6f67, u64::from(slot.0)) >> 1)
    }

    pub(super) fn open_log(&mut self, t: Tag, id: LogId, spec: LogSpec) {
        if spec.durability > self.config.strongest {
            let why = Refusal::Unsupported("durability");
            return self.effects.tell(Completion::Refused { t, why });
        }
        let known = self.logs.slot_of(id);
        let slot = known.unwrap_or(self.logs.next_slot());
        if known.is_none() {
            let incarnation = self.incarnation(slot);
            let mut log = LogState::new(id, slot, spec, incarnation);
            if self.config.new_incarnations {
                log.numbers.reserved = Sequence::MAX;
                log.numbers.reserving = Sequence::MAX;
            }
            self.logs.insert(log);
        }
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} of {id} has no log");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        if known.is_some() {
            if spec.epoch < log.life.spec.epoch {
                let why = Refusal::StaleMap {
                    current: log.life.spec.epoch,
                };
                return self.effects.tell(Completion::Refused { t, why });
            }
            if spec == log.life.spec && log.life.spec_told {
                let bounds = log.bounds();
                return self.effects.tell(Completion::Opened { t, bounds });
            }
            log.life.spec = spec;
            log.life.spec_told = false;
            self.log_moved(slot);
        }
        self.tell_spec(slot, Some(t));
    }

    /// Begins a new life of a log: numbers and batches stay.
    pub(super) fn renew_log(&mut self, t: Tag, id: LogId) {
        let Some(slot) = self.logs.named(id).map(|log| log.slot) else {
            // Input: an owner that names a log which is not open, or was deleted.
            let why = Refusal::NoLog;
            return self.effects.tell(Completion::Refused { t, why });
        };
        let which = nth(self.config.seed ^ 0x6c_6966, self.logs.renewed());
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} of {id} has no log");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        log.life.incarnation_asked = Incarnation(nth(which, u64::from(slot.0)) >> 1);
        log.life.spec_told = false;
        self.tell_spec(slot, Some(t));
    }

    /// Has a log's spec made durable.
    fn tell_spec(&mut self, slot: Slot, t: Option<Tag>) {
        let Some(log) = self.logs.get(slot) else {
            bug!("slot {slot} has a spec to be told and no log");
            return;
        };
        let (id, spec, incarnation) = (log.id, log.life.spec, log.life.incarnation_asked);
        let open = Meta::Open {
            slot,
            log: id,
            spec,
            incarnation,
        };
        self.commands.give(open, t);
        self.appending().reserve(slot, 0);
    }

    pub(super) fn trim_log(&mut self, t: Tag, id: LogId, before: Sequence) {
        let Some(slot) = self.logs.slot_of(id) else {
            // Input: an owner that names a log which is not open, or was deleted.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} is trimmed and has no log");
            return self.effects.tell(Completion::Done { t });
        };
        match trim(log, &self.segments, before) {
            Some(trim) => self.commands.give(trim, Some(t)),
            None => self.effects.tell(Completion::Done { t }),
        }
        self.log_moved(slot);
    }

    pub(super) fn seal_log(&mut self, t: Tag, id: LogId, next: MapEpoch) {
        let log = self.logs.named_mut(id);
        let Some(log) = log else {
            // Input: an owner that names a log which is not open, or was deleted.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let next = *log.life.sealed.get_or_insert(next);
        let slot = log.slot;
        self.commands.give(Meta::Seal { slot, next }, Some(t));
    }

    /// The log is gone at once; what was on its way is not known to be stored.
    pub(super) fn delete_log(&mut self, t: Tag, id: LogId) {
        let Some(slot) = self.logs.unname(id) else {
            // Input: an owner that names a log which is not open, or was deleted.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        if let Some(mut log) = self.logs.remove(slot) {
            for answer in log.answers.drain(..) {
                self.effects.tell(match answer {
                    Answer::Waiting { t, .. } | Answer::Failed { t } => Completion::Refused {
                        t,
                        why: Refusal::OutcomeUnknown,
                    },
                    Answer::Sealed { t, next } => Completion::Refused {
                        t,
                        why: Refusal::Sealed { next },
                    },
                    Answer::Ready(completion) => completion,
                });
            }
            self.readers.wake_all(log.at_tail.drain(..));
            self.upkeep.deleted(slot, log.kept.blocks());
        }
        self.readers.wake_log(slot);
        self.producers.forget_log(slot);
        self.faults.forget_log(slot);
        self.commands.give(Meta::Delete { slot }, Some(t));
        self.commits.forget_log(slot);
        self.logs.forget_recent(slot, Sequence(0));
    }
}
