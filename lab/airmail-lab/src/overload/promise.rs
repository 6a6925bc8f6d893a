//! The promise of flow control by default, held against what was measured.
//!
//! The promise is [`PROMISE`](airmail_flow::PROMISE), which the node prints with its settings. Each part of it
//! that is a number is a ratio within one run: goodput at the greatest load over the most that there was at any
//! load, with flow control or without; p99 of what was admitted over that of a calm load; deliveries beside slow subscribers
//! over deliveries beside nobody. That every refusal is one with a delay decides whether a run is sound.

use super::deliveries::Deliveries;
use super::publishes::{Case, Publishes};
use crate::flow_control::FlowControl;
use airmail_bench::Spread;
use std::fmt;

/// The load that the latency of the greatest is held against, as a share of the capacity.
pub(super) const CALM: f64 = 0.8;
/// The least of the most goodput that is kept.
const GOODPUT_SHARE: f64 = 0.95;
/// The most that p99 may be, in those of the calm load.
const P99_RATIO: f64 = 3.0;
/// The least of their deliveries that subscribers get beside slow ones.
const DELIVERED_SHARE: f64 = 0.95;

/// The promise's numbers, as they were found; those that were not measured are absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kept {
    /// The greatest load, as a share of the capacity.
    ratio: f64,
    goodput_share: f64,
    p99_ratio: Option<f64>,
    delivered_share: Option<f64>,
}

impl Kept {
    /// Numbers of the nodes with this flow control; `None` if they were not measured.
    pub(super) fn of(
        publishes: &Publishes,
        deliveries: &Deliveries<'_>,
        flow: FlowControl,
    ) -> Option<Kept> {
        let at = |flow, ratio: f64, value| Some(publishes.spread(ratio, flow, value)?.median);
        let pairs = publishes.pairs().into_iter();
        let peak = pairs
            .filter_map(|(ratio, flow)| at(flow, ratio, Case::goodput))
            .fold(0.0, f64::max);
        let ratio = *publishes.ratios().last()?;
        let calm = at(flow, CALM, Case::p99).filter(|_| ratio > CALM);
        Some(Kept {
            ratio,
            goodput_share: at(flow, ratio, Case::goodput)? / peak,
            p99_ratio: calm.and_then(|calm| Some(at(flow, ratio, Case::p99)? / calm)),
            delivered_share: delivered_share(deliveries),
        })
    }

    /// Whether all that the promise says was measured, and is so.
    pub(super) fn is_kept(&self) -> bool {
        let Kept {
            ratio,
            goodput_share,
            p99_ratio,
            delivered_share,
        } = *self;
        ratio > 1.0
            && goodput_share >= GOODPUT_SHARE
            && p99_ratio.is_some_and(|times| times <= P99_RATIO)
            && delivered_share.is_some_and(|share| share >= DELIVERED_SHARE)
    }
}

/// Deliveries to quick subscribers beside slow ones, as a share of those beside nobody.
fn delivered_share(deliveries: &Deliveries<'_>) -> Option<f64> {
    let of = |beside_slow: bool| {
        let phases = deliveries.phases.iter();
        let phases = phases.filter(|phase| (phase.slow > 0) == beside_slow);
        Some(Spread::of(phases.map(|phase| phase.goodput_per_s))?.median)
    };
    Some(of(true)? / of(false)?)
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept {
            ratio,
            goodput_share,
            p99_ratio,
            delivered_share,
        } = self;
        write!(
            f,
            "at {ratio} times the capacity, goodput {goodput_share:.2} of the most ({GOODPUT_SHARE} or more)"
        )?;
        match p99_ratio {
            Some(times) => write!(
                f,
                ", p99 {times:.1} times that at {CALM} (at most {P99_RATIO})"
            ),
            None => write!(f, ", p99 not known beside that at {CALM}"),
        }?;
        match delivered_share {
            Some(share) => write!(
                f,
                ", deliveries beside slow subscribers {share:.2} of those beside nobody \
                 ({DELIVERED_SHARE} or more)"
            ),
            None => f.write_str(", deliveries not measured"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Kept = Kept {
        ratio: 10.0,
        goodput_share: 0.98,
        p99_ratio: Some(2.9),
        delivered_share: Some(1.0),
    };

    #[test]
    fn each_number_has_its_bound_and_none_may_be_missing() {
        assert!(KEPT.is_kept(), "{KEPT}");
        for broken in [
            Kept { ratio: 1.0, ..KEPT },
            Kept {
                goodput_share: 0.94,
                ..KEPT
            },
            Kept {
                p99_ratio: Some(3.1),
                ..KEPT
            },
            Kept {
                p99_ratio: None,
                ..KEPT
            },
            Kept {
                delivered_share: Some(0.9),
                ..KEPT
            },
            Kept {
                delivered_share: None,
                ..KEPT
            },
        ] {
            assert!(!broken.is_kept(), "{broken}");
        }
    }

    #[test]
    fn the_promise_reads_the_same_wherever_it_stands() {
        let promise = airmail_flow::PROMISE.join(" ");
        for page in [
            include_str!("../../../../README.md"),
            include_str!("../../../../docs/flow-control.md"),
        ] {
            let words: Vec<&str> = page.split_whitespace().collect();
            assert!(words.join(" ").contains(&promise), "{promise}");
        }
    }
}
