//! The optimum, and a limiter's distance from it: the sweep over fixed bounds, and the power of a
//! run's windows beside it.
//!
//! The best bound is the one with the most power, λ/W, of one publisher while all of them have the
//! same. Windows of a run on one machine are noisy, so a limiter is near the best when several
//! windows together are, as in the laboratory.

use super::{PilotWindow, Window};
use airmail_bench::Spread;

/// A limiter has reached the optimum when so many windows together have [`REACHED_SHARE`] of the best
/// power.
pub const REACHED_WINDOWS: usize = 5;
/// See [`REACHED_WINDOWS`].
pub const REACHED_SHARE: f64 = 0.9;
/// Share of the throughput that counts as all of it.
pub const NEARLY_ALL: f64 = 0.95;
/// Bounds in a row that add next to nothing, after which latency only grows.
const SPENT_BOUNDS: usize = 4;
/// Ratio of throughputs below which the difference counts as next to nothing.
const SPENT_SHARE: f64 = 1.03;

/// Means over many windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The bound, in messages.
    pub bound: f64,
    /// L, in messages.
    pub in_flight: f64,
    /// W, in seconds.
    pub latency_s: f64,
    /// λ, in messages a second.
    pub rate_per_s: f64,
}

impl Mean {
    /// Means over windows, each of which counts the same; `None` of no windows.
    #[must_use]
    pub fn of(windows: &[Window]) -> Option<Mean> {
        if windows.is_empty() {
            return None;
        }
        let count = windows.len() as f64;
        let mean = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>() / count;
        Some(Mean {
            bound: mean(|window| window.bound as f64),
            in_flight: mean(|window| window.in_flight),
            latency_s: mean(|window| window.latency_s),
            // Each has N messages, so what adds up is the time that they took.
            rate_per_s: 1.0 / mean(|window| 1.0 / window.rate_per_s),
        })
    }

    /// Means over the last third of a run's windows.
    #[must_use]
    pub fn of_end(windows: &[Window]) -> Option<Mean> {
        let from = windows.len() - windows.len().div_ceil(3);
        Mean::of(&windows[from..])
    }

    /// Means over looks at a publish gate, each of which counts the same; `None` of no looks.
    #[must_use]
    pub fn of_pilot(looks: &[PilotWindow]) -> Option<Mean> {
        let count = looks.len() as f64;
        let mean = |of: fn(&PilotWindow) -> f64| looks.iter().map(of).sum::<f64>() / count;
        (!looks.is_empty()).then(|| Mean {
            bound: mean(|look| look.bound),
            in_flight: mean(|look| look.in_flight),
            latency_s: mean(|look| look.latency_s),
            rate_per_s: mean(|look| look.rate_per_s),
        })
    }

    /// λ/W.
    #[must_use]
    pub fn power(&self) -> f64 {
        self.rate_per_s / self.latency_s
    }
}

/// Time that it took to come near the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Windows before those that were near it.
    pub windows: usize,
    /// Time until the first of those ended, in seconds.
    pub seconds: f64,
    /// Messages acknowledged until then.
    pub messages: u64,
}

/// When a run came near `power_best`, if it did.
#[must_use]
pub fn reached(windows: &[Window], power_best: f64) -> Option<Reached> {
    let near = |several: &[Window]| {
        Mean::of(several).is_some_and(|mean| mean.power() >= REACHED_SHARE * power_best)
    };
    let first = windows.windows(REACHED_WINDOWS).position(near)?;
    let window = windows.get(first)?;
    Some(Reached {
        windows: first,
        seconds: window.seconds,
        messages: window.messages,
    })
}

/// When a pilot, of which each window has `window` messages, came near `power_best`, if it did. It is
/// looked at between its windows: what it had done by then is told by its rates.
#[must_use]
pub fn reached_by_pilot(looks: &[PilotWindow], window: u64, power_best: f64) -> Option<Reached> {
    let near = |several: &[PilotWindow]| {
        Mean::of_pilot(several).is_some_and(|mean| mean.power() >= REACHED_SHARE * power_best)
    };
    let first = looks.windows(REACHED_WINDOWS).position(near)?;
    let mut since = 0.0;
    let done = looks[..=first].iter().map(|look| {
        let span = look.seconds - since;
        since = look.seconds;
        look.rate_per_s * span
    });
    let messages = done.sum::<f64>() as u64;
    Some(Reached {
        windows: (messages / window.max(1)) as usize,
        seconds: since,
        messages,
    })
}

/// Results of one fixed bound, each time that it was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// Messages that each publisher had in flight at most.
    pub bound: u64,
    /// Means of each publisher in each round.
    pub means: Vec<Mean>,
}

impl SweepPoint {
    /// λ of a publisher, in messages a second.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<Spread> {
        Spread::of(self.means.iter().map(|mean| mean.rate_per_s))
    }

    /// W, in seconds.
    #[must_use]
    pub fn latency_s(&self) -> Option<Spread> {
        Spread::of(self.means.iter().map(|mean| mean.latency_s))
    }

    /// λ/W of a publisher.
    #[must_use]
    pub fn power(&self) -> Option<Spread> {
        Spread::of(self.means.iter().map(Mean::power))
    }

    fn rate(&self) -> f64 {
        self.rate_per_s().map_or(0.0, |rate| rate.median)
    }
}

/// All bounds that were tried, from the lowest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Points by bound.
    pub points: Vec<SweepPoint>,
}

