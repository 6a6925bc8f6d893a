//! The limiters beside one another, and the fixed bounds with which they are compared.

use super::super::case::{Place, Setup, Storage, publishers_text, topics_text};
use super::super::outcome::{courses, periods_of};
use super::super::points::{over_bounds, over_seconds};
use super::super::runs::Round;
use super::super::summary::Summary;
use super::super::sweeps::SweepOf;
use super::{COLOURS, Figures, QUANTITIES, Quantity, latency_ms, line};
use crate::virtual_time::limiter_colour;
use airmail_bench::Spread;
use airmail_experiments::flow::{Period, SweepPoint};
use airmail_flow::LimiterKind;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};
use airmail_queueing::knee::Knee;

/// Quantities of a run over time.
pub(super) const OVER_TIME: [Quantity<Period>; 4] = [
    ("bound", "messages", |period| period.bound),
    ("messages in flight", "messages", |period| period.in_flight),
    ("latency to the ack", "ms", |period| period.latency_s * 1e3),
    ("throughput of all", "messages/s", |period| {
        period.rate_per_s
    }),
];
/// Least share of the knee's throughput that a limiter is to hold, and greatest multiple of its latency.
const SHARE_MIN: f64 = 0.9;
const LATENCY_MAX: f64 = 1.5;
/// Colour of references.
const REFERENCE: usize = 5;

/// Periods of each of a case's runs.
pub(super) fn periods(place: Place, rounds: &[Round]) -> Vec<Vec<Period>> {
    let of = |round: &Round| periods_of(&courses(place, round), 0.0, f64::INFINITY);
    rounds.iter().map(of).collect()
}

/// The same quantity of the knee.
pub(super) fn of_knee(knee: &Knee, limiters: u32, quantity: usize) -> f64 {
    match quantity {
        0 => knee.bound as f64,
        1 => knee.rate_per_s * knee.latency_s / f64::from(limiters),
        2 => knee.latency_s * 1e3,
        _ => knee.rate_per_s,
    }
}

/// A dashed line.
pub(super) fn reference(name: &str, points: Vec<Point>) -> Series {
    Series {
        name: name.to_owned(),
        points,
        mark: Mark::Dashes,
        colour: REFERENCE,
    }
}

