//! The limiters' table: each one's distance from the best fixed bound, and its recovery when the
//! capacity has changed.
//!
//! One run is 200 windows: 100 at full capacity, of which the first 50 are for finding the knee,
//! then 50 at half of it, then 50 at full capacity again. A limiter is compared with the fixed
//! bound with the most power for the capacity of the moment, found by trying them all.

use crate::closed_loop::{Phase, Window, run};
use crate::system::System;
use airmail_flow::{GateSettings, LimiterKind, LimiterSettings};

/// Windows at full capacity, at half of it, and at full capacity again.
pub const PHASES: [Phase; 3] = [
    Phase {
        windows: 100,
        capacity: 1.0,
    },
    Phase {
        windows: 50,
        capacity: 0.5,
    },
    Phase {
        windows: 50,
        capacity: 1.0,
    },
];
/// Windows that a limiter has to find the knee, at first and after a change.
pub const SEARCH_WINDOWS: [usize; 3] = [50, 20, 20];
/// It has recovered when so many windows together have [`RECOVERED_RATIO`] of the best power.
pub const RECOVERED_WINDOWS: usize = 5;
/// See [`RECOVERED_WINDOWS`].
pub const RECOVERED_RATIO: f64 = 0.9;

const SWEEP_SEEDS: u64 = 3;
const SWEEP_WINDOWS: usize = 30;
/// Windows left out, in which the system fills.
const SWEEP_FILLING: usize = 5;
const SWEEP_FACTOR: f64 = 1.1;
const SWEEP_BOUND_MAX: u64 = 2_000;
/// Bounds tried between the neighbours of the best one.
const SWEEP_FINE: u64 = 10;

/// Extent of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Runs of each limiter on each system. Default: 20.
    pub seeds: u64,
    /// N. Default: 4,000.
    pub window_messages: u64,
    /// The bound that all but `fixed` begin with. Default: 50.
    pub bound_initial: u64,
    /// Delta. Default: 5, a tenth of the first bound, as in the paper.
    pub delta: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seeds: 20,
            window_messages: 4_000,
            bound_initial: 50,
            delta: 5,
        }
    }
}

/// A fixed bound's throughput and latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The bound.
    pub bound: u64,
    /// Messages a second.
    pub rate_per_s: f64,
    /// Mean latency in seconds.
    pub latency_s: f64,
}

impl Point {
    /// Throughput over latency.
    #[must_use]
    pub fn power(&self) -> f64 {
        self.rate_per_s / self.latency_s
    }
}

/// Throughput and latency over the bound, at one capacity: the paper's figure 3.6.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Points by bound.
    pub points: Vec<Point>,
    /// The point with the most power.
    pub best: Point,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The system.
    pub system: &'static str,
    /// The limiter. `fixed` stands at the bound that is best at full capacity.
    pub limiter: LimiterKind,
    /// Power after the search, as a share of the best fixed bound's: the mean over the seeds.
    pub power_ratio: f64,
    /// The same for the worst seed.
    pub power_ratio_min: f64,
    /// The same at half the capacity, after 20 windows.
    pub power_ratio_halved: f64,
    /// The same at full capacity again, after 20 windows.
    pub power_ratio_doubled: f64,
    /// Windows until [`RECOVERED_RATIO`] of the best power, after the worse of halving and
    /// doubling: the mean over the seeds. A run that does not recover counts with the phase's 50.
    pub recovery_windows: f64,
    /// The same for the worst seed.
    pub recovery_windows_max: usize,
    /// The share of changes after which it recovered at all.
    pub recovered_share: f64,
    /// The bound after the search: the mean over the seeds.
    pub bound: f64,
    /// The best fixed bound.
    pub bound_best: u64,
}

/// A limiter's bound over the windows of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The limiter.
    pub limiter: LimiterKind,
    /// Mean over the seeds for each window, and the tenth and ninetieth percentile.
    pub bounds: Vec<[f64; 3]>,
    /// Power as a share of the best fixed bound's, for each window: the mean over the seeds.
    pub power_ratios: Vec<f64>,
}

/// All that was measured on a system.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The system.
    pub system: System,
    /// Curves at full capacity, and at half of it.
    pub curves: [Curve; 2],
    /// A line for each limiter.
    pub rows: Vec<Row>,
    /// A trace for each limiter.
    pub traces: Vec<Trace>,
}

/// Measures a system; calls `progress` after each run, [`runs`] times.
pub fn measure(system: System, plan: &Plan, progress: &dyn Fn()) -> Report {
    let curves = [1.0, 0.5].map(|capacity| sweep(system, plan, capacity));
    let best = [&curves[0], &curves[1], &curves[0]].map(|curve| curve.best);
    let mut rows = Vec::new();
    let mut traces = Vec::new();
    for limiter in LimiterKind::ALL {
        let initial = match limiter {
            LimiterKind::Fixed => best[0].bound,
            _ => plan.bound_initial,
        };
        let runs: Vec<Vec<Window>> = (0..plan.seeds.max(1))
            .map(|seed| {
                let windows = run(system, settings(plan, limiter, initial), &PHASES, seed);
                progress();
                windows
            })
            .collect();
        rows.push(row(system, limiter, best, &runs));
        traces.push(trace(limiter, best, &runs));
    }
    Report {
        system,
        curves,
        rows,
        traces,
    }
}

/// Number of runs that [`measure`] makes.
#[must_use]
pub fn runs(plan: &Plan) -> u64 {
    plan.seeds.max(1) * LimiterKind::ALL.len() as u64
}

