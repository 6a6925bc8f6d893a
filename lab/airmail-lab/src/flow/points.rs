//! Points of the curves: the median of all publishers and rounds at the same window, and from the
//! least to the greatest of them.

use super::runs::Round;
use airmail_bench::Spread;
use airmail_experiments::flow::{
    Flight, Mean, PilotWindow, REACHED_WINDOWS, Sweep, SweepPoint, Window,
};
use airmail_experiments::results::Plotted as _;
use airmail_plot::Point;

/// Error bars of a curve, at most: more would hide it.
const BARS: usize = 16;
/// Points of a pilot's curve.
const PILOT_POINTS: f64 = 60.0;

/// A quantity at each window, over acknowledged messages divided by N, which is `window`.
pub(super) fn over_windows(
    rounds: &[Round],
    window: u64,
    of: impl Fn(&Window) -> f64,
) -> Vec<Point> {
    over_published(rounds, window, |windows| Some(of(windows.last()?)))
}

/// Power as a share of the best: of each window and the four before it, as it counts for who is near.
pub(super) fn power_over_windows(rounds: &[Round], window: u64, best: f64) -> Vec<Point> {
    over_published(rounds, window, |windows| {
        let from = windows.len().checked_sub(REACHED_WINDOWS)?;
        Some(Mean::of(&windows[from..])?.power() / best)
    })
}

/// Points over the published messages, from the windows up to each one.
fn over_published(
    rounds: &[Round],
    window: u64,
    of: impl Fn(&[Window]) -> Option<f64>,
) -> Vec<Point> {
    let flights: Vec<&Flight> = rounds
        .iter()
        .flat_map(|round| &round.flown.flights)
        .collect();
    let longest = flights.iter().map(|flight| flight.windows.len()).max();
    let point = |end: usize| {
        let windows = flights
            .iter()
            .filter_map(|flight| flight.windows.get(..end));
        let windows: Vec<&[Window]> = windows.collect();
        // Where most have ended, what is left is not the same quantity any more.
        if windows.len() * 2 < flights.len() {
            return None;
        }
        let last = windows.iter().filter_map(|windows| windows.last());
        let messages = Spread::of(last.map(|window| window.messages as f64))?;
        let values = Spread::of(windows.iter().filter_map(|windows| of(windows)))?;
        Some(values.at(messages.median / window.max(1) as f64))
    };
    // When those have ended that were farthest, what is left is behind them.
    let mut furthest = 0.0;
    let ahead = |point: &Point| {
        let ahead = point.x > furthest;
        furthest = point.x.max(furthest);
        ahead
    };
    let points = (1..=longest.unwrap_or(0)).filter_map(point);
    points.filter(ahead).collect()
}

/// A quantity of the pilot over seconds.
pub(super) fn over_seconds(rounds: &[Round], of: impl Fn(&PilotWindow) -> f64) -> Vec<Point> {
    let seen = || rounds.iter().flat_map(|round| &round.pilot);
    let end = seen().map(|window| window.seconds).fold(0.0, f64::max);
    let step = end / PILOT_POINTS;
    let point = |place: u32| {
        let from = f64::from(place) * step;
        let within = seen().filter(|window| (from..from + step).contains(&window.seconds));
        Some(Spread::of(within.map(&of))?.at(from + step / 2.0))
    };
    (0..=PILOT_POINTS as u32).filter_map(point).collect()
}

/// Every window of every publisher and round: a quantity over messages in flight.
pub(super) fn over_in_flight(rounds: &[Round], of: impl Fn(&Window) -> f64) -> Vec<Point> {
    let flights = rounds.iter().flat_map(|round| &round.flown.flights);
    let windows = flights.flat_map(|flight| &flight.windows);
    windows
        .map(|window| Point::new(window.in_flight, of(window)))
        .collect()
}

