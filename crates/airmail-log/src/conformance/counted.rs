//! Records counted from 1: the numbers of the suite's cases, and the storage's own beside them.
//!
//! A case counts a log's records. A storage whose numbers are dense gives these very numbers; one whose
//! numbers have holes gives others. So that each case holds for both, the driver translates: what a case
//! asks for becomes a number of the storage, and what the storage tells becomes a count. On the way it holds
//! what is promised of all numbers: they rise, no two batches overlap, and a hole is never told as a loss.
//! Numbers as the storage gives them are the business of [`numbering`](super::numbering).

use super::{Driver, Seen, Subject};
use crate::contract::{Bounds, Call, Completion, GapWhy, Numbering};
use airmail_model::{Extent, LogId, Sequence};

/// The extents of one log's batches as its appends were answered, in order.
#[derive(Debug, Default)]
pub(super) struct Counted {
    extents: Vec<Extent>,
    /// Number of records before each of them.
    before: Vec<u64>,
    /// Number of records in all of them.
    records: u64,
}

impl Counted {
    /// Takes up a batch that was stored.
    pub(super) fn take(&mut self, log: LogId, extent: Extent) {
        let next = self.extents.last().map_or(Sequence::FIRST, |e| e.next());
        assert!(extent.first >= next, "{log}: {extent:?} after {next}");
        self.extents.push(extent);
        self.before.push(self.records);
        self.records += extent.numbers();
    }

    /// The extents.
    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The number of a record, by its count. Beyond the end: as far behind the last record.
    fn number(&self, count: Sequence) -> Sequence {
        let at = self.before.partition_point(|before| *before < count.0);
        let Some((extent, before)) = at.checked_sub(1).map(|n| (self.extents[n], self.before[n]))
        else {
            return count;
        };
        // With the next count behind a batch, this is the next number behind it.
        extent.first.plus(count.0 - before - 1)
    }

    /// The count of the record that has a number, or of the next after it.
    fn count(&self, number: Sequence) -> Sequence {
        let at = self.extents.partition_point(|extent| extent.last < number);
        let Some((extent, before)) = self.extents.get(at).zip(self.before.get(at)) else {
            return Sequence(self.records + 1);
        };
        Sequence(before + 1 + number.0.saturating_sub(extent.first.0))
    }

    /// The counts of a range; `None` if no record is in it.
    fn counts(&self, numbers: Extent) -> Option<Extent> {
        let (first, next) = (self.count(numbers.first), self.count(numbers.next()));
        let last = next.before();
        (first < next).then_some(Extent { first, last })
    }

    /// A delivery in counts; `None` for a hole.
    fn seen(&self, log: LogId, seen: Seen) -> Option<Seen> {
        Some(match seen {
            Seen::Batch(mut stored) => {
                stored.base = self.count(stored.base);
                stored.extent = self.counts(stored.extent)?;
                Seen::Batch(stored)
            }
            Seen::Gap(extent, why) => {
                let counts = self.counts(extent);
                assert!(
                    counts.is_some() || why != GapWhy::Loss,
                    "{log}: no record ever had a number in {extent:?}, and it is told as lost"
                );
                Seen::Gap(counts?, why)
            }
            Seen::Tail(next) => Seen::Tail(self.count(next)),
            Seen::Sealed(last, map) => Seen::Sealed(self.count(last.plus(1)).before(), map),
            Seen::Effective(edit, at) => Seen::Effective(edit, at.map(|at| self.count(at))),
            Seen::WantsLost => Seen::WantsLost,
            Seen::Ended(why) => Seen::Ended(why),
        })
    }

    fn bounds(&self, bounds: &mut Bounds) {
        for number in [&mut bounds.first, &mut bounds.next, &mut bounds.reach] {
            *number = self.count(*number);
        }
    }

    fn answer(&self, answer: &mut Completion) {
        match answer {
            Completion::Opened { bounds, .. } | Completion::Bounds { bounds, .. } => {
                self.bounds(bounds);
            }
            Completion::Appended { extent, .. } => {
                *extent = self.counts(*extent).unwrap_or(*extent);
            }
            Completion::Found { at, .. } => *at = self.count(*at),
            Completion::Topics { page, .. } => {
                for topic in page {
                    topic.last = self.count(topic.last);
                }
            }
            _ => {}
        }
    }
}

impl<S: Subject> Driver<'_, S> {
    /// Whether a case's counts are the storage's numbers.
    #[must_use]
    pub fn is_dense(&mut self) -> bool {
        self.capabilities().numbering == Numbering::Dense
    }

    /// The storage's numbers of the batches that were stored in a log, in order.
    #[must_use]
    pub fn extents(&self, log: LogId) -> Vec<Extent> {
        let counted = self.counted.get(&log);
        counted.map_or_else(Vec::new, |counted| counted.extents().to_vec())
    }

    /// The storage's number for a count.
    pub(super) fn number_of(&mut self, log: LogId, count: Sequence) -> Sequence {
        if self.is_dense() {
            return count;
        }
        self.counted.entry(log).or_default().number(count)
    }

    /// The count for the storage's number.
    pub(super) fn count_of(&mut self, log: LogId, number: Sequence) -> Sequence {
        if self.is_dense() {
            return number;
        }
        self.counted.entry(log).or_default().count(number)
    }

    /// A call that names counts, for the storage.
    pub(super) fn numbered(&mut self, call: Call) -> Call {
        match call {
            Call::Trim { t, log, before } => Call::Trim {
                t,
                log,
                before: self.number_of(log, before),
            },
            call => call,
        }
    }

    /// An answer of the storage, in counts.
    pub(super) fn in_counts(&mut self, log: LogId, mut answer: Completion) -> Completion {
        if !self.is_dense() {
            self.counted.entry(log).or_default().answer(&mut answer);
        }
        answer
    }

    /// Deliveries of the storage, in counts.
    pub(super) fn seen_in_counts(&mut self, log: LogId, seen: Vec<Seen>) -> Vec<Seen> {
        if self.is_dense() {
            return seen;
        }
        let counted = self.counted.entry(log).or_default();
        seen.into_iter()
            .filter_map(|seen| counted.seen(log, seen))
            .collect()
    }
}
