//! Whether a system has changed: a cumulative sum over the windows at rest.
//!
//! Each window's ln λ differs from the level by noise. What it differs by beyond a drift is summed up,
//! above and below apart; a sum beyond a threshold is a change (CUSUM). Both are multiples of the
//! noise, which is measured from neighbouring windows, so that a trend does not count as noise. One
//! window counts only so much: a single stall, however long, is no change.

/// Noise to begin with, and its ends: standard deviation of ln λ from window to window.
const NOISE: f64 = 0.15;
const NOISE_MIN: f64 = 0.03;
const NOISE_MAX: f64 = 0.4;
/// Share that a new difference has in the noise.
const NOISE_WEIGHT: f64 = 1.0 / 16.0;
/// The least that a window must differ by to count, the most that it counts, and the least sum that is
/// a change; with the multiples of the noise that take their place where it is large.
const DRIFT: (f64, f64) = (0.15, 1.0);
const CLIP: (f64, f64) = (0.5, 2.0);
const THRESHOLD: (f64, f64) = (0.6, 3.0);

/// The two sums, and the noise.
#[derive(Clone, Debug)]
pub(super) struct Change {
    noise_squared: f64,
    /// ln λ of the window before, if that was at rest too.
    before: Option<f64>,
    above: f64,
    below: f64,
}

impl Default for Change {
    fn default() -> Change {
        Change {
            noise_squared: NOISE * NOISE,
            before: None,
            above: 0.0,
            below: 0.0,
        }
    }
}

impl Change {
    /// Standard deviation of ln λ from window to window.
    pub(super) fn noise(&self) -> f64 {
        self.noise_squared.sqrt().clamp(NOISE_MIN, NOISE_MAX)
    }

    /// `difference`, but no more of it than one window counts.
    pub(super) fn clipped(&self, difference: f64) -> f64 {
        let most = self.limit(CLIP);
        difference.clamp(-most, most)
    }

    /// Takes a window at rest, of this ln λ, whose level is expected; says whether the system has
    /// changed.
    pub(super) fn observe(&mut self, look: f64, level: f64) -> bool {
        let difference = self.clipped(look - level);
        let drift = self.limit(DRIFT);
        self.above = (self.above + difference - drift).max(0.0);
        self.below = (self.below - difference - drift).max(0.0);
        if let Some(before) = self.before.replace(look) {
            // Two independent ones differ by twice the variance of each.
            let squared = self.clipped(look - before).powi(2) / 2.0;
            self.noise_squared += NOISE_WEIGHT * (squared - self.noise_squared);
        }
        self.above.max(self.below) > self.limit(THRESHOLD)
    }

    /// Notes that the next window is not the neighbour of the last.
    pub(super) fn interrupt(&mut self) {
        self.before = None;
    }

    /// Begins the sums anew: the level is another. The noise stays.
    pub(super) fn restart(&mut self) {
        self.before = None;
        self.above = 0.0;
        self.below = 0.0;
    }

    fn limit(&self, (least, noises): (f64, f64)) -> f64 {
        least.max(noises * self.noise())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::ladder::tests::Noise;

    #[test]
    fn one_stall_is_no_change_however_long_it_was() {
        for noise in [0.0, 0.1, 0.4, 1.0] {
            let mut change = Change::default();
            let mut chance = Noise::new(7);
            for _ in 0..200 {
                change.observe(noise * chance.normal(), 0.0);
            }
            change.restart();
            assert!(!change.observe(-5.0, 0.0), "{noise}");
        }
    }

    #[test]
    fn half_and_twice_the_throughput_are_seen_within_a_few_windows() {
        for level in [-(2_f64.ln()), 2_f64.ln()] {
            for seed in 0..100 {
                let mut chance = Noise::new(seed);
                let mut change = Change::default();
                for _ in 0..50 {
                    change.observe(0.15 * chance.normal(), 0.0);
                }
                let mut looks = (0..8).map(|_| level + 0.15 * chance.normal());
                assert!(looks.any(|look| change.observe(look, 0.0)), "{seed}");
            }
        }
    }

    #[test]
    fn noise_is_measured_and_is_no_change() {
        let mut false_ones = 0;
        for seed in 0..100 {
            let mut chance = Noise::new(seed);
            let mut change = Change::default();
            for _ in 0..200 {
                if change.observe(0.15 * chance.normal(), 0.0) {
                    false_ones += 1;
                    change.restart();
                }
            }
            assert!((0.08..0.25).contains(&change.noise()), "{}", change.noise());
        }
        assert!(false_ones <= 10, "of 20,000 windows: {false_ones}");
    }
}
