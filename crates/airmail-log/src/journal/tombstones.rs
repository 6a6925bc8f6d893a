//! Tombstones: marks of deleted logs, by which an order of before the deletion is known.
//!
//! A mark is the place in log 0 of the command that deleted the log. It stays for ever, because nobody can say
//! who still sleeps and will open the log by what log 0 said before. What that costs is bounded by what log 0
//! keeps for ever anyway: the logs of one namespace that one command deleted share a mark, a *run*, and a
//! namespace is deleted with all its logs. So a deleted namespace leaves one run, in memory and in each
//! checkpoint. That is fewer bytes than the commands that made it and deleted it, of which each checkpoint
//! holds a copy too.
//!
//! Invariants, held by `Tombstones::check`:
//! - Runs do not overlap.
//! - Runs that could be one are one.

use super::codec::{Reader, Writer};
use airmail_model::{LogId, LogIndex, Sequence};
use std::collections::BTreeMap;

/// Mark of a deleted log: no spec of an earlier place in log 0 makes it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The log.
    pub log: LogId,
    /// Place of the deletion in log 0.
    pub as_of: Sequence,
}

/// Logs of one namespace and lane, with indexes in a row, that one command deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: LogId,
    last: LogIndex,
    as_of: Sequence,
}

impl Run {
    fn of(Tombstone { log, as_of }: Tombstone) -> Run {
        Run {
            first: log,
            last: log.index,
            as_of,
        }
    }

    fn last(&self) -> LogId {
        LogId {
            index: self.last,
            ..self.first
        }
    }

    fn contains(&self, log: LogId) -> bool {
        // Logs are in order of namespace, lane and index.
        self.first <= log && log <= self.last()
    }

    /// Whether another one is of the same command and begins where this one ends.
    fn goes_on_with(&self, next: &Run) -> bool {
        self.as_of == next.as_of && behind(self.last()) == Some(next.first)
    }
}

/// The log with the next index of the same namespace and lane.
fn behind(log: LogId) -> Option<LogId> {
    let index = LogIndex(log.index.0.checked_add(1)?);
    Some(LogId { index, ..log })
}

/// The marks of all deleted logs. See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tombstones {
    /// By their first log.
    runs: BTreeMap<LogId, Run>,
}

impl Tombstones {
    /// Bytes of a run in a checkpoint.
    const RUN_BYTES: usize = 17;

    /// Whether a log was deleted at a later place in log 0 than this.
    pub(super) fn is_deleted_after(&self, log: LogId, as_of: Sequence) -> bool {
        self.run_of(log).is_some_and(|run| as_of < run.as_of)
    }

    /// Leaves a mark; an earlier one of the same log goes, a later one stays.
    pub(super) fn add(&mut self, tombstone: Tombstone) {
        let Tombstone { log, as_of } = tombstone;
        let is_known = self.run_of(log).is_some_and(|run| as_of <= run.as_of);
        // Nothing is of a place before 0.
        if is_known || as_of == Sequence(0) {
            return;
        }
        self.cut_out(log);
        let mut run = Run::of(tombstone);
        let next = behind(log).and_then(|next| self.runs.get(&next).copied());
        if let Some(next) = next.filter(|next| run.goes_on_with(next)) {
            self.runs.remove(&next.first);
            run.last = next.last;
        }
        let before = self.runs.range(..log).next_back().map(|(_, run)| *run);
        if let Some(before) = before.filter(|before| before.goes_on_with(&run)) {
            run.first = before.first;
        }
        self.runs.insert(run.first, run);
    }

    /// Splits the run that has a log, and leaves the log out.
    fn cut_out(&mut self, log: LogId) {
        let Some(run) = self.run_of(log) else {
            // Input: a log that was never deleted before.
            return;
        };
        self.runs.remove(&run.first);
        if let Some(last) = log.index.0.checked_sub(1).map(LogIndex)
            && run.first < log
        {
            self.runs.insert(run.first, Run { last, ..run });
        }
        if let Some(first) = behind(log).filter(|first| run.contains(*first)) {
            self.runs.insert(first, Run { first, ..run });
        }
    }

    fn run_of(&self, log: LogId) -> Option<Run> {
        let (_, run) = self.runs.range(..=log).next_back()?;
        run.contains(log).then_some(*run)
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.count(self.runs.len());
        for run in self.runs.values() {
            out.log(run.first).u16(run.last.0).sequence(run.as_of);
        }
    }

