//! Taking up calls that change a log: open, append, trim, seal, delete.

use super::Journal;
use super::cache::Cached;
use super::entry::{Entry, Recent};
use super::id::{FileOffset, Slot};
use super::log::{Answer, LogState};
use super::meta::Meta;
use super::producers::Verdict;
use super::results::Outcome;
use crate::contract::{Completion, LogSpec, Refusal, Tag};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::random::nth;
use airmail_model::{
    Batch, Checked, Durability, Extent, Incarnation, LogId, MapEpoch, Sequence, bug,
};

/// What a batch takes in a segment, about: with envelope and padding.
pub(super) fn cost(batch: &Batch) -> u64 {
    super::format::padded((super::format::ENVELOPE_BYTES + batch.bytes().len()) as u64)
}

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
    pub(super) fn tell_spec(&mut self, slot: Slot, t: Option<Tag>) {
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
        self.reserve(slot, 0);
    }

    pub(super) fn append(&mut self, t: Tag, id: LogId, map: MapEpoch, batch: Checked<Batch>) {
        let Some(slot) = self.logs.slot_of(id).filter(|_| batch.log() == id) else {
            // Input: an owner that names a log which is not open, or sends it another's batch.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let verdict = match batch.producer() {
            Some(stamp) => self.producers.verdict(slot, stamp, batch.numbers()),
            None => Verdict::Next,
        };
        let refused = self.refusal(slot, map, &batch);
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} of {id} has no log");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        match (verdict, refused) {
            // That it was stored is no help to anyone, if nobody finds it again.
            (Verdict::Duplicate(_), Some(why)) if self.faults.is_withheld() => log.refuse(t, why),
            (Verdict::Duplicate(known), _) => {
                let extent = Extent::starting_at(known.first, known.records);
                let at = known.time;
                log.answers.push_back(Answer::Waiting {
                    t,
                    extent,
                    at,
                    duplicate: true,
                });
            }
            (_, Some(why)) | (Verdict::Refuse(why), None) => log.refuse(t, why),
            (Verdict::Next, None) => self.accept(slot, t, batch),
        }
        self.log_moved(slot);
    }

    /// Refuses an append that found no room, in its turn.
    pub(super) fn busy(&mut self, t: Tag, id: LogId) {
        let why = Refusal::Busy {
            retry_after: self.config.probe_interval,
        };
        let log = self.logs.named_mut(id);
        match log {
            Some(log) => {
                log.refuse(t, why);
                log.answer(self.effects.completions());
            }
            None => self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            }),
        }
    }

    /// The refusal of a batch that is no retry and cannot be taken up.
    fn refusal(&self, slot: Slot, map: MapEpoch, batch: &Batch) -> Option<Refusal> {
        let log = self.logs.get(slot)?;
        let retry_after = self.config.probe_interval;
        let sealed = log.life.sealed;
        #[cfg(feature = "sabotage")]
        let sealed = sealed.filter(|_| !self.has_bug(Bug::SealForgotten));
        if let Some(next) = sealed {
            // While nothing is stored, not even this: what is asked for may have been stored before.
            let told = log.life.tells_seal() && !self.faults.is_withheld();
            let why = self.faults.trouble().filter(|_| !told);
            let sealed = Refusal::Sealed { next };
            return Some(why.map_or(sealed, |why| why.refusal(retry_after)));
        }
        if map != log.life.spec.epoch {
            return Some(Refusal::StaleMap {
                current: log.life.spec.epoch,
            });
        }
        if let Some(trouble) = self.faults.trouble() {
            return Some(trouble.refusal(retry_after));
        }
        let room = self
            .config
            .pending_bytes
            .saturating_sub(self.commits.bytes());
        let busy = self.calls.is_closing() || (cost(batch) > room && self.commits.bytes() > 0);
        busy.then_some(Refusal::Busy { retry_after })
    }

    /// Gives a batch its numbers.
    fn accept(&mut self, slot: Slot, t: Tag, batch: Checked<Batch>) {
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} takes a batch and has no log");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        let numbers = batch.numbers();
        let (first, time) = (log.numbers.next, log.last_time.max(self.time.wall()));
        log.numbers.next = log.numbers.next.plus(u64::from(numbers));
        log.last_time = time;
        let extent = Extent::starting_at(first, numbers);
        log.answers.push_back(Answer::Waiting {
            t,
            extent,
            at: time,
            duplicate: false,
        });
        log.recent.push_back(Recent {
            first,
            numbers,
            time,
            batch: batch.clone(),
        });
        let bytes = cost(&batch);
        let awaited = log.life.spec.durability > Durability::Memory;
        self.logs.cached(Cached { slot, first, bytes });
        let undo = batch.producer().map(|stamp| {
            let sequence = stamp.sequence;
            let outcome = Outcome {
                sequence,
                records: numbers,
                first,
                time,
            };
            (stamp, self.producers.accept(slot, stamp, outcome))
        });
        let entry = Entry {
            slot,
            first,
            numbers,
            time,
            batch,
            offset: FileOffset::START,
            undo,
            copy: false,
        };
        self.commits.accept(entry, awaited, self.time.mono());
        self.copy_first(slot);
        self.reserve(slot, u64::from(numbers));
    }

    /// Asks for a reservation of numbers where the log needs one.
    fn reserve(&mut self, slot: Slot, numbers: u64) {
        let ahead = self.config.reserve_numbers.max(numbers);
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} reserves numbers and has no log");
            return;
        };
        let weak = log.life.spec.durability < Durability::Fsync;
        if weak && log.numbers.reserving < log.numbers.next.plus(ahead / 2) {
            log.numbers.reserving = log.numbers.next.plus(ahead);
            let until = log.numbers.reserving;
            self.commands.give(Meta::Reserve { slot, until }, None);
        }
    }

    pub(super) fn trim_log(&mut self, t: Tag, id: LogId, before: Sequence) {
        let Some(slot) = self.logs.slot_of(id) else {
            // Input: an owner that names a log which is not open, or was deleted.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        if !self.trim_to(slot, before, Some(t)) {
            self.effects.tell(Completion::Done { t });
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
            let places = log.kept.list.iter().chain(&log.kept.leaving);
            self.upkeep.deleted(slot, places.map(|place| place.block));
        }
        self.readers.wake_log(slot);
        self.producers.forget_log(slot);
        self.faults.forget_log(slot);
        self.commands.give(Meta::Delete { slot }, Some(t));
        self.commits.forget_log(slot);
        self.logs.forget_recent(slot, Sequence(0));
    }

    /// Tells answers and readers of a log what has changed about it.
    pub(super) fn log_moved(&mut self, slot: Slot) {
        let backlog = self.commits.bytes() > self.config.pending_bytes / 2;
        let Some(log) = self.logs.get_mut(slot) else {
            // Input: a log that was deleted while its batches were on their way.
            return;
        };
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(Bug::SeenBeforeSync) {
            log.numbers.visible = log.numbers.next;
        }
        let moved = log.numbers.advance(log.life.spec.durability, backlog);
        log.answer(self.effects.completions());
        if moved {
            self.readers.wake_all(log.at_tail.drain(..));
        }
    }
}
