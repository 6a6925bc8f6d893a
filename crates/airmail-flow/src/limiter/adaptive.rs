//! The Adaptive Algorithm (RocketSpeed report, section 4.2.2).
//!
//! The slopes of throughput and latency over the last five windows, by Simple Linear Regression,
//! relative to the mean of the five. Until there are five points the bound is raised by delta for
//! each, as section 4.2.1 does for its three: the paper says nothing. The tests cite the paper's
//! conditions.

use crate::meter::Sample;
use crate::rule::{AdaptiveRule as R, Rule};
use crate::settings::{AdaptiveSettings, Change, Tie};

const POINTS: usize = 5;

/// The last five points of both curves, and how many have been measured.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    settings: AdaptiveSettings,
    measured: usize,
    rates_per_s: [f64; POINTS],
    latencies_s: [f64; POINTS],
}

/// Relative slopes per window.
#[derive(Clone, Copy, Debug)]
struct Slopes {
    throughput: f64,
    latency: f64,
}

impl Adaptive {
    pub(super) fn new(settings: AdaptiveSettings) -> Adaptive {
        Adaptive {
            settings,
            measured: 0,
            rates_per_s: [0.0; POINTS],
            latencies_s: [0.0; POINTS],
        }
    }

    /// Remembers the sample, and says by how many deltas the bound changes if the system is busy.
    pub(super) fn observe(&mut self, sample: &Sample) -> (Change, Rule) {
        self.rates_per_s.rotate_left(1);
        self.rates_per_s[POINTS - 1] = sample.rate_per_s();
        self.latencies_s.rotate_left(1);
        self.latencies_s[POINTS - 1] = sample.latency_s();
        self.measured = POINTS.min(self.measured + 1);
        if self.measured < POINTS {
            return (Change(1), Rule::WarmingUp);
        }
        let (change, rule) = self.rule(Slopes {
            throughput: relative_slope(&self.rates_per_s),
            latency: relative_slope(&self.latencies_s),
        });
        (change, Rule::Adaptive(rule))
    }

    fn rule(&self, slopes: Slopes) -> (Change, R) {
        let high = self.settings.slope_high;
        let latency = slopes.latency;
        if self.steep(slopes.throughput) {
            self.rule_1(latency)
        } else if self.steep(-slopes.throughput) {
            (Change(-1), R::Falling)
        } else if latency < -high {
            (Change(1), R::LevelLatencyPlunges)
        } else if latency > high {
            (Change(-1), R::LevelLatencySoars)
        } else {
            (Change(0), R::Level)
        }
    }

    /// While throughput rises steeply.
    fn rule_1(&self, latency: f64) -> (Change, R) {
        let AdaptiveSettings {
            slope_high: high,
            slope_medium: medium,
            ..
        } = self.settings;
        if latency < -high {
            (Change(3), R::RisingLatencyPlunges)
        } else if latency < 0.0 {
            (Change(2), R::RisingLatencyFalls)
        } else if latency < medium {
            (Change(1), R::RisingLatencyCreeps)
        } else if latency < high || (latency == high && self.settings.latency_tie == Tie::Calm) {
            (Change(0), R::RisingLatencyRises)
        } else {
            (Change(-1), R::RisingLatencySoars)
        }
    }

    fn steep(&self, slope: f64) -> bool {
        let high = self.settings.slope_high;
        slope > high || (slope == high && self.settings.throughput_tie == Tie::Steep)
    }
}

/// The slope of the line with the least squares, per window, as a share of the points' mean.
fn relative_slope(points: &[f64; POINTS]) -> f64 {
    // With x = -2, -1, 0, 1, 2 the means of x and x² are 0 and 2.
    let product: f64 = points
        .iter()
        .zip(-2i32..)
        .map(|(y, x)| y * f64::from(x))
        .sum();
    let mean = points.iter().sum::<f64>() / POINTS as f64;
    product / 10.0 / mean
}

#[cfg(test)]
mod tests {
    use super::super::Limiter;
    use super::*;
    use crate::settings::{LimiterKind, LimiterSettings};
    use airmail_model::Mono;
    use std::time::Duration;

    const HIGH: f64 = AdaptiveSettings::DEFAULT.slope_high;
    const MEDIUM: f64 = AdaptiveSettings::DEFAULT.slope_medium;
    const ABOVE_HIGH: f64 = HIGH + 0.001;
    const BELOW_HIGH: f64 = HIGH - 0.001;

    fn rule_with(settings: AdaptiveSettings, throughput: f64, latency: f64) -> (i8, R) {
        let slopes = Slopes {
            throughput,
            latency,
        };
        let (change, rule) = Adaptive::new(settings).rule(slopes);
        (change.0, rule)
    }

    fn rule(throughput: f64, latency: f64) -> (i8, R) {
        rule_with(AdaptiveSettings::DEFAULT, throughput, latency)
    }

    #[test]
    fn rule_1a_throughput_gt_high_latency_lt_minus_high_increases_by_three_deltas() {
        assert_eq!(rule(ABOVE_HIGH, -ABOVE_HIGH), (3, R::RisingLatencyPlunges));
    }

    #[test]
    fn rule_1b_throughput_gt_high_latency_lt_constant_increases_by_two_deltas() {
        assert_eq!(rule(ABOVE_HIGH, -HIGH), (2, R::RisingLatencyFalls));
        assert_eq!(rule(ABOVE_HIGH, -0.001), (2, R::RisingLatencyFalls));
    }

