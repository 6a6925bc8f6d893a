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
//! If all aimed at the same latency, any division among them would last: they agree on the sum alone. So
//! who has less in flight aims higher: the aim of a bound b is [`AIM`].0 of the target times e^(`pull`/b),
//! and at most [`AIM`].1 of it. To the bound that means what additive increase means to a TCP window: every
//! window adds the same number of messages, whatever the bound, and takes away a share of it. (Swift,
//! SIGCOMM 2020, scales its target with the window for the same end.) The pull is strong where many share a
//! node, each with little in flight, and weak where there is hardly anybody to share with. It has to be more
//! than what a larger share gains by itself: of eight publishers on a disk, one with 1,600 messages in flight had
//! 0.88 of the W of those with 1,000, and with two thirds of this pull some had twice the throughput of others.
//! Where all have little in flight the aim is at its greatest and no longer draws anybody: of eight on a disk with
//! 256 topics, who had some 1,000 messages each, the largest had up to three times the smallest's share. That is the
//! price of a greatest aim that is only a tenth above the target, which is what users were promised.
//!
//! Invariants: what the bound does not hold back moves nothing; one window alone moves nothing; never below a
//! batch.

use crate::meter::Sample;
use crate::rule::LatencyTargetRule as R;
use crate::settings::LatencyTargetSettings;

/// Least and greatest aim, as shares of the target.
const AIM: (f64, f64) = (0.78, 1.1);
/// The most by which one window changes the bound: up, and down.
const STEP: (f64, f64) = (2.0, 0.7);

/// Share of the bound that is in flight, in the mean, where the bound holds something back. Less than for other
/// limiters: a client that takes as long to make its messages as the node does to store them has its bound used
/// up for half of the time, and it is the latency that says how much more it may have.
const HELD_SHARE: f64 = 0.5;

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

    /// Whether the bound holds messages back.
    pub(super) fn is_held(&self, sample: &Sample, bound: u64) -> bool {
        sample.in_flight() >= HELD_SHARE * bound as f64
    }

    /// The latency that one with this bound aims at, in seconds.
    fn aim_s(&self, bound: f64) -> f64 {
        let pull = (self.settings.pull_messages as f64 / bound).exp();
        self.settings.target_us as f64 / 1e6 * (AIM.0 * pull).min(AIM.1)
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
