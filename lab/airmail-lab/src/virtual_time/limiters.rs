//! `airmail-lab limiters`.

use super::RunArgs;
use crate::narration::print;
use airmail_flow::LimiterKind;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};
use airmail_queueing::limiters::{Curve, Plan, Report, Row, Trace, measure, runs};
use airmail_queueing::system::SYSTEMS;
use serde_json::json;
use std::fmt::Write as _;

/// Error bars stand so many windows apart.
const BAR_WINDOWS: usize = 5;

pub(super) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let plan = Plan {
        seeds: args.seeds,
        ..Plan::default()
    };
    let bar = super::progress(runs(&plan) * SYSTEMS.len() as u64);
    let reports = super::all(&SYSTEMS, |system| measure(*system, &plan, &|| bar.inc(1)));
    bar.finish_and_clear();
    print_rows(&reports, args)?;
    let mut figures = vec![("limiters".to_owned(), summary(&reports))];
    for report in &reports {
        let name = report.system.name;
        figures.push((format!("limiters-{name}-curve"), curve_figure(report)));
        figures.push((format!("limiters-{name}-run"), run_figure(report)));
    }
    super::draw(&args.out, &figures)
}

fn print_rows(reports: &[Report], args: &RunArgs) -> anyhow::Result<()> {
    let rows = reports.iter().flat_map(|report| &report.rows);
    if args.json {
        return super::print_json(rows.map(json));
    }
    let mut out = String::new();
    writeln!(
        out,
        "Power is throughput over latency, as a share of that of the best fixed bound; {} seeds.\n\
         power: after 50 windows; worst: of all seeds; halved, doubled: from 20 windows after the\n\
         capacity was; recovery: windows until 90 % of the best, after the slower of the two.\n",
        args.seeds
    )?;
    writeln!(
        out,
        "{:<11} {:<18} {:>6} {:>6} {:>7} {:>8} {:>9} {:>6} {:>7} {:>6}",
        "system",
        "limiter",
        "power",
        "worst",
        "halved",
        "doubled",
        "recovery",
        "worst",
        "bound",
        "best"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<11} {:<18} {:>6.3} {:>6.3} {:>7.3} {:>8.3} {:>9} {:>6} {:>7.1} {:>6}",
            row.system,
            row.limiter,
            row.power_ratio,
            row.power_ratio_min,
            row.power_ratio_halved,
            row.power_ratio_doubled,
            recovery(row),
            worst_recovery(row),
            row.bound,
            row.bound_best
        )?;
    }
    print(&out)
}

fn recovery(row: &Row) -> String {
    if row.recovered_share > 0.0 {
        format!("{:.1}", row.recovery_windows)
    } else {
        "never".to_owned()
    }
}

fn worst_recovery(row: &Row) -> String {
    if row.recovered_share < 1.0 {
        "never".to_owned()
    } else {
        row.recovery_windows_max.to_string()
    }
}

fn json(row: &Row) -> serde_json::Value {
    json!({
        "system": row.system,
        "limiter": row.limiter.name(),
        "power_ratio": row.power_ratio,
        "power_ratio_min": row.power_ratio_min,
        "power_ratio_halved": row.power_ratio_halved,
        "power_ratio_doubled": row.power_ratio_doubled,
        "recovery_windows": row.recovery_windows,
        "recovery_windows_max": row.recovery_windows_max,
        "recovered_share": row.recovered_share,
        "bound": row.bound,
        "bound_best": row.bound_best,
    })
}

/// The colour of a limiter's curves, in every figure of the laboratory.
pub(crate) fn colour(limiter: LimiterKind) -> usize {
    match limiter {
        LimiterKind::Fixed => 0,
        LimiterKind::LastThreePoints => 1,
        LimiterKind::Adaptive => 3,
        LimiterKind::Gradient => 2,
    }
}

