//! The figures of one limiter: each quantity over the messages published, and against the messages
//! in flight.

mod changed;
mod compared;

use super::case::{Case, Place, Setup, Storage, topics_text};
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

    /// A setup with as many publishers as figures show that have one number of them.
    pub(super) fn setup(
        &self,
        storage: Storage,
        place: Place,
        topics: u32,
        distribution: Distribution,
    ) -> Setup {
        Setup {
            storage,
            place,
            publishers: self.plan.publishers_shown(),
            topics,
            distribution,
        }
    }

    /// Messages in flight, latency and throughput of one limiter, for each number of topics.
    pub(super) fn curves(
        &self,
        storage: Storage,
        limiter: LimiterKind,
        distribution: Distribution,
    ) -> Option<Figure> {
        let cases = self.cases(|case| {
            let topics = case.setup.topics;
            let setup = self.setup(storage, Place::Publisher, topics, distribution);
            (case.setup, case.limiter) == (setup, limiter)
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
                let points = over_windows(&case.rounds, self.plan.window(), of);
                let colour = COLOURS[place % COLOURS.len()];
                line(
                    &topics_text(case.case.setup.topics),
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
        let setup = self.setup(storage, Place::Publisher, topics, distribution);
        let case = Case { setup, limiter };
        let found = self.cases(|other| *other == case);
        let rounds = &found.first()?.rounds;
        let sweep = self.measured.sweep(&setup);
        let publishers = f64::from(setup.publishers);
        let panel = |(name, unit, of): Quantity<Window>,
                     axis: fn(&'static str) -> Axis,
                     swept: &dyn Fn(&SweepPoint) -> Spread| {
            let mut series = vec![Series {
                name: format!("{limiter}, each window"),
                points: over_in_flight(rounds, of),
                mark: Mark::Dots,
                colour: limiter_colour(limiter),
            }];
            series.extend(sweep.map(|sweep| Series {
                name: "fixed bounds".to_owned(),
                points: over_bounds(&sweep.sweep, swept),
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
                panel(QUANTITIES[2], Axis::linear, &|point| {
                    scaled(point.rate_per_s, 1.0 / publishers)
                }),
                panel(QUANTITIES[1], Axis::log, &latency_ms),
            ],
        })
    }

    /// Delivery latency, 99th percentile, over topics, if there are several numbers of them.
    pub(super) fn delivery(&self, storage: Storage, limiter: LimiterKind) -> Option<Figure> {
        if self.plan.topics.len() < 2 {
            return None;
        }
        let series = self.plan.distributions.iter().map(|&distribution| {
            let cases = self.cases(|case| {
                let topics = case.setup.topics;
                let setup = self.setup(storage, Place::Publisher, topics, distribution);
                (case.setup, case.limiter) == (setup, limiter)
            });
            let points = cases.iter().filter_map(|case| {
                let p99_ms = Summary::of(case).delivery_p99_ms()?;
                Some(p99_ms.at(case.case.setup.topics.into()))
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
            self.plan.window()
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

fn latency_ms(point: &SweepPoint) -> Spread {
    scaled(point.latency_s, 1e3)
}

fn scaled(spread: Spread, factor: f64) -> Spread {
    Spread {
        median: spread.median * factor,
        least: spread.least * factor,
        most: spread.most * factor,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::plan::tests::plan;
    use super::super::runs::Round;
    use super::super::runs::tests::flight;
    use super::super::sweeps::SweepOf;
    use super::*;
    use airmail_experiments::flow::Sweep;
    use airmail_queueing::knee::Measurement as Swept;

    /// Every case of a plan once, and a sweep of each setup, with a knee at 128.
    pub(crate) fn measured(plan: &Plan) -> Measured {
        let mut sweep = Sweep::default();
        for (bound, rate_per_s) in [(64, 50_000.0), (128, 100_000.0), (256, 104_000.0)] {
            sweep.enter(Swept {
                bound,
                rate_per_s,
                latency_s: bound as f64 / rate_per_s,
            });
        }
        let sweeps = plan.swept_setups().into_iter().map(|setup| SweepOf {
            setup,
            sweep: sweep.clone(),
        });
        let cases = plan.cases().into_iter().map(|case| {
            let mut round = Round {
                beside: sweep.knee().ok(),
                ..Round::default()
            };
            round.flown.flights = vec![flight(200, 4.0, 50_000.0), flight(200, 4.0, 50_000.0)];
            if case.setup.place == Place::Pilot {
                round.flown.pilot = flight(400, 4.0, 100_000.0).windows;
            }
            let rounds = vec![round];
            Measurement { case, rounds }
        });
        Measured {
            sweeps: sweeps.collect(),
            cases: cases.collect(),
            ..Measured::default()
        }
    }

    /// Names of a panel's curves.
    pub(crate) fn names(panel: &Panel) -> Vec<&str> {
        panel.series.iter().map(|series| &*series.name).collect()
    }

    #[test]
    fn curves_are_by_topics_under_the_papers_numbers() {
        let plan = plan("--preset memory");
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
            assert!(panel.x.label.ends_with("N = 25000"));
            assert_eq!(panel.series[0].points.len(), 40);
        }
        assert_eq!(figure.panels[1].series[0].points[0].y, 4.0);
        let none = figures.curves(Storage::Disk, limiter, Distribution::Normal);
        assert!(none.is_none());
    }

    #[test]
    fn a_limiters_windows_stand_beside_the_fixed_bounds_of_one_publisher() {
        let plan = plan("--preset memory --topics 16 --distributions poisson");
        let measured = measured(&plan);
        let figures = Figures {
            plan: &plan,
            measured: &measured,
        };
        let (limiter, distribution) = (LimiterKind::Adaptive, Distribution::Poisson);
        let relation = figures.relation(Storage::Memory, limiter, distribution, 16);
        let panels = relation.unwrap().panels;
        assert_eq!(names(&panels[0]), ["adaptive, each window", "fixed bounds"]);
        assert_eq!(panels[0].series[1].points[0].y, 25_000.0);
        assert!(figures.delivery(Storage::Memory, limiter).is_none());
    }
}