/// A quantity of a sweep over the bound.
pub(super) fn over_bounds(sweep: &Sweep, of: impl Fn(&SweepPoint) -> Option<Spread>) -> Vec<Point> {
    let points = sweep.points.iter();
    points
        .filter_map(|point| Some(of(point)?.at(point.bound as f64)))
        .collect()
}

/// Leaves few enough error bars, and those of several curves beside one another: of the curve with
/// this place among so many.
pub(super) fn thin_bars(points: &mut [Point], place: usize, curves: usize) {
    let step = points.len().div_ceil(BARS).max(1);
    let first = step * place / curves.max(1);
    for (at, point) in points.iter_mut().enumerate() {
        if at % step != first {
            point.bar = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(rates: &[f64]) -> Round {
        let windows = rates.iter().zip(1u32..).map(|(rate, number)| Window {
            seconds: f64::from(number),
            messages: u64::from(number) * 100,
            bound: 10,
            in_flight: 10.0,
            latency_s: 0.01,
            rate_per_s: *rate,
            rule: "fixed".into(),
        });
        let mut round = Round::default();
        round.flown.flights.push(Flight {
            windows: windows.collect(),
            ..Flight::default()
        });
        round
    }

    #[test]
    fn a_point_is_the_median_of_all_runs_with_their_ends_as_its_bar() {
        let rounds = [round(&[1.0, 5.0]), round(&[2.0, 6.0]), round(&[9.0, 7.0])];
        let points = over_windows(&rounds, 100, |window| window.rate_per_s);
        let expected = [
            Point::new(1.0, 2.0).with_bar(1.0, 9.0),
            Point::new(2.0, 6.0).with_bar(5.0, 7.0),
        ];
        assert_eq!(points, expected);
    }

    #[test]
    fn a_curve_ends_where_most_runs_do() {
        let rounds = [round(&[1.0]), round(&[2.0]), round(&[9.0, 7.0])];
        assert_eq!(over_windows(&rounds, 100, Window::power).len(), 1);
        assert_eq!(over_in_flight(&rounds, Window::power).len(), 4);
        assert!(over_windows(&[], 100, Window::power).is_empty());
    }

    #[test]
    fn a_curve_never_turns_back() {
        let mut far = round(&[1.0, 1.0]);
        for window in &mut far.flown.flights[0].windows {
            window.messages *= 10;
        }
        let points = over_windows(&[far, round(&[2.0, 2.0, 2.0])], 100, Window::power);
        let places: Vec<f64> = points.iter().map(|point| point.x).collect();
        assert_eq!(places, [5.5, 11.0]);
    }

    #[test]
    fn power_is_of_five_windows_together() {
        let rates = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let points = power_over_windows(&[round(&rates)], 100, 100.0);
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].x, points[1].x), (5.0, 6.0));
        let mean = 5.0 / (1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0 + 1.0 / 5.0);
        assert!((points[0].y - mean).abs() < 1e-9);
    }

    #[test]
    fn bars_are_few_and_those_of_two_curves_apart() {
        let bars = |place| {
            let mut points = vec![Point::new(0.0, 0.0).with_bar(0.0, 1.0); 320];
            thin_bars(&mut points, place, 2);
            let with = points
                .iter()
                .enumerate()
                .filter(|(_, point)| point.bar.is_some());
            with.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let (one, other) = (bars(0), bars(1));
        assert_eq!((one.len(), other.len()), (BARS, BARS));
        assert!(one.iter().all(|at| !other.contains(at)));
    }

    #[test]
    fn looks_at_the_pilot_at_the_same_time_are_one_point() {
        let window = |seconds, bound| PilotWindow {
            seconds,
            bound,
            in_flight: 1.0,
            latency_s: 1.0,
            rate_per_s: 1.0,
        };
        let rounds = [[0.1, 6.0], [0.1, 6.0]].map(|times| Round {
            pilot: times.map(|seconds| window(seconds, seconds)).into(),
            ..Round::default()
        });
        let points = over_seconds(&rounds, |window| window.bound);
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].y, points[1].y), (0.1, 6.0));
    }
}