impl Sweep {
    /// Enters one more result of a bound.
    pub fn enter(&mut self, bound: u64, means: impl IntoIterator<Item = Mean>) {
        let place = self.points.partition_point(|point| point.bound < bound);
        if self
            .points
            .get(place)
            .is_none_or(|point| point.bound != bound)
        {
            let means = Vec::new();
            self.points.insert(place, SweepPoint { bound, means });
        }
        self.points[place].means.extend(means);
    }

    /// The bounds that were tried.
    #[must_use]
    pub fn bounds(&self) -> Vec<u64> {
        self.points.iter().map(|point| point.bound).collect()
    }

    /// The one with the most power.
    #[must_use]
    pub fn best(&self) -> Option<&SweepPoint> {
        let power = |point: &&SweepPoint| point.power().map_or(0.0, |power| power.median);
        let points = self.points.iter();
        points.max_by(|a, b| power(a).total_cmp(&power(b)))
    }

    /// The highest throughput of a publisher, in messages a second.
    #[must_use]
    pub fn peak_per_s(&self) -> f64 {
        self.points.iter().map(SweepPoint::rate).fold(0.0, f64::max)
    }

    /// The lowest bound that has nearly all of the throughput ([`NEARLY_ALL`]).
    #[must_use]
    pub fn nearly_all(&self) -> Option<&SweepPoint> {
        let enough = self.peak_per_s() * NEARLY_ALL;
        self.points.iter().find(|point| point.rate() >= enough)
    }

    /// Whether from here on only latency grows: the last bounds have added next to nothing to the
    /// throughput of those below.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        let Some(before) = self.points.len().checked_sub(SPENT_BOUNDS) else {
            return false;
        };
        let peak = |points: &[SweepPoint]| points.iter().map(SweepPoint::rate).fold(0.0, f64::max);
        let (low, high) = self.points.split_at(before);
        !low.is_empty() && peak(high) < peak(low) * SPENT_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system with this much latency and at most this throughput.
    fn mean(bound: u64) -> Mean {
        let (base_s, peak_per_s) = (0.001, 100_000.0);
        let latency_s = f64::max(base_s, bound as f64 / peak_per_s);
        Mean {
            bound: bound as f64,
            in_flight: bound as f64,
            latency_s,
            rate_per_s: bound as f64 / latency_s,
        }
    }

    fn window(number: usize, power: f64) -> Window {
        Window {
            seconds: number as f64,
            messages: number as u64 * 1000,
            bound: 10,
            in_flight: 10.0,
            latency_s: 0.01,
            rate_per_s: power * 0.01,
            rule: "fixed".into(),
        }
    }

    #[test]
    fn a_sweep_finds_the_knee_and_ends_where_latency_alone_grows() {
        let mut sweep = Sweep::default();
        let mut bound = 1;
        while !sweep.is_spent() {
            sweep.enter(bound, [mean(bound)]);
            bound *= 2;
        }
        assert_eq!(sweep.points.last().unwrap().bound, 2048);
        assert_eq!(sweep.best().unwrap().bound, 128);
        assert_eq!(sweep.nearly_all().unwrap().bound, 128);
        sweep.enter(96, [mean(96), mean(96)]);
        assert_eq!(sweep.best().unwrap().bound, 96);
        assert!(sweep.points.is_sorted_by_key(|point| point.bound));
        assert_eq!(sweep.nearly_all().unwrap().means.len(), 2);
    }

    #[test]
    fn nothing_measured_has_no_best() {
        let sweep = Sweep::default();
        assert_eq!((sweep.best(), sweep.nearly_all()), (None, None));
        assert!(!sweep.is_spent());
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of_end(&[]), None);
    }

    #[test]
    fn the_optimum_is_reached_when_five_windows_together_are_near_it() {
        let powers = [10.0, 95.0, 10.0, 50.0, 95.0, 80.0, 99.0, 95.0, 90.0, 20.0];
        let windows = powers.into_iter().enumerate();
        let windows: Vec<Window> = windows.map(|(at, power)| window(at, power)).collect();
        let found = reached(&windows, 100.0).unwrap();
        assert_eq!((found.windows, found.messages), (4, 4000));
        assert_eq!(reached(&windows, 200.0), None);
        assert_eq!(reached(&windows[..4], 1.0), None);
    }

    #[test]
    fn a_pilot_has_reached_it_when_five_looks_together_are_near_it() {
        let looks = (1..=10).map(|number| PilotWindow {
            seconds: f64::from(number) * 0.1,
            bound: 100.0,
            in_flight: 100.0,
            latency_s: if number < 4 { 0.1 } else { 0.01 },
            rate_per_s: 10_000.0,
        });
        let looks: Vec<PilotWindow> = looks.collect();
        let found = reached_by_pilot(&looks, 500, 1_000_000.0).unwrap();
        assert_eq!((found.windows, found.messages), (8, 4000));
        assert!((found.seconds - 0.4).abs() < 1e-9);
        assert_eq!(reached_by_pilot(&looks, 500, 2_000_000.0), None);
        assert_eq!(Mean::of_pilot(&looks[..1]).unwrap().latency_s, 0.1);
    }

    #[test]
    fn the_end_is_the_last_third_and_rates_count_by_time() {
        let rates = [1.0, 1.0, 1.0, 1.0, 100.0, 300.0];
        let windows = rates.into_iter().enumerate();
        let windows: Vec<Window> = windows.map(|(at, rate)| window(at, rate * 100.0)).collect();
        let end = Mean::of_end(&windows).unwrap();
        assert!((end.rate_per_s - 150.0).abs() < 1e-9);
        assert!(Mean::of_end(&windows[..1]).is_some());
    }
}
