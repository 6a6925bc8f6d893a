//! Figures of the publishes: each with flow control and without, or as it is, by offered load.

use super::publishes::{Case, Publishes};
use crate::flow_control::FlowControl;
use airmail_experiments::results::Plotted as _;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};

fn panel(
    publishes: &Publishes,
    y: Axis,
    value: fn(&Case) -> f64,
    further: Option<Series>,
) -> Panel {
    let series = |flow: FlowControl, colour| Series {
        name: format!("flow control {flow}"),
        points: points(publishes, flow, value),
        mark: Mark::LineAndDots,
        colour,
    };
    let all = FlowControl::ALL.into_iter().zip([3, 4, 3]);
    let all = all.map(|(flow, colour)| series(flow, colour));
    let measured = all.filter(|series| !series.points.is_empty());
    Panel {
        x: Axis::log("offered load / capacity"),
        y,
        series: measured.chain(further).collect(),
        ..Panel::default()
    }
}

fn points(publishes: &Publishes, flow: FlowControl, value: fn(&Case) -> f64) -> Vec<Point> {
    let ratios = publishes.ratios();
    let point = |ratio: &f64| Some(publishes.spread(*ratio, flow, value)?.at(*ratio));
    ratios.iter().filter_map(point).collect()
}

/// Goodput and refusals by offered load.
pub(super) fn goodput_figure(publishes: &Publishes) -> Figure {
    let ratios = publishes.ratios();
    let ideal = Series {
        name: "offered, up to capacity".to_owned(),
        points: ratios
            .iter()
            .map(|ratio| Point::new(*ratio, ratio.min(1.0) * publishes.capacity_per_s))
            .collect(),
        mark: Mark::Dashes,
        colour: 0,
    };
    Figure {
        title: "What gets done, and what is refused".to_owned(),
        panels: vec![
            panel(
                publishes,
                Axis::linear("goodput, messages/s"),
                Case::goodput,
                Some(ideal),
            ),
            panel(
                publishes,
                Axis::linear("refused, messages/s"),
                Case::refused,
                None,
            ),
        ],
    }
}

/// Latency by offered load.
pub(super) fn latency_figure(publishes: &Publishes) -> Figure {
    let ms = |case: &Case| case.p99() / 1e3;
    let median_ms = |case: &Case| case.p50() / 1e3;
    Figure {
        title: "From due to acknowledged, of what was admitted".to_owned(),
        panels: vec![
            panel(publishes, Axis::log("p99, ms"), ms, None),
            panel(publishes, Axis::log("p50, ms"), median_ms, None),
        ],
    }
}

/// Memory by offered load.
pub(super) fn memory_figure(publishes: &Publishes) -> Figure {
    Figure {
        title: "Memory of the node, with all that it stored".to_owned(),
        panels: vec![panel(
            publishes,
            Axis::linear("most memory, MiB"),
            Case::rss_mib,
            None,
        )],
    }
}
