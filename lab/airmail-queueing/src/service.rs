//! Service times of messages: distributions with mean 1, drawn from a seeded generator.

use rand::Rng;
use rand::rngs::SmallRng;

/// A distribution of service times, relative to their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Always the mean (the D of M/D/1).
    Constant,
    /// Memoryless (the M of M/M/1).
    Exponential,
    /// A heavy tail: a Pareto distribution cut off where a time is `span` times the shortest.
    Pareto {
        /// The tail's exponent; below 2 the variance is that of the cut.
        shape: f64,
        /// The longest time over the shortest.
        span: f64,
    },
    /// Small payloads, and now and then a large one.
    Payloads {
        /// The share of large ones.
        large_share: f64,
        /// Factor by which a large one takes longer.
        large: f64,
    },
}

impl Service {
    /// Draws one time. The mean is 1.
    pub fn draw(self, random: &mut SmallRng) -> f64 {
        match self {
            Service::Constant => 1.0,
            Service::Exponential => exponential(random),
            Service::Pareto { shape, span } => {
                let tail = span.powf(-shape);
                let uniform: f64 = random.random();
                let time = (1.0 - uniform * (1.0 - tail)).powf(-1.0 / shape);
                time / pareto_mean(shape, span)
            }
            Service::Payloads { large_share, large } => {
                let is_large = random.random::<f64>() < large_share;
                let time = if is_large { large } else { 1.0 };
                time / (1.0 + large_share * (large - 1.0))
            }
        }
    }
}

/// An exponential time with mean 1.
pub(crate) fn exponential(random: &mut SmallRng) -> f64 {
    // `random` gives [0, 1), so the logarithm is finite.
    -(1.0 - random.random::<f64>()).ln()
}

/// The mean of a Pareto distribution from 1, cut off at `span`.
fn pareto_mean(shape: f64, span: f64) -> f64 {
    let whole = 1.0 - span.powf(-shape);
    shape / (shape - 1.0) * (1.0 - span.powf(1.0 - shape)) / whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn every_distribution_has_mean_one() {
        let all = [
            Service::Constant,
            Service::Exponential,
            Service::Pareto {
                shape: 1.5,
                span: 100.0,
            },
            Service::Payloads {
                large_share: 0.1,
                large: 20.0,
            },
        ];
        for service in all {
            let mut random = SmallRng::seed_from_u64(1);
            let draws = 400_000;
            let sum: f64 = (0..draws).map(|_| service.draw(&mut random)).sum();
            let mean = sum / f64::from(draws);
            assert!((mean - 1.0).abs() < 0.02, "{service:?}: {mean}");
        }
    }
}
