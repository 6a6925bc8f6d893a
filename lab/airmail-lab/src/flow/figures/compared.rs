//! The limiters beside one another, and the fixed bounds with which they are compared.

use super::super::case::{Place, Storage, topics_text};
use super::super::points::{over_bounds, over_seconds, over_windows, power_over_windows};
use super::super::runs::{Measurement, SweepOf};
use super::{COLOURS, Figures, QUANTITIES, Quantity, latency_ms, line};
use crate::virtual_time::limiter_colour;
use airmail_bench::Spread;
use airmail_experiments::flow::{Distribution, PilotWindow, SweepPoint};
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};

const PILOT_QUANTITIES: [Quantity<PilotWindow>; 4] = [
    ("bound of the pilot", "messages", |window| window.bound),
    ("messages in flight", "messages", |window| window.in_flight),
    ("latency in the node", "ms", |window| window.latency_s * 1e3),
    ("throughput of the node", "messages/s", |window| {
        window.rate_per_s
    }),
];

impl Figures<'_> {
    /// Measurements that differ in nothing but the limiter.
    fn limiters_at(
        &self,
        place: Place,
        storage: Storage,
        topics: u32,
        distribution: Distribution,
    ) -> Vec<&Measurement> {
        let asked = (place, storage, topics, distribution);
        self.cases(|case| (case.place, case.storage, case.topics, case.distribution) == asked)
    }

    /// The limiters beside one another, and beside the best fixed bound.
    pub(crate) fn comparison(
        &self,
        storage: Storage,
        topics: u32,
        distribution: Distribution,
    ) -> Option<Figure> {
        let cases = self.limiters_at(Place::Publisher, storage, topics, distribution);
        let first = cases.first()?.case;
        let panel = |name: &str, y: Axis, points: &dyn Fn(&Measurement) -> Vec<Point>| {
            beside_one_another(&cases, name, [self.published(), y], points)
        };
        let axes: [fn(&'static str) -> Axis; 3] = [Axis::log, Axis::log, Axis::linear];
        let quantities = QUANTITIES.iter().zip(axes);
        let mut panels: Vec<Panel> = quantities
            .map(|((name, unit, of), axis)| {
                panel(name, axis(unit), &|case| {
                    over_windows(&case.rounds, self.plan.window, of)
                })
            })
            .collect();
        if let Some(best) = self.measured.power_best(&first) {
            let name = "power of five windows, throughput over latency, as a share of the best's";
            let mut power = panel(name, Axis::log("share"), &|case| {
                power_over_windows(&case.rounds, self.plan.window, best)
            });
            power.series.push(best_line(&power));
            panels.push(power);
        }
        let topics = topics_text(topics);
        Some(Figure {
            title: format!("The limiters compared: {storage}, {topics}, {distribution}"),
            panels,
        })
    }

    /// Throughput, latency and power over fixed bounds, of a publisher or of the pilot.
    pub(crate) fn sweep(&self, storage: Storage, place: Place) -> Option<Figure> {
        let sweeps = self.measured.sweeps.iter();
        let of = |sweep: &&SweepOf| (sweep.storage, sweep.place) == (storage, place);
        let sweeps: Vec<&SweepOf> = sweeps.filter(of).collect();
        if sweeps.is_empty() {
            return None;
        }
        let whose = place.name();
        let panel = |name: &str, y: Axis, of: fn(&SweepPoint) -> Option<Spread>| {
            let series = sweeps.iter().enumerate().map(|(place, found)| Series {
                name: topics_text(found.topics),
                points: over_bounds(&found.sweep, of),
                mark: Mark::LineAndDots,
                colour: COLOURS[place % COLOURS.len()],
            });
            Panel {
                title: name.to_owned(),
                x: Axis::log(format!("bound of the {whose}, messages in flight")),
                y,
                series: series.collect(),
            }
        };
        Some(Figure {
            title: format!("Fixed bounds in the {whose}; storage: {storage}"),
            panels: vec![
                panel(
                    "throughput",
                    Axis::linear("messages/s"),
                    SweepPoint::rate_per_s,
                ),
                panel(QUANTITIES[1].0, Axis::log("ms"), latency_ms),
                panel(
                    "power: throughput over latency",
                    Axis::linear("messages/s²"),
                    SweepPoint::power,
                ),
            ],
        })
    }

    /// Windows of the node's own limiter, by limiter.
    pub(crate) fn pilot(
        &self,
        storage: Storage,
        topics: u32,
        distribution: Distribution,
    ) -> Option<Figure> {
        let cases = self.limiters_at(Place::Pilot, storage, topics, distribution);
        let first = cases.first()?.case;
        let panel = |name: &str, y: Axis, of: &dyn Fn(&PilotWindow) -> f64| {
            let axes = [Axis::linear("seconds"), y];
            beside_one_another(&cases, name, axes, &|case| over_seconds(&case.rounds, of))
        };
        let quantities = PILOT_QUANTITIES.iter();
        let mut panels: Vec<Panel> = quantities
            .map(|(name, unit, of)| panel(name, Axis::linear(*unit), of))
            .collect();
        if let Some(best) = self.measured.power_best(&first) {
            let name = "power: throughput over latency, as a share of the best fixed bound's";
            let mut power = panel(name, Axis::log("share"), &|look| look.power() / best);
            power.series.push(best_line(&power));
            panels.push(power);
        }
        let topics = topics_text(topics);
        Some(Figure {
            title: format!("The limiters in the pilot: {storage}, {topics}, {distribution}"),
            panels,
        })
    }
}

/// A panel with a curve for each limiter.
fn beside_one_another(
    cases: &[&Measurement],
    title: &str,
    [x, y]: [Axis; 2],
    points: &dyn Fn(&Measurement) -> Vec<Point>,
) -> Panel {
    let series = cases.iter().enumerate().map(|(place, case)| {
        let limiter = case.case.limiter;
        let place = (place, cases.len());
        line(limiter.name(), points(case), limiter_colour(limiter), place)
    });
    Panel {
        title: title.to_owned(),
        x,
        y,
        series: series.collect(),
    }
}

/// Where the best fixed bound is, over the whole panel.
fn best_line(panel: &Panel) -> Series {
    let points = panel.series.iter().flat_map(|series| &series.points);
    let end = points.map(|point| point.x).fold(0.0, f64::max);
    Series {
        name: "best fixed bound".to_owned(),
        points: vec![Point::new(0.0, 1.0), Point::new(end, 1.0)],
        mark: Mark::Dashes,
        colour: 5,
    }
}
