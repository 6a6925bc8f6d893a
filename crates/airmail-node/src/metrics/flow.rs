//! Metrics of the two flow gates. The label `gate` says which: `publish`, in
//! messages, or `delivery`, in bytes.

use airmail_broker::Flow;
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

pub(super) fn encode(flow: &Flow, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    for (name, help, read) in LEVELS {
        let kind = ConstGauge::new(0.0_f64).metric_type();
        let mut family = encoder.encode_descriptor(name, help, None, kind)?;
        for (gate, _, reading) in flow.gates() {
            let value = ConstGauge::new(read(reading));
            value.encode(family.encode_family(&[("gate", gate)])?)?;
        }
    }
    let counter = || ConstCounter::new(0_u64).metric_type();
    let (name, help) = ("airmail_flow_waited", "Times that somebody had to wait");
    let mut family = encoder.encode_descriptor(name, help, None, counter())?;
    for (gate, _, reading) in flow.gates() {
        let count = ConstCounter::new(reading.waited);
        count.encode(family.encode_family(&[("gate", gate)])?)?;
    }
    let (name, help) = ("airmail_flow_refused", "Refusals, by reason");
    let mut family = encoder.encode_descriptor(name, help, None, counter())?;
    for (gate, _, reading) in flow.gates() {
        for (reason, count) in RefusalReason::ALL.iter().zip(reading.refused) {
            let labels = [("gate", gate), ("reason", reason.name())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    let (name, help) = ("airmail_flow_decisions", "Decisions on the bound, by rule");
    let mut family = encoder.encode_descriptor(name, help, None, counter())?;
    for (gate, _, reading) in flow.gates() {
        let counted = Rule::ALL.iter().zip(reading.by_rule);
        for (rule, count) in counted.filter(|(_, count)| *count > 0) {
            let labels = [("gate", gate), ("rule", rule.name())];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
