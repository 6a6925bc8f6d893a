//! Arrivals of independent clients that know nothing of one another: a Poisson process, seeded.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// Arrival times, in microseconds since the start, without an end.
#[derive(Debug)]
pub(super) struct Arrivals {
    random: SmallRng,
    mean_us: f64,
    at_us: f64,
}

impl Arrivals {
    /// Draws `per_s` arrivals a second in the mean.
    pub(super) fn new(seed: u64, per_s: f64) -> Arrivals {
        Arrivals {
            random: SmallRng::seed_from_u64(seed),
            mean_us: 1e6 / per_s.max(f64::MIN_POSITIVE),
            at_us: 0.0,
        }
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        // Above 0 and at most 1, so that its logarithm is a number.
        let uniform = 1.0 - self.random.random::<f64>();
        self.at_us -= uniform.ln() * self.mean_us;
        Some(self.at_us as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gaps_are_exponential_with_the_asked_mean() {
        let times: Vec<u64> = Arrivals::new(7, 1000.0).take(100_000).collect();
        assert!(times.is_sorted());
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|two| (two[1] - two[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1000.0).abs() < 20.0, "{mean}");
        // As large as the mean: the mark of this distribution.
        assert!((square.sqrt() - 1000.0).abs() < 30.0, "{square}");
    }

    #[test]
    fn the_same_seed_gives_the_same_times_and_another_gives_others() {
        let times = |seed| Arrivals::new(seed, 50.0).take(10).collect::<Vec<_>>();
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }
}
