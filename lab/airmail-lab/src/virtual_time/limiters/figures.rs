//! The figures of `airmail-lab limiters`: the curves of each system with their knees, and the way of each
//! limiter through a run.

use airmail_flow::LimiterKind;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};
use airmail_queueing::limiters::{self, Contender, Curve, Report, Trace};

/// Error bars stand so many windows apart.
const BAR_WINDOWS: usize = 10;
const WINDOWS: &str = "windows at the largest throughput; half the capacity from 100 to 200";

/// The curves of a system, and the ways of the limiters through a run on it.
pub(super) fn of_system(report: &Report) -> Vec<(String, Figure)> {
    let name = report.subject.name();
    vec![
        (format!("{name}-curve"), curve_figure(report)),
        (format!("{name}-run"), run_figure(report)),
    ]
}

/// The colour of a limiter's curves, in every figure of the laboratory.
pub(crate) fn colour(limiter: LimiterKind) -> usize {
    match limiter {
        LimiterKind::Fixed => 0,
        LimiterKind::LastThreePoints => 1,
        LimiterKind::Adaptive => 3,
        LimiterKind::Gradient => 2,
        LimiterKind::Ladder => 4,
        LimiterKind::LatencyTarget => 5,
    }
}

fn line(contender: Contender, values: impl Iterator<Item = f64>) -> Series {
    let points = values.enumerate();
    let is_fixed = contender.kind == LimiterKind::Fixed;
    let has_floor = contender.latency_floor_ms > 0;
    Series {
        name: if is_fixed {
            "fixed, at the first knee".to_owned()
        } else {
            contender.name()
        },
        points: points
            .map(|(window, value)| Point::new(window as f64, value))
            .collect(),
        mark: if is_fixed || has_floor {
            Mark::Dashes
        } else {
            Mark::Line
        },
        colour: colour(contender.kind),
    }
}

fn share_panel(title: &str, series: Vec<Series>) -> Panel {
    Panel {
        title: title.to_owned(),
        x: Axis::linear(WINDOWS),
        y: Axis::linear("throughput, share of the knee's").from_to(0.0, 1.4),
        series,
    }
}

fn ratio_panel(series: Vec<Series>) -> Panel {
    Panel {
        title: String::new(),
        x: Axis::linear(WINDOWS),
        y: Axis::log("latency, multiple of the knee's").from_to(0.1, 100.0),
        series,
    }
}

/// The geometric mean over the systems on which a limiter is, of one measure.
fn mean_of(reports: &[Report], of: fn(&Trace) -> &Vec<f64>) -> Vec<Series> {
    let all = reports.iter().flat_map(|report| &report.traces);
    let mut contenders: Vec<Contender> = Vec::new();
    for trace in all.clone() {
        if !contenders.contains(&trace.contender) {
            contenders.push(trace.contender);
        }
    }
    let series = contenders.into_iter().map(|contender| {
        let traces: Vec<&Trace> = all
            .clone()
            .filter(|trace| trace.contender == contender)
            .collect();
        let windows = traces.first().map_or(0, |trace| of(trace).len());
        let mean = |window: usize| {
            let logs = traces.iter().map(|trace| of(trace)[window].max(1e-3).ln());
            (logs.sum::<f64>() / traces.len() as f64).exp()
        };
        line(contender, (0..windows).map(mean))
    });
    series.collect()
}

/// All limiters over all systems.
pub(super) fn summary(reports: &[Report]) -> Figure {
    let title = format!("the geometric mean of {} systems", reports.len());
    Figure {
        title: "How near to the knee each limiter stays".to_owned(),
        panels: vec![
            share_panel(&title, mean_of(reports, |trace| &trace.rate_shares)),
            ratio_panel(mean_of(reports, |trace| &trace.latency_ratios)),
        ],
    }
}

fn run_figure(report: &Report) -> Figure {
    let traces = || report.traces.iter();
    let bounds = traces().map(|trace| {
        let mut series = line(trace.contender, trace.bounds.iter().map(|bound| bound[0]));
        let bars = series.points.iter_mut().zip(&trace.bounds);
        for (point, [_, low, high]) in bars.step_by(BAR_WINDOWS) {
            point.bar = Some((*low, *high));
        }
        series
    });
    let shares = traces().map(|trace| line(trace.contender, trace.rate_shares.iter().copied()));
    let ratios = traces().map(|trace| line(trace.contender, trace.latency_ratios.iter().copied()));
    Figure {
        title: format!("{}: {}", report.subject.name(), report.subject.stands_for()),
        panels: vec![
            Panel {
                title: "bound: the mean of the seeds, and from their 10th to their 90th percentile"
                    .to_owned(),
                x: Axis::linear(WINDOWS),
                y: Axis::log("bound, messages"),
                series: bounds.collect(),
            },
            share_panel("", shares.collect()),
            ratio_panel(ratios.collect()),
        ],
    }
}

fn curve_figure(report: &Report) -> Figure {
    let panel = |label: &str, y: Axis, of: fn(&limiters::Point) -> f64| {
        let [full, half] = &report.curves;
        Panel {
            title: label.to_owned(),
            x: Axis::log("bound, messages in flight of each limiter"),
            y,
            series: vec![
                curve("full capacity", full, of, 3),
                curve("half the capacity", half, of, 6),
                knee("the knee", full, of, 3),
                knee("the knee at half", half, of, 6),
            ],
        }
    };
    Figure {
        title: format!("{}: {}", report.subject.name(), report.subject.stands_for()),
        panels: vec![
            panel("throughput", Axis::linear("messages/s"), |point| {
                point.rate_per_s
            }),
            panel("latency", Axis::log("ms"), |point| point.latency_s * 1e3),
            panel("power", Axis::linear("messages/s²"), |point| point.power()),
        ],
    }
}

fn curve(name: &str, curve: &Curve, of: fn(&limiters::Point) -> f64, colour: usize) -> Series {
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

fn knee(name: &str, curve: &Curve, of: fn(&limiters::Point) -> f64, colour: usize) -> Series {
    let at_knee = limiters::Point {
        bound: curve.knee.bound,
        rate_per_s: curve.knee.rate_per_s,
        latency_s: curve.knee.latency_s,
    };
    Series {
        name: format!("{name}: {}", curve.knee.bound),
        points: vec![Point::new(at_knee.bound as f64, of(&at_knee))],
        mark: Mark::Dots,
        colour,
    }
}
