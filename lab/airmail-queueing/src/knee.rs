//! The knee of a sweep over fixed bounds: the least bound that gives no throughput worth having away.
//!
//! Throughput over the bound rises, and then stays or falls; measured, it also jumps by chance. So the
//! curve is first made to rise: the *isotonic regression* of the medians is the curve nearest to them,
//! by weighted squares, that never falls. Its top is the *peak*, and the knee is the least bound where
//! it has [`KneeRule::share`] of the peak. That is 0.9 and not more: on a hyperbola λ = L/(c + mL), as of
//! a commit with a fixed cost, 1 % of the throughput moves the knee by a tenth of itself at 0.9, and by a
//! fifth at 0.95. Bounds whose latency is beyond the budget ([`KneeRule::latency_budget_s`]) are left out,
//! because throughput that costs so much latency is none that anybody wants.
//!
//! Throughput over latency, the *power*, is no such measure: where a commit has a fixed cost it is
//! greatest at half of the throughput.
//!
//! The module knows no simulation: the same definition judges sweeps of a real node.
//!
//! ```
//! use airmail_queueing::knee::{KneeRule, Measurement, knee};
//!
//! // A commit that costs 350 µs, and 0.3 µs for each of its messages.
//! let sweep: Vec<Measurement> = (5..16)
//!     .map(|exponent| {
//!         let bound: u64 = 1 << exponent;
//!         let latency_s = 350e-6 + 0.3e-6 * bound as f64;
//!         Measurement { bound, rate_per_s: bound as f64 / latency_s, latency_s }
//!     })
//!     .collect();
//! let knee = knee(&sweep, &KneeRule::DEFAULT)?;
//! assert_eq!(knee.bound, 8_192);
//! let beside = knee.compare(knee.rate_per_s / 2.0, knee.latency_s * 3.0);
//! assert!((beside.rate_share - 0.5).abs() < 1e-9 && (beside.latency_ratio - 3.0).abs() < 1e-9);
//! # Ok::<(), airmail_queueing::knee::KneeError>(())
//! ```
//!
//! Invariants: the order of the measurements means nothing; twice the throughput everywhere gives the
//! same bound and twice the peak; the knee is one of the bounds that were measured.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run under a fixed bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The bound: messages that may be in flight.
    pub bound: u64,
    /// Throughput, λ, in messages a second; 0 or more.
    pub rate_per_s: f64,
    /// Mean latency, W, in seconds; 0 or more.
    pub latency_s: f64,
}

/// Constants of the definition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeRule {
    /// Share of the peak's throughput that the knee has. Default: 0.9. Above 0, at most 1.
    pub share: f64,
    /// Latency beyond which a bound is left out, in seconds, unless the lowest bound has more than half of
    /// it: then it is twice that one's. Default: 0.010.
    pub latency_budget_s: f64,
}

impl KneeRule {
    /// All defaults.
    pub const DEFAULT: KneeRule = KneeRule {
        share: 0.9,
        latency_budget_s: 0.010,
    };

    /// The latency beyond which bounds are left out where the lowest one has this latency, in seconds.
    #[must_use]
    pub fn budget_s(&self, lowest_s: f64) -> f64 {
        self.latency_budget_s.max(2.0 * lowest_s)
    }
}

impl Default for KneeRule {
    fn default() -> KneeRule {
        KneeRule::DEFAULT
    }
}

/// The knee of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The bound.
    pub bound: u64,
    /// Median throughput that was measured there, in messages a second.
    pub rate_per_s: f64,
    /// Median latency that was measured there, in seconds.
    pub latency_s: f64,
    /// The peak: top of the isotonic regression within the budget, in messages a second.
    pub peak_per_s: f64,
}

impl Knee {
    /// Shortest latency that is told from a shorter one, in seconds. A storage that answers within the
    /// turn has a latency of 0, of which nothing is a multiple.
    pub const LATENCY_RESOLUTION_S: f64 = 0.000_1;

    /// Compares a throughput, in messages a second, and a latency, in seconds, with the knee's.
    #[must_use]
    pub fn compare(&self, rate_per_s: f64, latency_s: f64) -> BesideKnee {
        let told = |latency_s: f64| latency_s.max(Knee::LATENCY_RESOLUTION_S);
        BesideKnee {
            rate_share: rate_per_s / self.rate_per_s,
            latency_ratio: told(latency_s) / told(self.latency_s),
        }
    }
}

/// A measured throughput and latency, beside the knee.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BesideKnee {
    /// Throughput as a share of the knee's.
    pub rate_share: f64,
    /// Latency as a multiple of the knee's; both count as at least [`Knee::LATENCY_RESOLUTION_S`].
    pub latency_ratio: f64,
}

