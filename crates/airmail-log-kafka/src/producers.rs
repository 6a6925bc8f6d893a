//! Producers of one log as its readers know them: which record is a copy, and is left out when it is read.
//!
//! The verdict on a record is a *function of the log before it*, and of nothing else: no clock, no order of arrival,
//! no reader's place. So every reader on every node leaves out the same records. The rule: a record is left out if it
//! is *stale*, or if its (epoch, sequence) is not above its producer's last one that was not left out. Everything
//! else is taken, holes too: whoever sends keeps the order, so a hole was left by what was never acknowledged, and
//! what was acknowledged behind it must not be lost.
//!
//! A record is *stale* if it was appended more than [`STALE_MS`] after it was handed over. So a copy that a queue has
//! held for a day does not come when its producer is forgotten.
//!
//! Forgetting goes by the log, too: at a record, producers are forgotten whose last record lies more than
//! [`FORGET_MS`] before it, by the highest append time so far; then, beyond [`KNOWN_MAX`], the oldest one that is
//! older than [`YOUNG_MS`]; and beyond [`KNOWN_HARD_MAX`] the oldest, whatever its age.
//!
//! Invariant `in_place_order`: each producer is known at one place, and places and times rise together.

use crate::place::Offset;
use airmail_model::batch::ProducerStamp;
use airmail_model::{ProducerEpoch, ProducerId};
use std::collections::BTreeMap;

/// Time between hand-over and append beyond which a record is stale, in milliseconds.
pub const STALE_MS: i64 = 10 * 60 * 1000;
/// Age at which a producer is forgotten, in milliseconds.
pub const FORGET_MS: i64 = 24 * 60 * 60 * 1000;
/// Age below which a producer is not forgotten for want of room, in milliseconds. Far above [`STALE_MS`].
pub const YOUNG_MS: i64 = 60 * 60 * 1000;
/// Number of producers beyond which old ones are forgotten.
pub const KNOWN_MAX: usize = 100_000;
/// Number of producers beyond which the oldest is forgotten.
pub const KNOWN_HARD_MAX: usize = 400_000;

/// Bounds on the producers that are known. They are the same for all readers of a cluster; tests have small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownBounds {
    /// Number beyond which old ones are forgotten.
    pub soft: usize,
    /// Number beyond which the oldest is forgotten.
    pub hard: usize,
}

impl Default for KnownBounds {
    fn default() -> KnownBounds {
        KnownBounds {
            soft: KNOWN_MAX,
            hard: KNOWN_HARD_MAX,
        }
    }
}

/// The most holes of a producer that are told apart.
pub(crate) const HOLES_MAX: usize = 8;

/// The last record of a producer that was not left out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Last {
    epoch: ProducerEpoch,
    /// The sequence of the last message.
    sequence: u64,
    at: Offset,
    /// Ranges of sequences below it that never came, first and last, ascending. No verdict goes by them.
    holes: Vec<(u64, u64)>,
}

impl Last {
    fn hole(&mut self, first: u64, last: u64) {
        self.holes.push((first, last));
        if self.holes.len() > HOLES_MAX {
            // What lies between counts as missing, too: that is the safe side.
            let (_, end) = self.holes.remove(1);
            self.holes[0].1 = end;
        }
    }
}

/// The facts of a record that its verdict needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFacts {
    /// Where it is; above all before it.
    pub offset: Offset,
    /// When it was appended, by its leader's clock: milliseconds since 1970.
    pub appended_ms: i64,
    /// When it was handed over, by its sender's clock.
    pub sent_ms: i64,
    /// Its producer, and the sequence of its first message.
    pub stamp: Option<ProducerStamp>,
    /// Number of its messages, 1 or more.
    pub messages: u32,
}

/// A producer as it is known at a place, for a statement about that place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) id: ProducerId,
    pub(crate) epoch: ProducerEpoch,
    /// The sequence of its last message.
    pub(crate) sequence: u64,
    pub(crate) at: Offset,
    /// The log's highest append time there.
    pub(crate) seen_ms: i64,
    /// Ranges of sequences that never came, at most [`HOLES_MAX`].
    pub(crate) holes: Vec<(u64, u64)>,
}

