//! The course of a limiter over a run, as the figures show it, for each window.
//!
//! Shares and multiples are medians over the seeds: where a machine stalls, a limiter and the fixed bound
//! beside it have done a message or two, and their ratio says nothing.

use super::{Contender, PHASES, Runs, Timetable, row::compare};
use crate::knee::{BesideKnee, median};

/// A limiter's way through a run, for each window of the length that it has at the largest throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The limiter.
    pub contender: Contender,
    /// Bound: mean over the seeds, and the tenth and ninetieth percentile.
    pub bounds: Vec<[f64; 3]>,
    /// Throughput as a share of what the fixed bound at the knee had meanwhile: median of the seeds.
    pub rate_shares: Vec<f64>,
    /// Latency as a multiple of what it had meanwhile: median of the seeds.
    pub latency_ratios: Vec<f64>,
}

pub(super) fn trace(contender: Contender, timetable: Timetable, runs: &[Runs<'_>]) -> Trace {
    let mut trace = Trace {
        contender,
        bounds: Vec::new(),
        rate_shares: Vec::new(),
        latency_ratios: Vec::new(),
    };
    let phases = PHASES.iter().enumerate();
    let windows =
        phases.flat_map(|(phase, (windows, _))| std::iter::repeat_n(phase, *windows as usize));
    let count = runs.len() as f64;
    for (window, phase) in windows.enumerate() {
        let from = window as u64 * timetable.window_ns;
        let to = from + timetable.window_ns;
        let beside: Vec<BesideKnee> = runs
            .iter()
            .map(|runs| compare(runs, phase, (from, to)))
            .collect();
        let of = |value: fn(&BesideKnee) -> f64| median(beside.iter().map(value).collect());
        trace.rate_shares.push(of(|one| one.rate_share));
        trace.latency_ratios.push(of(|one| one.latency_ratio));
        let mut bounds: Vec<f64> = runs.iter().map(|runs| runs.limiter.bound_at(to)).collect();
        bounds.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| bounds[((bounds.len() - 1) as f64 * share).round() as usize];
        let middle = bounds.iter().sum::<f64>() / count;
        trace.bounds.push([middle, at(0.1), at(0.9)]);
    }
    trace
}