/// Reasons for which a sweep has no knee.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum KneeError {
    /// There is no measurement.
    #[error("no bound was measured")]
    Nothing,
    /// A throughput or a latency is negative, infinite or not a number.
    #[error("bound {bound}: {rate_per_s} messages/s at {latency_s} s cannot have been measured")]
    Unsound {
        /// The bound.
        bound: u64,
        /// Its throughput, in messages a second.
        rate_per_s: f64,
        /// Its latency, in seconds.
        latency_s: f64,
    },
    /// No bound within the budget let anything through.
    #[error("no bound within a latency of {budget_s} s had any throughput")]
    NoThroughput {
        /// The latency up to which bounds were looked at, in seconds.
        budget_s: f64,
    },
}

/// The medians of a bound's runs.
#[derive(Clone, Copy, Debug)]
struct Point {
    bound: u64,
    runs: usize,
    rate_per_s: f64,
    latency_s: f64,
}

/// Finds the knee of a sweep; several measurements of one bound count by their medians.
///
/// # Errors
/// There is nothing to judge by; see [`KneeError`].
pub fn knee(sweep: &[Measurement], rule: &KneeRule) -> Result<Knee, KneeError> {
    let points = medians(sweep)?;
    let Some(lowest) = points.first() else {
        return Err(KneeError::Nothing);
    };
    let budget_s = rule.budget_s(lowest.latency_s);
    let within: Vec<Point> = points
        .into_iter()
        .filter(|point| point.latency_s <= budget_s)
        .collect();
    let weighted: Vec<(f64, f64)> = within
        .iter()
        .map(|point| (point.rate_per_s, point.runs as f64))
        .collect();
    let rising = isotonic(&weighted);
    let peak_per_s = rising.last().copied().unwrap_or(0.0);
    if peak_per_s <= 0.0 {
        return Err(KneeError::NoThroughput { budget_s });
    }
    let mut candidates = within.iter().zip(&rising);
    let found = candidates.find(|(_, rate_per_s)| **rate_per_s >= rule.share * peak_per_s);
    match found {
        Some((point, _)) => Ok(Knee {
            bound: point.bound,
            rate_per_s: point.rate_per_s,
            latency_s: point.latency_s,
            peak_per_s,
        }),
        None => Err(KneeError::NoThroughput { budget_s }),
    }
}

/// Fits a curve that never falls to values, each with a weight above 0, by weighted least squares: the
/// algorithm of pool adjacent violators. Gives as many values as it is given.
#[must_use]
pub fn isotonic(values: &[(f64, f64)]) -> Vec<f64> {
    // Pools of neighbours with one mean: sum of weights, mean, number of values.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in values {
        let mut pool = (*weight, *value, 1);
        while let Some(below) = pools.pop_if(|below| below.1 > pool.1) {
            let weight = below.0 + pool.0;
            let mean = (below.0 * below.1 + pool.0 * pool.1) / weight;
            pool = (weight, mean, below.2 + pool.2);
        }
        pools.push(pool);
    }
    pools
        .into_iter()
        .flat_map(|(_, mean, count)| std::iter::repeat_n(mean, count))
        .collect()
}

/// A bound, and how long it held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The bound.
    pub bound: f64,
    /// Its part of the time, in any unit; 1 for each of windows that count the same.
    pub weight: f64,
}

/// Standard deviation of a bound as a share of its mean: 0 for a bound that rests. `None` if nothing held.
#[must_use]
pub fn bound_spread(held: impl IntoIterator<Item = Held>) -> Option<f64> {
    let held: Vec<Held> = held.into_iter().collect();
    let weight: f64 = held.iter().map(|held| held.weight).sum();
    if weight <= 0.0 {
        return None;
    }
    let mean = held
        .iter()
        .map(|held| held.weight * held.bound)
        .sum::<f64>()
        / weight;
    let square = |held: &Held| held.weight * (held.bound - mean).powi(2);
    let variance = held.iter().map(square).sum::<f64>() / weight;
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

fn medians(sweep: &[Measurement]) -> Result<Vec<Point>, KneeError> {
    let mut runs: BTreeMap<u64, [Vec<f64>; 2]> = BTreeMap::new();
    for run in sweep {
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        if !sound(run.rate_per_s) || !sound(run.latency_s) {
            return Err(KneeError::Unsound {
                bound: run.bound,
                rate_per_s: run.rate_per_s,
                latency_s: run.latency_s,
            });
        }
        let [rates, latencies] = runs.entry(run.bound).or_default();
        rates.push(run.rate_per_s);
        latencies.push(run.latency_s);
    }
    let point = |(bound, [rates, latencies]): (u64, [Vec<f64>; 2])| Point {
        bound,
        runs: rates.len(),
        rate_per_s: median(rates),
        latency_s: median(latencies),
    };
    Ok(runs.into_iter().map(point).collect())
}

/// The middle one, or the mean of the two in the middle; there is at least one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
    (values[low] + values[high]) / 2.0
}