    #[test]
    fn rule_1c_throughput_gt_high_latency_lt_medium_increases_by_delta() {
        assert_eq!(rule(ABOVE_HIGH, 0.0), (1, R::RisingLatencyCreeps));
        assert_eq!(
            rule(ABOVE_HIGH, MEDIUM - 0.001),
            (1, R::RisingLatencyCreeps)
        );
    }

    #[test]
    fn rule_1d_throughput_gt_high_latency_lt_high_leaves_the_bound() {
        assert_eq!(rule(ABOVE_HIGH, MEDIUM), (0, R::RisingLatencyRises));
        assert_eq!(rule(ABOVE_HIGH, BELOW_HIGH), (0, R::RisingLatencyRises));
    }

    #[test]
    fn rule_1e_throughput_gt_high_latency_gt_high_decreases_by_delta() {
        assert_eq!(rule(ABOVE_HIGH, ABOVE_HIGH), (-1, R::RisingLatencySoars));
    }

    #[test]
    fn rule_2_throughput_lt_minus_high_decreases_by_delta() {
        for latency in [-1.0, 0.0, 1.0] {
            assert_eq!(rule(-ABOVE_HIGH, latency), (-1, R::Falling));
        }
    }

    #[test]
    fn rule_3a_throughput_level_latency_lt_minus_high_increases_by_delta() {
        assert_eq!(rule(BELOW_HIGH, -ABOVE_HIGH), (1, R::LevelLatencyPlunges));
        assert_eq!(rule(-BELOW_HIGH, -ABOVE_HIGH), (1, R::LevelLatencyPlunges));
    }

    #[test]
    fn rule_3b_throughput_level_latency_gt_high_decreases_by_delta() {
        assert_eq!(rule(0.0, ABOVE_HIGH), (-1, R::LevelLatencySoars));
    }

    #[test]
    fn rule_3c_throughput_level_otherwise_leaves_the_bound() {
        for latency in [-HIGH, 0.0, HIGH] {
            assert_eq!(rule(0.0, latency), (0, R::Level));
        }
    }

    #[test]
    fn a_latency_slope_equal_to_high_goes_where_it_is_set() {
        assert_eq!(rule(ABOVE_HIGH, HIGH), (0, R::RisingLatencyRises));
        let steep = AdaptiveSettings {
            latency_tie: Tie::Steep,
            ..AdaptiveSettings::DEFAULT
        };
        assert_eq!(
            rule_with(steep, ABOVE_HIGH, HIGH),
            (-1, R::RisingLatencySoars)
        );
    }

    #[test]
    fn a_throughput_slope_equal_to_high_goes_where_it_is_set() {
        assert_eq!(rule(HIGH, 0.0), (0, R::Level));
        assert_eq!(rule(-HIGH, 0.0), (0, R::Level));
        let steep = AdaptiveSettings {
            throughput_tie: Tie::Steep,
            ..AdaptiveSettings::DEFAULT
        };
        assert_eq!(rule_with(steep, HIGH, 0.0), (1, R::RisingLatencyCreeps));
        assert_eq!(rule_with(steep, -HIGH, 0.0), (-1, R::Falling));
    }

    #[test]
    fn the_slope_is_that_of_the_line_with_the_least_squares() {
        assert!((relative_slope(&[8.0, 9.0, 10.0, 11.0, 12.0]) - 0.1).abs() < 1e-12);
        assert!(relative_slope(&[5.0; 5]).abs() < 1e-12);
        // By hand: Σxy = -2·1 - 1·4 + 0·2 + 1·3 + 2·5 = 7, slope 0.7, mean 3.
        assert!((relative_slope(&[1.0, 4.0, 2.0, 3.0, 5.0]) - 0.7 / 3.0).abs() < 1e-12);
    }

    fn limiter() -> Limiter {
        Limiter::new(LimiterSettings {
            kind: LimiterKind::Adaptive,
            ..LimiterSettings::DEFAULT
        })
    }

    /// L messages in flight, of this latency.
    fn sample(in_flight: u64, latency_ms: u64) -> Sample {
        let latency = Duration::from_millis(latency_ms);
        Sample {
            at: Mono(1),
            messages: in_flight,
            batches: in_flight,
            span: latency,
            latency,
        }
    }

    #[test]
    fn the_rules_apply_from_the_fifth_measurement() {
        let mut limiter = limiter();
        for expected in [220, 240, 260, 280] {
            let decision = limiter.observe(&sample(limiter.bound(), 100), false);
            assert_eq!((decision.bound, decision.rule), (expected, Rule::WarmingUp));
        }
        // λ has grown with the bound, and W hardly: 1(c).
        let decision = limiter.observe(&sample(280, 101), false);
        assert_eq!(decision.rule, Rule::Adaptive(R::RisingLatencyCreeps));
        assert_eq!(decision.bound, 300);
    }

    #[test]
    fn below_80_percent_of_the_bound_nothing_changes() {
        let mut limiter = limiter();
        let decision = limiter.observe(&sample(159, 100), false);
        assert_eq!((decision.bound, decision.rule), (200, Rule::UnderUsed));
        let decision = limiter.observe(&sample(160, 100), false);
        assert_eq!((decision.bound, decision.rule), (220, Rule::WarmingUp));
    }
}
