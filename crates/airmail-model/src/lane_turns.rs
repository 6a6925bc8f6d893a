//! Turns of the two lanes where their items go one after the other.
//!
//! High goes first, but while normal waits too it gets its share of the bytes, a quarter unless it is set otherwise.
//! This is deficit round robin of two queues, by bytes: one number says how far normal is behind its share,
//! or ahead of it. There is no promotion of what has waited for long: a bounded queue is short in time
//! however long its sender's is, so a time to wait would never come, and normal would stay without its share.
//!
//! Invariants, held by the tests:
//! - Over any run of items while both lanes wait, normal gets at least its share of the bytes, and high the rest, each
//!   but for one item.
//! - A lane that waits alone gets everything, and owes nothing for it; a lane that does not wait gains no credit.
//! - The deficit is never more than `DEFICIT_BYTES_MAX`, which no item reaches.

use crate::id::Lane;

/// Parts of a whole in which a share is counted.
const WHOLE: u16 = 1_000;
/// Largest deficit, in bytes.
const DEFICIT_BYTES_MAX: i64 = 256 << 20;

/// Share of the bytes that lane normal gets while both lanes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NormalShare {
    per_mille: u16,
}

impl NormalShare {
    /// A quarter.
    pub const DEFAULT: NormalShare = NormalShare { per_mille: 250 };

    /// The share of so many thousandths, from 1 to 999: with none normal would stand still, and with all high.
    #[must_use]
    pub fn of_per_mille(per_mille: u16) -> Option<NormalShare> {
        (1..WHOLE)
            .contains(&per_mille)
            .then_some(NormalShare { per_mille })
    }

    /// The share in thousandths, from 1 to 999.
    #[must_use]
    pub const fn per_mille(self) -> u16 {
        self.per_mille
    }
}

impl Default for NormalShare {
    fn default() -> NormalShare {
        NormalShare::DEFAULT
    }
}

/// Decision which lane goes next. See the module's documentation.
///
/// ```
/// use airmail_model::{Lane, LaneTurns, NormalShare};
///
/// let mut turns = LaneTurns::new(NormalShare::DEFAULT);
/// let both = [true, true];
/// assert_eq!(turns.next(both), Some(Lane::High));
/// turns.took(Lane::High, 1_000, true);
/// assert_eq!(turns.next(both), Some(Lane::Normal), "which is behind its share");
/// turns.took(Lane::Normal, 1_000, true);
/// assert_eq!(turns.next(both), Some(Lane::High), "and now ahead of it");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneTurns {
    share: NormalShare,
    /// Thousandths of bytes that normal is behind its share; below 0: that it is ahead.
    deficit: i64,
}

impl LaneTurns {
    /// Neither lane is behind.
    #[must_use]
    pub fn new(share: NormalShare) -> LaneTurns {
        LaneTurns { share, deficit: 0 }
    }

    /// The lane that goes next, of those that wait; `waiting` is by [`Lane`] as an index. `None`: none waits.
    #[must_use]
    pub fn next(&self, waiting: [bool; 2]) -> Option<Lane> {
        let [normal, high] = waiting;
        match (normal, high) {
            (false, false) => None,
            (true, false) => Some(Lane::Normal),
            (false, true) => Some(Lane::High),
            (true, true) if self.deficit > 0 => Some(Lane::Normal),
            (true, true) => Some(Lane::High),
        }
    }

