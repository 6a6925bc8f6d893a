//! Limiters: each answers a sample with a bound.
//!
//! This file has the parts common to all: the 80 % rule, and the least and greatest bound. Each
//! algorithm is a file of its own, and sees only samples of a system that is held back by its
//! bound.

mod adaptive;
mod gradient;
mod ladder;
mod last_three_points;
mod latency_target;

use crate::decision::Decision;
use crate::meter::{Sample, Window};
use crate::rule::Rule;
use crate::settings::{LimiterKind, LimiterSettings};
use adaptive::Adaptive;
use gradient::Gradient;
use ladder::{Ends, Ladder};
use last_three_points::LastThreePoints;
use latency_target::LatencyTarget;
use std::time::Duration;

/// Windows of `ladder` and `latency-target` hold at least so many times the bound: they last several
/// times as long as a message.
const WINDOW_ROUND_TRIPS: u64 = 4;

/// Batches that the least bound of `ladder` holds: with one the storage waits for the next while nothing is
/// under way.
const LADDER_BATCHES: u64 = 2;

/// One limiter with its state.
#[derive(Clone, Debug)]
pub struct Limiter {
    settings: LimiterSettings,
    bound: u64,
    /// λ of the last sample.
    rate_per_s: f64,
    algorithm: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Fixed,
    LastThreePoints(LastThreePoints),
    Adaptive(Adaptive),
    Gradient(Gradient),
    Ladder(Ladder),
    LatencyTarget(LatencyTarget),
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
            LimiterKind::Ladder => Algorithm::Ladder(Ladder::new(settings.ladder)),
            LimiterKind::LatencyTarget => {
                Algorithm::LatencyTarget(LatencyTarget::new(settings.latency_target))
            }
        };
        let mut limiter = Limiter {
            settings,
            bound: 0,
            rate_per_s: 0.0,
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

    /// Size of the next sample, whose messages are all to be admitted under the bound that holds now; N is
    /// `window_messages`. `None` for `fixed` and the papers' limiters, which take every N messages as they
    /// come. `ladder` goes by time and not by N: from one rung to another the rate may change by any factor.
    #[must_use]
    pub fn settled_window(&self, window_messages: u64) -> Option<Window> {
        let least = match &self.algorithm {
            Algorithm::Fixed | Algorithm::LastThreePoints(_) | Algorithm::Adaptive(_) => {
                return None;
            }
            Algorithm::Gradient(gradient) => gradient.window_messages_min(self.bound),
            Algorithm::Ladder(_) => {
                return Some(Window {
                    messages: self.bound.saturating_mul(WINDOW_ROUND_TRIPS),
                    span: Duration::from_millis(self.settings.ladder.window_ms),
                });
            }
            Algorithm::LatencyTarget(_) => {
                self.window_messages_min(self.settings.latency_target.window_ms)
            }
        };
        Some(Window::of_messages(window_messages.max(least)))
    }

    /// Messages of so many round trips, and of so much time.
    fn window_messages_min(&self, window_ms: u64) -> u64 {
        let done = self.rate_per_s * window_ms as f64 / 1e3;
        (done as u64).max(self.bound.saturating_mul(WINDOW_ROUND_TRIPS))
    }

    /// Answers a sample that was measured under the present bound. `held_back`: somebody was, in it.
    ///
    /// The papers' limiters know by L alone whether the system is held back by its bound. Where a batch
    /// is a large part of the bound, L stays below 80 % though every second one has to wait; so
    /// the others are told.
    pub fn observe(&mut self, sample: &Sample, held_back: bool) -> Decision {
        let bound_before = self.bound;
        self.rate_per_s = sample.rate_per_s();
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
            Algorithm::Ladder(ladder) => {
                let ends = ends(&self.settings, sample, LADDER_BATCHES);
                if !(busy || held_back) {
                    let (bound, rule) = ladder.idle(sample, bound, ends);
                    return (bound, rule.map_or(Rule::UnderUsed, Rule::Ladder));
                }
                let (bound, rule) = ladder.observe(sample, bound, ends);
                return (bound, Rule::Ladder(rule));
            }
            Algorithm::LatencyTarget(target) if target.is_held(sample, bound) || held_back => {
                let ends = ends(&self.settings, sample, 1);
                let (bound, rule) = target.observe(sample, bound, (ends.min, ends.max));
                return (bound, Rule::LatencyTarget(rule));
            }
            Algorithm::LatencyTarget(_) => return (bound, Rule::UnderUsed),
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

/// Ends of a limiter that never goes below so many batches: the settings', and what was measured.
fn ends(settings: &LimiterSettings, sample: &Sample, batches: u64) -> Ends {
    let max = settings.bound_max;
    Ends {
        min: settings.bound_min.max(batches * sample.batch()).min(max),
        max,
        batch: sample.batch(),
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
