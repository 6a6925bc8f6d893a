//! Metrics of the two flow gates. The label `gate` says which: `publish`, in
//! messages, or `delivery`, in bytes; of several shards each has its own, `publish-0` and so on.

use super::Snapshot;
use airmail_flow::{Decision, Reading, RefusalReason, Rule};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

type Level = (&'static str, &'static str, fn(&Reading) -> f64);

fn of_last(reading: &Reading, value: fn(&Decision) -> f64) -> f64 {
    reading.last().map_or(0.0, value)
}

/// Gauges of each gate.
const LEVELS: &[Level] = &[
    ("airmail_flow_bound", "What may be in flight", |reading| {
        reading.bound as f64
    }),
    ("airmail_flow_in_flight", "What is in flight", |reading| {
        reading.in_flight as f64
    }),
    (
        "airmail_flow_waiting",
        "What waits to be in flight",
        |reading| reading.waiting as f64,
    ),
    (
        "airmail_flow_latency_seconds",
        "W of the last decision: the mean time in flight",
        |reading| of_last(reading, |last| last.latency_s),
    ),
    (
        "airmail_flow_rate_per_second",
        "Lambda of the last decision: what was done in a second",
        |reading| of_last(reading, |last| last.rate_per_s),
    ),
    (
        "airmail_flow_mean_in_flight",
        "L of the last decision: the mean in flight",
        |reading| of_last(reading, |last| last.in_flight),
    ),
];

/// A gate that is on: what it is called, what it counts, how it stands.
pub(crate) type NamedGate<'a> = (String, &'static str, &'a Reading);

/// The gates of all shards, by names that tell them apart if there are several.
pub(crate) fn gates(shards: &[Snapshot]) -> Vec<NamedGate<'_>> {
    let several = shards.len() > 1;
    let mut gates = Vec::new();
    for (shard, snapshot) in shards.iter().enumerate() {
        for (name, unit, reading) in snapshot.flow.gates() {
            let name = if several {
                format!("{name}-{shard}")
            } else {
                name.to_owned()
            };
            gates.push((name, unit, reading));
        }
    }
    gates
}

pub(super) fn encode(
    shards: &[Snapshot],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    let gates = gates(shards);
    for (name, help, read) in LEVELS {
        let kind = ConstGauge::new(0.0_f64).metric_type();
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (gate, _, reading) in &gates {
            let value = ConstGauge::new(read(reading));
            value.encode(family.encode_family(&[("gate", gate.as_str())])?)?;
        }
    }
    let counter = || ConstCounter::new(0_u64).metric_type();
    let (name, help) = ("airmail_flow_waited", "Times that somebody had to wait");
    let mut family = encoder.encode_descriptor(name, help, None, counter())?;
    for (gate, _, reading) in &gates {
        let count = ConstCounter::new(reading.waited);
        count.encode(family.encode_family(&[("gate", gate.as_str())])?)?;
    }
    let (name, help) = ("airmail_flow_refused", "Refusals, by reason");
    let mut family = encoder.encode_descriptor(name, help, None, counter())?;
    for (gate, _, reading) in &gates {
        for (reason, count) in RefusalReason::ALL.iter().zip(reading.refused) {
            let labels = [("gate", gate.as_str()), ("reason", reason.name())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    let (name, help) = ("airmail_flow_decisions", "Decisions on the bound, by rule");
    let mut family = encoder.encode_descriptor(name, help, None, counter())?;
    for (gate, _, reading) in &gates {
        let counted = Rule::ALL.iter().zip(reading.by_rule);
        for (rule, count) in counted.filter(|(_, count)| *count > 0) {
            let labels = [("gate", gate.as_str()), ("rule", rule.name())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
