//! The figures of one limiter: each quantity over the messages published, and against the messages
//! in flight.

mod compared;

use super::case::{Case, Place, Storage, topics_text};
use super::paper;
use super::plan::Plan;
use super::points::{over_bounds, over_in_flight, over_windows, thin_bars};
use super::runs::{Measured, Measurement};
use super::summary::Summary;
use crate::virtual_time::limiter_colour;
use airmail_bench::Spread;
use airmail_experiments::flow::{Distribution, SweepPoint, Window};
use airmail_experiments::results::Plotted as _;
use airmail_flow::LimiterKind;
use airmail_plot::{Axis, Figure, Mark, Panel, Point, Series};

/// Its name, its unit, and what it is of a window.
type Quantity<T> = (&'static str, &'static str, fn(&T) -> f64);

/// Quantities of the paper's curves, with the unit that ours have.
const QUANTITIES: [Quantity<Window>; 3] = [
    ("messages in flight", "messages", |window| window.in_flight),
    ("latency to the ack", "ms", |window| window.latency_s * 1e3),
    ("throughput of a publisher", "messages/s", |window| {
        window.rate_per_s
    }),
];
/// Colours of the curves of 1, 16 and 256 topics.
const COLOURS: [usize; 3] = [3, 4, 2];

/// The figures of a plan's measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures<'a> {
    pub(super) plan: &'a Plan,
    pub(super) measured: &'a Measured,
}

impl Figures<'_> {
    fn cases(&self, wanted: impl Fn(&Case) -> bool) -> Vec<&Measurement> {
        let cases = self.measured.cases.iter();
        cases.filter(|found| wanted(&found.case)).collect()
    }

    /// Messages in flight, latency and throughput of one limiter, for each number of topics.
    pub(super) fn curves(
        &self,
        storage: Storage,
        limiter: LimiterKind,
        distribution: Distribution,
    ) -> Option<Figure> {
        let cases = self.cases(|case| {
            case.place == Place::Publisher
                && (case.storage, case.limiter, case.distribution)
                    == (storage, limiter, distribution)
        });
        if cases.is_empty() {
            return None;
        }
        let numbers = paper::figures(storage, limiter).map(|paper| paper.curves(distribution));
        let panel = |place: usize| {
            let (name, unit, of) = QUANTITIES[place];
            let number = numbers.map(|numbers| numbers[place]);
            let prefix = paper::prefix(storage, number.as_slice());
            let series = cases.iter().enumerate().map(|(place, case)| {
                let points = over_windows(&case.rounds, self.plan.window, of);
                let colour = COLOURS[place % COLOURS.len()];
                line(
                    &topics_text(case.case.topics),
                    points,
                    colour,
                    (place, cases.len()),
                )
            });
            Panel {
                title: format!("{prefix}{name}; {distribution} distribution"),
                x: self.published(),
                y: Axis::linear(unit),
                series: series.collect(),
            }
        };
        Some(Figure {
            title: format!("{limiter} in each publisher; storage: {storage}"),
            panels: (0..QUANTITIES.len()).map(panel).collect(),
        })
    }

    /// Throughput and latency of one limiter against messages in flight, beside the sweep.
    pub(super) fn relation(
        &self,
        storage: Storage,
        limiter: LimiterKind,
        distribution: Distribution,
        topics: u32,
    ) -> Option<Figure> {
        let case = Case {
            storage,
            limiter,
            distribution,
            topics,
            place: Place::Publisher,
        };
        let found = self.cases(|other| *other == case);
        let rounds = &found.first()?.rounds;
        let sweep = self.measured.sweep(&case);
        let panel = |(name, unit, of): Quantity<Window>,
                     axis: fn(&'static str) -> Axis,
                     swept: fn(&SweepPoint) -> Option<Spread>| {
            let mut series = vec![Series {
                name: format!("{limiter}, each window"),
                points: over_in_flight(rounds, of),
                mark: Mark::Dots,
                colour: limiter_colour(limiter),
            }];
            series.extend(sweep.map(|sweep| Series {
                name: "fixed bounds".to_owned(),
                points: over_bounds(sweep, swept),
                mark: Mark::Dashes,
                colour: 0,
            }));
            Panel {
                title: format!(
                    "{name}; {distribution} distribution, {}",
                    topics_text(topics)
                ),
                x: Axis::log("messages in flight of a publisher"),
                y: axis(unit),
                series,
            }
        };
        Some(Figure {
            title: format!("Throughput and latency with {limiter}; storage: {storage}"),
            panels: vec![
                panel(QUANTITIES[2], Axis::linear, SweepPoint::rate_per_s),
                panel(QUANTITIES[1], Axis::log, latency_ms),
            ],
        })
    }

    /// Delivery latency, 99th percentile, over topics, if there are several numbers of them.
    pub(super) fn delivery(&self, storage: Storage, limiter: LimiterKind) -> Option<Figure> {
        if self.plan.topics.len() < 2 {
            return None;
        }
        let place = Place::Publisher;
        let series = self.plan.distributions.iter().map(|&distribution| {
            let cases = self.cases(|case| {
                (case.storage, case.limiter, case.place) == (storage, limiter, place)
                    && case.distribution == distribution
            });
            let points = cases.iter().filter_map(|case| {
                let summary = Summary::of(case, self.measured, self.plan.window);
                Some(summary.delivery_p99_ms()?.at(case.case.topics.into()))
            });
            Series {
                name: distribution.to_string(),
                points: points.collect(),
                mark: Mark::LineAndDots,
                colour: colour_of(distribution),
            }
        });
        let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
        if series.is_empty() {
            return None;
        }
        let title = format!("Delivery latency with {limiter}, 99th percentile; storage: {storage}");
        Some(figure(
            title,
            Axis::log("topics"),
            Axis::linear("ms"),
            series,
        ))
    }

    /// The share of the messages that each topic has.
    pub(super) fn distributions(&self, topics: u32) -> Figure {
        let distributions = self.plan.distributions.iter();
        let series = distributions.map(|distribution| {
            let shares = distribution.shares(topics).into_iter().zip(1u32..);
            Series {
                name: distribution.to_string(),
                points: shares
                    .map(|(share, topic)| Point::new(topic.into(), share * 100.0))
                    .collect(),
                mark: Mark::Line,
                colour: colour_of(*distribution),
            }
        });
        let title = format!("Messages on each of {}", topics_text(topics));
        let (x, y) = (Axis::linear("topic"), Axis::linear("% of the messages"));
        figure(title, x, y, series.collect())
    }

    /// The paper's horizontal axis.
    fn published(&self) -> Axis {
        Axis::linear(format!(
            "messages published, divided by N = {}",
            self.plan.window
        ))
    }
}