    /// An item of this lane has gone. `other_waits`: something of the other lane could have gone in its place.
    pub fn took(&mut self, lane: Lane, bytes: u64, other_waits: bool) {
        let max = DEFICIT_BYTES_MAX * i64::from(WHOLE);
        let bytes = i64::try_from(bytes).map_or(DEFICIT_BYTES_MAX, |of| of.min(DEFICIT_BYTES_MAX));
        let after = match lane {
            Lane::High => self.deficit + bytes * i64::from(self.share.per_mille),
            Lane::Normal => self.deficit - bytes * i64::from(WHOLE - self.share.per_mille),
        };
        self.deficit = match lane {
            _ if other_waits => after.clamp(-max, max),
            // What normal was ahead is paid back by what goes without it; more is not.
            Lane::High => after.min(0),
            Lane::Normal => after.max(0),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: [bool; 2] = [true, true];

    /// The bytes of each lane, by number, of items of one size.
    fn bytes_of(turns: &mut LaneTurns, items: u64, size: u64) -> [u64; 2] {
        let mut bytes = [0; 2];
        for _ in 0..items {
            let lane = turns.next(BOTH).unwrap();
            turns.took(lane, size, true);
            bytes[lane as usize] += size;
        }
        bytes
    }

    #[test]
    fn high_goes_first_and_normal_gets_a_quarter() {
        let mut turns = LaneTurns::default();
        assert_eq!(turns.next(BOTH), Some(Lane::High));
        assert_eq!(bytes_of(&mut turns, 4_000, 10), [10_000, 30_000]);
    }

    #[test]
    fn another_share_is_kept_too_and_none_and_all_are_no_shares() {
        for per_mille in [1, 100, 500, 999] {
            let share = NormalShare::of_per_mille(per_mille).unwrap();
            let [normal, high] = bytes_of(&mut LaneTurns::new(share), 1_000, 7);
            assert_eq!(normal, 7 * u64::from(per_mille), "{per_mille}");
            assert_eq!(normal + high, 7_000);
        }
        assert_eq!(NormalShare::of_per_mille(0), None);
        assert_eq!(NormalShare::of_per_mille(1_000), None);
    }

    #[test]
    fn who_waits_alone_gets_everything_and_owes_nothing_for_it() {
        for lane in Lane::ALL {
            let mut turns = LaneTurns::default();
            let mut alone = [false; 2];
            alone[lane as usize] = true;
            for _ in 0..1_000 {
                assert_eq!(turns.next(alone), Some(lane));
                turns.took(lane, 1 << 20, false);
            }
            assert_eq!(turns, LaneTurns::default(), "after {lane} alone");
        }
        assert_eq!(LaneTurns::default().next([false, false]), None);
    }

    #[test]
    fn what_normal_was_ahead_is_paid_back_by_high_alone_and_no_more() {
        let mut turns = LaneTurns::default();
        turns.took(Lane::High, 1, true);
        turns.took(Lane::Normal, 1_000, true);
        let ahead = turns;
        turns.took(Lane::High, 100, false);
        assert!(turns.deficit > ahead.deficit && turns.deficit < 0);
        turns.took(Lane::High, 1_000_000, false);
        assert_eq!(turns, LaneTurns::default());
    }

    #[test]
    fn a_lane_that_does_not_wait_loses_its_credit() {
        let mut turns = LaneTurns::default();
        turns.took(Lane::High, 1_000, true);
        assert_eq!(turns.next(BOTH), Some(Lane::Normal));
        turns.took(Lane::High, 1, false);
        assert_eq!(turns.next(BOTH), Some(Lane::High));
        turns.took(Lane::Normal, 1_000, true);
        turns.took(Lane::Normal, 1, false);
        assert_eq!(turns, LaneTurns::default());
    }

    #[test]
    fn the_deficit_is_bounded_whatever_is_taken() {
        for lane in Lane::ALL {
            let mut turns = LaneTurns::default();
            for _ in 0..1_000 {
                turns.took(lane, u64::MAX, true);
            }
            let bound = DEFICIT_BYTES_MAX * i64::from(WHOLE);
            assert_eq!(turns.deficit.abs(), bound);
        }
    }

    /// Takes items in turn, of sizes that are given with which lanes wait; gives lane, size and whether both
    /// waited.
    fn run(share: NormalShare, items: &[(u64, u8)]) -> Vec<(Lane, u64, bool)> {
        let mut turns = LaneTurns::new(share);
        let mut gone = Vec::new();
        for (bytes, waits) in items {
            let waiting = [*waits != 1, *waits != 0];
            let lane = turns.next(waiting).unwrap();
            turns.took(lane, *bytes, waiting[lane.other() as usize]);
            gone.push((lane, *bytes, waiting == BOTH));
        }
        gone
    }

    proptest! {
        #[test]
        fn over_any_run_while_both_wait_each_gets_its_share_less_one_item(
            items in prop::collection::vec((1..1_000_000_u64, 0..12_u8), 1..120),
            per_mille in 1..WHOLE,
        ) {
            let share = NormalShare::of_per_mille(per_mille).unwrap();
            let gone = run(share, &items);
            let item = items.iter().map(|(bytes, _)| *bytes).max().unwrap() * u64::from(WHOLE);
            let normal_share = u64::from(per_mille);
            for from in 0..gone.len() {
                let mut bytes = [0; 2];
                for (lane, size, _) in gone[from..].iter().take_while(|(_, _, both)| *both) {
                    bytes[*lane as usize] += size;
                    let [normal, high] = bytes;
                    let all = normal + high;
                    prop_assert!(normal * u64::from(WHOLE) + item >= all * normal_share);
                    prop_assert!(
                        high * u64::from(WHOLE) + item >= all * (u64::from(WHOLE) - normal_share)
                    );
                }
            }
        }

        #[test]
        fn who_waits_goes_and_who_does_not_never(
            items in prop::collection::vec((0..1_000_000_u64, 0..3_u8), 1..100),
        ) {
            for ((lane, _, _), (_, waits)) in run(NormalShare::DEFAULT, &items).iter().zip(&items) {
                prop_assert!(*waits > 1 || *lane as u8 == *waits);
            }
        }
    }
}
