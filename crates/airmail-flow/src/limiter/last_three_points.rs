//! The Last Three Points Algorithm (RocketSpeed report, section 4.2.1).
//!
//! a, b, c are the last three mean latencies, oldest first, one window apart. The tests cite the
//! paper's conditions.

use crate::meter::Sample;
use crate::rule::{LastThreePointsRule as R, Rule};
use crate::settings::{Change, LastThreePointsSettings};

/// The last three latencies, and how many have been measured.
#[derive(Clone, Debug)]
pub(super) struct LastThreePoints {
    settings: LastThreePointsSettings,
    measured: u32,
    latencies_s: [f64; 3],
}

impl LastThreePoints {
    pub(super) fn new(settings: LastThreePointsSettings) -> LastThreePoints {
        LastThreePoints {
            settings,
            measured: 0,
            latencies_s: [0.0; 3],
        }
    }

    /// Remembers the sample's latency, and says by how many deltas the bound changes if the system
    /// is busy.
    pub(super) fn observe(&mut self, sample: &Sample) -> (Change, Rule) {
        self.latencies_s.rotate_left(1);
        self.latencies_s[2] = sample.latency_s();
        // One more than the rules could do with: "gradually increase it for the first three
        // measurements" is taken by the letter.
        if self.measured < self.settings.warm_up_windows.max(2) {
            self.measured += 1;
            return (Change(1), Rule::WarmingUp);
        }
        let (change, rule) = self.rule();
        (change, Rule::LastThreePoints(rule))
    }

    fn rule(&self) -> (Change, R) {
        let [a, b, c] = self.latencies_s;
        if self.collinear() {
            match (a < b, b < c) {
                (true, true) => (Change(-1), R::CollinearRising),
                (true, false) => (Change(1), R::CollinearPeak),
                (false, false) => (Change(1), R::CollinearFalling),
                (false, true) => (Change(1), R::CollinearValley),
            }
        } else if b < c {
            if a > b {
                (Change(0), R::Valley)
            } else {
                (Change(-2), R::Rising)
            }
        } else if a > b {
            (Change(2), R::Falling)
        } else if a < b {
            (Change(0), R::Peak)
        } else {
            (self.settings.level_then_falling, R::LevelThenFalling)
        }
    }

    /// b lies in the middle of a and c, but for a share of the mean of the three.
    fn collinear(&self) -> bool {
        let [a, b, c] = self.latencies_s;
        let mean = (a + b + c) / 3.0;
        (b - (a + c) / 2.0).abs() <= self.settings.collinear_tolerance * mean
    }
}

#[cfg(test)]
mod tests {
    use super::super::Limiter;
    use super::*;
    use crate::decision::Decision;
    use crate::settings::{LimiterKind, LimiterSettings};
    use airmail_model::Mono;
    use std::time::Duration;

    const DELTA: u64 = 20;
    /// The bound after three measurements of warming up from 200.
    const WARM: u64 = 260;

    /// A sample with exactly `bound` messages in flight, of this latency.
    fn sample(bound: u64, latency_ms: u64) -> Sample {
        let latency = Duration::from_millis(latency_ms);
        Sample {
            at: Mono(1),
            messages: bound,
            batches: bound,
            span: latency,
            latency,
        }
    }

    fn limiter(settings: LastThreePointsSettings) -> Limiter {
        Limiter::new(LimiterSettings {
            kind: LimiterKind::LastThreePoints,
            delta: DELTA,
            last_three_points: settings,
            ..LimiterSettings::DEFAULT
        })
    }

    /// The decision after the points a, b and c, with the warm-up behind them.
    fn decide_with(settings: LastThreePointsSettings, latencies_ms: [u64; 3]) -> Decision {
        let mut limiter = limiter(settings);
        limiter.observe(&sample(limiter.bound(), 1), false);
        for latency_ms in &latencies_ms[..2] {
            limiter.observe(&sample(limiter.bound(), *latency_ms), false);
        }
        assert_eq!(limiter.bound(), WARM);
        limiter.observe(&sample(WARM, latencies_ms[2]), false)
    }

    fn decide(latencies_ms: [u64; 3]) -> (i64, R) {
        let decision = decide_with(LastThreePointsSettings::DEFAULT, latencies_ms);
        let Rule::LastThreePoints(rule) = decision.rule else {
            panic!("{:?}", decision.rule);
        };
        let change = decision.bound.cast_signed() - decision.bound_before.cast_signed();
        (change / DELTA.cast_signed(), rule)
    }

