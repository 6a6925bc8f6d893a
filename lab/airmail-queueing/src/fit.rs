//! Fitting the model of a node to the two ends of a sweep that was measured on one.
//!
//! Two costs differ from machine to machine: that of a group, and that of a message. Under the lowest bound
//! of a sweep nearly all of the time goes to groups, under the highest nearly all of it to messages. So its
//! two ends give both costs, and everything between them is left to be predicted
//! ([`prediction`](crate::prediction)): a model that had been fitted to all of the curve would only repeat it.
//!
//! Neither end is the one cost alone, clients' own time is in both, and publishers wait for two groups where
//! there are two. So the costs are not calculated from the ends: the model is run under the two bounds, and
//! what it is too slow or too fast is taken off its costs or added to them, until it does what was measured.
//! Without noise, because the ends are the middle of several runs.

use crate::course::Phase;
use crate::knee::{Knee, KneeRule, Measurement, knee, median};
use crate::node::{self, Limiters, NodeModel, Noise};
use airmail_flow::{GateSettings, LimiterKind, LimiterSettings};
use std::collections::BTreeSet;

/// Length of a run under a fixed bound in virtual time, and of its beginning, which is left out.
const SPAN_NS: u64 = 1_500_000_000;
const FILLING_NS: u64 = 500_000_000;
/// Messages of a window of its record.
const WINDOW_MESSAGES: u64 = 1_000;
/// Any seed: without noise little is drawn.
const SEED: u64 = 1;
/// Number of corrections. Each leaves less than half of the difference.
const CORRECTIONS: usize = 12;
/// Share of a difference that a correction makes good: where a message waits for two groups, all of it
/// would be twice too much.
const GAIN: f64 = 0.7;
/// Least time of a message, in nanoseconds.
const MESSAGE_NS_MIN: f64 = 1.0;

/// The two ends of a sweep over fixed bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// The lowest bound: medians of its runs.
    pub lowest: Measurement,
    /// The highest bound within the latency budget, with the peak's throughput: few runs of one bound say less
    /// of it than the top of the isotonic regression does.
    pub highest: Measurement,
}

impl Ends {
    /// The ends of a sweep; `None` if it has no peak, or no two bounds within the budget.
    #[must_use]
    pub fn of(sweep: &[Measurement], rule: &KneeRule) -> Option<Ends> {
        let peak_per_s = knee(sweep, rule).ok()?.peak_per_s;
        let bounds = sweep.iter().map(|run| run.bound);
        let bounds: BTreeSet<u64> = bounds.collect();
        let at = |bound| {
            let runs = || sweep.iter().filter(move |run| run.bound == bound);
            Measurement {
                bound,
                rate_per_s: median(runs().map(|run| run.rate_per_s).collect()),
                latency_s: median(runs().map(|run| run.latency_s).collect()),
            }
        };
        let lowest = at(*bounds.first()?);
        let budget_s = rule.budget_s(lowest.latency_s);
        let mut from_above = bounds.into_iter().rev().map(at);
        let highest = from_above.find(|end| end.latency_s <= budget_s)?;
        (lowest.bound < highest.bound && lowest.rate_per_s > 0.0).then_some(Ends {
            lowest,
            highest: Measurement {
                rate_per_s: peak_per_s,
                ..highest
            },
        })
    }
}

/// Fits a model without noise, whose clients and limiters are as they are, to the ends of a sweep. A storage
/// whose latency is too short to be told under the highest bound answers within the turn in which it is asked.
#[must_use]
pub fn fit(model: &NodeModel, ends: &Ends) -> NodeModel {
    let mut fitted = NodeModel {
        limiters: answering(model.limiters, ends),
        noise: Noise::NONE,
        ..*model
    };
    for _ in 0..CORRECTIONS {
        let low = fixed(&fitted, ends.lowest.bound);
        let in_flight = low.rate_per_s * low.latency_s;
        let late_s = in_flight * missing_s(&ends.lowest, &low);
        let group_us = fitted.storage.group_us + GAIN * late_s * 1e6;
        fitted.storage.group_us = group_us.max(fitted.storage.gather_us);
        let high = fixed(&fitted, ends.highest.bound);
        let message_ns = fitted.storage.message_ns + GAIN * missing_s(&ends.highest, &high) * 1e9;
        fitted.storage.message_ns = message_ns.max(MESSAGE_NS_MIN);
    }
    fitted
}

/// Runs a model under a fixed bound, and gives what is done once it has filled.
#[must_use]
pub fn fixed(model: &NodeModel, bound: u64) -> Measurement {
    let phase = Phase {
        span_ns: SPAN_NS,
        capacity: 1.0,
    };
    let course = node::run(model, fixed_gate(bound), &[phase], SEED);
    let done = course.between(FILLING_NS, SPAN_NS);
    Measurement {
        bound,
        rate_per_s: done.rate_per_s(),
        latency_s: done.latency_s,
    }
}

/// Settings of a gate with a fixed bound.
pub(crate) fn fixed_gate(bound: u64) -> GateSettings {
    GateSettings {
        window_messages: WINDOW_MESSAGES,
        limiter: LimiterSettings {
            kind: LimiterKind::Fixed,
            bound_initial: bound,
            bound_max: LimiterSettings::DEFAULT.bound_max.max(bound),
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    }
}

/// Time of each message that the model is short of, in seconds.
fn missing_s(measured: &Measurement, modelled: &Measurement) -> f64 {
    1.0 / measured.rate_per_s - 1.0 / modelled.rate_per_s
}

fn answering(limiters: Limiters, ends: &Ends) -> Limiters {
    match limiters {
        Limiters::Publishers => Limiters::Publishers,
        Limiters::Pilot { held_batches, .. } => Limiters::Pilot {
            held_batches,
            in_turn: ends.highest.latency_s < Knee::LATENCY_RESOLUTION_S,
        },
    }
}
