//! Turns of the two lanes where the SDK holds what waits in both.
//!
//! High goes first, but while normal waits too it gets a quarter of the bytes: three bytes of high go for each of normal.

use airmail_model::Lane;

/// Number of bytes of lane high that go for one of lane normal.
const HIGH_SHARE: usize = 3;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct LaneTurns {
    /// Number of bytes of lane high that have gone while lane normal waited, less what it got for them.
    ahead_bytes: usize,
}

impl LaneTurns {
    /// Gives the lane that goes next, by the bytes of what waits first in each lane, with [`Lane`] as an index; `None` if
    /// nothing waits.
    pub(crate) fn peek(&self, first: [Option<usize>; 2]) -> Option<Lane> {
        match first {
            [None, None] => None,
            [Some(_), None] => Some(Lane::Normal),
            [None, Some(_)] => Some(Lane::High),
            [Some(normal), Some(_)] if self.ahead_bytes >= owed_for(normal) => Some(Lane::Normal),
            [Some(_), Some(_)] => Some(Lane::High),
        }
    }

    /// Gives the lane that goes next, as [`LaneTurns::peek`] does, and counts it as gone.
    pub(crate) fn next(&mut self, first: [Option<usize>; 2]) -> Option<Lane> {
        let lane = self.peek(first)?;
        self.ahead_bytes = match (lane, first) {
            (Lane::Normal, [Some(normal), Some(_)]) => self.ahead_bytes - owed_for(normal),
            (Lane::High, [Some(_), Some(high)]) => self.ahead_bytes.saturating_add(high),
            // One that waits alone owes nothing, and is owed nothing.
            _ => 0,
        };
        Some(lane)
    }

    /// Forgets what has gone.
    pub(crate) fn clear(&mut self) {
        self.ahead_bytes = 0;
    }
}

fn owed_for(normal: usize) -> usize {
    normal.saturating_mul(HIGH_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_goes_first_and_normal_has_a_quarter_while_both_wait() {
        let mut turns = LaneTurns::default();
        let both = [Some(10), Some(10)];
        assert_eq!(turns.next(both), Some(Lane::High));
        let gone: Vec<Lane> = (0..400).filter_map(|_| turns.next(both)).collect();
        let normal = gone.iter().filter(|lane| **lane == Lane::Normal);
        assert_eq!((gone.len(), normal.count()), (400, 100));
    }

    #[test]
    fn a_lane_that_waits_alone_gets_everything_and_owes_nothing() {
        let mut turns = LaneTurns::default();
        turns.next([Some(10), Some(1_000)]);
        for _ in 0..3 {
            assert_eq!(turns.next([None, Some(1_000)]), Some(Lane::High));
        }
        assert_eq!(turns.next([Some(10), Some(10)]), Some(Lane::High));
        assert_eq!(turns.next([Some(1_000), None]), Some(Lane::Normal));
        assert_eq!(turns.next([Some(10), Some(10)]), Some(Lane::High));
        assert_eq!(turns.next([None, None]), None);
    }

    #[test]
    fn a_look_tells_what_goes_next_and_changes_nothing() {
        let mut turns = LaneTurns::default();
        let mut bytes = 1;
        for _ in 0..100 {
            bytes = bytes * 7 % 101;
            let first = [Some(bytes), Some(101 - bytes)];
            assert_eq!(turns.peek(first), turns.peek(first));
            let told = turns.peek(first);
            assert_eq!(turns.next(first), told);
        }
    }
}
