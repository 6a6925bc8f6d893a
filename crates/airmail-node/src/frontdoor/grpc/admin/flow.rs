//! State of the two flow gates, as clients are told it.

use crate::metrics::Snapshot;
use crate::metrics::flow::gates;
use airmail_flow::{Decision, Reading, RefusalReason, Rule};
use airmail_model::Mono;
use airmail_proto::v1;

/// All that are on, of every shard.
pub(super) fn to_proto(shards: &[Snapshot], now: Mono) -> v1::Flow {
    let gates = gates(shards).into_iter();
    let gates = gates.map(|(name, unit, reading)| gate(&name, unit, reading, now));
    v1::Flow {
        gates: gates.collect(),
    }
}

fn gate(name: &str, unit: &str, reading: &Reading, now: Mono) -> v1::FlowGate {
    let refused = RefusalReason::ALL.iter().zip(reading.refused);
    let rules = Rule::ALL.iter().zip(reading.by_rule);
    let count = |name: &str, count| v1::FlowCount {
        name: name.to_owned(),
        count,
    };
    let first = reading.decisions - reading.recent.len() as u64 + 1;
    v1::FlowGate {
        name: name.to_owned(),
        unit: unit.to_owned(),
        limiter: reading.limiter.name().to_owned(),
        bound: reading.bound,
        in_flight: reading.in_flight,
        waiting: reading.waiting,
        waited: reading.waited,
        refused: refused.map(|(reason, n)| count(reason.name(), n)).collect(),
        rules: rules
            .filter(|(_, n)| *n > 0)
            .map(|(rule, n)| count(rule.name(), n))
            .collect(),
        recent: (first..)
            .zip(&reading.recent)
            .map(|(number, taken)| decision(number, taken, now))
            .collect(),
    }
}

fn decision(number: u64, taken: &Decision, now: Mono) -> v1::FlowDecision {
    v1::FlowDecision {
        number,
        age_s: now.since(taken.at).as_secs_f64(),
        bound_before: taken.bound_before,
        bound: taken.bound,
        in_flight: taken.in_flight,
        latency_s: taken.latency_s,
        rate_per_s: taken.rate_per_s,
        rule: taken.rule.name().to_owned(),
    }
}
