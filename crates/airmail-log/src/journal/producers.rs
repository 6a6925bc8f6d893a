//! The producer table (G3): the sequence that each producer may append next to each log, and the
//! results of its last batches, so that a retry gets the first one's result.
//!
//! An entry changes when a batch is accepted, and is undone, in reverse order, when the batch could
//! not be stored. The producer that has been silent for longest is forgotten first.
//!
//! Invariants, held by [`Producers::check`]:
//! - Each producer is in the order of its last batch exactly once, and no tick is above the newest.
//! - Its remembered results end where its next batch begins.

use super::config::JournalConfig;
use super::id::Slot;
use super::results::{Outcome, Results};
use crate::contract::Refusal;
use airmail_model::batch::ProducerStamp;
use airmail_model::{AppendTime, ProducerEpoch, ProducerId, ProducerSequence};
use std::collections::{BTreeMap, BTreeSet};

/// A producer in one log, by its slot.
pub(super) type Key = (ProducerId, Slot);

/// Where a producer stands in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Producer {
    pub(super) epoch: ProducerEpoch,
    pub(super) next: ProducerSequence,
    /// When it was last heard of, by the log's append time.
    pub(super) heard: AppendTime,
    /// The results of its last batches.
    pub(super) results: Results,
    /// Its place in the order of being heard of.
    tick: u64,
}

/// Ways to undo the acceptance of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// It was not known before.
    Forget,
    /// It was in the same epoch.
    Pop,
    /// It was in another epoch.
    Restore(Box<Producer>),
}

/// Verdict on a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the next one.
    Next,
    /// It has this result already.
    Duplicate(Outcome),
    /// It cannot be stored.
    Refuse(Refusal),
}

/// All producers of a journal.
#[derive(Debug, Default)]
pub(super) struct Producers {
    known: BTreeMap<Key, Producer>,
    order: BTreeSet<(u64, Key)>,
    tick: u64,
    results_max: usize,
    /// A planted bug: see the configuration.
    #[cfg(feature = "sabotage")]
    pub(super) greater_is_next: bool,
}

impl Producers {
    /// None, for a journal with these settings.
    pub(super) fn of(config: &JournalConfig) -> Producers {
        Producers {
            #[cfg(feature = "sabotage")]
            greater_is_next: config.greater_is_next,
            ..Producers::new(config.producer_results)
        }
    }

    pub(super) fn new(results_max: usize) -> Producers {
        Producers {
            results_max,
            ..Producers::default()
        }
    }

    /// Judges a batch of `records` records by its producer's last ones.
    pub(super) fn verdict(&self, slot: Slot, stamp: ProducerStamp, records: u32) -> Verdict {
        let found = stamp.sequence;
        let Some(producer) = self.known.get(&(stamp.id, slot)) else {
            // Input: a producer that is new, or was forgotten.
            return match found.0 {
                0 => Verdict::Next,
                _ => Verdict::Refuse(Refusal::UnknownProducer),
            };
        };
        let expected = match producer.epoch.cmp(&stamp.epoch) {
            std::cmp::Ordering::Greater => return Verdict::Refuse(Refusal::Fenced),
            std::cmp::Ordering::Less => ProducerSequence(0),
            std::cmp::Ordering::Equal => producer.next,
        };
        if found == expected {
            return Verdict::Next;
        }
        #[cfg(feature = "sabotage")]
        if self.greater_is_next && found > expected {
            return Verdict::Next;
        }
        if producer.epoch == stamp.epoch
            && let Some(outcome) = producer.results.of(found, records)
        {
            return Verdict::Duplicate(outcome);
        }
        Verdict::Refuse(Refusal::OutOfOrder { expected, found })
    }

