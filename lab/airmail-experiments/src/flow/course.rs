//! Course of a run: what had been acknowledged by when, and which bounds held meanwhile.
//!
//! One protocol for fixed bounds and for limiters, in publishers and in the pilot: throughput is the
//! difference of two counters over the time between them, latency the difference of the times that
//! messages took over the same messages, and nothing in between is left out. A mean of the rates of
//! windows is no throughput: windows smaller than a commit have rates that there never were.
//!
//! For looks at how a run goes it is cut into *periods* of at least [`PERIOD_S`] and [`PERIOD_BOUNDS`]
//! bounds of messages: the same for all, whatever windows a limiter decides by.

use super::{Counter, Flight, Window};
use airmail_queueing::knee::{Held, bound_spread};
use airmail_queueing::recovery::Stretch;
use serde::{Deserialize, Serialize};

/// Least length of a period, in seconds.
pub const PERIOD_S: f64 = 0.03;
/// Least number of messages of a period, in bounds.
pub const PERIOD_BOUNDS: f64 = 4.0;

/// Course of one limiter.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    counters: Vec<Counter>,
    /// Ends of the times in which bounds held, in seconds, each with its bound.
    held: Vec<(f64, u64)>,
}

/// A part of a run, long enough to be told from noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// When it ended, in seconds since the run began.
    pub seconds: f64,
    /// Mean bound over its time, of one limiter.
    pub bound: f64,
    /// Mean number in flight, of one limiter: λW.
    pub in_flight: f64,
    /// W, in seconds.
    pub latency_s: f64,
    /// λ of all limiters together, in messages a second.
    pub rate_per_s: f64,
}

impl Course {
    /// Course of a publisher with a limiter of its own. `None` if nothing was acknowledged.
    #[must_use]
    pub fn of_publisher(flight: &Flight) -> Option<Course> {
        let end = flight.counters.last().filter(|end| end.messages > 0.0)?;
        let mut held = held(&flight.windows);
        held.push((end.seconds, flight.bound));
        Some(Course {
            counters: flight.counters.clone(),
            held,
        })
    }

    /// Course of the node's limiter: its latencies and bounds, and what its clients counted. `None` if
    /// it decided nothing.
    #[must_use]
    pub fn of_pilot(windows: &[Window], flights: &[Flight]) -> Option<Course> {
        let last = windows.last()?;
        let ends = flights.iter().filter_map(|flight| flight.counters.last());
        let end_s = ends.map(|end| end.seconds).fold(0.0, f64::max);
        let acknowledged = |seconds: f64| -> f64 {
            let flights = flights.iter();
            let each = flights.map(|flight| Counter::at(&flight.counters, seconds).messages);
            each.sum()
        };
        let mut counter = Counter::default();
        let mut counters = Vec::with_capacity(windows.len() + 1);
        let mut count = |seconds: f64, latency_s: f64| {
            let messages = acknowledged(seconds);
            counter.message_seconds += (messages - counter.messages) * latency_s;
            counter.messages = messages;
            counter.seconds = seconds;
            counters.push(counter);
        };
        for window in windows {
            count(window.seconds, window.latency_s);
        }
        let mut held = held(windows);
        if end_s > last.seconds {
            count(end_s, last.latency_s);
            held.push((end_s, last.bound_after));
        }
        Some(Course { counters, held })
    }

    /// When the last message was acknowledged, in seconds since the run began.
    #[must_use]
    pub fn end_s(&self) -> f64 {
        self.counters.last().map_or(0.0, |end| end.seconds)
    }

    /// Messages acknowledged from one moment to another.
    #[must_use]
    pub fn stretch(&self, from_s: f64, to_s: f64) -> Stretch {
        let from = Counter::at(&self.counters, from_s);
        let to = Counter::at(&self.counters, to_s);
        let messages = to.messages - from.messages;
        Stretch {
            messages,
            span_s: to_s - from_s,
            latency_s: if messages > 0.0 {
                (to.message_seconds - from.message_seconds) / messages
            } else {
                0.0
            },
        }
    }

    /// The bounds that held from one moment to another, each with its time.
    fn held(&self, from_s: f64, to_s: f64) -> Vec<Held> {
        let first = self.held.partition_point(|(end_s, _)| *end_s <= from_s);
        let mut since_s = from_s;
        let mut held = Vec::new();
        for (end_s, bound) in &self.held[first..] {
            let until_s = end_s.min(to_s);
            held.push(Held {
                bound: *bound as f64,
                weight: until_s - since_s,
            });
            since_s = until_s;
            if *end_s >= to_s {
                break;
            }
        }
        held
    }

    /// Mean bound from one moment to another.
    #[must_use]
    pub fn bound(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let held = self.held(from_s, to_s);
        let time_s: f64 = held.iter().map(|held| held.weight).sum();
        let weighted: f64 = held.iter().map(|held| held.weight * held.bound).sum();
        (time_s > 0.0).then(|| weighted / time_s)
    }

    /// Standard deviation of the bound as a share of its mean, from one moment to another.
    #[must_use]
    pub fn bound_spread(&self, from_s: f64, to_s: f64) -> Option<f64> {
        bound_spread(self.held(from_s, to_s))
    }
}

