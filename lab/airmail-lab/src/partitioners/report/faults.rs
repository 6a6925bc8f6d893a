//! Three brokers, several producers, and the fates of a broker.

use super::super::PartitionersArgs;
use super::super::faults::{Case, Measured};
use super::super::metric::Metric;
use super::super::policy::Policy;
use super::super::runs::Runs;
use super::{cell, panel, ratio};
use airmail_experiments::results::{Findings, Row, Section, Table};
use airmail_experiments::row;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};
use serde_json::json;

/// Windows of a run's course, in seconds.
const WINDOW_S: f64 = 0.25;
const METRICS: [Metric; 6] = [
    Metric::Throughput,
    Metric::Mean,
    Metric::P50,
    Metric::P99,
    Metric::P999,
    Metric::Max,
];

/// Adds rows and sections.
pub(crate) fn faults(args: &PartitionersArgs, cases: &Measured, findings: &mut Findings) {
    for (case, runs) in cases {
        for policy in runs.policies() {
            let mut row = Row::new();
            row.insert("part".to_owned(), json!("faults"));
            row.insert("case".to_owned(), json!(case.name()));
            row.insert("producers".to_owned(), json!(args.producers));
            row.extend(runs.row(policy));
            findings.rows.push(row);
        }
        findings.sections.push(section(args, *case, runs));
        findings
            .courses
            .insert(case.name().to_owned(), course(runs));
    }
}

fn section(args: &PartitionersArgs, case: Case, runs: &Runs) -> Section {
    let producers = args.producers;
    let (title, text) = match case {
        Case::Uneven => (
            "Three brokers that lead 3, 2 and 1 partitions",
            format!("{producers} producers at full speed, acks=all, two replicas."),
        ),
        Case::HeldBack => (
            "A broker held back to a quarter",
            format!(
                "{producers} producers at full speed, acks=all, two replicas, two partitions led by each of \
                 three brokers; the third has a quarter of what the others have."
            ),
        ),
        Case::Killed => (
            "A broker killed, and back",
            format!(
                "{producers} producers send {} records a second together for {} s, acks=all, two replicas, two \
                 partitions led by each of three brokers. The third is killed after a quarter of that, and \
                 started again after half.",
                args.fault_rate,
                args.fault_seconds()
            ),
        ),
    };
    let mut head = vec!["policy".to_owned()];
    head.extend(METRICS.map(|metric| metric.title().to_owned()));
    let against = [
        (Metric::Throughput, "throughput to built-in's"),
        (Metric::P99, "p99 to built-in's"),
    ];
    head.extend(against.map(|(_, name)| name.to_owned()));
    head.push("not acknowledged".to_owned());
    let line = |policy: Policy| {
        let mut line = vec![policy.title().to_owned()];
        line.extend(METRICS.map(|metric| cell(runs.interval(policy, metric), metric)));
        line.extend(against.map(|(metric, _)| ratio(runs, policy, Policy::BuiltIn, metric)));
        line.push(runs.failed(Some(policy)).to_string());
        line
    };
    Section {
        title: title.to_owned(),
        text: vec![text],
        table: Table {
            rows: runs.policies().into_iter().map(line).collect(),
            head,
        },
        figures: vec![
            (case.name().to_owned(), figure(title, runs)),
            (format!("{}-course", case.name()), over_time(title, runs)),
        ],
    }
}

fn figure(title: &str, runs: &Runs) -> Figure {
    Figure {
        title: title.to_owned(),
        panels: [Metric::Throughput, Metric::P99]
            .map(|metric| panel(runs, metric))
            .to_vec(),
    }
}

/// The last round of each policy, quarter of a second by quarter.
fn over_time(title: &str, runs: &Runs) -> Figure {
    let panel = |title: &str, y: Axis, of: fn(&(u64, u64)) -> f64| {
        let series = runs.policies().into_iter().filter_map(|policy| {
            let course = &runs.of(policy).last()?.course;
            let points = course.iter().zip(0_u32..);
            let points = points.map(|(at, place)| Point::new(f64::from(place) * WINDOW_S, of(at)));
            Some(Series {
                name: policy.title().to_owned(),
                points: points.collect(),
                mark: Mark::Line,
                colour: policy.colour(),
            })
        });
        Panel {
            title: title.to_owned(),
            x: Axis::linear("s"),
            y,
            series: series.collect(),
        }
    };
    Figure {
        title: format!("{title}: the last round"),
        panels: vec![
            panel("Acknowledged", Axis::linear("records/s"), |at| {
                at.0 as f64 / WINDOW_S
            }),
            panel(
                "Greatest latency of each quarter of a second",
                Axis::log("ms"),
                |at| at.1 as f64 / 1e3,
            ),
        ],
    }
}

fn course(runs: &Runs) -> Vec<Row> {
    let mut rows = Vec::new();
    for policy in runs.policies() {
        for (outcome, round) in runs.of(policy).zip(1..) {
            for ((records, max_us), place) in outcome.course.iter().zip(0_u32..) {
                rows.push(row! {
                    "policy": policy.name(),
                    "round": round,
                    "seconds": f64::from(place) * WINDOW_S,
                    "records_per_s": *records as f64 / WINDOW_S,
                    "max_ms": *max_us as f64 / 1e3,
                });
            }
        }
    }
    rows
}