fn settings(plan: &Plan, kind: LimiterKind, bound_initial: u64) -> GateSettings {
    GateSettings {
        window_messages: plan.window_messages,
        limiter: LimiterSettings {
            kind,
            bound_initial,
            delta: plan.delta,
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    }
}

/// Tries fixed bounds, a tenth apart and then closer around the best.
fn sweep(system: System, plan: &Plan, capacity: f64) -> Curve {
    let mut points: Vec<Point> = Vec::new();
    let mut bound = 1;
    while bound <= SWEEP_BOUND_MAX {
        points.push(point(system, plan, capacity, bound));
        bound = (bound + 1).max((bound as f64 * SWEEP_FACTOR) as u64);
        let power = best_of(&points).power();
        if points
            .last()
            .is_some_and(|last| last.power() < power / 4.0 && last.bound > 20)
        {
            break;
        }
    }
    let place = best_of(&points).bound;
    let at = points.partition_point(|point| point.bound < place);
    let first = points[at.saturating_sub(1)].bound;
    let last = points[(at + 1).min(points.len() - 1)].bound;
    for bound in (first..last).step_by(((last - first) / SWEEP_FINE).max(1) as usize) {
        if points.iter().all(|point| point.bound != bound) {
            points.push(point(system, plan, capacity, bound));
        }
    }
    points.sort_by_key(|point| point.bound);
    let best = best_of(&points);
    Curve { points, best }
}

fn best_of(points: &[Point]) -> Point {
    let better = |best: Point, next: &Point| {
        if next.power() > best.power() {
            *next
        } else {
            best
        }
    };
    points.iter().fold(points[0], better)
}

fn point(system: System, plan: &Plan, capacity: f64, bound: u64) -> Point {
    let phase = Phase {
        windows: SWEEP_WINDOWS,
        capacity,
    };
    let mut windows = Vec::new();
    for seed in 0..SWEEP_SEEDS {
        // Other seeds than the limiters', so that no run is compared with itself.
        let seed = u64::MAX - seed;
        let all = run(
            system,
            settings(plan, LimiterKind::Fixed, bound),
            &[phase],
            seed,
        );
        windows.extend_from_slice(&all[SWEEP_FILLING..]);
    }
    let together = Window::together(&windows);
    Point {
        bound,
        rate_per_s: together.rate_per_s(),
        latency_s: together.latency_s(),
    }
}

fn row(system: System, limiter: LimiterKind, best: [Point; 3], runs: &[Vec<Window>]) -> Row {
    let mut ratios: [Vec<f64>; 3] = Default::default();
    let mut recoveries = Vec::new();
    let mut recovered = 0.0;
    let mut bound = 0.0;
    for windows in runs {
        let mut worst = 0;
        let mut rest = windows.as_slice();
        for (index, phase) in PHASES.iter().enumerate() {
            let (now, later) = rest.split_at(phase.windows);
            rest = later;
            let after = &now[SEARCH_WINDOWS[index]..];
            ratios[index].push(Window::together(after).power() / best[index].power());
            if index == 0 {
                let sum: u64 = after.iter().map(|window| window.bound).sum();
                bound += sum as f64 / after.len() as f64;
                continue;
            }
            let recovery = recovery_windows(now, best[index].power());
            recovered += if recovery.is_some() { 0.5 } else { 0.0 };
            worst = worst.max(recovery.unwrap_or(phase.windows));
        }
        recoveries.push(worst);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let recovery: Vec<f64> = recoveries.iter().map(|windows| *windows as f64).collect();
    Row {
        system: system.name,
        limiter,
        power_ratio: mean(&ratios[0]),
        power_ratio_min: ratios[0].iter().copied().fold(f64::INFINITY, f64::min),
        power_ratio_halved: mean(&ratios[1]),
        power_ratio_doubled: mean(&ratios[2]),
        recovery_windows: mean(&recovery),
        recovery_windows_max: recoveries.iter().copied().max().unwrap_or(0),
        recovered_share: recovered / runs.len() as f64,
        bound: bound / runs.len() as f64,
        bound_best: best[0].bound,
    }
}

/// Number of windows until the next few together have enough power.
fn recovery_windows(windows: &[Window], best_power: f64) -> Option<usize> {
    windows
        .windows(RECOVERED_WINDOWS)
        .position(|few| Window::together(few).power() >= RECOVERED_RATIO * best_power)
}

fn trace(limiter: LimiterKind, best: [Point; 3], runs: &[Vec<Window>]) -> Trace {
    let phases = PHASES.iter().zip(best);
    let best = phases.flat_map(|(phase, best)| std::iter::repeat_n(best.power(), phase.windows));
    let mut trace = Trace {
        limiter,
        bounds: Vec::new(),
        power_ratios: Vec::new(),
    };
    for (index, best) in best.enumerate() {
        let now: Vec<Window> = runs.iter().map(|windows| windows[index]).collect();
        let ratios = now.iter().map(|window| window.power() / best);
        trace
            .power_ratios
            .push(ratios.sum::<f64>() / now.len() as f64);
        let mut bounds: Vec<u64> = now.iter().map(|window| window.bound).collect();
        bounds.sort_unstable();
        let mean = bounds.iter().sum::<u64>() as f64 / bounds.len() as f64;
        let at = |share: f64| bounds[((bounds.len() - 1) as f64 * share).round() as usize] as f64;
        trace.bounds.push([mean, at(0.1), at(0.9)]);
    }
    trace
}
