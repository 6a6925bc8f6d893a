//! The sweep over fixed bounds: its runs, where it ends, and the knee that it has.
//!
//! Bounds are doubled from the lowest. The sweep ends by an 8× rule: three doublings together gained next
//! to nothing, or a bound takes longer than anybody wants to wait. Fewer would not do: on a real node
//! throughput has steps over which it is flat for a factor of four.

use airmail_bench::Spread;
use airmail_queueing::knee::{Knee, KneeError, KneeRule, Measurement, knee};
use std::collections::BTreeMap;

/// Doublings that have to gain something together.
const SPENT_DOUBLINGS: usize = 3;
/// Gain in throughput below which they have not.
const SPENT_GAIN: f64 = 1.05;

/// Runs under fixed bounds, of the same system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    runs: BTreeMap<u64, Vec<Measurement>>,
}

/// All runs of one bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepPoint {
    /// The bound.
    pub bound: u64,
    /// λ of all limiters together, in messages a second.
    pub rate_per_s: Spread,
    /// W, in seconds.
    pub latency_s: Spread,
    /// λ/W.
    pub power: Spread,
}

impl Sweep {
    /// Enters one more run.
    pub fn enter(&mut self, run: Measurement) {
        self.runs.entry(run.bound).or_default().push(run);
    }

    /// The bounds that were tried, from the lowest.
    #[must_use]
    pub fn bounds(&self) -> Vec<u64> {
        self.runs.keys().copied().collect()
    }

    /// All runs, by bound.
    pub fn runs(&self) -> impl Iterator<Item = &Measurement> {
        self.runs.values().flatten()
    }

    /// A point for each bound, from the lowest.
    #[must_use]
    pub fn points(&self) -> Vec<SweepPoint> {
        let point = |(bound, runs): (&u64, &Vec<Measurement>)| {
            let over = |of: fn(&Measurement) -> f64| Spread::of(runs.iter().map(of));
            Some(SweepPoint {
                bound: *bound,
                rate_per_s: over(|run| run.rate_per_s)?,
                latency_s: over(|run| run.latency_s)?,
                power: over(|run| run.rate_per_s / run.latency_s.max(Knee::LATENCY_RESOLUTION_S))?,
            })
        };
        self.runs.iter().filter_map(point).collect()
    }

    /// Points of the bounds that are the lowest one, doubled any number of times.
    fn doublings(&self) -> Vec<SweepPoint> {
        let lowest = self.runs.keys().next().copied().unwrap_or(1).max(1);
        let is_doubled =
            |bound: u64| bound.is_multiple_of(lowest) && (bound / lowest).is_power_of_two();
        let points = self.points().into_iter();
        points.filter(|point| is_doubled(point.bound)).collect()
    }

    /// The bound after the highest doubling; `None` of no runs.
    #[must_use]
    pub fn next_bound(&self) -> Option<u64> {
        let highest = self.doublings().last()?.bound;
        highest.checked_mul(2)
    }

    /// Whether the highest doubling takes longer than the knee's budget, by its quickest run: one stall
    /// says nothing. The number of its runs is told with it.
    #[must_use]
    pub fn takes_too_long(&self) -> Option<usize> {
        let points = self.doublings();
        let (first, last) = (points.first()?, points.last()?);
        let budget_s = KneeRule::DEFAULT.budget_s(first.latency_s.median);
        let too_long = last.latency_s.least > budget_s;
        too_long.then(|| self.runs.get(&last.bound).map_or(0, Vec::len))
    }

    /// Whether the highest doublings gain nothing more, or take too long.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        if self.takes_too_long().is_some() {
            return true;
        }
        let points = self.doublings();
        let Some(before) = points.len().checked_sub(SPENT_DOUBLINGS) else {
            return false;
        };
        let peak = |points: &[SweepPoint]| {
            let rates = points.iter().map(|point| point.rate_per_s.median);
            rates.fold(0.0, f64::max)
        };
        let (low, high) = points.split_at(before);
        !low.is_empty() && peak(high) < peak(low) * SPENT_GAIN
    }

    /// The knee.
    ///
    /// # Errors
    /// Nothing was measured by which to judge.
    pub fn knee(&self) -> Result<Knee, KneeError> {
        let runs: Vec<Measurement> = self.runs().copied().collect();
        knee(&runs, &KneeRule::DEFAULT)
    }

    /// The bound with the most power, λ/W.
    #[must_use]
    pub fn most_power(&self) -> Option<SweepPoint> {
        let points = self.points().into_iter();
        points.max_by(|a, b| a.power.median.total_cmp(&b.power.median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit of 350 µs, and 0.3 µs for each message.
    fn commits(bound: u64) -> Measurement {
        let latency_s = 350e-6 + 0.3e-6 * bound as f64;
        Measurement {
            bound,
            rate_per_s: bound as f64 / latency_s,
            latency_s,
        }
    }

    fn sweep_of(run: fn(u64) -> Measurement) -> Sweep {
        let mut sweep = Sweep::default();
        let mut bound = 1;
        while !sweep.is_spent() {
            sweep.enter(run(bound));
            bound *= 2;
        }
        sweep
    }

    #[test]
    fn it_ends_where_eight_times_the_bound_gains_nothing() {
        let pipe = |bound: u64| Measurement {
            bound,
            rate_per_s: bound.min(100) as f64,
            latency_s: 0.001,
        };
        assert_eq!(sweep_of(pipe).bounds().last(), Some(&1_024));
    }

    #[test]
    fn it_ends_where_a_message_takes_too_long() {
        let sweep = sweep_of(commits);
        assert_eq!(sweep.bounds().last(), Some(&32_768));
        assert_eq!(sweep.takes_too_long(), Some(1));
    }

    #[test]
    fn a_stall_ends_no_sweep_and_bounds_between_doublings_count_for_nothing() {
        let mut sweep = Sweep::default();
        for bound in [2, 4, 8, 11, 16] {
            sweep.enter(commits(bound));
        }
        assert!(!sweep.is_spent());
        let stalled = Measurement {
            latency_s: 0.1,
            ..commits(16)
        };
        sweep.enter(stalled);
        assert_eq!(
            (sweep.takes_too_long(), sweep.next_bound()),
            (None, Some(32))
        );
        assert_eq!(Sweep::default().next_bound(), None);
    }

    #[test]
    fn power_is_greatest_where_half_of_a_commits_throughput_is_given_away() {
        let sweep = sweep_of(commits);
        let (knee, power) = (sweep.knee().unwrap(), sweep.most_power().unwrap());
        assert_eq!(power.bound, 1_024);
        let share = power.rate_per_s.median / knee.peak_per_s;
        assert!((0.4..0.6).contains(&share), "{share}");
        assert!(knee.bound >= 8_192);
    }

    #[test]
    fn runs_of_one_bound_are_one_point() {
        let mut sweep = Sweep::default();
        for bound in [8, 4, 8] {
            sweep.enter(commits(bound));
        }
        assert_eq!((sweep.bounds(), sweep.runs().count()), (vec![4, 8], 3));
        assert!(!sweep.is_spent());
        assert!(Sweep::default().knee().is_err() && Sweep::default().most_power().is_none());
    }
}
