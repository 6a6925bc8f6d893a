//! Bytes of each lane under a common bound, which lane high may exceed by a reserve.
//!
//! Whoever bounds what waits for an ack, or is held, counts it here: the SDK what it sends, the node what it
//! takes in, by the same rule. So neither holds up what the other lets through.
//!
//! - The reserve, an eighth of the bound, comes on top and is of lane high alone. What lane high has within it
//!   does not count against the bound, so lane normal has all of the bound beside it, and a full bound of lane
//!   normal leaves room for lane high.
//! - Of the bound itself lane high takes three quarters at most: what is always sent first would leave nothing.
//! - Lane high always fits into its reserve. One item of each lane always fits where the lane has nothing yet, however large it is.
//!
//! Invariant: without items of lane high this is one count under one bound, to the byte.

use crate::id::Lane;

/// Part of a bound that lane high may use on top of it.
const RESERVE_PART: usize = 8;
/// Part of a bound that lane high leaves to lane normal.
const NORMAL_PART: usize = 4;

/// Number of bytes of each lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneBytes {
    normal: usize,
    high: usize,
}

impl LaneBytes {
    /// Counts this many more of a lane.
    pub fn add(&mut self, lane: Lane, bytes: usize) {
        *self.of_mut(lane) += bytes;
    }

    /// Counts this many less of a lane, of which there are as many.
    pub fn remove(&mut self, lane: Lane, bytes: usize) {
        *self.of_mut(lane) -= bytes;
    }

    /// Number of bytes of a lane.
    #[must_use]
    pub fn of(&self, lane: Lane) -> usize {
        match lane {
            Lane::Normal => self.normal,
            Lane::High => self.high,
        }
    }

    /// Number of bytes of both lanes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.normal + self.high
    }

    /// Number of bytes that count against a bound: those of lane high only beyond its reserve.
    #[must_use]
    pub fn counted(&self, bound: usize) -> usize {
        self.normal + self.high.saturating_sub(bound / RESERVE_PART)
    }

    /// Tells whether an item of a lane may be added under a bound. One always may where its lane has nothing.
    #[must_use]
    pub fn fits(&self, lane: Lane, bytes: usize, bound: usize) -> bool {
        if self.of(lane) == 0 {
            return true;
        }
        let mut after = *self;
        after.add(lane, bytes);
        let beyond = after.high.saturating_sub(bound / RESERVE_PART);
        match lane {
            Lane::High if beyond == 0 => true,
            Lane::High => beyond <= bound - bound / NORMAL_PART && after.counted(bound) <= bound,
            Lane::Normal => after.counted(bound) <= bound,
        }
    }

    fn of_mut(&mut self, lane: Lane) -> &mut usize {
        match lane {
            Lane::Normal => &mut self.normal,
            Lane::High => &mut self.high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: usize = 800;

    /// Adds items of a lane while they fit; gives how many bytes they are.
    fn fill(bytes: &mut LaneBytes, lane: Lane, item: usize) -> usize {
        let before = bytes.of(lane);
        while bytes.fits(lane, item, BOUND) {
            bytes.add(lane, item);
        }
        bytes.of(lane) - before
    }

    #[test]
    fn without_lane_high_it_is_one_bound_to_the_byte() {
        for held in 1..=BOUND + 1 {
            let normal = LaneBytes {
                normal: held,
                high: 0,
            };
            assert_eq!(normal.counted(BOUND), held);
            for more in [1, 7, BOUND - held.min(BOUND), BOUND] {
                let fits = normal.fits(Lane::Normal, more, BOUND);
                assert_eq!(fits, held + more <= BOUND, "{held} and {more}");
            }
        }
        assert!(LaneBytes::default().fits(Lane::Normal, 10 * BOUND, BOUND));
    }

    #[test]
    fn a_full_bound_of_lane_normal_leaves_an_eighth_for_lane_high() {
        let mut bytes = LaneBytes::default();
        assert_eq!(fill(&mut bytes, Lane::Normal, 10), BOUND);
        assert_eq!(fill(&mut bytes, Lane::High, 10), BOUND / 8);
        assert_eq!(bytes.counted(BOUND), BOUND);
    }

    #[test]
    fn the_reserve_of_lane_high_takes_nothing_from_lane_normal() {
        let mut bytes = LaneBytes::default();
        bytes.add(Lane::High, BOUND / 8);
        assert_eq!(fill(&mut bytes, Lane::Normal, 10), BOUND);
    }

    #[test]
    fn lane_high_leaves_a_quarter_of_the_bound_to_lane_normal() {
        let mut bytes = LaneBytes::default();
        assert_eq!(fill(&mut bytes, Lane::High, 10), BOUND / 4 * 3 + BOUND / 8);
        assert_eq!(fill(&mut bytes, Lane::Normal, 10), BOUND / 4);
    }

    #[test]
    fn lane_high_has_its_reserve_beside_one_large_item_of_lane_normal_too() {
        let mut bytes = LaneBytes::default();
        bytes.add(Lane::Normal, 10 * BOUND);
        assert_eq!(fill(&mut bytes, Lane::High, 10), BOUND / 8);
    }

    #[test]
    fn one_item_of_each_lane_always_fits() {
        let mut bytes = LaneBytes::default();
        for lane in Lane::ALL {
            assert!(bytes.fits(lane, 10 * BOUND, BOUND));
            bytes.add(lane, 10 * BOUND);
            assert!(!bytes.fits(lane, 1, BOUND));
        }
        for lane in Lane::ALL {
            bytes.remove(lane, 10 * BOUND);
        }
        assert_eq!(bytes, LaneBytes::default());
    }
}
