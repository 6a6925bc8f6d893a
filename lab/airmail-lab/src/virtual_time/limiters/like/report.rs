//! The report of `airmail-lab limiters --like`: how much is within its tolerance, then each thing that was measured
//! beside what was predicted.

use super::comparison::{Comparison, Quantity};
use super::setup::Compared;
use crate::flow::Setup;
use airmail_experiments::results::{Findings, Section, Table};
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};
use airmail_queueing::fit::Ends;
use airmail_queueing::knee::{Knee, Measurement};

/// All of it.
pub(super) fn findings(compared: &[Compared], seeds: u64) -> Findings {
    let all: Vec<&Comparison> = compared
        .iter()
        .flat_map(|compared| &compared.comparisons)
        .collect();
    Findings {
        name: "limiters-like".to_owned(),
        title: "What the model of a node predicts from the two ends of a sweep".to_owned(),
        about: vec![
            "Of each sweep the lowest bound gives the cost of a group, and the highest that of a message; all \
             else is predicted: throughput under the bounds between, the knee, and what limiters have of its \
             throughput."
                .to_owned(),
            format!(
                "Predicted shares are medians of {seeds} seeds, of the last half of runs that are as long as \
                 those that were measured, beside a fixed bound at the predicted knee."
            ),
        ],
        sections: vec![
            summary(&all),
            knees(compared),
            shares(&all),
            rates(compared),
        ],
        rows: all.iter().map(|comparison| comparison.row()).collect(),
        ..Findings::default()
    }
}

/// Number within the tolerance, of each kind that is judged.
fn summary(all: &[&Comparison]) -> Section {
    let kinds = [
        ("knee_rate_per_s", "throughput at the knee, within 15 %"),
        ("knee_bound", "bound of the knee, within two rungs of √2"),
        ("rate_share", "share of a limiter, within 0.1"),
    ];
    let rows = kinds.map(|(name, title)| {
        let of = all
            .iter()
            .filter(|comparison| comparison.quantity.name() == name);
        let within = of.clone().filter(|comparison| comparison.is_within());
        vec![
            title.to_owned(),
            format!("{} of {}", within.count(), of.count()),
        ]
    });
    Section {
        title: "Within the tolerances".to_owned(),
        table: Table::new(["predicted", "within"], rows),
        ..Section::default()
    }
}

fn knees(compared: &[Compared]) -> Section {
    let head = [
        "storage",
        "where",
        "publishers",
        "topics",
        "group, µs",
        "message, ns",
        "messages/s",
        "predicted",
        "difference",
        "bound",
        "predicted",
        "difference",
        "ms",
        "predicted",
        "difference",
    ];
    let rows = compared.iter().map(|found| {
        let storage = found.prediction.model.storage;
        let mut cells = setup_cells(&found.setup);
        cells.push(format!("{:.0}", storage.group_us));
        cells.push(format!("{:.0}", storage.message_s() * 1e9));
        for comparison in &found.comparisons {
            let (unit, digits) = match comparison.quantity {
                Quantity::KneeRate | Quantity::KneeBound => (1.0, 0),
                Quantity::KneeLatency => (1e3, 2),
                Quantity::Rate(_) | Quantity::Share(_) => continue,
            };
            cells.extend(both(comparison, unit, digits));
        }
        cells
    });
    Section {
        title: "Knees".to_owned(),
        table: Table::new(head, rows),
        ..Section::default()
    }
}

fn shares(all: &[&Comparison]) -> Section {
    let head = [
        "storage",
        "where",
        "publishers",
        "topics",
        "distribution",
        "limiter",
        "share",
        "predicted",
        "difference",
    ];
    let rows = all.iter().filter_map(|comparison| {
        let Quantity::Share(case) = comparison.quantity else {
            return None;
        };
        let mut cells = setup_cells(&case.setup);
        cells.push(case.setup.distribution.to_string());
        cells.push(case.limiter.to_string());
        cells.extend(both(comparison, 1.0, 2));
        Some(cells)
    });
    Section {
        title: "Limiters' shares of the knee's throughput".to_owned(),
        table: Table::new(head, rows),
        ..Section::default()
    }
}

