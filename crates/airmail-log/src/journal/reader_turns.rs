//! Order in which readers have their turns.
//!
//! A reader at the tail of its log, whose next batch is in memory, goes before one that is behind, whatever their
//! lanes: lane high alone would let one who reads an old log overtake everybody who follows a live one. Within each
//! of the two, lane high goes before normal, but while normal waits too it gets its share of the bytes
//! ([`LaneTurns`]); readers of one lane go in order of their ids. Each reader has one turn in a step of
//! the journal, so nobody waits for more than that.
//!
//! Invariant, held by [`ReaderTurns::check`]: between two steps no reader waits here.

use crate::contract::ReaderId;
use airmail_model::{Lane, LaneTurns, NormalShare};
use std::collections::VecDeque;

/// Place of a reader among those that have a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Its next batch is in memory, or there is none yet.
    pub(super) at_tail: bool,
    /// The lane of its log.
    pub(super) lane: Lane,
}

/// Readers of both lanes, which go by turns.
#[derive(Debug, Default)]
pub(super) struct LaneLine {
    /// By [`Lane`] as an index.
    lanes: [VecDeque<ReaderId>; 2],
    turns: LaneTurns,
}

impl LaneLine {
    /// Nobody waits; lane normal has this share.
    pub(super) fn new(share: NormalShare) -> LaneLine {
        LaneLine {
            turns: LaneTurns::new(share),
            ..LaneLine::default()
        }
    }

    /// A reader waits behind those of its lane that do.
    pub(super) fn add(&mut self, r: ReaderId, lane: Lane) {
        self.lanes[lane as usize].push_back(r);
    }

    /// The next one, which waits no more, with its lane.
    pub(super) fn next(&mut self) -> Option<(ReaderId, Lane)> {
        let waiting = [0, 1].map(|lane: usize| !self.lanes[lane].is_empty());
        let lane = self.turns.next(waiting)?;
        Some((self.lanes[lane as usize].pop_front()?, lane))
    }

    /// A reader of this lane that was the next one had its turn, and so many bytes.
    pub(super) fn took(&mut self, lane: Lane, bytes: u64) {
        let other_waits = !self.lanes[lane.other() as usize].is_empty();
        self.turns.took(lane, bytes, other_waits);
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }
}

/// Readers that have a turn in this step and have not had it. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct ReaderTurns {
    tails: LaneLine,
    behind: LaneLine,
}

impl ReaderTurns {
    /// Nobody has a turn; lane normal has this share.
    pub(super) fn new(share: NormalShare) -> ReaderTurns {
        ReaderTurns {
            tails: LaneLine::new(share),
            behind: LaneLine::new(share),
        }
    }

    /// A reader has a turn in this step.
    pub(super) fn add(&mut self, r: ReaderId, standing: Standing) {
        self.line(standing.at_tail).add(r, standing.lane);
    }

    /// The next one, with its place.
    pub(super) fn next(&mut self) -> Option<(ReaderId, Standing)> {
        [true, false].into_iter().find_map(|at_tail| {
            let (r, lane) = self.line(at_tail).next()?;
            Some((r, Standing { at_tail, lane }))
        })
    }

    /// A reader that was the next one had its turn, and so many bytes.
    pub(super) fn took(&mut self, standing: Standing, bytes: u64) {
        self.line(standing.at_tail).took(standing.lane, bytes);
    }

    fn line(&mut self, at_tail: bool) -> &mut LaneLine {
        if at_tail {
            &mut self.tails
        } else {
            &mut self.behind
        }
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self) {
        let nobody = self.tails.is_empty() && self.behind.is_empty();
        assert!(nobody, "readers wait for a turn between two steps");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(at_tail: bool, lane: Lane) -> Standing {
        Standing { at_tail, lane }
    }

    /// The ids in the order of their turns, in each of which a reader gets so many bytes.
    fn order(turns: &mut ReaderTurns, bytes: u64) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some((r, standing)) = turns.next() {
            turns.took(standing, bytes);
            order.push(r.0);
        }
        turns.check();
        order
    }

    #[test]
    fn tails_go_before_who_is_behind_and_only_within_each_high_before_normal() {
        let mut turns = ReaderTurns::default();
        turns.add(ReaderId(1), standing(false, Lane::Normal));
        turns.add(ReaderId(2), standing(true, Lane::Normal));
        turns.add(ReaderId(3), standing(false, Lane::High));
        turns.add(ReaderId(4), standing(true, Lane::High));
        assert_eq!(order(&mut turns, 100), [4, 2, 3, 1]);
    }

    #[test]
    fn of_many_that_get_the_same_every_fourth_is_of_normal() {
        let mut turns = ReaderTurns::default();
        for r in 0..30 {
            turns.add(ReaderId(r), standing(false, Lane::Normal));
            turns.add(ReaderId(100 + r), standing(false, Lane::High));
        }
        let order = order(&mut turns, 100);
        let of_normal = order[..40].iter().filter(|r| **r < 100).count();
        assert_eq!((order[0], of_normal), (100, 10), "{order:?}");
        assert_eq!(order.len(), 60);
    }

    #[test]
    fn where_nobody_gets_anything_high_is_all_before_normal() {
        let mut turns = ReaderTurns::default();
        for r in 0..3 {
            turns.add(ReaderId(r), standing(true, Lane::Normal));
            turns.add(ReaderId(100 + r), standing(true, Lane::High));
        }
        assert_eq!(order(&mut turns, 0), [100, 101, 102, 0, 1, 2]);
    }
}
