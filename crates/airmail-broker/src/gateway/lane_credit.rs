//! Credit of a session, by lane.
//!
//! Credit is no queue: with one account whatever is live takes each grant as it comes, and what waits to be read for is never
//! sent. So from the first delivery of lane high on a session has two. That of lane high begins with a reserve, an eighth of
//! what the client has granted at most, on top of it: one batch of lane normal that overdraws its own account stops nothing of
//! lane high, and who is sent nothing of lane high has what it had before, to the byte. A grant fills the reserve up first, and
//! the rest is lane normal's; while both lanes have subscriptions that are behind, three quarters are lane high's. What a lane
//! has above its reserve it lends, as long as nobody in it is behind; and what it has above half of the window in any case: a
//! client gives credit back when half of its window is used at the latest, and who is behind may wait for a log that is out of reach.
//!
//! An account is overdrawn by one delivery at most, so a client is sent no more than it has granted, the reserve, and a delivery
//! in each lane.

use airmail_model::Lane;
use airmail_model::limits::CREDIT_BYTES_MAX;

/// Part of the window that is lane high's reserve.
const RESERVE_PART: i64 = 8;

/// Lanes of a session in which somebody is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) normal: bool,
    pub(crate) high: bool,
}

/// Credit of one session. See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneCredit {
    normal: i64,
    /// None before the first delivery of lane high.
    high: Option<i64>,
    /// The most that the client had granted at once before the first delivery of lane high.
    window: i64,
}

impl LaneCredit {
    pub(crate) fn new(credit: u32) -> LaneCredit {
        let credit = credit.min(CREDIT_BYTES_MAX).into();
        LaneCredit {
            normal: credit,
            high: None,
            window: credit,
        }
    }

    fn reserve(&self) -> i64 {
        self.window / RESERVE_PART
    }

    /// Bytes that may be sent in a lane; less than none if it is overdrawn.
    pub(crate) fn of(&self, lane: Lane, late: Late) -> i64 {
        let own = match lane {
            Lane::Normal => self.normal,
            // A first delivery may use the reserve.
            Lane::High => self.high.unwrap_or(self.reserve()),
        };
        let lent = self.lent_to(lane, late);
        if own <= 0 && lent > 0 { lent } else { own }
    }

    /// Bytes that the other lane lends to a lane.
    fn lent_to(&self, lane: Lane, late: Late) -> i64 {
        let (has, needs) = match (lane, self.high) {
            (Lane::Normal, None) => return 0,
            (Lane::Normal, Some(high)) => (high, late.high),
            (Lane::High, _) => (self.normal, late.normal),
        };
        let kept = match lane {
            _ if needs => self.window / 2,
            Lane::Normal => self.reserve(),
            Lane::High => 0,
        };
        has - kept
    }

    /// Takes what is sent in a lane off its account, or off the one that lends to it: so neither is overdrawn twice.
    pub(crate) fn charge(&mut self, lane: Lane, cost: u32, late: Late) {
        let (cost, reserve) = (i64::from(cost), self.reserve());
        if lane == Lane::High {
            self.high.get_or_insert(reserve);
        }
        let normal = &mut self.normal;
        match (lane, self.high.as_mut()) {
            (Lane::Normal, Some(high)) if *normal <= 0 && *high > 0 => *high -= cost,
            (Lane::High, Some(high)) if *high > 0 || *normal <= 0 => *high -= cost,
            _ => *normal -= cost,
        }
        self.give_back(late);
    }

    /// Grants more, up to what a session can hold.
    pub(crate) fn grant(&mut self, bytes: u32, late: Late) {
        let bytes = i64::from(bytes);
        let reserve = self.reserve();
        let of_high = match self.high {
            None => 0,
            Some(_) if late.normal && late.high => bytes - bytes / 4,
            Some(high) => (reserve - high).clamp(0, bytes),
        };
        if let Some(high) = &mut self.high {
            *high = (*high + of_high).min(CREDIT_BYTES_MAX.into());
        }
        let normal = self.normal.saturating_add(bytes - of_high);
        self.normal = normal.min(CREDIT_BYTES_MAX.into());
        self.give_back(late);
        if self.high.is_none() {
            self.window = self.window.max(self.normal);
        }
    }

