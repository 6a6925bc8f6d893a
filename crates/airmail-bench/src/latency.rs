//! Times from publish to delivery, as a histogram that keeps three digits.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest time that is told apart: an hour, in microseconds. Longer ones count as this.
const LONGEST_US: u64 = 3_600_000_000;

/// Collected times.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// Times in microseconds: percentiles and the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
        self.0.saturating_record(latency_us.max(1));
    }

    /// Takes all of another's.
    #[expect(clippy::expect_used, reason = "both histograms have the same bounds")]
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("bounds");
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
}
