//! Repetitions of one and the same thing, as tables, figures and rows tell them.

use super::args::{ModesArgs, Series};
use super::mode::Mode;
use super::publishing::Run;
use super::{Case, Found, verdict};
use crate::hold::Throttled;
use crate::rounds::NodeUse;
use airmail_bench::Spread;

/// Rounds of a mode at a step, with all repetitions.
pub(super) struct Group<'a> {
    pub(super) series: Series,
    pub(super) mode: Mode,
    /// Clients of the single node that it is compared with.
    pub(super) step: u32,
    pub(super) cases: Vec<&'a Case>,
    /// Mean rounds as multiples of the single node's; `None` of a single node.
    pub(super) ratio: Option<Spread>,
}

impl Group<'_> {
    /// A value of the cases.
    pub(super) fn of(&self, value: impl Fn(&Case) -> f64) -> Option<Spread> {
        Spread::of(self.cases.iter().map(|case| value(case)))
    }

    pub(super) fn clients(&self) -> u32 {
        self.cases.first().map_or(0, |case| case.outcome.clients)
    }

    pub(super) fn timeouts(&self) -> u64 {
        let each = self.cases.iter().map(|case| case.outcome.all().timeouts());
        each.sum()
    }

    /// A value of its node at a place.
    pub(super) fn of_node(
        &self,
        place: usize,
        value: impl Fn(&Case, &NodeUse) -> f64,
    ) -> Option<Spread> {
        let of_case = |case: &&Case| Some(value(case, case.outcome.nodes.get(place)?));
        Spread::of(self.cases.iter().filter_map(of_case))
    }
}

/// All groups that were measured, by series and step.
pub(super) fn groups<'a>(args: &ModesArgs, found: &'a Found) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    for series in [Series::Clients, Series::Reach] {
        for step in found.steps(series) {
            let of_step = args.mode.iter().map(|mode| Group {
                series,
                mode: *mode,
                step,
                cases: found.cases(series, *mode, step).collect(),
                ratio: (*mode != Mode::Single)
                    .then(|| verdict::ratios(found, series, *mode, step))
                    .flatten(),
            });
            groups.extend(of_step.filter(|group| !group.cases.is_empty()));
        }
    }
    groups
}

/// Runs of a mode with so many publishers.
pub(super) struct Load<'a> {
    pub(super) mode: Mode,
    pub(super) publishers: u32,
    pub(super) runs: Vec<&'a Run>,
}

impl Load<'_> {
    /// A value of the runs as fast as there was room.
    pub(super) fn fast(&self, value: impl Fn(&Run) -> f64) -> Option<Spread> {
        self.of(true, value)
    }

    /// A value of the runs at a rate.
    pub(super) fn paced(&self, value: impl Fn(&Run) -> f64) -> Option<Spread> {
        self.of(false, value)
    }

    fn of(&self, fast: bool, value: impl Fn(&Run) -> f64) -> Option<Spread> {
        let runs = self.runs.iter().filter(|run| run.rate.is_none() == fast);
        Spread::of(runs.map(|run| value(run)))
    }
}

/// All loads that were measured, by publishers.
pub(super) fn loads<'a>(args: &ModesArgs, found: &'a Found) -> Vec<Load<'a>> {
    let each = args.publishers().into_iter().flat_map(|publishers| {
        let load = move |mode: &Mode| (*mode, publishers);
        args.mode.iter().map(load)
    });
    let loads = each.map(|(mode, publishers)| Load {
        mode,
        publishers,
        runs: {
            let of_load = |run: &&Run| (run.mode, run.publishers) == (mode, publishers);
            found.runs.iter().filter(of_load).collect()
        },
    });
    loads.filter(|load| !load.runs.is_empty()).collect()
}

pub(super) fn mean_ms(case: &Case) -> f64 {
    case.outcome.all().mean_ms()
}

pub(super) fn p99_ms(case: &Case) -> f64 {
    case.outcome.all().p99_ms()
}

pub(super) fn timeouts_percent(case: &Case) -> f64 {
    case.outcome.all().timeout_rate() * 100.0
}

pub(super) fn node_cores(case: &Case) -> f64 {
    case.outcome.nodes.iter().map(|node| node.cpu_share).sum()
}

/// Part of all nodes' periods in which they were stopped, in percent; NaN, which counts nowhere, where nothing
/// stops them.
pub(super) fn stopped_percent(case: &Case) -> f64 {
    case.outcome
        .stopped_share()
        .map_or(f64::NAN, |share| share * 100.0)
}

/// Part of a node's periods in which it was stopped, in percent; NaN where nothing stops it.
pub(super) fn node_stopped_percent(node: &NodeUse) -> f64 {
    let share = Throttled::share(node.throttled.into_iter());
    share.map_or(f64::NAN, |share| share * 100.0)
}
