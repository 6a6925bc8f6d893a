//! A setup that was measured, and all that the ends of its sweep predict.

use super::comparison::{Comparison, Quantity};
use crate::flow::{BesideFixed, Place, Setup};
use airmail_experiments::flow::Sweep;
use airmail_queueing::fit::Ends;
use airmail_queueing::knee::{Knee, KneeRule, Measurement};
use airmail_queueing::node::{ClientTimes, HELD_BATCHES, Limiters, NodeModel, Noise, Storing};
use airmail_queueing::prediction::Prediction;
use anyhow::Context as _;

/// A setup, measured and predicted.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) setup: Setup,
    pub(super) measured: Knee,
    pub(super) prediction: Prediction,
    /// Everything that is compared: the knee, the bounds between the ends, the limiters.
    pub(super) comparisons: Vec<Comparison>,
}

impl Compared {
    /// Predicts a setup from the ends of its sweep, and each limiter by so many runs; calls `progress` after
    /// the setup and each of these runs.
    ///
    /// # Errors
    /// The sweep has no knee, or no two ends.
    pub(super) fn new(
        setup: Setup,
        sweep: &Sweep,
        limiters: &[BesideFixed],
        seeds: u64,
        progress: &dyn Fn(),
    ) -> anyhow::Result<Compared> {
        let measured = sweep.knee().with_context(|| setup.to_string())?;
        let runs: Vec<Measurement> = sweep.runs().copied().collect();
        let ends = Ends::of(&runs, &KneeRule::DEFAULT)
            .with_context(|| format!("{setup}: no two bounds within the latency budget"))?;
        let prediction = Prediction::new(&model(&setup), ends);
        let prediction = prediction.with_context(|| setup.to_string())?;
        progress();
        let mut compared = Compared {
            setup,
            measured,
            prediction,
            comparisons: Vec::new(),
        };
        compared.compare_knee();
        compared.compare_rates(sweep);
        for limiter in limiters {
            compared.compare_share(limiter, seeds, progress);
        }
        Ok(compared)
    }

    fn compare(&mut self, quantity: Quantity, measured: f64, predicted: f64) {
        self.comparisons.push(Comparison {
            setup: self.setup,
            quantity,
            measured,
            predicted,
        });
    }

    fn compare_knee(&mut self) {
        let (measured, predicted) = (self.measured, self.prediction.knee);
        let bounds = [measured.bound, predicted.bound].map(|bound| bound as f64);
        self.compare(
            Quantity::KneeRate,
            measured.rate_per_s,
            predicted.rate_per_s,
        );
        self.compare(Quantity::KneeBound, bounds[0], bounds[1]);
        self.compare(
            Quantity::KneeLatency,
            measured.latency_s.max(Knee::LATENCY_RESOLUTION_S),
            predicted.latency_s.max(Knee::LATENCY_RESOLUTION_S),
        );
    }

    /// Compares all bounds but the ends: those were given.
    fn compare_rates(&mut self, sweep: &Sweep) {
        let Ends { lowest, highest } = self.prediction.ends;
        for point in sweep.points() {
            if point.bound != lowest.bound && point.bound != highest.bound {
                let predicted = self.prediction.at(point.bound).rate_per_s;
                let quantity = Quantity::Rate(point.bound);
                self.compare(quantity, point.rate_per_s.median, predicted);
            }
        }
    }

    fn compare_share(&mut self, limiter: &BesideFixed, seeds: u64, progress: &dyn Fn()) {
        let gate = limiter.gate();
        let mut shares: Vec<f64> = (0..seeds.max(1))
            .map(|seed| {
                let share = self.prediction.rate_share(gate, limiter.span_s, seed);
                progress();
                share
            })
            .collect();
        shares.sort_unstable_by(f64::total_cmp);
        let predicted = shares[shares.len() / 2];
        self.compare(Quantity::Share(limiter.case), limiter.rate_share, predicted);
    }
}

/// The model that is fitted: clients and limiters of the setup, and costs to begin with.
fn model(setup: &Setup) -> NodeModel {
    NodeModel {
        name: "measured",
        stands_for: "a node that was measured",
        storage: Storing::MEMORY,
        clients: setup.publishers,
        client: ClientTimes::NEAR,
        limiters: match setup.place {
            Place::Publisher => Limiters::Publishers,
            Place::Pilot => Limiters::Pilot {
                held_batches: HELD_BATCHES,
                in_turn: false,
            },
        },
        noise: Noise::NONE,
    }
}