    /// Gives lane normal what lane high has above its reserve, if nobody is behind there.
    fn give_back(&mut self, late: Late) {
        let reserve = self.reserve();
        if let Some(high) = self
            .high
            .as_mut()
            .filter(|high| !late.high && **high > reserve)
        {
            let most = i64::from(CREDIT_BYTES_MAX);
            self.normal = (self.normal + *high - reserve).min(most);
            *high = reserve;
        }
    }

    /// Asserts that no account holds more than a session can.
    pub(crate) fn check(&self) {
        let most = i64::from(CREDIT_BYTES_MAX);
        let are_within = self.normal <= most && self.high.is_none_or(|high| high <= most);
        assert!(are_within, "credit: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOBODY: Late = Late {
        normal: false,
        high: false,
    };
    const BOTH: Late = Late {
        normal: true,
        high: true,
    };

    #[test]
    fn without_lane_high_it_is_one_account_that_a_delivery_may_overdraw() {
        let mut credit = LaneCredit::new(1_000);
        credit.charge(Lane::Normal, 1_500, NOBODY);
        assert_eq!(credit.of(Lane::Normal, NOBODY), -500);
        credit.grant(1_500, NOBODY);
        assert_eq!(credit.of(Lane::Normal, NOBODY), 1_000);
        credit.grant(u32::MAX, NOBODY);
        let most = i64::from(CREDIT_BYTES_MAX);
        assert_eq!(credit.of(Lane::Normal, NOBODY), most);
    }

    #[test]
    fn what_lane_normal_has_overdrawn_leaves_lane_high_its_reserve() {
        let mut credit = LaneCredit::new(8_000);
        credit.charge(Lane::Normal, 1 << 20, NOBODY);
        assert_eq!(credit.of(Lane::High, NOBODY), 1_000);
        credit.charge(Lane::High, 400, NOBODY);
        assert_eq!(credit.of(Lane::High, NOBODY), 600);
        credit.charge(Lane::High, 700, NOBODY);
        assert!(credit.of(Lane::High, NOBODY) <= 0);
        credit.grant(2_000, NOBODY);
        assert_eq!(
            credit.of(Lane::High, NOBODY),
            1_000,
            "it is filled up first"
        );
    }

    #[test]
    fn a_lane_lends_what_it_does_not_need() {
        let mut credit = LaneCredit::new(8_000);
        credit.charge(Lane::High, 1_000, NOBODY);
        assert_eq!(
            credit.of(Lane::High, NOBODY),
            8_000,
            "lane normal lends it all"
        );
        let normal_late = Late {
            normal: true,
            high: false,
        };
        assert_eq!(
            credit.of(Lane::High, normal_late),
            4_000,
            "and then what is above half"
        );
        credit.charge(Lane::High, 5_000, NOBODY);
        assert_eq!(credit.of(Lane::Normal, NOBODY), 3_000);
    }

    proptest! {
        #[test]
        fn while_both_are_behind_each_gets_its_share_of_what_is_granted(
            grants in prop::collection::vec(1_u32..10_000, 1..60),
        ) {
            let mut credit = LaneCredit::new(4_000);
            credit.charge(Lane::High, 1, NOBODY);
            let mut sent = [0_u64; 2];
            let mut granted = 0_u64;
            for grant in grants {
                for lane in [Lane::High, Lane::Normal] {
                    while credit.of(lane, BOTH) > 0 {
                        credit.charge(lane, 700, BOTH);
                        sent[lane as usize] += 700;
                    }
                }
                credit.grant(grant, BOTH);
                credit.check();
                granted += u64::from(grant);
            }
            // What is above half of the window is lent, in the beginning, and the last grant is not used up.
            let slack = 4_000 + 10_000 + 1_400;
            let [normal, high] = sent;
            prop_assert!(normal + high <= 4_500 + granted + 1_400);
            prop_assert!(normal + slack >= granted / 4, "{normal} of {granted}");
            prop_assert!(high + slack >= granted * 3 / 4, "{high} of {granted}");
        }
    }
}