fn line(limiter: LimiterKind, values: impl Iterator<Item = f64>) -> Series {
    let points = values.enumerate();
    Series {
        name: match limiter {
            LimiterKind::Fixed => "fixed, best at first".to_owned(),
            limiter => limiter.name().to_owned(),
        },
        points: points
            .map(|(window, value)| Point::new(window as f64, value))
            .collect(),
        mark: match limiter {
            LimiterKind::Fixed => Mark::Dashes,
            _ => Mark::Line,
        },
        colour: colour(limiter),
    }
}

fn power_panel(title: &str, series: Vec<Series>) -> Panel {
    Panel {
        title: title.to_owned(),
        x: Axis::linear("windows; half the capacity from 100 to 150"),
        y: Axis::linear("power, share of the best").from_to(0.0, 1.2),
        series,
    }
}

fn summary(reports: &[Report]) -> Figure {
    let series = LimiterKind::ALL.map(|limiter| {
        let traces: Vec<&Trace> = reports
            .iter()
            .flat_map(|report| &report.traces)
            .filter(|trace| trace.limiter == limiter)
            .collect();
        let windows = traces.first().map_or(0, |trace| trace.power_ratios.len());
        let mean = |window: usize| {
            let sum: f64 = traces.iter().map(|trace| trace.power_ratios[window]).sum();
            sum / traces.len() as f64
        };
        line(limiter, (0..windows).map(mean))
    });
    let title = format!("the mean of {} systems", reports.len());
    Figure {
        title: "How near to the best fixed bound each limiter stays".to_owned(),
        panels: vec![power_panel(&title, series.into())],
    }
}

fn run_figure(report: &Report) -> Figure {
    let bounds = report.traces.iter().map(|trace| {
        let mut series = line(trace.limiter, trace.bounds.iter().map(|bound| bound[0]));
        for (point, [_, low, high]) in series
            .points
            .iter_mut()
            .zip(&trace.bounds)
            .step_by(BAR_WINDOWS)
        {
            point.bar = Some((*low, *high));
        }
        series
    });
    let powers = report.traces.iter();
    let powers = powers.map(|trace| line(trace.limiter, trace.power_ratios.iter().copied()));
    Figure {
        title: format!("{}: {}", report.system.name, report.system.stands_for),
        panels: vec![
            Panel {
                title: "bound: the mean of the seeds, and from their 10th to their 90th percentile"
                    .to_owned(),
                x: Axis::linear("windows; half the capacity from 100 to 150"),
                y: Axis::log("bound, messages"),
                series: bounds.collect(),
            },
            power_panel("", powers.collect()),
        ],
    }
}

fn curve_figure(report: &Report) -> Figure {
    let panel = |label: &str, y: Axis, of: fn(&airmail_queueing::limiters::Point) -> f64| {
        let [full, half] = &report.curves;
        Panel {
            title: label.to_owned(),
            x: Axis::log("messages in flight"),
            y,
            series: vec![
                curve("full capacity", full, of, 3),
                curve("half the capacity", half, of, 6),
                best("the best bound", full, of, 3),
                best("the best at half", half, of, 6),
            ],
        }
    };
    Figure {
        title: format!("{}: {}", report.system.name, report.system.stands_for),
        panels: vec![
            panel("throughput", Axis::linear("messages/s"), |point| {
                point.rate_per_s
            }),
            panel("latency", Axis::log("ms"), |point| point.latency_s * 1e3),
            panel("power", Axis::linear("messages/s²"), |point| point.power()),
        ],
    }
}

fn curve(
    name: &str,
    curve: &Curve,
    of: fn(&airmail_queueing::limiters::Point) -> f64,
    colour: usize,
) -> Series {
    let points = curve.points.iter();
    Series {
        name: name.to_owned(),
        points: points
            .map(|point| Point::new(point.bound as f64, of(point)))
            .collect(),
        mark: Mark::Line,
        colour,
    }
}

fn best(
    name: &str,
    curve: &Curve,
    of: fn(&airmail_queueing::limiters::Point) -> f64,
    colour: usize,
) -> Series {
    Series {
        name: format!("{name}: {}", curve.best.bound),
        points: vec![Point::new(curve.best.bound as f64, of(&curve.best))],
        mark: Mark::Dots,
        colour,
    }
}