fn figure(title: String, x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    let panel = Panel {
        title: String::new(),
        x,
        y,
        series,
    };
    Figure {
        title,
        panels: vec![panel],
    }
}

/// A curve, of which `place` says which of how many it is.
fn line(name: &str, mut points: Vec<Point>, colour: usize, place: (usize, usize)) -> Series {
    thin_bars(&mut points, place.0, place.1);
    Series {
        name: name.to_owned(),
        points,
        mark: Mark::Line,
        colour,
    }
}

fn colour_of(distribution: Distribution) -> usize {
    match distribution {
        Distribution::Uniform => 3,
        Distribution::Normal => 4,
        Distribution::Poisson => 2,
    }
}

fn latency_ms(point: &SweepPoint) -> Option<Spread> {
    let Spread {
        median,
        least,
        most,
    } = point.latency_s()?;
    Some(Spread {
        median: median * 1e3,
        least: least * 1e3,
        most: most * 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::super::runs::{Round, SweepOf};
    use super::*;
    use airmail_experiments::flow::{Flight, Mean, Sweep};

    /// Each limiter with each number of topics, once, and a sweep.
    fn measured(plan: &Plan) -> Measured {
        let windows = (1..=40).map(|number| Window {
            seconds: f64::from(number),
            messages: 5_000 * number as u64,
            bound: 200,
            in_flight: 190.0,
            latency_s: 0.002,
            rate_per_s: 95_000.0,
            rule: "fixed".into(),
        });
        let flight = Flight {
            windows: windows.collect(),
            ..Flight::default()
        };
        let cases = plan.cases().into_iter().map(|case| {
            let mut round = Round::default();
            round.flown.flights = vec![flight.clone(), flight.clone()];
            Measurement {
                case,
                rounds: vec![round],
            }
        });
        let mut sweep = Sweep::default();
        for bound in [64, 128, 256] {
            let mean = Mean::of(&flight.windows).unwrap();
            sweep.enter(bound, [mean, mean]);
        }
        let sweeps = plan.topics.iter().map(|&topics| SweepOf {
            storage: Storage::Memory,
            place: Place::Publisher,
            topics,
            sweep: sweep.clone(),
        });
        Measured {
            sweeps: sweeps.collect(),
            cases: cases.collect(),
            ..Measured::default()
        }
    }

    fn names(panel: &Panel) -> Vec<&str> {
        panel.series.iter().map(|series| &*series.name).collect()
    }

    #[test]
    fn curves_are_by_topics_under_the_papers_numbers() {
        let plan = plan("--storages memory");
        let measured = measured(&plan);
        let figures = Figures {
            plan: &plan,
            measured: &measured,
        };
        let limiter = LimiterKind::LastThreePoints;
        let figure = figures.curves(Storage::Memory, limiter, Distribution::Normal);
        let figure = figure.unwrap();
        for (panel, number) in figure.panels.iter().zip(["A.1:", "A.3:", "A.5:"]) {
            assert!(panel.title.contains(number), "{}", panel.title);
            assert_eq!(names(panel), ["1 topic", "16 topics", "256 topics"]);
            assert!(panel.x.label.ends_with("N = 5000"));
            assert_eq!(panel.series[0].points.len(), 40);
        }
        assert_eq!(figure.panels[1].series[0].points[0].y, 2.0);
        assert!(
            figures
                .curves(Storage::Disk, limiter, Distribution::Normal)
                .is_none()
        );
    }

    #[test]
    fn limiters_are_compared_with_one_another_and_with_the_best() {
        let plan = plan("--storages memory --topics 16 --distributions poisson");
        let measured = measured(&plan);
        let figures = Figures {
            plan: &plan,
            measured: &measured,
        };
        let figure = figures.comparison(Storage::Memory, 16, Distribution::Poisson);
        let panels = figure.unwrap().panels;
        assert_eq!(names(&panels[0]), LimiterKind::ALL.map(LimiterKind::name));
        assert_eq!(names(&panels[3]).last(), Some(&"best fixed bound"));
        assert!((panels[3].series[0].points[0].y - 1.0).abs() < 1e-9);
        let relation = figures.relation(
            Storage::Memory,
            LimiterKind::Gradient,
            Distribution::Poisson,
            16,
        );
        assert_eq!(
            names(&relation.unwrap().panels[0]),
            ["gradient, each window", "fixed bounds"]
        );
        assert!(
            figures
                .delivery(Storage::Memory, LimiterKind::Gradient)
                .is_none()
        );
        assert!(
            figures
                .pilot(Storage::Memory, 16, Distribution::Poisson)
                .is_some()
        );
        assert!(
            figures
                .pilot(Storage::Disk, 16, Distribution::Poisson)
                .is_none()
        );
    }
}
