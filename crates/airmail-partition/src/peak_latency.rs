//! Latency to expect of a node: it rises at once to the worst just seen, and is forgotten
//! exponentially (peak EWMA).
//!
//! A node that gets worse is avoided after one sample. Forgetting goes on without samples, so that a node
//! that gets nothing is tried again; samples are bounded, so that this takes under a second after any outage.

use std::time::Duration;

/// A worse sample counts as this much.
pub(crate) const LATENCY_MAX: Duration = Duration::from_secs(1);

/// One node's.
#[derive(Clone, Debug)]
pub(crate) struct PeakLatency {
    decay: Duration,
    peak_s: f64,
    seen_at: Duration,
}

impl PeakLatency {
    pub(crate) fn new(decay: Duration) -> PeakLatency {
        PeakLatency {
            decay,
            peak_s: 0.0,
            seen_at: Duration::ZERO,
        }
    }

    pub(crate) fn observe(&mut self, sample: Duration, now: Duration) {
        let sample = sample.min(LATENCY_MAX).as_secs_f64();
        let peak = self.peak_s;
        self.peak_s = if sample >= peak {
            sample
        } else {
            sample + (peak - sample) * self.weight(now)
        };
        self.seen_at = now;
    }

    /// The latency to expect, in seconds.
    pub(crate) fn seconds(&self, now: Duration) -> f64 {
        self.peak_s * self.weight(now)
    }

    fn weight(&self, now: Duration) -> f64 {
        let age = now.saturating_sub(self.seen_at);
        (-age.as_secs_f64() / self.decay.as_secs_f64()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_worse_sample_counts_at_once_and_is_forgotten_within_a_second() {
        let mut latency = PeakLatency::new(150 * MS);
        latency.observe(2 * MS, MS);
        latency.observe(10_000 * MS, 2 * MS);
        assert!((latency.seconds(2 * MS) - 1.0).abs() < 1e-9, "bounded");
        latency.observe(2 * MS, 152 * MS);
        let fallen = 0.002 + 0.998 / 1_f64.exp();
        assert!((latency.seconds(152 * MS) - fallen).abs() < 1e-9);
        assert!(latency.seconds(1_200 * MS) < 0.001);
    }
}