    /// The marks of a checkpoint; `None` if it is damaged.
    pub(super) fn decode(input: &mut Reader<'_>) -> Option<Tombstones> {
        let mut all = Tombstones::default();
        let mut before: Option<Run> = None;
        for _ in 0..input.count(Tombstones::RUN_BYTES)? {
            let run = Run {
                first: input.log()?,
                last: LogIndex(input.u16()?),
                as_of: input.sequence()?,
            };
            let follows =
                before.is_none_or(|before| before.last() < run.first && !before.goes_on_with(&run));
            let is_possible = run.first <= run.last() && run.as_of > Sequence(0);
            before = Some(run).filter(|_| follows && is_possible);
            all.runs.insert(before?.first, run);
        }
        Some(all)
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let runs: Vec<&Run> = self.runs.values().collect();
        for pair in runs.windows(2) {
            let (before, run) = (pair[0], pair[1]);
            assert!(before.last() < run.first, "{before:?} overlaps {run:?}");
            assert!(!before.goes_on_with(run), "{before:?} goes on in {run:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::random::nth;
    use airmail_model::{Lane, NamespaceId};

    fn log(namespace: u32, index: u16) -> LogId {
        LogId {
            namespace: NamespaceId(namespace),
            lane: Lane::Normal,
            index: LogIndex(index),
        }
    }

    fn add(all: &mut Tombstones, log: LogId, as_of: u64) {
        let as_of = Sequence(as_of);
        all.add(Tombstone { log, as_of });
        all.check();
    }

    fn encoded(all: &Tombstones) -> Vec<u8> {
        let mut out = Writer::default();
        all.encode(&mut out);
        out.with_crc()
    }

    #[test]
    fn a_namespace_leaves_one_mark_however_many_logs_it_had_and_in_whatever_order_they_went() {
        for step in [1, 3, 5, 7] {
            let mut all = Tombstones::default();
            for n in 0..1024u32 {
                add(&mut all, log(1, (n * step % 1024) as u16), 9);
            }
            assert_eq!(all.runs.len(), 1);
            let of_checksum_and_count = 8;
            assert_eq!(
                encoded(&all).len(),
                Tombstones::RUN_BYTES + of_checksum_and_count
            );
        }
    }

    #[test]
    fn marks_are_as_a_map_has_them_by_log() {
        let mut all = Tombstones::default();
        let mut map: BTreeMap<LogId, u64> = BTreeMap::new();
        for n in 0..2_000 {
            let one = nth(7, n);
            let id = log(
                (one % 3) as u32,
                [0, 1, 2, 3, 4, 5, 6, u16::MAX][(one >> 8) as usize % 8],
            );
            let as_of = (one >> 16) % (n / 50 + 2);
            add(&mut all, id, as_of);
            let last = map.entry(id).or_default();
            *last = as_of.max(*last);
            for (id, last) in &map {
                for as_of in [last.saturating_sub(1), *last, last + 1] {
                    let deleted = all.is_deleted_after(*id, Sequence(as_of));
                    assert_eq!(
                        deleted,
                        as_of < *last,
                        "{id} as of {as_of}, deleted as of {last}"
                    );
                }
            }
        }
        let bytes = encoded(&all);
        let mut input = Reader::checked(&bytes).expect("sound");
        assert_eq!(Tombstones::decode(&mut input), Some(all));
    }

    #[test]
    fn marks_that_cannot_be_are_damage() {
        let run = |first: u16, last: u16, as_of: u64| (log(1, first), last, as_of);
        for (runs, sound) in [
            (vec![run(0, 3, 5), run(4, 4, 6)], true),
            (vec![run(0, 3, 5), run(5, 9, 5)], true),
            (vec![run(3, 2, 5)], false),
            (vec![run(0, 3, 0)], false),
            (vec![run(0, 3, 5), run(3, 4, 6)], false),
            (vec![run(4, 4, 6), run(0, 3, 5)], false),
            (vec![run(0, 3, 5), run(4, 4, 5)], false),
        ] {
            let mut out = Writer::default();
            out.count(runs.len());
            for (first, last, as_of) in &runs {
                out.log(*first).u16(*last).u64(*as_of);
            }
            let bytes = out.with_crc();
            let mut input = Reader::checked(&bytes).expect("sound");
            assert_eq!(Tombstones::decode(&mut input).is_some(), sound, "{runs:?}");
        }
    }
}