fn rates(compared: &[Compared]) -> Section {
    let head = [
        "storage",
        "where",
        "publishers",
        "topics",
        "bound",
        "messages/s",
        "predicted",
        "difference",
    ];
    let rows = compared.iter().flat_map(|found| {
        let comparisons = found.comparisons.iter();
        comparisons.filter_map(|comparison| {
            let Quantity::Rate(bound) = comparison.quantity else {
                return None;
            };
            let mut cells = setup_cells(&found.setup);
            cells.push(bound.to_string());
            cells.extend(both(comparison, 1.0, 0));
            Some(cells)
        })
    });
    Section {
        title: "Throughput under the bounds between the ends".to_owned(),
        table: Table::new(head, rows),
        figures: compared.iter().map(figure).collect(),
        ..Section::default()
    }
}

fn setup_cells(setup: &Setup) -> Vec<String> {
    vec![
        setup.storage.to_string(),
        setup.place.name().to_owned(),
        setup.publishers.to_string(),
        setup.topics.to_string(),
    ]
}

/// Measured, predicted, difference.
fn both(comparison: &Comparison, unit: f64, digits: usize) -> [String; 3] {
    let text = |value: f64| format!("{:.digits$}", value * unit);
    [
        text(comparison.measured),
        text(comparison.predicted),
        comparison.difference_text(),
    ]
}

/// Throughput over the bound, measured and predicted, with both knees.
fn figure(found: &Compared) -> (String, Figure) {
    let Compared {
        setup,
        measured,
        prediction,
        ..
    } = found;
    let points = points(found);
    let series = |name: &str, mark, colour, points: Vec<Point>| Series {
        name: name.to_owned(),
        points,
        mark,
        colour,
    };
    let at = |of: fn(&[f64; 3]) -> Point| points.iter().map(of).collect();
    let knee = |knee: &Knee| {
        let bound = knee.bound as f64;
        vec![Point::new(bound, 0.0), Point::new(bound, knee.rate_per_s)]
    };
    let place = setup.place.name();
    let panel = Panel {
        title: "throughput".to_owned(),
        x: Axis::log(format!("bound of the {place}, messages in flight")),
        y: Axis::linear("messages/s"),
        series: vec![
            series(
                "measured",
                Mark::Dots,
                0,
                at(|[x, y, _]| Point::new(*x, *y)),
            ),
            series(
                "predicted",
                Mark::Line,
                2,
                at(|[x, _, y]| Point::new(*x, *y)),
            ),
            series("the knee, measured", Mark::Dashes, 0, knee(measured)),
            series(
                "the knee, predicted",
                Mark::Dashes,
                2,
                knee(&prediction.knee),
            ),
        ],
    };
    let name = format!(
        "{}-{place}-{}-{}",
        setup.storage, setup.publishers, setup.topics
    );
    let figure = Figure {
        title: setup.to_string(),
        panels: vec![panel],
    };
    (name, figure)
}

/// Bound, throughput, and predicted throughput, from end to end.
fn points(found: &Compared) -> Vec<[f64; 3]> {
    let Compared {
        prediction,
        comparisons,
        ..
    } = found;
    let end = |end: Measurement| {
        let fitted = prediction.at(end.bound).rate_per_s;
        [end.bound as f64, end.rate_per_s, fitted]
    };
    let between = comparisons.iter().filter_map(|comparison| {
        let Quantity::Rate(bound) = comparison.quantity else {
            return None;
        };
        Some([bound as f64, comparison.measured, comparison.predicted])
    });
    let Ends { lowest, highest } = prediction.ends;
    let lowest = std::iter::once(end(lowest));
    lowest.chain(between).chain([end(highest)]).collect()
}
