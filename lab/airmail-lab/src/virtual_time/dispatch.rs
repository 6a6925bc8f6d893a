//! `airmail-lab dispatch`.

use super::RunArgs;
use crate::narration::print;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};
use airmail_queueing::dispatch::{
    DISPATCHERS, LOADS, Plan, Policy, QUEUES, Row, measure, settings, theory,
};
use serde_json::json;
use std::fmt::Write as _;

/// The load at which policies are compared by what they cost.
const COMPARED_LOAD: f64 = 0.9;
/// An error bar is as many standard errors long to each side.
const ERRORS: f64 = 2.0;

pub(super) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let plan = Plan {
        seeds: args.seeds,
        ..Plan::default()
    };
    let settings = settings();
    let bar = super::progress(settings.len() as u64);
    let rows = super::all(&settings, |setting| {
        let row = measure(*setting, &plan);
        bar.inc(1);
        row
    });
    bar.finish_and_clear();
    print_rows(&rows, args)?;
    let figures = [
        ("dispatch-load".to_owned(), load_figure(&rows)),
        ("dispatch-update-period".to_owned(), update_figure(&rows)),
        ("dispatch-messages".to_owned(), messages_figure(&rows)),
    ];
    super::draw(&args.out, &figures)
}

fn print_rows(rows: &[Row], args: &RunArgs) -> anyhow::Result<()> {
    if args.json {
        return super::print_json(rows.iter().map(json));
    }
    let mut out = String::new();
    writeln!(
        out,
        "{QUEUES} queues; waits in mean service times, ± the standard error over {} seeds.\n",
        args.seeds
    )?;
    writeln!(
        out,
        "{:>5} {:>12} {:<20} {:>9} {:>8} {:>9} {:>18} {:>13}",
        "load", "dispatchers", "policy", "wait", "±", "p99", "theory", "messages/job"
    )?;
    for row in rows {
        let theory = row.theory;
        let theory = theory.map_or(String::new(), |(name, wait)| format!("{wait:.4} {name}"));
        writeln!(
            out,
            "{:>5} {:>12} {:<20} {:>9.4} {:>8.4} {:>9.3} {:>18} {:>13.2}",
            row.setting.load,
            row.setting.dispatchers,
            row.setting.policy,
            row.waits.mean,
            row.error,
            row.waits.p99,
            theory,
            row.waits.messages_per_job
        )?;
    }
    print(&out)
}

fn json(row: &Row) -> serde_json::Value {
    let policy = row.setting.policy;
    json!({
        "policy": policy.name(),
        "d": match policy {
            Policy::ShortestOf { d } => Some(d),
            _ => None,
        },
        "update_period": policy.update_period(),
        "queues": row.setting.queues,
        "dispatchers": row.setting.dispatchers,
        "load": row.setting.load,
        "mean_wait": row.waits.mean,
        "mean_wait_error": row.error,
        "p99_wait": row.waits.p99,
        "messages_per_job": row.waits.messages_per_job,
        "theory": row.theory.map(|(name, _)| name),
        "theory_wait": row.theory.map(|(_, wait)| wait),
    })
}

/// The policies that are drawn over the load, by their place in the colours.
fn drawn() -> [Policy; 6] {
    [
        Policy::Random,
        Policy::RoundRobin,
        Policy::ShortestQueueStale { update_period: 2.0 },
        Policy::ShortestOf { d: 2 },
        Policy::IdleQueue,
        Policy::ShortestQueue,
    ]
}

fn point(row: &Row, x: f64) -> Point {
    let error = ERRORS * row.error;
    Point::new(x, row.waits.mean).with_bar(row.waits.mean - error, row.waits.mean + error)
}