impl Figures<'_> {
    /// The limiters beside one another over time, and beside the knee.
    pub(crate) fn comparison(&self, setup: &Setup) -> Option<Figure> {
        let cases = self.cases(|case| case.setup == *setup);
        let runs: Vec<(LimiterKind, Vec<Vec<Period>>)> = cases
            .iter()
            .map(|case| (case.case.limiter, periods(setup.place, &case.rounds)))
            .collect();
        if runs.is_empty() {
            return None;
        }
        let knee = self.measured.knee(setup);
        let panel = |(place, (name, unit, of)): (usize, &Quantity<Period>)| {
            let axis = if place == 3 { Axis::linear } else { Axis::log };
            let mut panel = beside_one_another(&runs, name, axis((*unit).to_owned()), of);
            panel.series.extend(knee.map(|knee| {
                let at = of_knee(&knee, setup.limiters(), place);
                let points = panel.series.iter().flat_map(|series| &series.points);
                let end = points.map(|point| point.x).fold(0.0, f64::max);
                reference("knee", vec![Point::new(0.0, at), Point::new(end, at)])
            }));
            panel
        };
        Some(Figure {
            title: format!("The limiters compared: {setup}"),
            panels: OVER_TIME.iter().enumerate().map(panel).collect(),
        })
    }

    /// Throughput, latency and power over fixed bounds, of publishers or of the pilot, and the knees.
    pub(crate) fn sweep(&self, storage: Storage, place: Place, publishers: u32) -> Option<Figure> {
        let sweeps = self.measured.sweeps.iter();
        let wanted = (storage, place, publishers);
        let of = |sweep: &&SweepOf| {
            let setup = &sweep.setup;
            (setup.storage, setup.place, setup.publishers) == wanted
        };
        let sweeps: Vec<&SweepOf> = sweeps.filter(of).collect();
        if sweeps.is_empty() {
            return None;
        }
        let panel = |name: &str, y: Axis, of: fn(&SweepPoint) -> Spread, knee: fn(&Knee) -> f64| {
            let series = sweeps.iter().enumerate().map(|(place, found)| Series {
                name: topics_text(found.setup.topics),
                points: over_bounds(&found.sweep, of),
                mark: Mark::LineAndDots,
                colour: COLOURS[place % COLOURS.len()],
            });
            let knees = sweeps.iter().enumerate().filter_map(|(place, found)| {
                let found_knee = found.sweep.knee().ok()?;
                let bound = found_knee.bound as f64;
                Some(Series {
                    name: format!("knee, {}", topics_text(found.setup.topics)),
                    points: vec![Point::new(bound, 0.0), Point::new(bound, knee(&found_knee))],
                    mark: Mark::Dashes,
                    colour: COLOURS[place % COLOURS.len()],
                })
            });
            Panel {
                title: name.to_owned(),
                x: Axis::log(format!("bound of the {}, messages in flight", place.name())),
                y,
                series: series.chain(knees).collect(),
            }
        };
        let publishers = publishers_text(publishers);
        let rate = |point: &SweepPoint| point.rate_per_s;
        Some(Figure {
            title: format!(
                "Fixed bounds in the {}: {storage}, {publishers}",
                place.name()
            ),
            panels: vec![
                panel(
                    "throughput of all",
                    Axis::linear("messages/s"),
                    rate,
                    |knee| knee.rate_per_s,
                ),
                panel(QUANTITIES[1].0, Axis::linear("ms"), latency_ms, |knee| {
                    knee.latency_s * 1e3
                }),
                panel(
                    "power: throughput over latency",
                    Axis::linear("messages/s²"),
                    |point| point.power,
                    |knee| knee.rate_per_s / knee.latency_s.max(Knee::LATENCY_RESOLUTION_S),
                ),
            ],
        })
    }

    /// Every case beside its knee: a dot for each, by limiter.
    pub(crate) fn beside_the_knee(&self, place: Place) -> Option<Figure> {
        let summaries: Vec<Summary> = self
            .cases(|case| case.setup.place == place && case.limiter != LimiterKind::Fixed)
            .into_iter()
            .map(Summary::of)
            .collect();
        let dots = |limiter: LimiterKind| {
            let of = summaries
                .iter()
                .filter(move |found| found.case.limiter == limiter);
            let points = of.filter_map(|found| {
                let (share, ratio) = (found.rate_share?, found.latency_ratio?);
                Some(Point::new(share.median, ratio.median))
            });
            Series {
                name: limiter.name().to_owned(),
                points: points.collect(),
                mark: Mark::Dots,
                colour: limiter_colour(limiter),
            }
        };
        let limiters = self.plan.limiters(place).into_iter();
        let mut series: Vec<Series> = limiters.map(dots).collect();
        series.retain(|series| !series.points.is_empty());
        if series.is_empty() {
            return None;
        }
        let ends = |of: fn(&Point) -> f64, least: f64, most: f64| {
            let points = series.iter().flat_map(|series| &series.points).map(of);
            points.fold((least, most), |(low, high), at| (low.min(at), high.max(at)))
        };
        let (left, right) = ends(|point| point.x, 0.5, 1.2);
        let (low, high) = ends(|point| point.y, 0.5, 2.0);
        let least_share = [low, high].map(|y| Point::new(SHARE_MIN, y));
        let most_latency = [left, right].map(|x| Point::new(x, LATENCY_MAX));
        series.push(reference("at least 0.9 of it", least_share.into()));
        series.push(reference("at most 1.5 times it", most_latency.into()));
        let panel = Panel {
            title: String::new(),
            x: Axis::linear("throughput, share of the knee's").from_to(left * 0.95, right * 1.05),
            y: Axis::log("latency, multiple of the knee's").from_to(low * 0.9, high * 1.1),
            series,
        };
        Some(Figure {
            title: format!(
                "Limiters in the {} beside the knee, a dot for each case",
                place.name()
            ),
            panels: vec![panel],
        })
    }
}

/// A panel with a curve for each limiter.
pub(super) fn beside_one_another(
    runs: &[(LimiterKind, Vec<Vec<Period>>)],
    title: &str,
    y: Axis,
    of: &dyn Fn(&Period) -> f64,
) -> Panel {
    let series = runs.iter().enumerate().map(|(place, (limiter, runs))| {
        let name = match limiter {
            LimiterKind::Fixed => "fixed, at the knee",
            limiter => limiter.name(),
        };
        let points = over_seconds(runs, of);
        let colour = limiter_colour(*limiter);
        line(name, points, colour, (place, 2))
    });
    Panel {
        title: title.to_owned(),
        x: Axis::linear("seconds"),
        y,
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::plan::tests::plan;
    use super::super::tests::{measured, names};
    use super::*;
    use airmail_experiments::flow::Distribution;

    #[test]
    fn limiters_are_compared_with_one_another_and_with_the_knee() {
        let plan = plan("--storages memory --topics 16 --limiters gradient,adaptive --change 0s");
        let measured = measured(&plan);
        let figures = Figures {
            plan: &plan,
            measured: &measured,
        };
        for place in [Place::Publisher, Place::Pilot] {
            let setup = figures.setup(Storage::Memory, place, 16, Distribution::Poisson);
            let panels = figures.comparison(&setup).unwrap().panels;
            let expected = ["fixed, at the knee", "gradient", "adaptive", "knee"];
            assert_eq!(names(&panels[0]), expected);
            assert_eq!(panels[3].series[3].points[0].y, 100_000.0);
            let sweep = figures.sweep(Storage::Memory, place, 2).unwrap();
            assert_eq!(names(&sweep.panels[0]), ["16 topics", "knee, 16 topics"]);
            let beside = figures.beside_the_knee(place).unwrap();
            assert_eq!(beside.panels[0].series[0].points.len(), 9);
            assert!((beside.panels[0].series[0].points[0].x - 1.0).abs() < 1e-6);
        }
        let elsewhere = figures.setup(Storage::Disk, Place::Pilot, 16, Distribution::Poisson);
        assert!(figures.comparison(&elsewhere).is_none());
    }
}
