//! Figures that are read from a run's report.

use super::workloads::Workload;
use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Something that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Figure {
    DeliveredPerS,
    P50Us,
    P99Us,
    /// Processor time of the clients for each message.
    ClientsNs,
    /// Processor time of the node.
    NodeNs,
    /// Processor time of all processes of the run, with their starts and ends.
    AllNs,
    /// Cores that the clients took on the average of the run.
    ClientsCores,
    NodeCores,
    NodeMemoryKib,
}

impl Figure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Figure::DeliveredPerS => "delivered/s",
            Figure::P50Us => "p50, µs",
            Figure::P99Us => "p99, µs",
            Figure::ClientsNs => "clients, ns of processor a message",
            Figure::NodeNs => "node, ns of processor a message",
            Figure::AllNs => "both with start and end, ns a message",
            Figure::ClientsCores => "clients, cores",
            Figure::NodeCores => "node, cores",
            Figure::NodeMemoryKib => "node, KiB of memory",
        }
    }
}

/// A run. A figure that the bench of its version does not tell is not there.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) measured: BTreeMap<Figure, f64>,
    /// Faults of the run: messages that were lost, twice or out of order.
    pub(super) unsound: Option<String>,
}

impl Figures {
    /// Reads the last line of the bench's output.
    pub(super) fn read(
        workload: Workload,
        printed: &str,
        used_us: Option<u64>,
        sound: bool,
    ) -> anyhow::Result<Figures> {
        let last = printed.lines().last().context("it printed nothing")?;
        let report: Value = serde_json::from_str(last)?;
        let number = |path: &str| report.pointer(path).and_then(Value::as_f64);
        let mut figures = Figures::default();
        let mut put = |figure, value: Option<f64>| {
            if let Some(value) = value {
                figures.measured.insert(figure, value);
            }
        };
        if workload == Workload::Memory {
            let all = |last: &str| {
                let before = number(&format!("/{last}/before_bytes"))?;
                Some((before + number(&format!("/{last}/grown_bytes"))?) / 1024.0)
            };
            put(Figure::NodeMemoryKib, all("producers"));
        } else {
            let delivered = number("/delivered").unwrap_or_default();
            let messages = delivered.max(number("/acknowledged").unwrap_or_default());
            anyhow::ensure!(messages > 0.0, "no message was delivered");
            let each = |used_us: Option<f64>| Some(used_us? * 1000.0 / messages);
            let cores = |used_us: Option<f64>| Some(used_us? / 1e6 / number("/seconds")?);
            let (clients, node) = (number("/client_cpu_us"), number("/node_cpu_us"));
            put(Figure::DeliveredPerS, number("/delivered_per_s"));
            put(Figure::P50Us, number("/latency_us/p50"));
            put(Figure::P99Us, number("/latency_us/p99"));
            put(Figure::ClientsNs, each(clients));
            put(Figure::NodeNs, each(node));
            put(Figure::AllNs, each(used_us.map(|used| used as f64)));
            put(Figure::ClientsCores, cores(clients));
            put(Figure::NodeCores, cores(node));
            let memory = number("/node_rss_bytes");
            put(Figure::NodeMemoryKib, memory.map(|bytes| bytes / 1024.0));
        }
        if !sound {
            figures.unsound = Some(faults(&report));
        }
        Ok(figures)
    }

    /// Figures in one line.
    pub(super) fn line(&self) -> String {
        let mut out = String::new();
        for (figure, value) in &self.measured {
            let separator = if out.is_empty() { "" } else { "; " };
            // Writing to a string does not fail.
            let _ = write!(out, "{separator}{} {}", figure.name(), shown(*value));
        }
        if let Some(unsound) = &self.unsound {
            let _ = write!(out, "; NOT SOUND: {unsound}");
        }
        out
    }
}

/// Shows a value with its significant decimals.
pub(super) fn shown(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

fn faults(report: &Value) -> String {
    let names = [
        "failed",
        "missing",
        "duplicates",
        "reordered",
        "strange",
        "gaps",
    ];
    let counts = names.map(|name| (name, report.get(name).and_then(Value::as_u64)));
    let told = counts.iter().filter_map(|(name, count)| {
        let count = count.filter(|count| *count > 0)?;
        Some(format!("{name} {count}"))
    });
    let error = report.get("first_error").and_then(Value::as_str);
    let told: Vec<String> = told.chain(error.map(str::to_owned)).collect();
    if told.is_empty() {
        "the bench failed".to_owned()
    } else {
        told.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"delivered_per_s":1000.0,"acknowledged":2000,"delivered":2000,
        "missing":0,"latency_us":{"p50":10,"p99":20},"seconds":2.0,"client_cpu_us":1000,
        "node_cpu_us":500,"node_rss_bytes":1048576}"#;

    fn read(workload: Workload, report: &str, sound: bool) -> anyhow::Result<Figures> {
        let printed = format!(
            "airmail says something first\n{}",
            report.replace('\n', " ")
        );
        Figures::read(workload, &printed, Some(3000), sound)
    }

    #[test]
    fn processor_time_is_for_each_message() {
        let figures = read(Workload::E2e, REPORT, true).unwrap().measured;
        let bits = |figure| figures[&figure].to_bits();
        assert_eq!(bits(Figure::ClientsNs), 500.0f64.to_bits());
        assert_eq!(bits(Figure::NodeNs), 250.0f64.to_bits());
        assert_eq!(bits(Figure::AllNs), 1500.0f64.to_bits());
        assert_eq!(bits(Figure::NodeMemoryKib), 1024.0f64.to_bits());
        assert_eq!(bits(Figure::P99Us), 20.0f64.to_bits());
    }

    #[test]
    fn what_an_older_bench_does_not_tell_is_left_out_and_the_whole_is_there() {
        let old = r#"{"delivered":2000,"acknowledged":2000,"delivered_per_s":1000}"#;
        let figures = read(Workload::E2e, old, true).unwrap().measured;
        assert!(!figures.contains_key(&Figure::NodeNs));
        assert!(figures.contains_key(&Figure::AllNs));
    }

    #[test]
    fn memory_is_what_the_node_has_when_all_is_there() {
        let report = r#"{"topics":{"before_bytes":1,"grown_bytes":1},
            "producers":{"before_bytes":2048,"grown_bytes":1024}}"#;
        let figures = read(Workload::Memory, report, true).unwrap().measured;
        assert_eq!(figures[&Figure::NodeMemoryKib].to_bits(), 3.0f64.to_bits());
    }

    #[test]
    fn a_run_that_lost_messages_says_so() {
        let lost = REPORT.replace("\"missing\":0", "\"missing\":3");
        let figures = read(Workload::E2e, &lost, false).unwrap();
        assert_eq!(figures.unsound.as_deref(), Some("missing 3"));
    }

    #[test]
    fn no_report_and_no_message_are_errors() {
        assert!(read(Workload::E2e, "error: no such workload", true).is_err());
        assert!(read(Workload::E2e, "{}", true).is_err());
    }
}
