//! Taking up calls that change a log: open, append, trim, seal, delete.

use super::Journal;
use super::log::{Answer, Entry, LogState, Recent};
use super::meta::Meta;
use super::producers::Verdict;
use super::results::Outcome;
use crate::contract::{Completion, LogSpec, Refusal, Tag};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::random::nth;
use airmail_model::{Batch, Checked, Durability, Extent, LogId, MapEpoch, Sequence};

/// What a batch takes in a segment, about: with envelope and padding.
pub(super) fn cost(batch: &Batch) -> u64 {
    super::format::padded((super::format::ENVELOPE_BYTES + batch.bytes().len()) as u64)
}

impl Journal {
    /// The life of a log that begins now.
    pub(super) fn incarnation(&self, slot: u32) -> u64 {
        // Positive, so that it survives wherever a signed number carries it.
        nth(self.config.seed ^ 0x6c_6f67, u64::from(slot)) >> 1
    }

    pub(super) fn open_log(&mut self, t: Tag, id: LogId, spec: LogSpec) {
        if spec.durability > self.config.strongest {
            let why = Refusal::Unsupported("durability");
            return self.out.push(Completion::Refused { t, why });
        }
        let known = self.slots.get(&id).copied();
        let slot = known.unwrap_or(self.next_slot);
        if known.is_none() {
            self.next_slot += 1;
            let incarnation = self.incarnation(slot);
            let mut log = LogState::new(id, slot, spec, incarnation);
            if self.config.new_incarnations {
                log.reserved = u64::MAX;
                log.reserving = u64::MAX;
            }
            self.logs.insert(slot, log);
            self.slots.insert(id, slot);
        }
        let Some(log) = self.logs.get_mut(&slot) else {
            return;
        };
        if known.is_some() {
            if spec.epoch < log.spec.epoch {
                let why = Refusal::StaleMap {
                    current: log.spec.epoch,
                };
                return self.out.push(Completion::Refused { t, why });
            }
            if spec == log.spec && log.spec_told {
                let bounds = log.bounds();
                return self.out.push(Completion::Opened { t, bounds });
            }
            log.spec = spec;
            log.spec_told = false;
            self.log_moved(slot);
        }
        self.tell_spec(slot, Some(t));
    }

    /// Begins a new life of a log: numbers and batches stay.
    pub(super) fn renew_log(&mut self, t: Tag, id: LogId) {
        let slot = self.slots.get(&id).copied();
        let Some((slot, log)) = slot.and_then(|slot| Some((slot, self.logs.get_mut(&slot)?)))
        else {
            let why = Refusal::NoLog;
            return self.out.push(Completion::Refused { t, why });
        };
        self.renewals += 1;
        let which = nth(self.config.seed ^ 0x6c_6966, self.renewals);
        log.incarnation_asked = nth(which, u64::from(slot)) >> 1;
        log.spec_told = false;
        self.tell_spec(slot, Some(t));
    }

    /// Has a log's spec made durable.
    pub(super) fn tell_spec(&mut self, slot: u32, t: Option<Tag>) {
        let Some(log) = self.logs.get(&slot) else {
            return;
        };
        let (id, spec, incarnation) = (log.id, log.spec, log.incarnation_asked);
        self.metas.push_back((
            Meta::Open {
                slot,
                log: id,
                spec,
                incarnation,
            },
            t,
        ));
        self.reserve(slot, 0);
    }

