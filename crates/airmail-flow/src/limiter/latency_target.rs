//! `latency-target`: keeps the latency at a target, for publishers who share a node.
//!
//! What publishers have in flight is in one queue behind the node's bound. Whoever raises its own bound
//! takes throughput from the others, so throughput says nothing about one's own bound, and neither does
//! power. The latency is common to all, and can be aimed at.
//!
//! Each window makes good a share (`gain`) of the difference between ln W and the aim; of two windows in a
//! row the smaller difference counts, and none if they contradict each other. So neither a stall nor noise
//! that is over with the window moves anything, and those who share a node are not driven apart by it.
//!
//! If all aimed at the same latency, any division among them would last: they agree on the sum alone. So the
//! aim droops with one's own bound, by `droop` for each doubling: at one W, who has more in flight is above
//! its aim, and who has less is below. (Swift, SIGCOMM 2020, scales its target with the window for the same
//! end.) The aim is the target at [`DROOP_CENTRE`], and never farther from it than [`AIM`]: beyond the bounds
//! at which it gets there nothing draws them together.
//!
//! Invariants: what the bound does not hold back moves nothing; one window alone moves nothing; never below a
//! batch.

use crate::meter::Sample;
use crate::rule::LatencyTargetRule as R;
use crate::settings::LatencyTargetSettings;

/// The bound at which the aim is the target, in messages.
const DROOP_CENTRE: f64 = 4_096.0;
/// Least and greatest aim, as shares of the target.
const AIM: (f64, f64) = (0.75, 1.5);
/// The most by which one window changes the bound: up, and down.
const STEP: (f64, f64) = (2.0, 0.7);

/// The limiter.
#[derive(Clone, Debug)]
pub(super) struct LatencyTarget {
    settings: LatencyTargetSettings,
    /// The bound before it is rounded: small ones move by less than a message.
    exact: f64,
    /// ln of the aim over W in the window before.
    before: f64,
}

impl LatencyTarget {
    pub(super) fn new(settings: LatencyTargetSettings) -> LatencyTarget {
        LatencyTarget {
            settings,
            exact: 0.0,
            before: 0.0,
        }
    }

    /// The latency that one with this bound aims at, in seconds.
    fn aim_s(&self, bound: f64) -> f64 {
        let doublings = (bound / DROOP_CENTRE).log2();
        let droop = (1.0 - self.settings.droop).powf(doublings);
        self.settings.target_us as f64 / 1e6 * droop.clamp(AIM.0, AIM.1)
    }

    /// The next bound, between the ends, after a sample that was measured under `bound`, which held
    /// messages back.
    pub(super) fn observe(
        &mut self,
        sample: &Sample,
        bound: u64,
        (min, max): (u64, u64),
    ) -> (u64, R) {
        // At first, and if the ends have moved it.
        if self.exact.round() as u64 != bound {
            self.exact = bound as f64;
        }
        let room = (self.aim_s(self.exact) / sample.latency_s()).ln();
        let before = std::mem::replace(&mut self.before, room);
        if room * before <= 0.0 {
            return (bound, R::Doubt);
        }
        // What both windows say.
        let agreed = room.abs().min(before.abs()).copysign(room);
        let step = (self.settings.gain * agreed).exp().clamp(STEP.1, STEP.0);
        let (min, max) = (min.max(1), max.max(min).max(1));
        self.exact = (self.exact * step).clamp(min as f64, max as f64);
        let next = self.exact.round() as u64;
        let rule = if next <= min && room < 0.0 {
            R::Least
        } else if next > bound {
            R::Up
        } else if next < bound {
            R::Down
        } else {
            R::Rest
        };
        (next, rule)
    }
}

#[cfg(test)]
mod tests;