/// The producers of a log, as of a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Producers {
    known: BTreeMap<ProducerId, Last>,
    /// Each producer at its last place, with the log's highest append time there.
    by_place: BTreeMap<Offset, (ProducerId, i64)>,
    /// The highest append time so far, in milliseconds.
    latest_ms: i64,
    /// The most that were known at a time.
    most: u64,
    bounds: KnownBounds,
}

impl Producers {
    /// Nobody, at a log's beginning.
    #[must_use]
    pub fn new(bounds: KnownBounds) -> Producers {
        Producers {
            bounds,
            ..Producers::default()
        }
    }

    /// Producers as they were stated: the highest append time, the most that were known, and whom. `None`: these are none
    /// that could have been.
    pub(crate) fn restore(
        bounds: KnownBounds,
        latest_ms: i64,
        most: u64,
        stated: Vec<Known>,
    ) -> Option<Producers> {
        let count = stated.len();
        let mut producers = Producers {
            latest_ms,
            most,
            ..Producers::new(bounds)
        };
        for known in stated {
            producers
                .by_place
                .insert(known.at, (known.id, known.seen_ms));
            let last = Last {
                epoch: known.epoch,
                sequence: known.sequence,
                at: known.at,
                holes: known.holes,
            };
            producers.known.insert(known.id, last);
        }
        let is_sound = producers.known.len() == count && producers.by_place.len() == count;
        is_sound.then_some(producers)
    }

    /// Everybody who is known, by ids.
    pub(crate) fn known(&self) -> impl Iterator<Item = Known> {
        self.known.iter().map(|(id, last)| Known {
            id: *id,
            epoch: last.epoch,
            sequence: last.sequence,
            at: last.at,
            seen_ms: self.by_place.get(&last.at).map_or(0, |(_, ms)| *ms),
            holes: last.holes.clone(),
        })
    }

    /// The highest append time so far, in milliseconds since 1970.
    pub(crate) fn latest_ms(&self) -> i64 {
        self.latest_ms
    }

    /// The most producers that were known at a time.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Forgets by a clock, and not by the log: a planted bug.
    #[cfg(feature = "sabotage")]
    pub(crate) fn forget_by(&mut self, wall_ms: i64) {
        self.latest_ms = self.latest_ms.max(wall_ms);
        self.forget();
    }

    /// Number of producers that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nobody is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The last epoch and sequence of a producer that was not left out.
    #[must_use]
    pub fn last(&self, id: ProducerId) -> Option<(ProducerEpoch, u64)> {
        let last = self.known.get(&id)?;
        Some((last.epoch, last.sequence))
    }

    /// Whether every message of a batch is in the log and was not left out, be it in this record or in a copy before it:
    /// so far as is known, where it is said that one is.
    #[must_use]
    pub fn holds(&self, stamp: &ProducerStamp, messages: u32) -> bool {
        let first = stamp.sequence.0;
        let last = first.saturating_add(u64::from(messages.max(1)) - 1);
        self.known.get(&stamp.id).is_some_and(|of| {
            let is_missing = |hole: &(u64, u64)| hole.0 <= last && first <= hole.1;
            of.epoch == stamp.epoch && last <= of.sequence && !of.holes.iter().any(is_missing)
        })
    }

    /// Takes the log's next record. Number of its first messages that are left out: 0 for none, all of them for a copy.
    pub fn take(&mut self, record: &RecordFacts) -> u32 {
        self.latest_ms = self.latest_ms.max(record.appended_ms);
        self.forget();
        if record.appended_ms.saturating_sub(record.sent_ms) > STALE_MS {
            return record.messages;
        }
        let Some(stamp) = record.stamp else {
            // Input: a batch that asks for no recognition of its retries.
            return 0;
        };
        let last = self.known.get(&stamp.id);
        let first = stamp.sequence.0;
        let left_out = match last {
            Some(last) if stamp.epoch < last.epoch => record.messages.into(),
            Some(last) if stamp.epoch == last.epoch => {
                last.sequence.saturating_add(1).saturating_sub(first)
            }
            _ => 0,
        };
        let left_out = u32::try_from(left_out).map_or(record.messages, |n| n.min(record.messages));
        if left_out < record.messages {
            self.note(record.offset, stamp, record.messages);
        }
        left_out
    }

