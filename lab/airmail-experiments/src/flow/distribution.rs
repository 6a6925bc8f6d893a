//! Distribution of messages over topics: the paper's three.
//!
//! The paper shows them as pictures (figures 5.1 to 5.3) and gives no numbers. Here the middle topic
//! is the mean of the two that have one, and three standard deviations of the normal one end where
//! the topics do. A draw outside is drawn again. With one topic all three are the same.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt;
use std::str::FromStr;

/// Distributions of messages over topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distribution {
    /// Every topic has the same share.
    Uniform,
    /// A normal distribution around the middle topic, with a standard deviation of a sixth of the topics.
    Normal,
    /// A Poisson distribution with the middle topic as its mean: the more topics, the narrower.
    Poisson,
}

/// There is no distribution of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a distribution: uniform, normal, poisson")]
pub struct UnknownDistribution(String);

impl Distribution {
    /// All of them, in the paper's order.
    pub const ALL: [Distribution; 3] = [
        Distribution::Uniform,
        Distribution::Normal,
        Distribution::Poisson,
    ];

    /// Its name in options and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Normal => "normal",
            Distribution::Poisson => "poisson",
        }
    }

    /// The share of the messages that each topic has; together 1.
    #[must_use]
    pub fn shares(self, topics: u32) -> Vec<f64> {
        let mean = f64::from(topics) / 2.0;
        let weights = (0..topics).map(|topic| match self {
            Distribution::Uniform => 1.0,
            Distribution::Normal => {
                let deviations = (f64::from(topic) + 0.5 - mean) / (f64::from(topics) / 6.0);
                (-deviations * deviations / 2.0).exp()
            }
            Distribution::Poisson => {
                let factorial: f64 = (1..=topic).map(|factor| f64::from(factor).ln()).sum();
                (f64::from(topic) * mean.ln() - mean - factorial).exp()
            }
        });
        let weights: Vec<f64> = weights.collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Distribution {
    type Err = UnknownDistribution;

    fn from_str(name: &str) -> Result<Distribution, UnknownDistribution> {
        let mut all = Distribution::ALL.into_iter();
        all.find(|known| known.name() == name)
            .ok_or_else(|| UnknownDistribution(name.to_owned()))
    }
}

/// Draws topics; the same ones for the same seed.
#[derive(Clone, Debug)]
pub struct Draw {
    random: SmallRng,
    /// Where each topic's part of all `u32` ends; topics without a part are never drawn.
    ends: Vec<u32>,
}

impl Draw {
    /// Draws from at least one topic.
    #[must_use]
    pub fn new(distribution: Distribution, topics: u32, seed: u64) -> Draw {
        let mut below = 0.0;
        let ends = distribution.shares(topics).into_iter().map(|share| {
            below += share;
            (below * f64::from(u32::MAX)) as u32
        });
        Draw {
            random: SmallRng::seed_from_u64(seed),
            ends: ends.collect(),
        }
    }

    /// The next one, by its place.
    pub fn topic(&mut self) -> usize {
        let last = self.ends.len().saturating_sub(1);
        if last == 0 {
            return 0;
        }
        let drawn: u32 = self.random.random();
        self.ends.partition_point(|end| *end <= drawn).min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_known_by_its_name() {
        for distribution in Distribution::ALL {
            assert_eq!(distribution.name().parse(), Ok(distribution));
        }
        assert!("zipf".parse::<Distribution>().is_err());
    }

    #[test]
    fn shares_add_up_to_one_and_are_highest_in_the_middle() {
        for topics in [1, 16, 256] {
            for distribution in Distribution::ALL {
                let shares = distribution.shares(topics);
                assert_eq!(shares.len(), topics as usize);
                let sum: f64 = shares.iter().sum();
                assert!((sum - 1.0).abs() < 1e-9, "{distribution} {topics}: {sum}");
                let most = shares.iter().copied().fold(0.0, f64::max);
                assert!((shares[topics as usize / 2] - most).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn draws_have_the_shares_and_repeat() {
        const DRAWS: u32 = 200_000;
        for distribution in Distribution::ALL {
            let mut draw = Draw::new(distribution, 16, 7);
            let mut same = draw.clone();
            let mut counts = [0u32; 16];
            for _ in 0..DRAWS {
                let topic = draw.topic();
                assert_eq!(topic, same.topic());
                counts[topic] += 1;
            }
            for (count, share) in counts.into_iter().zip(distribution.shares(16)) {
                let found = f64::from(count) / f64::from(DRAWS);
                assert!(
                    (found - share).abs() < 0.005,
                    "{distribution}: {found} {share}"
                );
            }
        }
    }

    #[test]
    fn poisson_of_many_topics_is_narrower_than_normal() {
        let spread = |distribution: Distribution| {
            let used = distribution.shares(256).into_iter();
            used.filter(|share| *share > 1e-4).count()
        };
        assert!(spread(Distribution::Poisson) < spread(Distribution::Normal) / 2);
    }
}
