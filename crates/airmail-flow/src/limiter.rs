//! Limiters: each answers a sample with a bound.
//!
//! This file has the parts common to all: the 80 % rule, and the least and greatest bound. Each
//! algorithm is a file of its own, and sees only samples of a system that is held back by its
//! bound.

mod adaptive;
mod gradient;
mod last_three_points;

use crate::decision::{Decision, Rule};
use crate::meter::Sample;
use crate::settings::{LimiterKind, LimiterSettings};
use adaptive::Adaptive;
use gradient::Gradient;
use last_three_points::LastThreePoints;

/// One limiter with its state.
#[derive(Clone, Debug)]
pub struct Limiter {
    settings: LimiterSettings,
    bound: u64,
    algorithm: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Fixed,
    LastThreePoints(LastThreePoints),
    Adaptive(Adaptive),
    Gradient(Gradient),
}

impl Limiter {
    /// Begins with the settings' `bound_initial`. Settings that [`LimiterSettings::validate`]
    /// refuses give a limiter that stays between its ends nevertheless.
    #[must_use]
    pub fn new(settings: LimiterSettings) -> Limiter {
        let algorithm = match settings.kind {
            LimiterKind::Fixed => Algorithm::Fixed,
            LimiterKind::LastThreePoints => {
                Algorithm::LastThreePoints(LastThreePoints::new(settings.last_three_points))
            }
            LimiterKind::Adaptive => Algorithm::Adaptive(Adaptive::new(settings.adaptive)),
            LimiterKind::Gradient => Algorithm::Gradient(Gradient::new(settings.gradient)),
        };
        let mut limiter = Limiter {
            settings,
            bound: 0,
            algorithm,
        };
        limiter.bound = limiter.clamp(settings.bound_initial);
        limiter
    }

    /// The bound that holds now.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// The kind of limiter.
    #[must_use]
    pub fn kind(&self) -> LimiterKind {
        self.settings.kind
    }

    /// Number of messages that the next sample should hold, all of them admitted under the new
    /// bound, after one that has changed; N is `window_messages`. `None` for the papers' limiters,
    /// which take every N messages as they come.
    #[must_use]
    pub fn settled_window(&self, window_messages: u64) -> Option<u64> {
        let Algorithm::Gradient(gradient) = &self.algorithm else {
            return None;
        };
        Some(window_messages.max(gradient.window_messages_min(self.bound)))
    }

    /// Answers a sample that was measured under the present bound. `held_back`: somebody was, in it.
    ///
    /// The papers' limiters know by L alone whether the system is held back by its bound. Where a batch
    /// is a large part of the bound, L stays below 80 % though every second one has to wait; so
    /// `gradient` is told.
    pub fn observe(&mut self, sample: &Sample, held_back: bool) -> Decision {
        let bound_before = self.bound;
        let busy = sample.in_flight() >= self.settings.busy_share * bound_before as f64;
        let (bound, rule) = self.apply(sample, busy, held_back);
        self.bound = self.clamp(bound);
        Decision {
            at: sample.at,
            bound: self.bound,
            bound_before,
            in_flight: sample.in_flight(),
            latency_s: sample.latency_s(),
            rate_per_s: sample.rate_per_s(),
            rule,
        }
    }

    fn apply(&mut self, sample: &Sample, busy: bool, held_back: bool) -> (u64, Rule) {
        let bound = self.bound;
        let delta = self.settings.delta;
        // The papers' limiters remember what they have measured also while it changes nothing.
        let (change, rule) = match &mut self.algorithm {
            Algorithm::Fixed => return (bound, Rule::Fixed),
            Algorithm::LastThreePoints(points) => points.observe(sample),
            Algorithm::Adaptive(points) => points.observe(sample),
            Algorithm::Gradient(gradient) if busy || held_back => {
                let max = self.settings.bound_max;
                let min = gradient.bound_floor(sample).max(self.settings.bound_min);
                let (bound, rule) = gradient.observe(sample, bound, (min.min(max), max));
                return (bound.max(min), Rule::Gradient(rule));
            }
            Algorithm::Gradient(_) => return (bound, Rule::UnderUsed),
        };
        if busy {
            (moved(bound, change.0, delta), rule)
        } else {
            (bound, Rule::UnderUsed)
        }
    }

    fn clamp(&self, bound: u64) -> u64 {
        let min = self.settings.bound_min.max(1);
        bound.clamp(min, self.settings.bound_max.max(min))
    }
}

fn moved(bound: u64, deltas: i8, delta: u64) -> u64 {
    let distance = delta.saturating_mul(u64::from(deltas.unsigned_abs()));
    if deltas < 0 {
        bound.saturating_sub(distance)
    } else {
        bound.saturating_add(distance)
    }
}
