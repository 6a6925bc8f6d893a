//! Points of the curves: the median of all publishers and rounds at the same window, and from the
//! least to the greatest of them.

use super::runs::Round;
use airmail_bench::Spread;
use airmail_experiments::flow::{Flight, Period, Sweep, SweepPoint, Window};
use airmail_experiments::results::Plotted as _;
use airmail_plot::Point;

/// Error bars of a curve, at most: more would hide it.
const BARS: usize = 16;
/// Points of a curve over time, at most.
const POINTS: f64 = 80.0;

/// A quantity at each window, over acknowledged messages divided by N, which is `window`: the paper's
/// axes.
pub(super) fn over_windows(
    rounds: &[Round],
    window: u64,
    of: impl Fn(&Window) -> f64,
) -> Vec<Point> {
    let flights: Vec<&Flight> = rounds
        .iter()
        .flat_map(|round| &round.flown.flights)
        .collect();
    let longest = flights.iter().map(|flight| flight.windows.len()).max();
    let point = |place: usize| {
        let there = flights.iter().filter_map(|flight| {
            let counter = flight.counters.get(place)?;
            Some((flight.windows.get(place)?, counter.messages))
        });
        let there: Vec<(&Window, f64)> = there.collect();
        // Where most have ended, what is left is not the same quantity any more.
        if there.len() * 2 < flights.len() {
            return None;
        }
        let messages = Spread::of(there.iter().map(|(_, messages)| *messages))?;
        let values = Spread::of(there.iter().map(|(window, _)| of(window)))?;
        Some(values.at(messages.median / window.max(1) as f64))
    };
    // When those have ended that were farthest, what is left is behind them.
    let mut furthest = 0.0;
    let ahead = |point: &Point| {
        let ahead = point.x > furthest;
        furthest = point.x.max(furthest);
        ahead
    };
    let points = (0..longest.unwrap_or(0)).filter_map(point);
    points.filter(ahead).collect()
}

/// A quantity over seconds, of the periods of several runs.
pub(super) fn over_seconds(runs: &[Vec<Period>], of: impl Fn(&Period) -> f64) -> Vec<Point> {
    let seen = || runs.iter().flatten();
    let end = seen().map(|period| period.seconds).fold(0.0, f64::max);
    let step = end / POINTS;
    let point = |place: u32| {
        let from = f64::from(place) * step;
        let within = seen().filter(|period| (from..from + step).contains(&period.seconds));
        Some(Spread::of(within.map(&of))?.at(from + step / 2.0))
    };
    (0..=POINTS as u32).filter_map(point).collect()
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
pub(super) fn over_bounds(sweep: &Sweep, of: impl Fn(&SweepPoint) -> Spread) -> Vec<Point> {
    let points = sweep.points().into_iter();
    points
        .map(|point| of(&point).at(point.bound as f64))
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
    use super::super::runs::tests::flight;
    use super::*;

    /// A run of one publisher with a window for each of these rates, 100 messages after another.
    fn round(rates: &[f64]) -> Round {
        let mut flight = flight(10, rates.len() as f64 / 10.0, 1_000.0);
        for (window, rate) in flight.windows.iter_mut().zip(rates) {
            window.rate_per_s = *rate;
        }
        let mut round = Round::default();
        round.flown.flights.push(flight);
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
        let rate = |window: &Window| window.rate_per_s;
        assert_eq!(over_windows(&rounds, 100, rate).len(), 1);
        assert_eq!(over_in_flight(&rounds, rate).len(), 4);
        assert!(over_windows(&[], 100, rate).is_empty());
    }

    #[test]
    fn a_curve_never_turns_back() {
        let mut far = round(&[1.0, 1.0]);
        for counter in &mut far.flown.flights[0].counters {
            counter.messages *= 10.0;
        }
        let both = [far, round(&[2.0, 2.0, 2.0])];
        let points = over_windows(&both, 100, |window| window.rate_per_s);
        let places: Vec<f64> = points.iter().map(|point| point.x).collect();
        assert_eq!(places, [5.5, 11.0]);
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
    fn periods_at_the_same_time_are_one_point() {
        let period = |seconds| Period {
            seconds,
            bound: seconds,
            in_flight: 1.0,
            latency_s: 1.0,
            rate_per_s: 1.0,
        };
        let runs = [[0.1, 6.0], [0.1, 6.0]].map(|times| times.map(period).to_vec());
        let points = over_seconds(&runs, |period| period.bound);
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].y, points[1].y), (0.1, 6.0));
    }
}
