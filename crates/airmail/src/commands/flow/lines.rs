//! Gates and decisions as lines of text or JSON.

use airmail_client::{FlowDecision, FlowGate};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Prints how the gates stand.
pub(super) fn show(out: &mut impl Write, gates: &[FlowGate], json: bool) -> io::Result<()> {
    for gate in gates {
        if json {
            writeln!(out, "{}", gate_json(gate))?;
        } else {
            writeln!(out, "{}", gate_text(gate))?;
        }
    }
    if gates.is_empty() && !json {
        writeln!(out, "no limiter is on")?;
    }
    out.flush()
}

fn counts(counts: &[(String, u64)]) -> serde_json::Value {
    let counts = counts.iter();
    counts
        .map(|(name, count)| (name.clone(), json!(count)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn gate_json(gate: &FlowGate) -> serde_json::Value {
    json!({
        "gate": gate.name,
        "unit": gate.unit,
        "limiter": gate.limiter,
        "bound": gate.bound,
        "in_flight": gate.in_flight,
        "waiting": gate.waiting,
        "waited": gate.waited,
        "refused": counts(&gate.refused),
        "rules": counts(&gate.rules),
        "last": gate.recent.last().map(|last| decision_json(gate, last)),
    })
}

fn gate_text(gate: &FlowGate) -> String {
    let FlowGate {
        name,
        unit,
        limiter,
        bound,
        in_flight,
        waiting,
        waited,
        ..
    } = gate;
    let refused: u64 = gate.refused.iter().map(|(_, count)| count).sum();
    let mut text = format!(
        "{name}: {in_flight} of {bound} {unit} in flight by {limiter}, {waiting} waiting; \
         {waited} times waited, {refused} refused"
    );
    if let Some(last) = gate.recent.last() {
        text += "\n  ";
        text += &decision_text(gate, last);
    }
    text
}

fn decision_json(gate: &FlowGate, decision: &FlowDecision) -> serde_json::Value {
    json!({
        "gate": gate.name,
        "number": decision.number,
        "age_ms": decision.age.as_secs_f64() * 1e3,
        "bound_before": decision.bound_before,
        "bound": decision.bound,
        "in_flight": decision.in_flight,
        "latency_ms": decision.latency.as_secs_f64() * 1e3,
        "rate_per_s": decision.rate_per_s,
        "rule": decision.rule,
    })
}

/// One decision, as it is also shown on the screen.
pub(super) fn decision_text(gate: &FlowGate, decision: &FlowDecision) -> String {
    let FlowDecision {
        number,
        bound_before,
        bound,
        in_flight,
        latency,
        rate_per_s,
        rule,
        ..
    } = decision;
    let name = &gate.name;
    let latency_ms = latency.as_secs_f64() * 1e3;
    format!(
        "{name} {number:>6}  {rule:<22} bound {bound_before} -> {bound}  L {in_flight:.0}  \
         W {latency_ms:.3} ms  λ {rate_per_s:.0}/s"
    )
}

/// Prints each decision once.
#[derive(Debug)]
pub(super) struct Printer {
    json: bool,
    left: Option<u64>,
    /// The last number printed of each gate.
    printed: BTreeMap<String, u64>,
}

impl Printer {
    pub(super) fn new(json: bool, count: Option<u64>) -> Printer {
        Printer {
            json,
            left: count,
            printed: BTreeMap::new(),
        }
    }

    /// Prints the new decisions; `false` when enough were printed.
    pub(super) fn print(&mut self, out: &mut impl Write, gates: &[FlowGate]) -> io::Result<bool> {
        for gate in gates {
            let printed = self.printed.entry(gate.name.clone()).or_default();
            // A node that began anew counts anew.
            let newest = gate.recent.last().map_or(0, |last| last.number);
            *printed = if newest < *printed { 0 } else { *printed };
            let new = gate.recent.iter().filter(|one| one.number > *printed);
            for decision in new.collect::<Vec<_>>() {
                if self.left == Some(0) {
                    break;
                }
                self.left = self.left.map(|left| left - 1);
                *printed = decision.number;
                if self.json {
                    writeln!(out, "{}", decision_json(gate, decision))?;
                } else {
                    writeln!(out, "{}", decision_text(gate, decision))?;
                }
            }
        }
        out.flush()?;
        Ok(self.left != Some(0))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::time::Duration;

    pub(in crate::commands::flow) fn gate(decisions: std::ops::Range<u64>) -> FlowGate {
        FlowGate {
            name: "publish".into(),
            unit: "messages".into(),
            limiter: "gradient".into(),
            bound: 300,
            in_flight: 120,
            waiting: 4,
            waited: 9,
            refused: vec![("line-full".into(), 2), ("waited-too-long".into(), 1)],
            rules: vec![("gradient-rest".into(), 5)],
            recent: decisions
                .map(|number| FlowDecision {
                    number,
                    age: Duration::from_millis(1_500),
                    bound_before: 200,
                    bound: 300,
                    in_flight: 190.0,
                    latency: Duration::from_micros(2_500),
                    rate_per_s: 76_000.0,
                    rule: "gradient-try-up".into(),
                })
                .collect(),
        }
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_decision_is_printed_once_however_often_it_is_seen() {
        let (mut out, mut printer) = (Vec::new(), Printer::new(false, None));
        assert!(printer.print(&mut out, &[gate(1..3)]).unwrap());
        assert!(printer.print(&mut out, &[gate(1..4)]).unwrap());
        let printed = text(out);
        assert_eq!(printed.lines().count(), 3, "{printed}");
        assert!(printed.contains(
            "publish      3  gradient-try-up        bound 200 -> 300  L 190  W 2.500 ms  λ 76000/s"
        ));
    }

    #[test]
    fn it_ends_after_as_many_as_were_asked_for_and_begins_anew_with_the_node() {
        let (mut out, mut printer) = (Vec::new(), Printer::new(true, Some(4)));
        assert!(printer.print(&mut out, &[gate(7..9)]).unwrap());
        assert!(
            !printer
                .print(
                    &mut out,
                    &[gate(1..9)].map(|mut gate| {
                        gate.recent.truncate(3);
                        gate
                    })
                )
                .unwrap()
        );
        let numbers: Vec<u64> = text(out)
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|line| line["number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [7, 8, 1, 2]);
    }

    #[test]
    fn gates_are_shown_with_what_was_refused_and_the_last_decision() {
        let mut out = Vec::new();
        show(&mut out, &[gate(1..2)], false).unwrap();
        let shown = text(out);
        assert!(shown.starts_with(
            "publish: 120 of 300 messages in flight by gradient, 4 waiting; 9 times waited, 3 refused"
        ));
        assert!(shown.contains("gradient-try-up"));
        let mut out = Vec::new();
        show(&mut out, &[], false).unwrap();
        assert_eq!(text(out), "no limiter is on\n");
    }
}