    /// Takes note of a batch that is not left out.
    fn note(&mut self, at: Offset, stamp: ProducerStamp, messages: u32) {
        let first = stamp.sequence.0;
        let before = self.known.remove(&stamp.id);
        if let Some(before) = &before {
            self.by_place.remove(&before.at);
        }
        let same = before.filter(|before| before.epoch == stamp.epoch);
        let next = same
            .as_ref()
            .map_or(0, |same| same.sequence.saturating_add(1));
        let mut last = Last {
            epoch: stamp.epoch,
            sequence: first.saturating_add(u64::from(messages.max(1)) - 1),
            at,
            holes: same.map(|same| same.holes).unwrap_or_default(),
        };
        if first > next {
            last.hole(next, first - 1);
        }
        self.known.insert(stamp.id, last);
        self.by_place.insert(at, (stamp.id, self.latest_ms));
        self.most = self.most.max(self.known.len() as u64);
    }

    /// Forgets whoever is too old, or too many, at this place.
    fn forget(&mut self) {
        while let Some((at, (id, seen_ms))) = self.by_place.first_key_value() {
            let age = self.latest_ms.saturating_sub(*seen_ms);
            let is_due = age > FORGET_MS
                || self.known.len() > self.bounds.soft && age > YOUNG_MS
                || self.known.len() > self.bounds.hard;
            if !is_due {
                return;
            }
            let (at, id) = (*at, *id);
            self.by_place.remove(&at);
            self.known.remove(&id);
        }
    }

