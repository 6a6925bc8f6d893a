//! Outcome of a run: what it is judged by, from counters over a part of its time.
//!
//! Of a whole run that is the last half: until then a limiter may look for its bound, and whoever has a
//! fixed one is measured by the same protocol.

use super::case::Place;
use super::runs::Round;
use airmail_experiments::flow::{Course, Period, periods, together};
use airmail_queueing::knee::{BesideKnee, Knee};
use airmail_queueing::recovery::{Stretch, windows_to_recover};

/// Result of a part of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Mean bound of a limiter, in messages.
    pub(super) bound: f64,
    /// Mean number in flight of a limiter, in messages: λW.
    pub(super) in_flight: f64,
    /// W, in seconds.
    pub(super) latency_s: f64,
    /// λ of all limiters together, in messages a second.
    pub(super) rate_per_s: f64,
    /// Standard deviation of each limiter's bound as a share of its mean.
    pub(super) bound_spreads: Vec<f64>,
    /// Throughput of each publisher with a limiter of its own, in messages a second.
    pub(super) rates_per_s: Vec<f64>,
}

/// Courses of a round's limiters.
pub(super) fn courses(place: Place, round: &Round) -> Vec<Course> {
    let flights = &round.flown.flights;
    match place {
        Place::Publisher => flights.iter().filter_map(Course::of_publisher).collect(),
        Place::Pilot => {
            let course = Course::of_pilot(&round.flown.pilot, flights);
            course.into_iter().collect()
        }
    }
}

/// When the first of them ended, in seconds since the run began.
fn end_s(courses: &[Course]) -> f64 {
    let ends = courses.iter().map(Course::end_s);
    ends.reduce(f64::min).unwrap_or(0.0)
}

impl Outcome {
    /// Outcome of a run, by its last half; `None` of one in which nothing was acknowledged or decided.
    pub(super) fn of_run(courses: &[Course]) -> Option<Outcome> {
        let end_s = end_s(courses);
        Outcome::of_part(courses, end_s / 2.0, end_s)
    }

    /// Outcome of a part of a run; `None` if nothing was acknowledged in it.
    pub(super) fn of_part(courses: &[Course], from_s: f64, to_s: f64) -> Option<Outcome> {
        let limiters = courses.len() as f64;
        let stretch = together(courses, from_s, to_s);
        if stretch.messages <= 0.0 || stretch.span_s <= 0.0 {
            return None;
        }
        let bounds = courses
            .iter()
            .filter_map(|course| course.bound(from_s, to_s));
        let spreads = courses
            .iter()
            .filter_map(|course| course.bound_spread(from_s, to_s));
        let rates = courses
            .iter()
            .map(|course| course.stretch(from_s, to_s).rate_per_s());
        Some(Outcome {
            bound: bounds.sum::<f64>() / limiters,
            in_flight: stretch.rate_per_s() * stretch.latency_s / limiters,
            latency_s: stretch.latency_s,
            rate_per_s: stretch.rate_per_s(),
            bound_spreads: spreads.collect(),
            rates_per_s: rates.collect(),
        })
    }

    /// This outcome of a fixed bound as the knee that limiters of the same round are held against.
    pub(super) fn as_knee(&self, bound: u64, peak_per_s: f64) -> Knee {
        Knee {
            bound,
            rate_per_s: self.rate_per_s,
            latency_s: self.latency_s,
            peak_per_s,
        }
    }

    /// Throughput and latency beside a knee's.
    pub(super) fn beside(&self, knee: &Knee) -> BesideKnee {
        knee.compare(self.rate_per_s, self.latency_s)
    }

    /// Throughput of the publisher that has most over that of the one that has least; `None` of one alone.
    pub(super) fn unevenness(&self) -> Option<f64> {
        let rates = || self.rates_per_s.iter().copied();
        let (least, most) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
        (self.rates_per_s.len() > 1 && least > 0.0).then(|| most / least)
    }
}

/// Periods of a run from a moment on, until another or its end.
pub(super) fn periods_of(courses: &[Course], from_s: f64, to_s: f64) -> Vec<Period> {
    periods(courses, from_s, to_s.min(end_s(courses)))
}

/// Periods from a moment on until a run is at the knee, and the time that they took, in seconds; `None` if
/// it never was.
pub(super) fn recovery(periods: &[Period], from_s: f64, knee: &Knee) -> Option<(usize, f64)> {
    let mut since_s = from_s;
    let stretch = |period: &Period| {
        let span_s = period.seconds - since_s;
        since_s = period.seconds;
        Stretch {
            messages: period.rate_per_s * span_s,
            span_s,
            latency_s: period.latency_s,
        }
    };
    let stretches: Vec<Stretch> = periods.iter().map(stretch).collect();
    let windows = windows_to_recover(&stretches, knee)?;
    let before = windows.checked_sub(1).and_then(|last| periods.get(last));
    Some((
        windows,
        before.map_or(0.0, |period| period.seconds - from_s),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::flight;
    use super::*;

    fn outcome(rates_per_s: &[f64]) -> Outcome {
        let mut round = Round::default();
        let flights = rates_per_s.iter().map(|rate| flight(10, 4.0, *rate));
        round.flown.flights = flights.collect();
        Outcome::of_run(&courses(Place::Publisher, &round)).unwrap()
    }

    #[test]
    fn throughputs_add_up_and_bounds_do_not() {
        let outcome = outcome(&[1_000.0, 3_000.0]);
        assert!((outcome.rate_per_s - 4_000.0).abs() < 1e-6);
        assert!((outcome.bound - 10.0).abs() < 1e-9);
        assert!((outcome.in_flight - 10.0).abs() < 1e-6);
        assert!((outcome.unevenness().unwrap() - 3.0).abs() < 1e-9);
        assert_eq!(outcome.bound_spreads.len(), 2);
        assert!(outcome.bound_spreads.iter().all(|spread| *spread < 1e-9));
    }

    #[test]
    fn one_publisher_has_nobody_to_share_with() {
        assert_eq!(outcome(&[1_000.0]).unevenness(), None);
    }

    #[test]
    fn a_run_has_recovered_when_five_periods_together_are_at_the_knee() {
        let knee = outcome(&[1_000.0]).as_knee(10, 1_100.0);
        let period = |number: u32, rate_per_s| Period {
            seconds: 1.0 + f64::from(number) * 0.03,
            bound: 10.0,
            in_flight: 10.0,
            latency_s: 0.01,
            rate_per_s,
        };
        let slow_then_good =
            (1..=9).map(|number| period(number, if number < 4 { 1.0 } else { 1e3 }));
        let periods: Vec<Period> = slow_then_good.collect();
        let (windows, seconds) = recovery(&periods, 1.0, &knee).unwrap();
        assert_eq!(windows, 3);
        assert!((seconds - 0.09).abs() < 1e-9);
        assert_eq!(recovery(&periods[..6], 1.0, &knee), None);
    }

    #[test]
    fn nothing_acknowledged_has_no_outcome() {
        assert_eq!(Outcome::of_run(&[]), None);
    }
}
