//! Figures over the number of copilots, with a line for each series.

use super::Series as Kind;
use super::report::{Group, p50_ms, p99_ms, per_s};
use super::run::Run;
use airmail_bench::Spread;
use airmail_experiments::results::Plotted as _;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};

/// Messages delivered to all subscribers together.
pub(super) fn throughput(groups: &[Group<'_>]) -> Figure {
    // A message of the shared series is delivered to every subscriber, so each series has a scale of its own.
    let panel = |kind| Panel {
        title: kind_name(kind),
        ..panel(
            "messages/s delivered",
            vec![line(groups, kind, "", |group| group.fast(per_s))],
        )
    };
    figure("Messages delivered to all subscribers", KINDS.map(panel))
}

/// Times from publish to delivery.
pub(super) fn latency(groups: &[Group<'_>]) -> Figure {
    let panel = |kind| Panel {
        title: kind_name(kind),
        ..panel(
            "ms",
            vec![
                line(groups, kind, ", p50", |group| group.half(p50_ms)),
                line(groups, kind, ", p99", |group| group.half(p99_ms)),
            ],
        )
    };
    figure(
        "From publish to delivery, at half of the least throughput",
        KINDS.map(panel),
    )
}

/// Bytes on the link of each copilot, and those that the tower sent to all.
pub(super) fn links(groups: &[Group<'_>]) -> Figure {
    let each = KINDS.into_iter().flat_map(|kind| {
        let of_kind = groups.iter().filter(move |group| group.series == kind);
        [wanted(of_kind.clone(), kind), copilots(of_kind, kind)]
    });
    let tower = KINDS.map(|kind| line(groups, kind, "", |group| group.fast(Run::sent_share)));
    figure(
        "Bytes on links for each byte of payload published",
        [
            Panel {
                title: "each copilot's link".to_owned(),
                ..panel("bytes received", each.collect())
            },
            Panel {
                title: "the tower, to all copilots".to_owned(),
                ..panel("bytes sent", tower.into())
            },
        ],
    )
}

const KINDS: [Kind; 2] = [Kind::Divided, Kind::Shared];

fn kind_name(kind: Kind) -> String {
    kind.name().to_owned()
}

fn figure(title: &str, panels: impl IntoIterator<Item = Panel>) -> Figure {
    let drawn = panels.into_iter().filter(|panel| !panel.series.is_empty());
    Figure {
        title: title.to_owned(),
        panels: drawn.collect(),
    }
}

fn panel(y: &str, series: Vec<Series>) -> Panel {
    let drawn = series
        .into_iter()
        .filter(|series| !series.points.is_empty());
    Panel {
        x: Axis::linear("copilots"),
        y: Axis::linear(y),
        series: drawn.collect(),
        ..Panel::default()
    }
}

/// A value of a series over the number of copilots.
fn line(
    groups: &[Group<'_>],
    kind: Kind,
    name: &str,
    value: impl Fn(&Group<'_>) -> Option<Spread>,
) -> Series {
    let of_kind = groups.iter().filter(|group| group.series == kind);
    let point = |group: &Group<'_>| Some(value(group)?.at(group.copilots.into()));
    let mut points: Vec<Point> = of_kind.filter_map(point).collect();
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    Series {
        name: format!("{}{name}", kind.name()),
        points,
        mark: Mark::LineAndDots,
        colour: colour(kind) + usize::from(name == ", p99"),
    }
}

/// The part of what is published that is wanted behind each link.
fn wanted<'a>(groups: impl Iterator<Item = &'a Group<'a>>, kind: Kind) -> Series {
    let share = |group: &Group<'_>| {
        let copilots = group.copilots;
        Point::new(copilots.into(), kind.wanted_share(copilots))
    };
    let mut points: Vec<Point> = groups.map(share).collect();
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    Series {
        name: format!("{}, wanted", kind.name()),
        points,
        mark: Mark::Dashes,
        colour: colour(kind),
    }
}

/// A dot for each copilot, which stands beside those of the same run.
fn copilots<'a>(groups: impl Iterator<Item = &'a Group<'a>>, kind: Kind) -> Series {
    let points = groups.flat_map(|group| {
        let of_copilot = move |number: u32| {
            let shares = group.fast.iter().filter_map(|run| {
                let mut shares = run.link_shares();
                shares.nth(number as usize)
            });
            let beside = f64::from(number) - f64::from(group.copilots - 1) / 2.0;
            Some(Spread::of(shares)?.at(f64::from(group.copilots) + beside * 0.1))
        };
        (0..group.copilots).filter_map(of_copilot)
    });
    Series {
        name: format!("{}, each copilot", kind.name()),
        points: points.collect(),
        mark: Mark::Dots,
        colour: colour(kind),
    }
}

fn colour(kind: Kind) -> usize {
    match kind {
        Kind::Divided => 3,
        Kind::Shared => 0,
    }
}