    pub(super) fn append(&mut self, t: Tag, id: LogId, map: MapEpoch, batch: Checked<Batch>) {
        let Some(&slot) = self.slots.get(&id).filter(|_| batch.log() == id) else {
            return self.out.push(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let verdict = match batch.producer() {
            Some(stamp) => self.producers.check(slot, stamp, batch.numbers()),
            None => Verdict::Next,
        };
        let refused = self.refusal(slot, map, &batch);
        let Some(log) = self.logs.get_mut(&slot) else {
            return;
        };
        match (verdict, refused) {
            // That it was stored is no help to anyone, if nobody finds it again.
            (Verdict::Duplicate(_), Some(why)) if self.withheld => log.refuse(t, why),
            (Verdict::Duplicate(known), _) => {
                let extent = Extent::starting_at(Sequence(known.first), known.records);
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
        let log = self.slots.get(&id).and_then(|slot| self.logs.get_mut(slot));
        match log {
            Some(log) => {
                log.refuse(t, why);
                log.answer(&mut self.out);
            }
            None => self.out.push(Completion::Refused {
                t,
                why: Refusal::NoLog,
            }),
        }
    }

    /// Why a batch that is no retry is not taken up.
    fn refusal(&self, slot: u32, map: MapEpoch, batch: &Batch) -> Option<Refusal> {
        let log = self.logs.get(&slot)?;
        let retry_after = self.config.probe_interval;
        let sealed = log.sealed;
        #[cfg(feature = "sabotage")]
        let sealed = sealed.filter(|_| !self.has_bug(Bug::SealForgotten));
        if let Some(next) = sealed {
            // While nothing is stored, not even this: what is asked for may have been stored before.
            let told = log.tells_seal() && !self.withheld;
            let why = self.trouble.as_ref().filter(|_| !told);
            let sealed = Refusal::Sealed { next };
            return Some(why.map_or(sealed, |why| why.refusal(retry_after)));
        }
        if map != log.spec.epoch {
            return Some(Refusal::StaleMap {
                current: log.spec.epoch,
            });
        }
        if let Some(trouble) = &self.trouble {
            return Some(trouble.refusal(retry_after));
        }
        let room = self.config.pending_bytes.saturating_sub(self.pending_bytes);
        let busy = self.closing || (cost(batch) > room && self.pending_bytes > 0);
        busy.then_some(Refusal::Busy { retry_after })
    }

    /// Gives a batch its numbers.
    fn accept(&mut self, slot: u32, t: Tag, batch: Checked<Batch>) {
        let Some(log) = self.logs.get_mut(&slot) else {
            return;
        };
        let numbers = batch.numbers();
        let (first, time) = (log.next, log.last_time.max(self.now.wall.0));
        log.next += u64::from(numbers);
        log.last_time = time;
        let extent = Extent::starting_at(Sequence(first), numbers);
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
        let awaited = log.spec.durability > Durability::Memory;
        self.gathering.add(awaited, self.now.mono);
        self.cache_order.push_back((slot, first, bytes));
        self.cache_bytes += bytes;
        self.pending_bytes += bytes;
        let undo = batch.producer().map(|stamp| {
            let sequence = stamp.sequence.0;
            let outcome = Outcome {
                sequence,
                records: numbers,
                first,
                time,
            };
            (stamp, self.producers.accept(slot, stamp, outcome))
        });
        self.pending.push_back(Entry {
            slot,
            first,
            numbers,
            time,
            batch,
            offset: 0,
            undo,
            copy: false,
        });
        self.copy_first(slot);
        self.reserve(slot, u64::from(numbers));
    }

    /// Asks for a reservation of numbers where the log needs one.
    fn reserve(&mut self, slot: u32, numbers: u64) {
        let ahead = self.config.reserve_numbers.max(numbers);
        let Some(log) = self.logs.get_mut(&slot) else {
            return;
        };
        let weak = log.spec.durability < Durability::Fsync;
        if weak && log.reserving < log.next.saturating_add(ahead / 2) {
            log.reserving = log.next.saturating_add(ahead);
            let until = log.reserving;
            self.metas.push_back((Meta::Reserve { slot, until }, None));
        }
    }

    pub(super) fn trim_log(&mut self, t: Tag, id: LogId, before: Sequence) {
        let Some(&slot) = self.slots.get(&id) else {
            return self.out.push(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        if !self.trim_to(slot, before.0, Some(t)) {
            self.out.push(Completion::Done { t });
        }
        self.log_moved(slot);
    }

    pub(super) fn seal_log(&mut self, t: Tag, id: LogId, next: MapEpoch) {
        let log = self.slots.get(&id).and_then(|slot| self.logs.get_mut(slot));
        let Some(log) = log else {
            return self.out.push(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let next = *log.sealed.get_or_insert(next);
        self.metas.push_back((
            Meta::Seal {
                slot: log.slot,
                next,
            },
            Some(t),
        ));
    }

    /// The log is gone at once; what was on its way is not known to be stored.
    pub(super) fn delete_log(&mut self, t: Tag, id: LogId) {
        let Some(slot) = self.slots.remove(&id) else {
            return self.out.push(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        if let Some(mut log) = self.logs.remove(&slot) {
            for answer in log.answers.drain(..) {
                self.out.push(match answer {
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
            self.runnable.extend(log.at_tail.drain(..));
            let places = log.places.iter().chain(&log.leaving);
            self.gone
                .extend(places.map(|place| (place.segment, place.block, slot)));
        }
        let readers = self.readers.values().filter(|reader| reader.slot == slot);
        self.runnable
            .extend(readers.map(|reader| reader.id).collect::<Vec<_>>());
        self.producers.forget_log(slot);
        self.failed.remove(&slot);
        self.metas.push_back((Meta::Delete { slot }, Some(t)));
        self.forget_pending(slot);
        self.forget_recent(slot, 0);
    }

    fn forget_pending(&mut self, slot: u32) {
        let gone = self.pending.iter().filter(|entry| entry.slot == slot);
        self.pending_bytes -= gone.map(|entry| cost(&entry.batch)).sum::<u64>();
        self.pending.retain(|entry| entry.slot != slot);
    }

    pub(super) fn tell_bounds(&mut self, t: Tag, id: LogId) {
        let log = self.slots.get(&id).and_then(|slot| self.logs.get(slot));
        self.out.push(match log {
            Some(log) => Completion::Bounds {
                t,
                bounds: log.bounds(),
            },
            None => Completion::Refused {
                t,
                why: Refusal::NoLog,
            },
        });
    }

    /// Tells answers and readers of a log what has changed about it.
    pub(super) fn log_moved(&mut self, slot: u32) {
        let backlog = self.pending_bytes > self.config.pending_bytes / 2;
        let Some(log) = self.logs.get_mut(&slot) else {
            return;
        };
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(Bug::SeenBeforeSync) {
            log.visible = log.next;
        }
        let moved = log.advance_visible(backlog);
        log.answer(&mut self.out);
        if moved {
            self.runnable.extend(log.at_tail.drain(..));
        }
    }

    /// Forgets the batches in memory from number `from` on.
    pub(super) fn forget_recent(&mut self, slot: u32, from: u64) {
        if let Some(log) = self.logs.get_mut(&slot) {
            log.recent
                .truncate(log.recent.partition_point(|recent| recent.first < from));
        }
        let bytes = &mut self.cache_bytes;
        self.cache_order.retain(|&(of, first, cost)| {
            let stays = of != slot || first < from;
            if !stays {
                *bytes -= cost;
            }
            stays
        });
    }

    /// Forgets the oldest batches in memory beyond the cache's size, if they are durable.
    pub(super) fn trim_cache(&mut self) {
        while self.cache_bytes > self.config.cache_bytes {
            let Some(&(slot, first, bytes)) = self.cache_order.front() else {
                return;
            };
            if let Some(log) = self.logs.get_mut(&slot) {
                if first >= log.durable {
                    return;
                }
                if log
                    .recent
                    .front()
                    .is_some_and(|recent| recent.first == first)
                {
                    log.recent.pop_front();
                }
            }
            self.cache_order.pop_front();
            self.cache_bytes -= bytes;
        }
    }
}
