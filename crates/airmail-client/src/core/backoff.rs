//! Backoff: delays between attempts, exponential, truncated and randomised.
//!
//! Full jitter: each delay is drawn evenly from zero to a ceiling that doubles with every failure
//! and stops at a maximum. Clients that lost a node at the same moment therefore come back spread
//! out, and a node that stays away is asked seldom. The randomness is a seed, never the system's.

use airmail_model::Error;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// First and last ceiling of the delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// Ceiling of the first delay. Default 50 ms.
    pub base: Duration,
    /// Ceiling of every later delay, at most. Default 5 s. Less than `base` counts as `base`.
    pub cap: Duration,
}

impl Default for BackoffConfig {
    fn default() -> BackoffConfig {
        BackoffConfig {
            base: Duration::from_millis(50),
            cap: Duration::from_secs(5),
        }
    }
}

/// Generator of delays, each after one more failure.
#[derive(Clone, Debug)]
pub struct Backoff {
    config: BackoffConfig,
    random: SmallRng,
    failures: u32,
}

impl Backoff {
    /// Makes a backoff without failures yet.
    #[must_use]
    pub fn new(config: BackoffConfig, seed: u64) -> Backoff {
        Backoff {
            config,
            random: SmallRng::seed_from_u64(seed),
            failures: 0,
        }
    }

    /// Draws the delay before the next attempt, and counts one more failure.
    pub fn delay(&mut self) -> Duration {
        let ceiling = self.ceiling();
        self.failures = self.failures.saturating_add(1);
        self.up_to(ceiling)
    }

    /// Draws the delay after a refusal that says when to come back: at least `least`, and spread
    /// over as much again (up to the cap), so that clients that were refused together do not return
    /// together.
    pub fn delay_after(&mut self, least: Duration) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let spread = least.clamp(self.config.base, self.config.cap.max(self.config.base));
        least.saturating_add(self.up_to(spread))
    }

    /// Draws the delay after an error: at least the one that the error names, if it names one.
    pub fn delay_for(&mut self, error: &Error) -> Duration {
        match error.delay() {
            Some(least) => self.delay_after(least),
            None => self.delay(),
        }
    }

    /// Forgets the failures, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Counts the failures since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Gives the longest delay that [`Backoff::delay`] can draw now.
    #[must_use]
    pub fn ceiling(&self) -> Duration {
        let doubled = 2u32.saturating_pow(self.failures);
        let cap = self.config.cap.max(self.config.base);
        self.config.base.saturating_mul(doubled).min(cap)
    }

    fn up_to(&mut self, ceiling: Duration) -> Duration {
        let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.random_range(0..=nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(seed: u64) -> Backoff {
        Backoff::new(BackoffConfig::default(), seed)
    }

    #[test]
    fn the_ceiling_doubles_from_the_base_and_is_truncated_at_the_cap() {
        let mut backoff = backoff(1);
        let ceilings: Vec<u128> = (0..10)
            .map(|_| {
                let ceiling = backoff.ceiling();
                backoff.delay();
                ceiling.as_millis()
            })
            .collect();
        assert_eq!(
            ceilings,
            [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]
        );
    }

    #[test]
    fn every_delay_is_below_its_ceiling_and_they_fill_the_whole_range() {
        let mut backoff = backoff(2);
        (0..7).for_each(|_| {
            backoff.delay();
        });
        let ceiling = backoff.ceiling();
        let delays: Vec<Duration> = (0..1000).map(|_| backoff.delay()).collect();
        assert!(delays.iter().all(|delay| *delay <= ceiling));
        assert!(delays.iter().any(|delay| *delay < ceiling / 10));
        assert!(delays.iter().any(|delay| *delay > ceiling / 10 * 9));
    }

    #[test]
    fn one_seed_gives_one_series_and_another_seed_another() {
        let series = |seed| {
            let mut backoff = backoff(seed);
            (0..20).map(|_| backoff.delay()).collect::<Vec<_>>()
        };
        assert_eq!(series(7), series(7));
        assert_ne!(series(7), series(8));
    }

    #[test]
    fn a_success_begins_the_series_again() {
        let mut backoff = backoff(3);
        (0..30).for_each(|_| {
            backoff.delay();
        });
        assert_eq!(backoff.ceiling(), Duration::from_secs(5));
        backoff.reset();
        assert_eq!(backoff.ceiling(), Duration::from_millis(50));
    }

    #[test]
    fn many_failures_do_not_overflow() {
        let mut backoff = backoff(4);
        backoff.failures = u32::MAX;
        assert!(backoff.delay() <= Duration::from_secs(5));
        assert!(backoff.delay_after(Duration::MAX) == Duration::MAX);
    }

    #[test]
    fn a_delay_that_the_node_names_is_never_undercut() {
        let mut backoff = backoff(5);
        let least = Duration::from_secs(1);
        let delays: Vec<Duration> = (0..200).map(|_| backoff.delay_after(least)).collect();
        assert!(
            delays
                .iter()
                .all(|delay| *delay >= least && *delay <= least * 2)
        );
        assert!(delays.iter().any(|delay| *delay > least * 3 / 2));
    }
}
