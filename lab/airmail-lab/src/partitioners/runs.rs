//! Measurements of some cases, by policy and round, and their means.

use super::metric::Metric;
use super::outcome::Outcome;
use super::policy::Policy;
use airmail_experiments::results::{Confidence, Interval, Row};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;

/// The runs of one case, as of one topic with its acks.
#[derive(Debug, Default)]
pub(super) struct Runs {
    by_policy: BTreeMap<Policy, BTreeMap<u32, Outcome>>,
}

/// Standing of one policy against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Ahead,
    Level,
    Behind,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Standing::Ahead => "ahead",
            Standing::Level => "level",
            Standing::Behind => "behind",
        })
    }
}

impl Runs {
    /// Enters a run.
    pub(super) fn enter(&mut self, policy: Policy, round: u32, outcome: Outcome) {
        self.by_policy
            .entry(policy)
            .or_default()
            .insert(round, outcome);
    }

    /// Policies with a run.
    pub(super) fn policies(&self) -> Vec<Policy> {
        self.by_policy.keys().copied().collect()
    }

    /// A policy's runs.
    pub(super) fn of(&self, policy: Policy) -> impl Iterator<Item = &Outcome> {
        self.by_policy
            .get(&policy)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// Interval over all runs of a policy.
    pub(super) fn interval(&self, policy: Policy, metric: Metric) -> Option<Interval> {
        self.mean(policy, |outcome| outcome.metric(metric))
    }

    /// The same of anything that a run gives.
    pub(super) fn mean(&self, policy: Policy, of: impl Fn(&Outcome) -> f64) -> Option<Interval> {
        Interval::of(Confidence::P99, self.of(policy).map(of))
    }

    /// A policy's metric as a multiple of another's, round by round: what the machine did to both is not
    /// in it.
    pub(super) fn ratio(&self, policy: Policy, to: Policy, metric: Metric) -> Option<Interval> {
        let (runs, others) = (self.by_policy.get(&policy)?, self.by_policy.get(&to)?);
        let ratio = |(round, run): (&u32, &Outcome)| {
            Some(run.metric(metric) / others.get(round)?.metric(metric))
        };
        Interval::of(Confidence::P99, runs.iter().filter_map(ratio))
    }

    /// Whether a policy is better than another, outside the interval of their ratio.
    pub(super) fn standing(&self, policy: Policy, to: Policy, metric: Metric) -> Option<Standing> {
        let ratio = self.ratio(policy, to, metric)?;
        let (more, less) = if metric.is_more_better() {
            (Standing::Ahead, Standing::Behind)
        } else {
            (Standing::Behind, Standing::Ahead)
        };
        Some(if ratio.is_above(1.0) {
            more
        } else if ratio.is_below(1.0) {
            less
        } else {
            Standing::Level
        })
    }

    /// Records that were not acknowledged, of a policy or of all.
    pub(super) fn failed(&self, policy: Option<Policy>) -> u64 {
        let chosen = self
            .by_policy
            .iter()
            .filter(|(of, _)| policy.is_none_or(|it| it == **of));
        let runs = chosen.flat_map(|(_, runs)| runs.values());
        runs.map(|outcome| outcome.failed).sum()
    }

    /// Row of a policy, whatever the case.
    pub(super) fn row(&self, policy: Policy) -> Row {
        let mut row = Row::new();
        let mut put = |name: String, value| row.insert(name, value);
        put("policy".into(), json!(policy.name()));
        put("rounds".into(), json!(self.of(policy).count()));
        for metric in Metric::ALL {
            let Some(interval) = self.interval(policy, metric) else {
                continue;
            };
            let name = metric.name();
            put(name.into(), json!(interval.mean));
            if interval.half_width.is_finite() {
                put(format!("{name}_low"), json!(interval.low()));
                put(format!("{name}_high"), json!(interval.high()));
            }
        }
        for (to, name) in [(Policy::Default, "default"), (Policy::BuiltIn, "built_in")] {
            for metric in [Metric::Throughput, Metric::Mean, Metric::P99] {
                if let Some(ratio) = self.ratio(policy, to, metric).filter(|_| policy != to) {
                    let name = format!("{}_to_{name}", metric.name());
                    put(name.clone(), json!(ratio.mean));
                    if ratio.half_width.is_finite() {
                        put(format!("{name}_low"), json!(ratio.low()));
                        put(format!("{name}_high"), json!(ratio.high()));
                    }
                }
            }
        }
        put("failed".into(), json!(self.failed(Some(policy))));
        let mean = |of: fn(&Outcome) -> f64| self.mean(policy, of).map(|mean| mean.mean);
        put("batch_bytes".into(), json!(mean(|run| run.batch_bytes)));
        put("requests".into(), json!(mean(|run| run.requests)));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(throughput: f64) -> Outcome {
        Outcome::with_throughput(throughput)
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let mut runs = Runs::default();
        // The machine was twice as fast in the second round, and the fourth has no pair.
        for (round, speed) in [(1, 1.0), (2, 2.0), (3, 1.0)] {
            runs.enter(Policy::Default, round, run(10.0 * speed));
            runs.enter(Policy::Node, round, run(12.0 * speed));
        }
        runs.enter(Policy::Node, 4, run(1.0));
        let ratio = runs.ratio(Policy::Node, Policy::Default, Metric::Throughput);
        let ratio = ratio.unwrap();
        assert!((ratio.mean - 1.2).abs() < 1e-9 && ratio.half_width < 1e-9);
        let standing = |policy, to| runs.standing(policy, to, Metric::Throughput);
        assert_eq!(
            standing(Policy::Node, Policy::Default),
            Some(Standing::Ahead)
        );
        assert_eq!(
            standing(Policy::Default, Policy::Node),
            Some(Standing::Behind)
        );
        assert_eq!(standing(Policy::Node, Policy::Node), Some(Standing::Level));
        assert_eq!(standing(Policy::Node, Policy::Sqf), None);
    }
}
