//! Figures, with a line for each mode and the paper's values beside as dashed ones.

use super::groups::{Group, Load, mean_ms, p99_ms, timeouts_percent};
use super::mode::Mode;
use super::publishing::Run;
use airmail_bench::Spread;
use airmail_experiments::results::Plotted as _;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};
use clap::ValueEnum as _;

/// The paper's average round of a single machine, in milliseconds, and the time-out rate that it stays under,
/// up to so many clients.
pub(super) const PAPER_MS: f64 = 50.0;
pub(super) const PAPER_TIMEOUTS: f64 = 0.005;
pub(super) const PAPER_CLIENTS: f64 = 2000.0;
/// Least number of clients of the paper's figures.
const PAPER_CLIENTS_MIN: f64 = 100.0;

/// Round time, time-outs, and the ratio of round times, by clients.
pub(super) fn clients(groups: &[&Group<'_>]) -> Figure {
    let mut rounds = each_mode(groups, "mean", |group| group.of(mean_ms));
    rounds.extend(each_mode(groups, "p99", |group| group.of(p99_ms)));
    rounds.push(dashed("the paper, single: mean 50 ms", PAPER_MS));
    let mut timeouts = each_mode(groups, "", |group| group.of(timeouts_percent));
    timeouts.push(dashed(
        "the paper, single: under 0.5 %",
        PAPER_TIMEOUTS * 100.0,
    ));
    let mut ratios = each_mode(groups, "", |group| group.ratio);
    ratios.push(dashed("as long as the single node's", 1.0));
    Figure {
        title: "Round time and time-outs by number of clients (as the paper's figures 3, 5 and 6)"
            .to_owned(),
        panels: vec![
            panel(Axis::linear("clients"), "round, ms", rounds),
            panel(Axis::linear("clients"), "clients timed out, %", timeouts),
            panel(Axis::linear("clients"), "mean round, x single's", ratios),
        ],
    }
}

/// Round time and time-outs by each mode's own number of clients.
pub(super) fn reach(groups: &[&Group<'_>]) -> Figure {
    let rounds = each_mode(groups, "mean", |group| group.of(mean_ms));
    let timeouts = each_mode(groups, "", |group| group.of(timeouts_percent));
    Figure {
        title: "Round time and time-outs by number of clients, until a mode has time-outs"
            .to_owned(),
        panels: vec![
            panel(Axis::linear("clients"), "mean round, ms", rounds),
            panel(Axis::linear("clients"), "clients timed out, %", timeouts),
        ],
    }
}

/// Throughput and latency by publishers.
pub(super) fn publish(loads: &[Load<'_>]) -> Figure {
    let line = |mode: Mode, name: &str, value: &dyn Fn(&Load<'_>) -> Option<Spread>| {
        let of_mode = loads.iter().filter(|load| load.mode == mode);
        let points = of_mode.filter_map(|load| Some(value(load)?.at(load.publishers.into())));
        series(mode, name, points.collect())
    };
    let ms = |run: &Run, value: fn(&Run) -> u64| value(run) as f64 / 1e3;
    let modes = Mode::value_variants().iter();
    let throughput = modes.clone().map(|mode| {
        line(*mode, "", &|load| {
            load.fast(|run| run.report.published_per_s)
        })
    });
    let latency = modes.flat_map(|mode| {
        [
            line(*mode, "p50", &|load| {
                load.paced(|run| ms(run, |run| run.report.latency_us.p50))
            }),
            line(*mode, "p99", &|load| {
                load.paced(|run| ms(run, |run| run.report.latency_us.p99))
            }),
        ]
    });
    let most = loads.iter().map(|load| load.publishers).max().unwrap_or(1);
    // Three decades at least, which are divided by tens.
    let publishers = || Axis::log("publishers").from_to(0.8, (f64::from(most) * 1.25).max(1250.0));
    Figure {
        title: "Many publishers, few subscribers".to_owned(),
        panels: vec![
            panel(publishers(), "messages/s published", throughput.collect()),
            Panel {
                y: Axis::log("ms to delivery, at a rate"),
                ..panel(publishers(), "", latency.collect())
            },
        ],
    }
}

/// A line for each mode, of a value by its number of clients.
fn each_mode(
    groups: &[&Group<'_>],
    name: &str,
    value: impl Fn(&Group<'_>) -> Option<Spread>,
) -> Vec<Series> {
    let line = |mode: &Mode| {
        let of_mode = groups.iter().filter(|group| group.mode == *mode);
        let points = of_mode.filter_map(|group| Some(value(group)?.at(group.clients().into())));
        series(*mode, name, points.collect())
    };
    Mode::value_variants().iter().map(line).collect()
}

fn series(mode: Mode, name: &str, points: Vec<Point>) -> Series {
    let place = Mode::value_variants().iter().position(|one| *one == mode);
    let far = usize::from(name == "p99");
    let points = points.into_iter().map(|point| match far {
        // Error bars of both would hide one another.
        1 => Point { bar: None, ..point },
        _ => point,
    });
    Series {
        name: format!("{} {name}", mode.name()).trim().to_owned(),
        points: points.collect(),
        mark: Mark::LineAndDots,
        colour: place.unwrap_or_default() * 2 + far,
    }
}

/// A value that the paper gives for all its numbers of clients.
fn dashed(name: &str, y: f64) -> Series {
    Series {
        name: name.to_owned(),
        points: [PAPER_CLIENTS_MIN, PAPER_CLIENTS]
            .map(|x| Point::new(x, y))
            .into(),
        mark: Mark::Dashes,
        colour: 0,
    }
}

fn panel(x: Axis, y: &str, series: Vec<Series>) -> Panel {
    let drawn = series
        .into_iter()
        .filter(|series| !series.points.is_empty());
    Panel {
        x,
        y: Axis::linear(y),
        series: drawn.collect(),
        ..Panel::default()
    }
}