/// When bounds ceased to hold; decisions may have been seen out of step by the length of an answer.
fn held(windows: &[Window]) -> Vec<(f64, u64)> {
    let ends = windows.iter().map(|window| (window.seconds, window.bound));
    ends.collect()
}

/// Messages that all limiters of a run acknowledged together from one moment to another.
#[must_use]
pub fn together(courses: &[Course], from_s: f64, to_s: f64) -> Stretch {
    let each = courses.iter().map(|course| course.stretch(from_s, to_s));
    let each: Vec<Stretch> = each.collect();
    Stretch {
        // They are beside one another, not one after another.
        span_s: to_s - from_s,
        ..Stretch::together(&each)
    }
}

/// Periods of all limiters of a run together, from one moment to another.
#[must_use]
pub fn periods(courses: &[Course], from_s: f64, to_s: f64) -> Vec<Period> {
    let mut periods = Vec::new();
    let limiters = courses.len().max(1) as f64;
    let (mut begun_s, mut steps) = (from_s, 0u32);
    loop {
        steps += 1;
        let ended_s = from_s + f64::from(steps) * PERIOD_S;
        if courses.is_empty() || ended_s > to_s {
            return periods;
        }
        let bounds = courses
            .iter()
            .filter_map(|course| course.bound(begun_s, ended_s));
        let bounds: f64 = bounds.sum();
        let stretch = together(courses, begun_s, ended_s);
        if stretch.messages < PERIOD_BOUNDS * bounds {
            continue;
        }
        periods.push(Period {
            seconds: ended_s,
            bound: bounds / limiters,
            in_flight: stretch.rate_per_s() * stretch.latency_s / limiters,
            latency_s: stretch.latency_s,
            rate_per_s: stretch.rate_per_s(),
        });
        begun_s = ended_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window that ended then.
    fn window(seconds: f64, bound: u64, bound_after: u64) -> Window {
        Window {
            number: 1,
            seconds,
            bound,
            bound_after,
            in_flight: bound as f64,
            latency_s: 0.01,
            rate_per_s: 7.0,
            rule: "fixed".into(),
        }
    }

    /// A flight of 2 s with this rate, 10 ms a message, and a bound that goes from 10 to 30 after 1 s.
    fn flight(rate_per_s: f64) -> Flight {
        let counters = [0.5, 1.0, 1.5, 2.0].map(|seconds| Counter {
            seconds,
            messages: seconds * rate_per_s,
            message_seconds: seconds * rate_per_s * 0.01,
        });
        Flight {
            windows: vec![window(0.5, 10, 10), window(1.0, 10, 30)],
            counters: counters.into(),
            bound: 30,
            ..Flight::default()
        }
    }

    #[test]
    fn throughput_and_latency_come_from_counters_and_not_from_windows() {
        let course = Course::of_publisher(&flight(1_000.0)).unwrap();
        let half = course.stretch(course.end_s() / 2.0, course.end_s());
        assert!((half.rate_per_s() - 1_000.0).abs() < 1e-9);
        assert!((half.latency_s - 0.01).abs() < 1e-12);
    }

    #[test]
    fn a_bound_counts_for_as_long_as_it_held() {
        let course = Course::of_publisher(&flight(1_000.0)).unwrap();
        assert_eq!(course.bound(0.0, 2.0), Some(20.0));
        assert_eq!(course.bound(1.2, 1.7), Some(30.0));
        assert!((course.bound_spread(0.0, 2.0).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(course.bound_spread(1.0, 2.0), Some(0.0));
    }

    #[test]
    fn a_pilots_course_is_its_latency_and_its_clients_counters() {
        let flights = [flight(1_000.0), flight(500.0)];
        let mut windows = [window(0.4, 100, 200), window(1.2, 200, 200)];
        windows[1].latency_s = 0.02;
        let course = Course::of_pilot(&windows, &flights).unwrap();
        let late = course.stretch(1.0, 2.0);
        assert!((late.rate_per_s() - 1_500.0).abs() < 1e-9);
        assert!((late.latency_s - 0.02).abs() < 1e-12);
        assert_eq!(course.bound(0.0, 0.8), Some(150.0));
        assert_eq!(Course::of_pilot(&[], &flights), None);
    }

    #[test]
    fn periods_have_30_ms_and_four_bounds_whichever_is_more() {
        let courses = [1_000.0, 500.0].map(|rate| Course::of_publisher(&flight(rate)).unwrap());
        let periods = periods(&courses, 0.0, 2.0);
        // Bounds of 10 each are 80 messages: 53 ms of 1,500/s, in steps of 30.
        assert!((periods[0].seconds - 0.06).abs() < 1e-9);
        assert!((periods[0].rate_per_s - 1_500.0).abs() < 1e-6);
        assert_eq!(periods[0].bound, 10.0);
        let last = periods.last().unwrap();
        let before = periods[periods.len() - 2];
        assert!((last.seconds - before.seconds - 0.18).abs() < 1e-9);
        assert!((last.in_flight - 7.5).abs() < 1e-6);
        assert!(super::periods(&[], 0.0, 2.0).is_empty());
    }

    #[test]
    fn who_acknowledged_nothing_has_no_course() {
        assert_eq!(Course::of_publisher(&Flight::default()), None);
    }
}
