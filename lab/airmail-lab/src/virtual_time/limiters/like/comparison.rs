//! One thing that was measured beside what was predicted of it, and how far the two may be apart.

use crate::flow::{Case, Setup};
use airmail_experiments::results::Row;
use airmail_experiments::row;
use airmail_queueing::prediction::rungs;
use std::fmt;

/// Share by which the throughput of a knee may be off.
const RATE_OFF_MAX: f64 = 0.15;
/// Rungs of √2 by which its bound may be off.
const RUNGS_OFF_MAX: f64 = 2.0;
/// The rung of a bound that is rounded to a whole message may be off by so much.
const ROUNDED: f64 = 0.05;
/// Difference that a limiter's share of the knee's throughput may have.
const SHARE_OFF_MAX: f64 = 0.1;

/// A thing that is measured and predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Quantity {
    /// Throughput under a fixed bound, in messages a second.
    Rate(u64),
    /// Throughput of the knee, in messages a second.
    KneeRate,
    /// Bound of the knee, in messages.
    KneeBound,
    /// Latency of the knee, in seconds.
    KneeLatency,
    /// A limiter's share of the knee's throughput.
    Share(Case),
}

impl Quantity {
    /// Its name in rows, the same for all of a kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            Quantity::Rate(_) => "rate_per_s",
            Quantity::KneeRate => "knee_rate_per_s",
            Quantity::KneeBound => "knee_bound",
            Quantity::KneeLatency => "knee_latency_s",
            Quantity::Share(_) => "rate_share",
        }
    }
}

/// A quantity of a setup, measured and predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) setup: Setup,
    pub(super) quantity: Quantity,
    pub(super) measured: f64,
    pub(super) predicted: f64,
}

impl Comparison {
    /// Difference of the prediction: of bounds in rungs of √2, of shares as it is, of all else as a share of
    /// what was measured.
    pub(super) fn difference(&self) -> f64 {
        let Comparison {
            measured,
            predicted,
            ..
        } = *self;
        match self.quantity {
            Quantity::KneeBound => rungs(measured as u64, predicted as u64),
            Quantity::Share(_) => predicted - measured,
            Quantity::Rate(_) | Quantity::KneeRate | Quantity::KneeLatency => {
                predicted / measured - 1.0
            }
        }
    }

    /// The most that the difference may be, either way; `None`: it is told, and not judged.
    pub(super) fn tolerance(&self) -> Option<f64> {
        match self.quantity {
            Quantity::KneeRate => Some(RATE_OFF_MAX),
            Quantity::KneeBound => Some(RUNGS_OFF_MAX + ROUNDED),
            Quantity::Share(_) => Some(SHARE_OFF_MAX),
            Quantity::Rate(_) | Quantity::KneeLatency => None,
        }
    }

    /// Whether the difference is no more than it may be.
    pub(super) fn is_within(&self) -> bool {
        let difference = self.difference().abs();
        self.tolerance().is_none_or(|most| difference <= most)
    }

    /// The difference, with its sign and its unit.
    pub(super) fn difference_text(&self) -> String {
        let difference = self.difference();
        match self.quantity {
            Quantity::KneeBound => format!("{difference:+.1} rungs"),
            Quantity::Share(_) => format!("{difference:+.2}"),
            _ => format!("{:+.0} %", difference * 100.0),
        }
    }

    /// Row for programs.
    pub(super) fn row(&self) -> Row {
        let (bound, case) = match self.quantity {
            Quantity::Rate(bound) => (Some(bound), None),
            Quantity::Share(case) => (None, Some(case)),
            _ => (None, None),
        };
        let setup = case.map_or(self.setup, |case| case.setup);
        row! {
            "storage": setup.storage.to_string(),
            "where": setup.place.name(),
            "publishers": setup.publishers,
            "topics": setup.topics,
            "distribution": setup.distribution.name(),
            "quantity": self.quantity.name(),
            "bound": bound,
            "limiter": case.map(|case| case.limiter.name()),
            "measured": self.measured,
            "predicted": self.predicted,
            "difference": self.difference(),
            "within": self.is_within(),
        }
    }
}

/// A sentence that says of whom it is, both figures, and how far apart they are.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison {
            setup,
            measured,
            predicted,
            ..
        } = self;
        let difference = self.difference_text();
        match self.quantity {
            Quantity::Rate(bound) => write!(
                f,
                "{setup}: {predicted:.0} messages/s predicted under {bound}, {measured:.0} measured ({difference})"
            ),
            Quantity::KneeRate => write!(
                f,
                "{setup}: {predicted:.0} messages/s predicted at the knee, {measured:.0} measured ({difference})"
            ),
            Quantity::KneeBound => write!(
                f,
                "{setup}: the knee predicted at {predicted}, measured at {measured} ({difference})"
            ),
            Quantity::KneeLatency => write!(
                f,
                "{setup}: {:.2} ms predicted at the knee, {:.2} measured ({difference})",
                predicted * 1e3,
                measured * 1e3
            ),
            Quantity::Share(case) => write!(
                f,
                "{case}: a share of {predicted:.2} predicted, {measured:.2} measured ({difference})"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Place, Storage};
    use airmail_experiments::flow::Distribution;
    use airmail_flow::LimiterKind;

    fn comparison(quantity: Quantity, measured: f64, predicted: f64) -> Comparison {
        Comparison {
            setup: SETUP,
            quantity,
            measured,
            predicted,
        }
    }

    const SETUP: Setup = Setup {
        storage: Storage::Disk,
        place: Place::Pilot,
        publishers: 2,
        topics: 1,
        distribution: Distribution::Uniform,
    };

    #[test]
    fn a_knee_may_be_off_by_15_percent_and_two_rungs_and_a_share_by_a_tenth() {
        let share = Quantity::Share(Case {
            setup: SETUP,
            limiter: LimiterKind::Ladder,
        });
        for (quantity, measured, within, beyond) in [
            (Quantity::KneeRate, 2e6, 2.29e6, 2.31e6),
            (Quantity::KneeRate, 2e6, 1.71e6, 1.69e6),
            (Quantity::KneeBound, 771.0, 1_541.0, 1_600.0),
            (Quantity::KneeBound, 1_541.0, 771.0, 740.0),
            (share, 0.95, 1.04, 1.06),
            (share, 0.95, 0.86, 0.84),
        ] {
            let within = comparison(quantity, measured, within);
            let beyond = comparison(quantity, measured, beyond);
            assert!(within.is_within(), "{within}");
            assert!(!beyond.is_within(), "{beyond}");
        }
    }

    #[test]
    fn throughputs_between_and_the_knees_latency_are_told_and_not_judged() {
        for quantity in [Quantity::Rate(64), Quantity::KneeLatency] {
            let comparison = comparison(quantity, 1.0, 3.0);
            assert!(comparison.is_within() && comparison.tolerance().is_none());
            assert_eq!(comparison.difference_text(), "+200 %");
        }
    }

    #[test]
    fn who_is_off_is_named_with_the_setup_and_both_figures() {
        let off = comparison(Quantity::KneeBound, 2_180.0, 545.0).to_string();
        assert_eq!(
            off,
            "disk, 1 topic, uniform, 2 publishers, in the pilot: the knee predicted at 545, measured at 2180 \
             (-4.0 rungs)"
        );
    }
}