fn dashes(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Series {
    Series {
        name: name.to_owned(),
        points: points.map(|(x, y)| Point::new(x, y)).collect(),
        mark: Mark::Dashes,
        colour: 0,
    }
}

/// A mean wait, in service times, by load.
type Theory = fn(f64) -> f64;

fn load_figure(rows: &[Row]) -> Figure {
    let panel = |dispatchers: usize| {
        let measured = drawn().into_iter().enumerate().map(|(colour, policy)| {
            let mine = rows.iter().filter(|row| {
                row.setting.policy == policy && row.setting.dispatchers == dispatchers
            });
            Series {
                name: policy.to_string(),
                points: mine.map(|row| point(row, row.setting.load)).collect(),
                mark: Mark::LineAndDots,
                colour: colour + 1,
            }
        });
        let theories: [(&str, Theory); 3] = [
            ("theory: M/M/1", theory::mm1),
            ("theory: E_N/M/1", |load| theory::erlang_m1(QUEUES, load)),
            ("theory: M/M/N", |load| theory::mmn(QUEUES, load)),
        ];
        let theories = theories.map(|(name, wait)| {
            let loads = (0..=40).map(|step| LOADS[0] + f64::from(step) * (0.95 - LOADS[0]) / 40.0);
            dashes(name, loads.map(|load| (load, wait(load))))
        });
        let plural = if dispatchers == 1 { "" } else { "s" };
        Panel {
            title: format!("{QUEUES} queues, {dispatchers} dispatcher{plural}"),
            x: Axis::linear("load of each queue").from_to(0.28, 0.97),
            y: Axis::log("mean wait, service times").from_to(1e-3, 30.0),
            series: theories.into_iter().chain(measured).collect(),
        }
    };
    Figure {
        title: "What a job waits, by dispatch policy".to_owned(),
        panels: DISPATCHERS.map(panel).into(),
    }
}

fn update_figure(rows: &[Row]) -> Figure {
    let panel = |load: f64| {
        let at = |row: &&Row| row.setting.load == load;
        let mut series = Vec::new();
        for (colour, dispatchers) in DISPATCHERS.into_iter().enumerate() {
            let mine = rows
                .iter()
                .filter(at)
                .filter(|row| row.setting.dispatchers == dispatchers);
            let stale =
                mine.filter_map(|row| Some(point(row, row.setting.policy.update_period()?)));
            let plural = if dispatchers == 1 { "" } else { "s" };
            series.push(Series {
                name: format!("{dispatchers} dispatcher{plural}"),
                points: stale.collect(),
                mark: Mark::LineAndDots,
                colour: colour + 3,
            });
        }
        for policy in [Policy::Random, Policy::ShortestQueue] {
            let wait = rows
                .iter()
                .filter(at)
                .find(|row| row.setting.policy == policy);
            let wait = wait.map_or(f64::NAN, |row| row.waits.mean);
            let name = match policy {
                Policy::Random => "random",
                _ => "asked for each job",
            };
            series.push(dashes(name, [(0.1, wait), (20.0, wait)].into_iter()));
        }
        Panel {
            title: format!("load {load}"),
            x: Axis::log("time between updates, service times"),
            y: Axis::log("mean wait, service times"),
            series,
        }
    };
    Figure {
        title: "Join shortest queue by what is no longer true".to_owned(),
        panels: [0.7, COMPARED_LOAD].map(panel).into(),
    }
}

fn messages_figure(rows: &[Row]) -> Figure {
    let panel = |dispatchers: usize| {
        let mine = rows.iter().filter(|row| {
            row.setting.load == COMPARED_LOAD && row.setting.dispatchers == dispatchers
        });
        let stale = |row: &&Row| row.setting.policy.update_period().is_some();
        let at = |row: &Row| point(row, row.waits.messages_per_job);
        let mut series = vec![Series {
            name: "jsq, asked every 0.1 to 20".to_owned(),
            points: mine.clone().filter(stale).map(at).collect(),
            mark: Mark::LineAndDots,
            colour: 6,
        }];
        let others = mine.filter(|row| !stale(row)).enumerate();
        series.extend(others.map(|(colour, row)| Series {
            name: row.setting.policy.to_string(),
            points: vec![at(row)],
            mark: Mark::Dots,
            // The sixth is taken.
            colour: if colour < 6 { colour } else { colour + 1 },
        }));
        let plural = if dispatchers == 1 { "" } else { "s" };
        Panel {
            title: format!("load {COMPARED_LOAD}, {dispatchers} dispatcher{plural}"),
            x: Axis::linear("messages for each job").from_to(-0.5, 26.0),
            y: Axis::log("mean wait, service times"),
            series,
        }
    };
    Figure {
        title: "What a shorter wait costs in messages".to_owned(),
        panels: DISPATCHERS.map(panel).into(),
    }
}
