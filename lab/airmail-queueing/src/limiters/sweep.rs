//! The sweep over fixed bounds, on a ladder of √2, that gives the curves of throughput, latency and power,
//! and the knee.
//!
//! It ends where a knee beyond cannot be: where latency is beyond the budget, or where bounds eight times as
//! high as another have gained next to nothing.

use super::Contender;
use crate::course::Phase;
use crate::knee::{Knee, KneeError, KneeRule, Measurement, knee, median};
use crate::subject::Subject;
use airmail_flow::{GateSettings, LimiterKind};

const RUNG: f64 = std::f64::consts::SQRT_2;
const BOUND_MAX: f64 = 200_000.0;
/// Runs of each bound, and windows of each run: more where there is noise.
const SERVERS_RUNS: (u64, u64) = (3, 30);
/// See [`SERVERS_RUNS`].
const NODE_RUNS: (u64, u64) = (5, 100);
/// Windows left out, in which the system fills.
const FILLING: u64 = 5;
/// Rungs that reach from a bound to the one that is eight times as high.
const SPENT_RUNGS: usize = 6;
/// Ratio of throughputs below which the difference counts as next to nothing.
const SPENT_RATIO: f64 = 1.05;

/// A fixed bound's throughput and latency, medians over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The bound.
    pub bound: u64,
    /// Messages a second, of all clients together.
    pub rate_per_s: f64,
    /// Mean latency in seconds.
    pub latency_s: f64,
}

impl Point {
    /// Throughput over latency, in messages per square second; a latency of nothing counts as what can be told.
    #[must_use]
    pub fn power(&self) -> f64 {
        self.rate_per_s / self.latency_s.max(Knee::LATENCY_RESOLUTION_S)
    }
}

/// Throughput and latency over the bound, at one capacity: the paper's figure 3.6.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Points by bound.
    pub points: Vec<Point>,
    /// The knee.
    pub knee: Knee,
}

/// Settings of a fixed bound, which is recorded more finely than a limiter.
pub(super) fn fixed(subject: &Subject, bound: u64) -> GateSettings {
    let contender = Contender {
        kind: LimiterKind::Fixed,
        latency_floor_ms: 0,
    };
    GateSettings {
        window_messages: subject.window_messages() / super::FINER,
        ..contender.settings(subject, bound)
    }
}

pub(super) fn sweep(subject: &Subject, capacity: f64) -> Result<Curve, KneeError> {
    let mut measured: Vec<Measurement> = Vec::new();
    let mut points: Vec<Point> = Vec::new();
    let mut rung = subject.bound_least() as f64;
    while rung <= BOUND_MAX && !is_spent(&points) {
        let bound = rung.round() as u64;
        rung *= RUNG;
        if points.last().is_some_and(|last| last.bound == bound) {
            continue;
        }
        let runs = runs(subject, capacity, bound);
        points.push(Point {
            bound,
            rate_per_s: median(runs.iter().map(|run| run.rate_per_s).collect()),
            latency_s: median(runs.iter().map(|run| run.latency_s).collect()),
        });
        measured.extend(runs);
    }
    let knee = knee(&measured, &KneeRule::DEFAULT)?;
    Ok(Curve { points, knee })
}

fn runs(subject: &Subject, capacity: f64, bound: u64) -> Vec<Measurement> {
    let window_ns = subject.window_ns();
    let (seeds, windows) = match subject {
        Subject::Servers(_) => SERVERS_RUNS,
        Subject::Node(_) => NODE_RUNS,
    };
    let phase = Phase {
        span_ns: windows * window_ns,
        capacity,
    };
    let run = |seed| {
        // Other seeds than the limiters', so that no run is compared with itself.
        let course = subject.run(fixed(subject, bound), &[phase], u64::MAX - seed);
        let done = course.between(FILLING * window_ns, phase.span_ns);
        Measurement {
            bound,
            rate_per_s: done.rate_per_s(),
            latency_s: done.latency_s,
        }
    };
    (0..seeds).map(run).collect()
}

fn is_spent(points: &[Point]) -> bool {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return false;
    };
    if last.latency_s > KneeRule::DEFAULT.budget_s(first.latency_s) {
        return true;
    }
    let Some(before) = points.len().checked_sub(SPENT_RUNGS) else {
        return false;
    };
    let (low, high) = points.split_at(before);
    let peak = |points: &[Point]| {
        let rates = points.iter().map(|point| point.rate_per_s);
        rates.fold(0.0, f64::max)
    };
    !low.is_empty() && peak(high) < SPENT_RATIO * peak(low)
}
