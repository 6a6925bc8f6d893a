//! Runs of segments that were read for a reader of everything, kept for a while for the others.
//!
//! Readers of one log that are near each other, of several gateways or shards, would read the same from the files,
//! one after the other. Here whoever is behind another finds what that has had read, already decoded.
//!
//! Segments are only appended to, and their numbers are never used again, so what was read stays true.
//!
//! Invariant, held by [`RecentRuns::check`]: `bytes` is the total size of the runs, and each is in `order` once.

use super::id::{FileOffset, SegmentId};
use super::read::Loaded;
use super::table::Location;
use std::collections::{BTreeMap, VecDeque};

/// The runs that were read last. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct RecentRuns {
    by_place: BTreeMap<(SegmentId, FileOffset), Loaded>,
    /// The oldest first.
    order: VecDeque<(SegmentId, FileOffset)>,
    bytes: u64,
}

impl RecentRuns {
    /// Keeps a run, and forgets the oldest ones beyond `max` bytes.
    pub(super) fn keep(&mut self, run: &Loaded, max: u64) {
        let place = (run.segment, run.at);
        if run.bytes.len() as u64 > max {
            return;
        }
        self.bytes += run.bytes.len() as u64;
        match self.by_place.insert(place, run.clone()) {
            Some(before) => self.bytes -= before.bytes.len() as u64,
            None => self.order.push_back(place),
        }
        while self.bytes > max
            && let Some(oldest) = self.order.pop_front()
        {
            let forgotten = self.by_place.remove(&oldest);
            self.bytes -= forgotten.map_or(0, |run| run.bytes.len() as u64);
        }
    }

    /// The run that has all of a batch.
    pub(super) fn find(&self, segment: SegmentId, location: &Location) -> Option<Loaded> {
        let up_to = (segment, FileOffset(0))..=(segment, location.offset);
        let (_, run) = self.by_place.range(up_to).next_back()?;
        let end = run.at.0 + run.bytes.len() as u64;
        (end >= location.end().0).then(|| run.clone())
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self) {
        let sum: u64 = self
            .by_place
            .values()
            .map(|run| run.bytes.len() as u64)
            .sum();
        assert_eq!(self.bytes, sum, "the bytes of {} runs", self.by_place.len());
        let known = self
            .order
            .iter()
            .all(|place| self.by_place.contains_key(place));
        assert!(
            known && self.order.len() == self.by_place.len(),
            "runs in order: {:?}",
            self.order
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{AppendTime, Sequence};
    use bytes::Bytes;

    fn run(at: u64, length: usize) -> Loaded {
        Loaded {
            segment: SegmentId(1),
            at: FileOffset(at),
            bytes: Bytes::from(vec![0; length]),
            sound: VecDeque::new(),
            fresh: false,
        }
    }

    fn batch(offset: u64, length: u32) -> Location {
        Location {
            first: Sequence(1),
            numbers: 1,
            time: AppendTime(1),
            offset: FileOffset(offset),
            length,
        }
    }

    #[test]
    fn a_batch_is_found_in_a_run_that_has_all_of_it() {
        let mut runs = RecentRuns::default();
        runs.keep(&run(1000, 1000), 10_000);
        let found = |offset, length| runs.find(SegmentId(1), &batch(offset, length)).is_some();
        assert!(found(1000, 500) && found(1200, 500));
        assert!(!found(999, 500), "before the run");
        assert!(!found(1200, 900), "beyond its end");
        assert!(runs.find(SegmentId(2), &batch(1000, 500)).is_none());
    }

    #[test]
    fn the_oldest_runs_are_forgotten_first() {
        let mut runs = RecentRuns::default();
        for at in [0, 400, 800, 400] {
            runs.keep(&run(at, 400), 1_000);
            runs.check();
        }
        let found = [0, 400, 800].map(|at| runs.find(SegmentId(1), &batch(at, 100)).is_some());
        assert_eq!(found, [false, true, true]);
        runs.keep(&run(2_000, 1_001), 1_000);
        assert!(
            runs.find(SegmentId(1), &batch(2_000, 100)).is_none(),
            "larger than all"
        );
        runs.check();
    }
}
