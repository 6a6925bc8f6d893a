//! What the runs come to: medians, spread, and ratios within rounds.

use super::workloads::{Figure, Workload};
use crate::spread::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What is read of a run's report; the rest is kept as it is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Run {
    #[serde(default)]
    published_per_s: f64,
    #[serde(default)]
    delivered_per_s: f64,
    #[serde(default)]
    acknowledged: u64,
    #[serde(default)]
    delivered: u64,
    #[serde(default)]
    client_cpu_us: u64,
    #[serde(default)]
    node_cpu_us: u64,
    #[serde(default)]
    missing: u64,
    #[serde(default)]
    duplicates: u64,
    #[serde(default)]
    reordered: u64,
    #[serde(default)]
    latency_us: Latency,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Latency {
    p50: f64,
    p99: f64,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

impl Run {
    /// Those that count in a workload, one for each of [`columns`].
    pub(super) fn figures(&self, figure: Figure) -> Vec<f64> {
        match figure {
            Figure::Delivered => vec![self.delivered_per_s],
            Figure::Published => vec![self.published_per_s],
            Figure::Latency => vec![self.latency_us.p50, self.latency_us.p99],
        }
    }

    /// Processor time of clients and server for each message, in nanoseconds.
    fn cpu_ns_each(&self) -> (f64, f64) {
        let messages = self.delivered.max(self.acknowledged).max(1) as f64;
        let each = |cpu_us: u64| (cpu_us * 1000) as f64 / messages;
        (each(self.client_cpu_us), each(self.node_cpu_us))
    }
}

/// One run in one line.
pub(super) fn line(workload: &Workload, run: &Run) -> String {
    let figures: Vec<String> = run
        .figures(workload.figure)
        .iter()
        .map(|figure| format!("{figure:.0}"))
        .collect();
    format!(
        "{} {}; missing {}, twice {}, out of order {}",
        figures.join(" / "),
        columns(workload.figure).join(" / "),
        run.missing,
        run.duplicates,
        run.reordered,
    )
}

/// A table in Markdown, for a workload's runs by system.
pub(super) fn of(
    workload: &Workload,
    seconds: u32,
    runs: &BTreeMap<&'static str, Vec<Run>>,
) -> String {
    let rounds = runs.values().map(Vec::len).max().unwrap_or_default();
    let columns = columns(workload.figure);
    let mut out = format!(
        "**{}**: {}; {rounds} rounds of {seconds} s: `airmail bench {}`\n\n| system |",
        workload.name,
        workload.title,
        workload.arguments.join(" "),
    );
    let baseline = workload.subjects.last().map_or("", |last| last.name());
    for column in &columns {
        let _ = write!(out, " {column} | least and most | beside {baseline} |");
    }
    out.push_str(" CPU, ns a message, clients + server | missing, twice, out of order |\n|---|");
    out.push_str(&"---|".repeat(columns.len() * 3 + 2));
    out.push('\n');
    let empty = Vec::new();
    let of = |name: &str| runs.get(name).unwrap_or(&empty);
    for subject in workload.subjects {
        let mine = of(subject.name());
        let _ = write!(out, "| {} |", subject.name());
        for column in 0..columns.len() {
            let figures = |runs: &[Run]| -> Vec<f64> {
                let of_run = |run: &Run| run.figures(workload.figure)[column];
                runs.iter().map(of_run).collect()
            };
            let (mine, base) = (figures(mine), figures(of(baseline)));
            let ratios = Spread::of(mine.iter().zip(&base).map(|(a, b)| a / b).collect());
            let mine = Spread::of(mine);
            let _ = write!(
                out,
                " {:.0} | {:.0} - {:.0} | {:.2} ({:.2} - {:.2}) |",
                mine.median, mine.least, mine.most, ratios.median, ratios.least, ratios.most,
            );
        }
        let (clients, servers): (Vec<f64>, Vec<f64>) = mine.iter().map(Run::cpu_ns_each).unzip();
        let _ = write!(
            out,
            " {:.0} + {:.0} |",
            Spread::of(clients).median,
            Spread::of(servers).median
        );
        let faults = |fault: fn(&Run) -> u64| mine.iter().map(fault).sum::<u64>();
        let _ = writeln!(
            out,
            " {}, {}, {} |",
            faults(|run| run.missing),
            faults(|run| run.duplicates),
            faults(|run| run.reordered)
        );
    }
    out
}

/// What counts in a workload, as tables name it.
pub(super) fn columns(figure: Figure) -> Vec<&'static str> {
    match figure {
        Figure::Delivered => vec!["delivered/s"],
        Figure::Published => vec!["published/s"],
        Figure::Latency => vec!["p50, µs", "p99, µs"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::workloads::WORKLOADS;

    fn run(delivered_per_s: f64) -> Run {
        let report = format!(
            r#"{{"published_per_s":1,"delivered_per_s":{delivered_per_s},"missing":0,
            "duplicates":0,"reordered":0,"latency_us":{{"p50":1,"p99":2,"max":3}},"acknowledged":7}}"#
        );
        serde_json::from_str(&report).unwrap()
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine was twice as fast in the second round, and the systems' ratio the same.
        let workload = &WORKLOADS[0];
        let runs = [
            ("Airmail, fsync", vec![run(300.0), run(600.0)]),
            ("NATS core", vec![run(100.0), run(200.0)]),
        ];
        let table = of(workload, 10, &runs.into());
        assert!(
            table.contains("| Airmail, fsync | 450 | 300 - 600 | 3.00 (3.00 - 3.00) |"),
            "{table}"
        );
    }

    #[test]
    fn what_a_report_has_beside_the_figures_is_kept() {
        let kept = serde_json::to_value(run(1.0)).unwrap();
        assert_eq!(kept["acknowledged"], 7);
        assert_eq!(kept["latency_us"]["max"], 3);
    }

    #[test]
    fn a_table_has_every_column_in_every_row() {
        for workload in WORKLOADS {
            let runs = workload.subjects.iter();
            let runs = runs.map(|subject| (subject.name(), vec![run(1.0)]));
            let table = of(workload, 10, &runs.collect());
            let rows = table.lines().filter(|line| line.starts_with('|'));
            let widths: Vec<usize> = rows.map(|row| row.matches('|').count()).collect();
            assert_eq!(widths.len(), workload.subjects.len() + 2);
            assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
        }
    }
}
