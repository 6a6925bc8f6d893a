//! A line of the table: the measures of one limiter on one system, over all seeds.

use super::{Contender, LATENCY_TARGET_S, Runs, Timetable};
use crate::course::{Course, Window};
use crate::knee::{BesideKnee, Held, Knee, bound_spread, median};
use crate::recovery::{Stretch, TOGETHER, is_at_knee};
use crate::subject::Subject;

/// Shares of the deliveries within the latencies that are told.
pub(super) const DELIVERY_SHARES: [f64; 2] = [0.5, 0.99];

/// A measure over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// The median.
    pub median: f64,
    /// The seed that came off worst.
    pub worst: f64,
}

impl Told {
    fn lowest(values: Vec<f64>) -> Told {
        let worst = values.iter().copied().fold(f64::INFINITY, f64::min);
        let median = median(values);
        Told { median, worst }
    }

    fn highest(values: Vec<f64>) -> Told {
        let worst = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let median = median(values);
        Told { median, worst }
    }
}

/// Windows of N messages until five together are at the knee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// The median; `None` if more than half of the seeds were never there.
    pub median: Option<f64>,
    /// The slowest seed; `None` if any was never there.
    pub worst: Option<usize>,
    /// Share of the seeds that were there at all.
    pub share: f64,
}

/// One line of the table. What has three values has them for full capacity, half of it, and full capacity
/// again.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The system.
    pub system: &'static str,
    /// The limiter. `fixed` stands at the knee of full capacity.
    pub contender: Contender,
    /// Throughput as a share of what a fixed bound at the knee had meanwhile.
    pub rate_share: [Told; 3],
    /// Latency as a multiple of what it had meanwhile.
    pub latency_ratio: [Told; 3],
    /// The bound's standard deviation over its mean, at full capacity after the search; of several limiters
    /// the mean of theirs.
    pub bound_spread: Told,
    /// Recovery after the start, after halving, after doubling.
    pub recovery: [Recovery; 3],
    /// The mean bound at full capacity, the median of the seeds.
    pub bound: f64,
    /// The knees.
    pub knees: [Knee; 3],
    /// W at full capacity in seconds, the median of the seeds.
    pub latency_s: f64,
    /// Half and 99 % of the messages came back to the client that had made them within so many seconds, at
    /// full capacity: waiting in the client, in line and in the storage. Medians of the seeds; `None` where
    /// the system has no clients.
    pub delivery_s: Option<[f64; 2]>,
    /// The largest share over the smallest of those who compete, at full capacity; 1 of one alone.
    pub imbalance: Told,
}

impl Row {
    /// W over the target that publishers are given ([`LATENCY_TARGET_S`]).
    #[must_use]
    pub fn latency_over_target(&self) -> f64 {
        self.latency_s / LATENCY_TARGET_S
    }
}

pub(super) fn row(
    subject: &Subject,
    contender: Contender,
    knees: [Knee; 3],
    runs: &[Runs<'_>],
) -> Row {
    let timetable = Timetable::of(subject);
    let beside = [0, 1, 2].map(|phase| {
        let (from, to) = timetable.judged_ns(phase);
        let each = runs.iter().map(|runs| compare(runs, phase, (from, to)));
        each.collect::<Vec<BesideKnee>>()
    });
    let (from, to) = timetable.judged_ns(0);
    let each = |of: &dyn Fn(&Course) -> f64| -> Vec<f64> {
        runs.iter().map(|runs| of(runs.limiter)).collect()
    };
    Row {
        system: subject.name(),
        contender,
        rate_share: [0, 1, 2].map(|phase: usize| {
            Told::lowest(beside[phase].iter().map(|one| one.rate_share).collect())
        }),
        latency_ratio: [0, 1, 2].map(|phase: usize| {
            Told::highest(beside[phase].iter().map(|one| one.latency_ratio).collect())
        }),
        bound_spread: Told::highest(each(&|course| spread(course.within(from, to)))),
        recovery: [0, 1, 2].map(|phase| recovery(runs, phase, timetable)),
        bound: median(each(&|course| mean_bound(course.within(from, to)))),
        knees,
        latency_s: median(each(&|course| course.between(from, to).latency_s)),
        delivery_s: delivery_s(runs),
        imbalance: Told::highest(each(&|course| imbalance(course.within(from, to)))),
    }
}

/// Compares what the limiter did in a stretch of time with the fixed bound at the knee.
pub(super) fn compare(runs: &Runs<'_>, phase: usize, (from, to): (u64, u64)) -> BesideKnee {
    let at_knee: Stretch = runs.fixed[phase].between(from, to);
    let knee = Knee {
        bound: 0,
        rate_per_s: at_knee.rate_per_s(),
        latency_s: at_knee.latency_s,
        peak_per_s: at_knee.rate_per_s(),
    };
    let done = runs.limiter.between(from, to);
    knee.compare(done.rate_per_s(), done.latency_s)
}

fn recovery(runs: &[Runs<'_>], phase: usize, timetable: Timetable) -> Recovery {
    let (begin, end) = timetable.phase_ns(phase);
    let windows_of = |runs: &Runs<'_>| {
        let windows = runs.limiter.within(begin, end);
        windows.windows(TOGETHER).position(|few| {
            let (Some(first), Some(last)) = (few.first(), few.last()) else {
                return false;
            };
            let since = first.until_ns - first.span_ns;
            is_at_knee(compare(runs, phase, (since, last.until_ns)))
        })
    };
    let mut each: Vec<Option<usize>> = runs.iter().map(windows_of).collect();
    each.sort_unstable_by_key(|windows| windows.unwrap_or(usize::MAX));
    let recovered: Vec<f64> = each
        .iter()
        .map(|windows| windows.map_or(f64::INFINITY, |windows| windows as f64))
        .collect();
    let share = each.iter().flatten().count() as f64 / each.len() as f64;
    let median = median(recovered);
    Recovery {
        median: median.is_finite().then_some(median),
        worst: each.last().copied().flatten(),
        share,
    }
}

fn mean_bound(windows: &[Window]) -> f64 {
    let sum: f64 = windows.iter().map(Window::bound).sum();
    sum / windows.len().max(1) as f64
}

fn limiters(windows: &[Window]) -> usize {
    windows.first().map_or(0, |window| window.parts.len())
}

/// The bound's deviation, each window by its time; 0 if there is no window.
fn spread(windows: &[Window]) -> f64 {
    let count = limiters(windows);
    let of_limiter = |limiter: usize| {
        let held = windows.iter().map(|window| Held {
            bound: window.parts[limiter].bound as f64,
            weight: window.span_ns as f64,
        });
        bound_spread(held).unwrap_or(0.0)
    };
    (0..count).map(of_limiter).sum::<f64>() / count.max(1) as f64
}

fn imbalance(windows: &[Window]) -> f64 {
    let of_limiter = |limiter: usize| -> u64 {
        let messages = windows.iter().map(|window| window.parts[limiter].messages);
        messages.sum()
    };
    let shares: Vec<u64> = (0..limiters(windows)).map(of_limiter).collect();
    let most = shares.iter().max().copied().unwrap_or(1);
    let least = shares.iter().min().copied().unwrap_or(1);
    most as f64 / least.max(1) as f64
}

fn delivery_s(runs: &[Runs<'_>]) -> Option<[f64; 2]> {
    let each: Option<Vec<[f64; 2]>> = runs.iter().map(|runs| runs.delivery_s).collect();
    let each = each?;
    Some([0, 1].map(|at: usize| median(each.iter().map(|shares| shares[at]).collect())))
}