    #[test]
    fn rule_1a_collinear_a_lt_b_lt_c_decreases_by_delta() {
        assert_eq!(decide([100, 110, 120]), (-1, R::CollinearRising));
    }

    #[test]
    fn rule_1b_collinear_a_lt_b_ge_c_increases_by_delta() {
        assert_eq!(decide([1000, 1003, 1001]), (1, R::CollinearPeak));
        assert_eq!(decide([1000, 1003, 1003]), (1, R::CollinearPeak));
    }

    #[test]
    fn rule_1c_collinear_a_ge_b_ge_c_increases_by_delta() {
        assert_eq!(decide([120, 110, 100]), (1, R::CollinearFalling));
        assert_eq!(decide([100, 100, 100]), (1, R::CollinearFalling));
    }

    #[test]
    fn rule_1d_collinear_a_ge_b_lt_c_increases_by_delta() {
        assert_eq!(decide([1003, 1001, 1004]), (1, R::CollinearValley));
        assert_eq!(decide([1001, 1001, 1004]), (1, R::CollinearValley));
    }

    #[test]
    fn rule_2a_not_collinear_a_gt_b_ge_c_increases_by_two_deltas() {
        assert_eq!(decide([200, 110, 100]), (2, R::Falling));
        assert_eq!(decide([200, 100, 100]), (2, R::Falling));
    }

    #[test]
    fn rule_2b_not_collinear_a_gt_b_lt_c_leaves_the_bound() {
        assert_eq!(decide([200, 100, 180]), (0, R::Valley));
    }

    #[test]
    fn rule_2c_not_collinear_a_le_b_lt_c_decreases_by_two_deltas() {
        assert_eq!(decide([100, 110, 300]), (-2, R::Rising));
        assert_eq!(decide([100, 100, 300]), (-2, R::Rising));
    }

    #[test]
    fn rule_2d_not_collinear_a_lt_b_ge_c_leaves_the_bound() {
        assert_eq!(decide([100, 200, 100]), (0, R::Peak));
        assert_eq!(decide([100, 200, 200]), (0, R::Peak));
    }

    #[test]
    fn a_eq_b_gt_c_not_collinear_does_what_is_set() {
        assert_eq!(decide([200, 200, 100]), (2, R::LevelThenFalling));
        let calm = LastThreePointsSettings {
            level_then_falling: Change(0),
            ..LastThreePointsSettings::DEFAULT
        };
        assert_eq!(decide_with(calm, [200, 200, 100]).bound, WARM);
    }

    #[test]
    fn without_tolerance_a_peak_is_never_collinear() {
        let exact = LastThreePointsSettings {
            collinear_tolerance: 0.0,
            ..LastThreePointsSettings::DEFAULT
        };
        let rule = |latencies_ms| decide_with(exact, latencies_ms).rule;
        assert_eq!(rule([1000, 1003, 1001]), Rule::LastThreePoints(R::Peak));
        assert_eq!(rule([1003, 1001, 1004]), Rule::LastThreePoints(R::Valley));
        assert_eq!(
            rule([100, 110, 120]),
            Rule::LastThreePoints(R::CollinearRising)
        );
    }

    #[test]
    fn the_bound_is_raised_by_delta_for_the_first_three_measurements() {
        let mut limiter = limiter(LastThreePointsSettings::DEFAULT);
        for expected in [220, 240, 260] {
            // Whatever the latency does.
            let decision = limiter.observe(&sample(limiter.bound(), expected), false);
            assert_eq!((decision.bound, decision.rule), (expected, Rule::WarmingUp));
        }
        let decision = limiter.observe(&sample(260, 280), false);
        assert_eq!(
            decision.rule,
            Rule::LastThreePoints(R::CollinearRising),
            "the fourth has a rule"
        );
    }

    #[test]
    fn below_80_percent_of_the_bound_nothing_changes() {
        let mut limiter = limiter(LastThreePointsSettings::DEFAULT);
        let decision = limiter.observe(&sample(159, 100), false);
        assert_eq!((decision.bound, decision.rule), (200, Rule::UnderUsed));
        let decision = limiter.observe(&sample(160, 100), false);
        assert_eq!((decision.bound, decision.rule), (220, Rule::WarmingUp));
    }
}
