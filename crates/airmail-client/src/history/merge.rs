//! The order in which the histories of several logs are given as one: by the time at which each message was appended.
//!
//! Within a log the order is the log's own, whatever the times are: only the next item of each log is compared. None is given
//! before the next of every log is known.

use airmail_model::{AppendTime, LogId, Sequence};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Turn of an item: before each one with a greater turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// When it was appended; `None` of what is no message, and comes at once.
    pub(super) appended: Option<AppendTime>,
    pub(super) log: LogId,
    /// Number of a message, or first of a gap.
    pub(super) first: Sequence,
}

/// Merge of the histories of several logs, which are numbered from 0.
#[derive(Debug)]
pub(super) struct Merge {
    /// Turns of the logs' next items.
    heads: BinaryHeap<Reverse<(Turn, usize)>>,
    /// Logs of which it is not known what is next.
    asked: Vec<usize>,
}

impl Merge {
    /// Makes a merge of so many logs.
    pub(super) fn new(logs: usize) -> Merge {
        Merge {
            heads: BinaryHeap::with_capacity(logs),
            asked: (0..logs).collect(),
        }
    }

    /// Lists the logs of which it is to be told what is next.
    pub(super) fn asked(&self) -> &[usize] {
        &self.asked
    }

    /// Asks `next` for the next item of each log of which it is not known: `Some(None)` where the log has no more, `None`
    /// where that is not known yet.
    pub(super) fn ask(&mut self, next: impl Fn(usize) -> Option<Option<Turn>>) {
        let Merge { heads, asked } = self;
        asked.retain(|log| {
            let answer = next(*log);
            heads.extend(answer.flatten().map(|turn| Reverse((turn, *log))));
            answer.is_none()
        });
    }

    /// Tells whether there is an item whose turn it may be.
    pub(super) fn has_head(&self) -> bool {
        !self.heads.is_empty()
    }

    /// Gives the log whose next item it is the turn of, and is asked for its next one. `None` at the end, and as long as
    /// something is asked.
    pub(super) fn take(&mut self) -> Option<usize> {
        if !self.asked.is_empty() {
            return None;
        }
        let Reverse((_, log)) = self.heads.pop()?;
        self.asked.push(log);
        Some(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::{Lane, LogIndex, NamespaceId};
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};
    use std::collections::VecDeque;

    fn turn(log: u16, appended: Option<i64>, first: u64) -> Turn {
        Turn {
            appended: appended.map(AppendTime),
            log: LogId {
                namespace: NamespaceId(1),
                lane: Lane::Normal,
                index: LogIndex(log),
            },
            first: Sequence(first),
        }
    }

    /// Merges logs of which everything is known.
    fn merged(logs: &[Vec<Turn>]) -> Vec<Turn> {
        let mut rest: Vec<VecDeque<Turn>> = logs
            .iter()
            .map(|log| log.iter().copied().collect())
            .collect();
        let mut merge = Merge::new(logs.len());
        let mut given = Vec::new();
        loop {
            merge.ask(|log| Some(rest[log].front().copied()));
            let Some(log) = merge.take() else {
                assert!(!merge.has_head());
                return given;
            };
            given.extend(rest[log].pop_front());
        }
    }

    #[test]
    fn messages_come_by_time_and_those_of_one_time_by_log_and_number() {
        let at = |log, appended, first| turn(log, Some(appended), first);
        let logs = [
            vec![at(0, 10, 1), at(0, 10, 2), at(0, 30, 3)],
            vec![at(1, 10, 1), at(1, 20, 2)],
            vec![],
        ];
        let wanted = [
            at(0, 10, 1),
            at(0, 10, 2),
            at(1, 10, 1),
            at(1, 20, 2),
            at(0, 30, 3),
        ];
        assert_eq!(merged(&logs), wanted);
    }

    #[test]
    fn a_gap_comes_as_soon_as_what_is_before_it_in_its_log() {
        let logs = [
            vec![turn(0, Some(10), 1), turn(0, None, 2), turn(0, Some(20), 5)],
            vec![turn(1, Some(15), 1)],
        ];
        let given: Vec<(u16, u64)> = merged(&logs)
            .into_iter()
            .map(|turn| (turn.log.index.0, turn.first.0))
            .collect();
        assert_eq!(given, [(0, 1), (0, 2), (1, 1), (0, 5)]);
    }

    #[test]
    fn nothing_is_given_before_the_next_of_every_log_is_known() {
        let mut merge = Merge::new(2);
        let first = turn(0, Some(10), 1);
        merge.ask(|log| (log == 0).then_some(Some(first)));
        assert_eq!((merge.take(), merge.asked()), (None, &[1][..]));
        assert!(merge.has_head());
        merge.ask(|_| Some(None));
        assert_eq!(merge.take(), Some(0));
        assert_eq!(merge.asked(), [0]);
        assert_eq!(merge.take(), None);
        merge.ask(|_| Some(None));
        assert_eq!((merge.take(), merge.asked().is_empty()), (None, true));
    }

    #[test]
    fn each_item_comes_once_in_its_logs_order_and_where_times_rise_all_are_in_order() {
        for seed in 0..200 {
            let mut random = SmallRng::seed_from_u64(seed);
            let times_rise = random.random();
            let logs = (0..random.random_range(0..5u16)).map(|log| {
                let mut times: Vec<i64> = (0..random.random_range(0..8u64))
                    .map(|_| random.random_range(0..20))
                    .collect();
                if times_rise {
                    times.sort_unstable();
                }
                let items = (1u64..).zip(times);
                items
                    .map(|(number, time)| turn(log, Some(time), number))
                    .collect()
            });
            let logs: Vec<Vec<Turn>> = logs.collect();
            let given = merged(&logs);
            for (log, items) in (0u16..).zip(&logs) {
                let own = given.iter().filter(|turn| turn.log.index.0 == log);
                let own: Vec<Turn> = own.copied().collect();
                assert_eq!(&own, items, "seed {seed}");
            }
            assert_eq!(given.len(), logs.iter().map(Vec::len).sum::<usize>());
            assert!(!times_rise || given.is_sorted(), "seed {seed}");
        }
    }
}