    /// Takes over a batch that was the next one.
    pub(super) fn accept(&mut self, slot: Slot, stamp: ProducerStamp, outcome: Outcome) -> Undo {
        let key = (stamp.id, slot);
        self.tick += 1;
        let tick = self.tick;
        let fresh = Producer {
            epoch: stamp.epoch,
            next: ProducerSequence(0),
            heard: outcome.time,
            results: Results::default(),
            tick,
        };
        let (producer, undo) = match self.known.entry(key) {
            std::collections::btree_map::Entry::Vacant(vacant) => {
                (vacant.insert(fresh), Undo::Forget)
            }
            std::collections::btree_map::Entry::Occupied(occupied) => {
                let producer = occupied.into_mut();
                self.order.remove(&(producer.tick, key));
                if producer.epoch == stamp.epoch {
                    (producer, Undo::Pop)
                } else {
                    let old = std::mem::replace(producer, fresh);
                    (producer, Undo::Restore(Box::new(old)))
                }
            }
        };
        producer.tick = tick;
        producer.heard = producer.heard.max(outcome.time);
        producer.next = outcome.end();
        producer.results.push(outcome, self.results_max);
        self.order.insert((tick, key));
        undo
    }

    /// Takes an acceptance back; of several, the last one first.
    pub(super) fn undo(&mut self, slot: Slot, stamp: ProducerStamp, undo: Undo) {
        let key = (stamp.id, slot);
        let Some(producer) = self.known.get_mut(&key) else {
            // Input: a producer that was forgotten, for its age or with its log.
            return;
        };
        match undo {
            Undo::Pop => producer.pop(stamp),
            Undo::Restore(old) => {
                self.order.remove(&(producer.tick, key));
                self.order.insert((old.tick, key));
                *producer = *old;
            }
            Undo::Forget => {
                self.order.remove(&(producer.tick, key));
                self.known.remove(&key);
            }
        }
    }

    /// Takes over the stamp of a stored batch, when the journal opens.
    pub(super) fn replay(&mut self, slot: Slot, stamp: ProducerStamp, outcome: Outcome) {
        let stale = self.known.get(&(stamp.id, slot)).is_some_and(|producer| {
            producer.epoch > stamp.epoch
                || (producer.epoch == stamp.epoch && producer.next >= outcome.end())
        });
        if !stale {
            self.accept(slot, stamp, outcome);
        }
    }

    /// Forgets those heard of before `since`, and the oldest of more than `producers_max`.
    pub(super) fn forget(&mut self, since: AppendTime, producers_max: usize) {
        while let Some(&(tick, key)) = self.order.first() {
            let old = self
                .known
                .get(&key)
                .is_none_or(|producer| producer.heard < since);
            if !old && self.known.len() <= producers_max {
                return;
            }
            self.order.remove(&(tick, key));
            self.known.remove(&key);
        }
    }

    /// Forgets all of a log.
    pub(super) fn forget_log(&mut self, slot: Slot) {
        self.known.retain(|key, _| key.1 != slot);
        self.order.retain(|(_, key)| key.1 != slot);
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        assert_eq!(self.known.len(), self.order.len(), "producers in order");
        for (key, producer) in &self.known {
            assert!(
                self.order.contains(&(producer.tick, *key)) && producer.tick <= self.tick,
                "{key:?} was heard of at {}, and the newest is {}",
                producer.tick,
                self.tick
            );
            let end = producer.results.end();
            assert!(
                end.is_none_or(|end| end == producer.next),
                "{key:?} is at {}, and its results end at {end:?}",
                producer.next
            );
        }
    }

    /// All of them, from the one not heard of for longest on.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &Producer)> {
        self.order
            .iter()
            .filter_map(|(_, key)| Some((*key, self.known.get(key)?)))
    }

    /// One of them.
    pub(super) fn get(&self, key: Key) -> Option<&Producer> {
        self.known.get(&key)
    }

    /// Takes one over from a checkpoint.
    pub(super) fn insert(&mut self, key: Key, mut producer: Producer) {
        self.tick += 1;
        producer.tick = self.tick;
        self.order.insert((self.tick, key));
        self.known.insert(key, producer);
    }
}

impl Producer {
    /// One as a checkpoint has it.
    pub(super) fn new(
        epoch: ProducerEpoch,
        next: ProducerSequence,
        heard: AppendTime,
        results: Results,
    ) -> Producer {
        Producer {
            epoch,
            next,
            heard,
            results,
            tick: 0,
        }
    }

    /// Takes back its last batch.
    pub(super) fn pop(&mut self, stamp: ProducerStamp) {
        self.next = stamp.sequence;
        self.results.pop();
    }
}
