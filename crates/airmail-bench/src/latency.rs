//! Times from publish to delivery, as a histogram that keeps three digits.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest time that is told apart: an hour, in microseconds. Longer ones count as this.
const LONGEST_US: u64 = 3_600_000_000;
/// Points of [`Latencies::curve`]: quantiles that get closer to 1, as nines do.
const CURVE: [f64; 22] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
    0.9995, 0.9998, 0.9999, 0.99995, 0.99999, 1.0,
];

/// Collected times. Written as its counts, so that processes can tell one another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latencies(Histogram<u64>);

/// Times in microseconds: percentiles and the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half of the messages took at most this.
    pub p50: u64,
    /// 90 of 100.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
    /// 9,999 of 10,000.
    pub p9999: u64,
    /// All of them.
    pub max: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// None yet.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "the bounds are constants that the histogram accepts"
    )]
    pub fn new() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, LONGEST_US, 3).expect("bounds"))
    }

    /// Takes one time, in microseconds.
    pub fn record(&mut self, latency_us: u64) {
        self.record_many(latency_us, 1);
    }

    /// Takes `count` equal times, in microseconds.
    pub fn record_many(&mut self, latency_us: u64, count: u64) {
        self.0.saturating_record_n(latency_us.max(1), count);
    }

    /// Takes all of another's.
    #[expect(clippy::expect_used, reason = "both histograms have the same bounds")]
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("bounds");
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The percentiles.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            p50: self.0.value_at_quantile(0.5),
            p90: self.0.value_at_quantile(0.9),
            p99: self.0.value_at_quantile(0.99),
            p999: self.0.value_at_quantile(0.999),
            p9999: self.0.value_at_quantile(0.9999),
            max: self.0.max(),
        }
    }

    /// The time that a part of them, from 0 to 1, took at most.
    #[must_use]
    pub fn at(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// Quantiles from 0 to 1, each with the time that so large a part took at most.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, u64)> {
        let point = |quantile| (quantile, self.0.value_at_quantile(quantile));
        CURVE.into_iter().map(point).collect()
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(counts: Vec<(u64, u64)>) -> Latencies {
        let mut latencies = Latencies::new();
        for (latency_us, count) in counts {
            latencies.record_many(latency_us, count);
        }
        latencies
    }
}

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Vec<(u64, u64)> {
        let counts = latencies.0.iter_recorded();
        counts
            .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_hundred_thousand() {
        let (mut low, mut high) = (Latencies::new(), Latencies::new());
        (1..=50_000).for_each(|us| low.record(us));
        (50_001..=100_000).for_each(|us| high.record(us));
        low.add(&high);
        let found = low.percentiles();
        for (found, exact) in [
            (found.p50, 50_000),
            (found.p99, 99_000),
            (found.p9999, 99_990),
        ] {
            assert!(found.abs_diff(exact) <= exact / 1000, "{found} for {exact}");
        }
    }

    #[test]
    fn what_takes_too_long_still_counts() {
        let mut latencies = Latencies::new();
        latencies.record(u64::MAX);
        assert!(latencies.percentiles().max >= LONGEST_US / 1000 * 999);
    }

    #[test]
    fn what_another_process_wrote_has_the_same_percentiles() {
        let mut latencies = Latencies::new();
        (1..=5000).for_each(|us| latencies.record(us * us));
        let written = serde_json::to_string(&latencies).unwrap();
        let read: Latencies = serde_json::from_str(&written).unwrap();
        assert_eq!(read.percentiles(), latencies.percentiles());
        assert_eq!(read.count(), 5000);
    }
}