    /// Asserts what the module's documentation says.
    pub fn check(&self) {
        assert_eq!(self.known.len(), self.by_place.len(), "in_place_order");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::ProducerSequence;
    use proptest::prelude::*;

    const HOUR_MS: i64 = 60 * 60 * 1000;

    fn facts(offset: u64, at_ms: i64, producer: (u64, u32, u64), messages: u32) -> RecordFacts {
        let (id, epoch, sequence) = producer;
        RecordFacts {
            offset: Offset(offset),
            appended_ms: at_ms,
            sent_ms: at_ms,
            stamp: Some(ProducerStamp {
                id: ProducerId(id),
                epoch: ProducerEpoch(epoch),
                sequence: ProducerSequence(sequence),
            }),
            messages,
        }
    }

    #[test]
    fn a_copy_is_left_out_and_a_hole_is_taken() {
        let mut known = Producers::new(KnownBounds::default());
        assert_eq!(known.take(&facts(1, 0, (5, 1, 0), 2)), 0);
        assert_eq!(known.take(&facts(2, 0, (5, 1, 0), 2)), 2, "a copy");
        assert_eq!(known.take(&facts(3, 0, (5, 1, 4), 2)), 0, "behind a hole");
        assert_eq!(
            known.take(&facts(4, 0, (5, 1, 2), 2)),
            2,
            "the hole, too late"
        );
        assert_eq!(known.take(&facts(5, 0, (5, 1, 5), 3)), 1, "old in part");
        assert_eq!(known.take(&facts(6, 0, (5, 2, 0), 1)), 0, "a newer epoch");
        assert_eq!(known.take(&facts(7, 0, (5, 1, 8), 1)), 1, "an older epoch");
        assert_eq!(known.take(&facts(8, 0, (6, 1, 9), 1)), 0, "somebody else");
        known.check();
    }

    #[test]
    fn a_straggler_is_left_out_and_changes_nothing() {
        let mut known = Producers::new(KnownBounds::default());
        let mut late = facts(1, STALE_MS + 1, (5, 1, 7), 1);
        late.sent_ms = 0;
        assert_eq!(known.take(&late), 1);
        assert_eq!(known.last(ProducerId(5)), None);
        late.stamp = None;
        assert_eq!(known.take(&late), 1, "without a producer too");
        assert_eq!(known.take(&facts(2, STALE_MS + 1, (5, 1, 0), 1)), 0);
    }

    #[test]
    fn a_producer_is_forgotten_by_the_logs_time_and_not_by_a_clock_that_steps_back() {
        let mut known = Producers::new(KnownBounds::default());
        known.take(&facts(1, 0, (5, 1, 0), 1));
        known.take(&facts(2, FORGET_MS, (6, 1, 0), 1));
        assert!(known.last(ProducerId(5)).is_some());
        known.take(&facts(3, FORGET_MS + 1, (6, 1, 1), 1));
        assert_eq!(known.last(ProducerId(5)), None);
        known.take(&facts(4, 0, (6, 1, 2), 1));
        assert_eq!(known.take(&facts(5, 0, (6, 1, 2), 1)), 1, "still known");
        known.check();
    }

    #[test]
    fn too_many_producers_are_forgotten_only_when_old_and_beyond_the_hard_bound_at_once() {
        let mut known = Producers::new(KnownBounds { soft: 2, hard: 4 });
        for id in 1..=4 {
            known.take(&facts(id, 0, (id, 1, 0), 1));
        }
        known.take(&facts(5, HOUR_MS, (4, 1, 1), 1));
        assert_eq!(known.len(), 4, "none is older than an hour");
        known.take(&facts(6, HOUR_MS, (9, 1, 0), 1));
        known.take(&facts(7, HOUR_MS, (9, 1, 1), 1));
        assert_eq!(
            (known.len(), known.last(ProducerId(1))),
            (4, None),
            "the oldest"
        );
        known.take(&facts(8, HOUR_MS + 1, (9, 1, 2), 1));
        assert_eq!(known.len(), 2, "the old ones");
        known.check();
    }

    #[test]
    fn a_batch_that_was_left_out_for_its_successor_is_not_held() {
        let mut known = Producers::new(KnownBounds::default());
        let stamp = |sequence| facts(0, 0, (5, 1, sequence), 1).stamp.unwrap();
        for (offset, sequence) in [(1, 0), (2, 1), (3, 3)] {
            known.take(&facts(offset, 0, (5, 1, sequence), 1));
        }
        let held = [0, 1, 2, 3, 4].map(|sequence| known.holds(&stamp(sequence), 1));
        assert_eq!(held, [true, true, false, true, false]);
        assert_eq!(known.take(&facts(4, 0, (5, 1, 2), 1)), 1);
        assert!(!known.holds(&stamp(2), 1), "it came too late");
        assert!(!known.holds(&stamp(1), 2) && known.holds(&stamp(0), 2));
        for n in 0..40 {
            known.take(&facts(5 + n, 0, (5, 1, 5 + 2 * n), 1));
        }
        assert!(
            (0..40).all(|n| !known.holds(&stamp(4 + 2 * n), 1)),
            "many holes"
        );
        assert!(known.holds(&stamp(83), 1));
        known.check();
    }

    /// The rule in as few words as there are: a list of what was taken, and no bounds.
    #[derive(Default)]
    struct Simple {
        taken: Vec<(u64, u32, u64)>,
    }

    impl Simple {
        fn take(&mut self, (id, epoch, first): (u64, u32, u64), messages: u32) -> u32 {
            let mut left_out = 0;
            for sequence in first..first + u64::from(messages) {
                let above = |other: &(u64, u32, u64)| {
                    other.0 == id && (other.1, other.2) >= (epoch, sequence)
                };
                if self.taken.iter().any(above) {
                    left_out += 1;
                } else {
                    self.taken.push((id, epoch, sequence));
                }
            }
            left_out
        }
    }

    proptest! {
        #[test]
        fn the_rule_is_that_of_a_list_of_everything(
            records in prop::collection::vec((1_u64..4, 1_u32..4, 0_u64..12, 1_u32..5), 0..60),
        ) {
            let (mut known, mut simple) = (Producers::default(), Simple::default());
            known.bounds = KnownBounds::default();
            for (n, (id, epoch, first, messages)) in records.into_iter().enumerate() {
                let record = facts(n as u64, n as i64, (id, epoch, first), messages);
                let left_out = known.take(&record);
                prop_assert_eq!(left_out, simple.take((id, epoch, first), messages));
                known.check();
            }
        }

        #[test]
        fn nothing_that_was_sent_in_order_is_lost_or_taken_twice(
            copies in prop::collection::vec((0_usize..8, 0_usize..8), 0..40),
        ) {
            // First copies in order; further copies of anything that is there already, anywhere.
            let mut log: Vec<u64> = (0..8).collect();
            for (of, behind) in copies {
                let first = log.iter().position(|n| *n == of as u64).unwrap();
                let at = (first + 1 + behind).min(log.len());
                log.insert(at, of as u64);
            }
            let mut known = Producers::new(KnownBounds::default());
            let mut taken = Vec::new();
            for (n, sequence) in log.iter().enumerate() {
                if known.take(&facts(n as u64, 0, (5, 1, *sequence), 1)) == 0 {
                    taken.push(*sequence);
                }
            }
            prop_assert_eq!(taken, (0..8).collect::<Vec<_>>());
        }
    }
}
