//! Predictions of what a real node does, from the two ends of its sweep: the throughput under every bound
//! between, the knee, and the share of the knee's throughput that a limiter has.
//!
//! The sweep between the ends is predicted on a ladder of √2, whatever bounds were measured, so that it is
//! not told where the knee was looked for. A limiter's share is that of a run with the noise of a machine, beside
//! a fixed bound at the predicted knee with the same seed, over the last half of it: the protocol of real runs.

use crate::course::Phase;
use crate::fit::{Ends, fit, fixed, fixed_gate};
use crate::knee::{Knee, KneeError, KneeRule, Measurement, knee};
use crate::node::{self, NodeModel, Noise};
use airmail_flow::GateSettings;
use std::f64::consts::SQRT_2;

/// A node's model, and what it says about the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The model, fitted to the ends.
    pub model: NodeModel,
    /// The ends of what was measured.
    pub ends: Ends,
    /// The knee that the model has between them.
    pub knee: Knee,
}

impl Prediction {
    /// Predicts a node from the ends of its sweep, by a model whose clients and limiters are the node's.
    ///
    /// # Errors
    /// The model has no knee between the ends.
    pub fn new(model: &NodeModel, ends: Ends) -> Result<Prediction, KneeError> {
        let model = fit(model, &ends);
        let ladder: Vec<Measurement> = ladder(ends.lowest.bound, ends.highest.bound)
            .map(|bound| fixed(&model, bound))
            .collect();
        let knee = knee(&ladder, &KneeRule::DEFAULT)?;
        Ok(Prediction { model, ends, knee })
    }

    /// Throughput and latency under a fixed bound.
    #[must_use]
    pub fn at(&self, bound: u64) -> Measurement {
        fixed(&self.model, bound)
    }

    /// Share of the knee's throughput that a limiter with these settings has in the last half of a run of so
    /// many seconds, with one seed's noise.
    #[must_use]
    pub fn rate_share(&self, gate: GateSettings, span_s: f64, seed: u64) -> f64 {
        let noisy = NodeModel {
            noise: Noise::MEASURED,
            ..self.model
        };
        let phase = Phase {
            span_ns: (span_s * 1e9) as u64,
            capacity: 1.0,
        };
        let done = |gate| {
            let course = node::run(&noisy, gate, &[phase], seed);
            let last_half = course.between(phase.span_ns / 2, phase.span_ns);
            last_half.rate_per_s()
        };
        done(gate) / done(fixed_gate(self.knee.bound))
    }
}

/// Number of rungs of √2 from one bound to another; negative downwards.
#[must_use]
pub fn rungs(from: u64, to: u64) -> f64 {
    2.0 * (to as f64 / from as f64).log2()
}

/// The bounds from the lowest to the highest, √2 apart, each once.
fn ladder(lowest: u64, highest: u64) -> impl Iterator<Item = u64> {
    let rung = move |number: i32| (lowest as f64 * SQRT_2.powi(number)).round() as u64;
    let below = (0..).map(rung).take_while(move |bound| *bound < highest);
    let mut last = 0;
    let rising = move |bound: &u64| std::mem::replace(&mut last, *bound) < *bound;
    below.chain([highest]).filter(rising)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_reaches_from_the_lowest_bound_to_the_highest_and_has_none_twice() {
        let bounds: Vec<u64> = ladder(1, 9).collect();
        assert_eq!(bounds, [1, 2, 3, 4, 6, 8, 9]);
        let bounds: Vec<u64> = ladder(545, 2_180).collect();
        assert_eq!(bounds, [545, 771, 1_090, 1_541, 2_180]);
    }

    #[test]
    fn a_doubling_is_two_rungs() {
        assert_eq!((rungs(545, 1_090), rungs(64, 16)), (2.0, -4.0));
    }
}
