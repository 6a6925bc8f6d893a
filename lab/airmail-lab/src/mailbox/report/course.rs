//! A run over time: rates and times of each kind of request, and under them the load of database
//! and machine.

use super::object;
use crate::mailbox::results::{RunResult, Share, Stretch, slope};
use airmail_experiments::mailbox::Kind;
use airmail_experiments::mailbox::record::{Reader, RecordError};
use airmail_experiments::results::{Row, Section};
use airmail_plot::{Axis, Figure, Panel, Point, Series};
use serde_json::json;
use std::collections::BTreeSet;

/// A counter that is drawn: its name in the record, in the legend, and by what it is multiplied.
type Drawn = (&'static str, &'static str, f64);

/// Work of processors, in cores.
const PROCESSORS: [Drawn; 4] = [
    ("machine_busy_s", "machine", 1.0),
    ("database_cpu_s", "database", 1.0),
    ("nodes_cpu_s", "nodes", 1.0),
    ("clients_cpu_s", "clients", 1.0),
];

/// Events of the database.
const EVENTS: [Drawn; 2] = [
    ("autovacuums", "autovacuums", 1.0),
    ("checkpoints", "checkpoints", 1.0),
];

/// The rows of a run.
pub(super) fn rows(result: &RunResult) -> Vec<Row> {
    let row = |stretch: &Stretch| {
        let mut row = object(json!({
            "seconds": stretch.seconds,
            "requests_per_s": stretch.per_s(),
            "mean_ms": stretch.all.mean_ms(),
        }));
        for (kind, share) in &stretch.kinds {
            let name = kind.name().replace(' ', "_");
            row.insert(
                format!("{name}_per_s"),
                json!(share.calls as f64 / stretch.length_s),
            );
            row.insert(format!("{name}_mean_ms"), json!(share.mean_ms()));
        }
        row
    };
    result.course.iter().map(row).collect()
}

/// The figures of a run.
pub(super) fn section(reader: &Reader, result: &RunResult) -> Result<Section, RecordError> {
    let (run, id) = (&result.run, result.run.id);
    let kinds: BTreeSet<Kind> = result.kinds.keys().copied().collect();
    let seconds = || Axis::linear("seconds").from_to(0.0, run.seconds());
    let panel = |y: &str, series: Vec<Series>| Panel {
        x: seconds(),
        y: Axis::linear(y),
        series,
        ..Panel::default()
    };
    let rate = |share: &Share, stretch: &Stretch| share.calls as f64 / stretch.length_s;
    let throughput = lines(result, &kinds, rate);
    let times = lines(result, &kinds, |share, _| share.mean_ms());
    let mut panels = vec![
        panel("requests/s", throughput),
        panel("mean response time, ms", times),
    ];
    panels.extend(where_it_goes(reader, result)?.map(|series| panel("ms of a request", series)));
    panels.push(panel("processors", counters(reader, result, &PROCESSORS)?));
    if run.case.needs_database() {
        panels.push(panel("events a second", counters(reader, result, &EVENTS)?));
        let written = [("wal_bytes", "written to the log", 1e-6)];
        panels.push(panel("MB/s", counters(reader, result, &written)?));
        let sizes = reader.samples(run, "table_bytes")?.into_iter();
        let point = |(at_us, bytes): (u64, f64)| {
            let seconds = (at_us.saturating_sub(run.begin_us)) as f64 / 1e6;
            Point::new(seconds, bytes / 1e6)
        };
        let within = sizes.filter(|(at_us, _)| (run.begin_us..run.end_us).contains(at_us));
        let size = line("tables and indexes", 0, within.map(point).collect());
        panels.push(panel("MB", vec![size]));
    }
    let figure = Figure {
        title: format!("Run {id}: {}", run.case),
        panels,
    };
    Ok(Section {
        title: format!("Run {id}, round {}: {}", run.round, run.case),
        figures: vec![(format!("run-{id}"), figure)],
        ..Section::default()
    })
}

fn line(name: &str, colour: usize, points: Vec<Point>) -> Series {
    Series {
        name: name.to_owned(),
        colour,
        points,
        ..Series::default()
    }
}

/// All requests, and those of each kind.
fn lines(
    result: &RunResult,
    kinds: &BTreeSet<Kind>,
    value: impl Fn(&Share, &Stretch) -> f64,
) -> Vec<Series> {
    let all = result
        .course
        .iter()
        .map(|stretch| Point::new(stretch.seconds, value(&stretch.all, stretch)));
    let mut series = vec![line("all", 0, all.collect())];
    for (kind, colour) in kinds.iter().zip(1..) {
        let of_kind = result.course.iter().filter_map(|stretch| {
            let share = stretch.kinds.get(kind)?;
            Some(Point::new(stretch.seconds, value(share, stretch)))
        });
        series.push(line(kind.name(), colour, of_kind.collect()));
    }
    series
}

fn counters(
    reader: &Reader,
    result: &RunResult,
    drawn: &[Drawn],
) -> Result<Vec<Series>, RecordError> {
    let mut series = Vec::new();
    for ((counter, name, times), colour) in drawn.iter().zip(0..) {
        let slope = slope(reader, &result.run, counter)?.into_iter();
        let points: Vec<Point> = slope
            .map(|(at, value)| Point::new(at, value * times))
            .collect();
        if !points.is_empty() {
            series.push(line(name, colour, points));
        }
    }
    Ok(series)
}

/// One sum of time by one count of what took it: each second's quotient.
const PARTS: [(&str, &str, &str); 3] = [
    ("node_read_s", "node_reads", "a read, at the node"),
    (
        "store_waiting_s",
        "store_requests",
        "waiting for a connection",
    ),
    (
        "store_round_trip_s",
        "store_round_trips",
        "a round trip, with its commit",
    ),
];

/// Where a request's time goes, as far as nodes tell.
fn where_it_goes(reader: &Reader, result: &RunResult) -> Result<Option<Vec<Series>>, RecordError> {
    let of_reads = result.course.iter().filter_map(|stretch| {
        let share = stretch.kinds.get(&Kind::Read)?;
        Some(Point::new(stretch.seconds, share.mean_ms()))
    });
    let mut series = vec![line("a read, at the client", 0, of_reads.collect())];
    for ((sum, count, name), colour) in PARTS.iter().zip(1..) {
        let sums = slope(reader, &result.run, sum)?;
        let counts = slope(reader, &result.run, count)?;
        let points: Vec<Point> = sums
            .into_iter()
            .zip(counts)
            .filter(|(_, (_, count))| *count > 0.0)
            .map(|((at, sum), (_, count))| Point::new(at, 1e3 * sum / count))
            .collect();
        if !points.is_empty() {
            series.push(line(name, colour, points));
        }
    }
    Ok((series.len() > 1).then_some(series))
}
