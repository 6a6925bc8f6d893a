//! Runs a plan: sweeps first, then rounds over all setups, then the changes of capacity.
//!
//! Each run is on a node of its own, so none finds what another left. In a round every limiter stands
//! beside a run of the fixed bound at the knee, and the order turns from round to round. Told to stop, the
//! run under way ends, and its results go into the report. Messages that a stopped run misses were not lost
//! by the node, so a run that was stopped counts only if it is whole.

use super::case::{Case, Place, Setup, Storage};
use super::changes::ChangeRuns;
use super::neighbours::{Neighbours, Shift, Worked};
use super::outcome::{Outcome, courses};
use super::plan::{Plan, Until};
use super::run_node::RunNode;
use super::sweeps::SweepOf;
use super::{FlowArgs, flying, pilot};
use crate::hosts::Hosts;
use airmail_experiments::flow::{Flown, Load, Throttling, Window};
use airmail_flow::LimiterKind;
use airmail_queueing::knee::Knee;
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Limiters that share the run of a fixed bound between them.
const BESIDE: usize = 2;
/// Time between what a bar shows.
const LOOK: Duration = Duration::from_millis(100);

/// Results of all runs.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) sweeps: Vec<SweepOf>,
    /// Cases in the plan's order; those without a round are left out.
    pub(super) cases: Vec<Measurement>,
    /// Runs in which the capacity changed, by limiter.
    pub(super) changes: Vec<ChangeRuns>,
    /// Reason for which it ended before its time.
    pub(super) ended: Option<String>,
    /// Faults of the sweeps' runs.
    pub(super) sweep_faults: Vec<String>,
}

/// All rounds of a case.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) case: Case,
    pub(super) rounds: Vec<Round>,
}

/// One run of a case.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) flown: Flown,
    /// Result of the fixed bound at the knee beside it, if there was one.
    pub(super) beside: Option<Knee>,
    /// When neighbours on the disk began and ended, in seconds since the run began, if there were any.
    pub(super) halved_s: Option<(f64, f64)>,
}

impl Round {
    /// The windows of each limiter at this place.
    pub(super) fn windows(&self, place: Place) -> Vec<&[Window]> {
        let Flown { flights, pilot, .. } = &self.flown;
        match place {
            Place::Publisher => flights.iter().map(|flight| &*flight.windows).collect(),
            Place::Pilot => vec![pilot],
        }
    }
}

impl Measured {
    /// Whether no run lost, doubled or reordered anything, and none failed.
    pub(super) fn is_sound(&self) -> bool {
        let mut rounds = self.cases.iter().flat_map(|case| &case.rounds);
        let mut changes = self.changes.iter().flat_map(|change| &change.rounds);
        let failed = self.ended.as_ref().is_some_and(|why| why != STOPPED);
        !failed
            && self.sweep_faults.is_empty()
            && rounds.all(|round| round.flown.is_sound())
            && changes.all(|round| round.flown.is_sound())
    }

    /// The sweep that such a setup is held against.
    pub(super) fn sweep(&self, setup: &Setup) -> Option<&SweepOf> {
        let swept = setup.swept();
        self.sweeps.iter().find(|sweep| sweep.setup == swept)
    }

    /// The knee of such a setup, by its sweep.
    pub(super) fn knee(&self, setup: &Setup) -> Option<Knee> {
        self.sweep(setup)?.sweep.knee().ok()
    }
}

/// Sentence of a report that was stopped by its user.
const STOPPED: &str = "It was stopped before all was measured.";

/// Runs all.
///
/// # Errors
/// Nothing could be measured at all.
pub(super) fn measure(plan: &Plan, args: &FlowArgs, hosts: &Hosts) -> anyhow::Result<Measured> {
    let mut runner = Runner {
        plan,
        args,
        hosts,
        bar: progress(plan),
        id: std::process::id(),
        measured: Measured::default(),
    };
    tell(&runner.bar);
    let ended = runner.all();
    runner.bar.finish_and_clear();
    let mut measured = runner.measured;
    measured.cases.retain(|case| !case.rounds.is_empty());
    measured.changes.retain(|change| !change.rounds.is_empty());
    match ended {
        _ if hosts.stop().is_set() => measured.ended = Some(STOPPED.to_owned()),
        Err(error) if measured.cases.is_empty() && measured.sweeps.is_empty() => return Err(error),
        Err(error) => measured.ended = Some(format!("It ended early: {error:#}.")),
        Ok(()) => {}
    }
    Ok(measured)
}

#[expect(clippy::print_stderr, reason = "standard output is for the rows")]
fn tell(bar: &ProgressBar) {
    let runs = bar.length().unwrap_or_default();
    eprintln!(
        "airmail-lab: {runs} runs and sweeps; after Ctrl-C the report has those that are done"
    );
}

/// A bar on standard error, where that is a terminal: a step for each run of a case and each pass of a
/// sweep.
fn progress(plan: &Plan) -> ProgressBar {
    let setups = plan.setups();
    let passes = plan.swept_setups().len() * plan.sweep_runs as usize;
    let beside = |setup: &Setup| {
        let limiters = plan.limiters(setup.place).len();
        limiters + limiters.div_ceil(BESIDE).max(1)
    };
    let changing = plan.changing_setups();
    let changes = changing.iter().map(|setup| plan.cases_of(*setup).len());
    let round = setups.iter().map(beside).sum::<usize>() + changes.sum::<usize>();
    let bar = ProgressBar::new((passes + round * plan.repeat as usize) as u64);
    bar.enable_steady_tick(LOOK);
    match ProgressStyle::with_template("{bar:30} {pos}/{len}, {elapsed}: {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The one who runs them.
pub(super) struct Runner<'a> {
    pub(super) plan: &'a Plan,
    args: &'a FlowArgs,
    hosts: &'a Hosts,
    pub(super) bar: ProgressBar,
    /// Number of the latest run.
    id: u32,
    pub(super) measured: Measured,
}

impl Runner<'_> {
    fn all(&mut self) -> anyhow::Result<()> {
        let cases = self.plan.cases().into_iter();
        let unmeasured = cases.map(|case| Measurement {
            case,
            rounds: Vec::new(),
        });
        self.measured.cases = unmeasured.collect();
        self.sweeps()?;
        for number in 0..self.plan.repeat {
            for setup in self.plan.setups() {
                let limiters = self.plan.limiters(setup.place);
                if limiters.is_empty() {
                    self.beside_fixed(setup, &[], number)?;
                }
                for some in limiters.chunks(BESIDE) {
                    self.beside_fixed(setup, some, number)?;
                }
            }
            self.changes(number)?;
        }
        Ok(())
    }

    /// Runs limiters with the fixed bound between them, the other way round in every other round.
    fn beside_fixed(
        &mut self,
        setup: Setup,
        limiters: &[LimiterKind],
        number: u32,
    ) -> anyhow::Result<()> {
        let mut order = limiters.to_vec();
        order.insert(order.len().min(1), LimiterKind::Fixed);
        if number % 2 == 1 {
            order.reverse();
        }
        let known = self.measured.knee(&setup);
        let mut beside = None;
        let mut rounds = Vec::new();
        for limiter in order {
            let case = Case { setup, limiter };
            let is_fixed = limiter == LimiterKind::Fixed;
            let gate = match (known, is_fixed) {
                (_, false) => self.plan.throttling(limiter),
                (Some(knee), true) => self.plan.fixed_at(&setup, &knee),
                (None, true) if limiters.is_empty() || self.plan.asks_for_fixed() => {
                    self.plan.fixed(self.plan.initial(), 0.0)
                }
                (None, true) => continue,
            };
            self.bar.set_message(case.to_string());
            let option = setup.storage.option();
            if let Some(round) = self.run(&case, gate, option, self.plan.until())? {
                if is_fixed {
                    let outcome = Outcome::of_run(&courses(setup.place, &round));
                    beside = known
                        .zip(outcome)
                        .map(|(knee, outcome)| outcome.as_knee(knee.bound, knee.peak_per_s));
                }
                rounds.push((case, round));
            }
            self.bar.inc(1);
        }
        for (case, round) in rounds {
            let mut cases = self.measured.cases.iter_mut();
            if let Some(known) = cases.find(|known| known.case == case) {
                known.rounds.push(Round { beside, ..round });
            }
        }
        Ok(())
    }

    /// One run on a node of its own with this option; nothing if it was stopped and is not whole.
    pub(super) fn run(
        &mut self,
        case: &Case,
        gate: Throttling,
        option: Option<String>,
        until: Until,
    ) -> anyhow::Result<Option<Round>> {
        if self.stopped() {
            return Ok(None);
        }
        let setup = &case.setup;
        let node = self.node(setup, &gate, option)?;
        let own = node.as_ref().map(RunNode::url);
        let url = own.or_else(|| self.args.target.clone()).unwrap_or_default();
        let id = self.next_id();
        let load = Load {
            url,
            namespace: node.as_ref().and_then(RunNode::namespace),
            id,
            prefix: format!("bench/flow-{id:08x}"),
            ..self.plan.load(setup, gate, until)
        };
        let neighbours = match &node {
            Some(node) => self.neighbours(setup, node)?,
            None => None,
        };
        let flown = match flying::fly(self.hosts, &load) {
            Err(_) if self.stopped() => return Ok(None),
            Ok(flown) if self.stopped() && !flown.is_sound() => return Ok(None),
            flown => flown.with_context(|| case.to_string())?,
        };
        let worked = neighbours.map(Neighbours::end).transpose()?.flatten();
        let since_start_s = |at_us: u64| (at_us as f64 - flown.start_us as f64) / 1e6;
        let halved_s =
            worked.map(|Worked { from_us, to_us }| (since_start_s(from_us), since_start_s(to_us)));
        Ok(Some(Round {
            flown,
            beside: None,
            halved_s,
        }))
    }

    /// Neighbours on this node's disk, if the setup has any.
    fn neighbours(&self, setup: &Setup, node: &RunNode) -> anyhow::Result<Option<Neighbours>> {
        let change = Duration::from_millis(self.plan.change_ms);
        let shift = match setup.storage {
            Storage::SharedDisk => Shift {
                after: Duration::ZERO,
                length: None,
            },
            Storage::SharedDiskAWhile => Shift {
                after: change,
                length: Some(change),
            },
            _ => return Ok(None),
        };
        let directory = node.data().parent().unwrap_or(node.data());
        let neighbours = Neighbours::start(directory, self.plan.neighbours, shift);
        let neighbours =
            neighbours.with_context(|| format!("cannot write to {}", directory.display()))?;
        Ok(Some(neighbours))
    }

    /// Whether the run under way is to be the last.
    pub(super) fn stopped(&self) -> bool {
        self.hosts.stop().is_set()
    }

    /// A node with this option, and this limiter if it is in the pilot, unless one was named.
    fn node(
        &self,
        setup: &Setup,
        gate: &Throttling,
        option: Option<String>,
    ) -> anyhow::Result<Option<RunNode>> {
        if self.args.target.is_some() {
            return Ok(None);
        }
        let environment = pilot::environment(setup.place, gate, &self.plan.gates);
        let storage = (setup.storage, self.args.log.as_ref());
        let node = RunNode::start(self.hosts, &self.args.node, storage, option, &environment)?;
        Ok(Some(node))
    }

    fn next_id(&mut self) -> u32 {
        self.id = self.id.wrapping_add(1);
        self.id
    }
}

impl Plan {
    /// Settings of a gate with the bound of the knee.
    pub(super) fn fixed_at(&self, setup: &Setup, knee: &Knee) -> Throttling {
        self.fixed(knee.bound, knee.rate_per_s / f64::from(setup.limiters()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use airmail_experiments::flow::{Counter, Flight, Window};

    /// A flight of so many seconds with this bound and this rate, a window every tenth of a second.
    pub(crate) fn flight(bound: u64, seconds: f64, rate_per_s: f64) -> Flight {
        let latency_s = bound as f64 / rate_per_s;
        let ends = (1..=(seconds * 10.0) as u32).map(|tenth| f64::from(tenth) / 10.0);
        let window = |(seconds, number): (f64, u64)| Window {
            number,
            seconds,
            bound,
            bound_after: bound,
            in_flight: bound as f64,
            latency_s,
            rate_per_s,
            rule: "fixed".into(),
        };
        let counter = |seconds: f64| Counter {
            seconds,
            messages: rate_per_s * seconds,
            message_seconds: rate_per_s * seconds * latency_s,
        };
        let messages = (rate_per_s * seconds) as u64;
        Flight {
            windows: ends.clone().zip(1..).map(window).collect(),
            counters: ends.map(counter).chain([counter(seconds)]).collect(),
            bound,
            sent: messages,
            acknowledged: messages,
            first_error: None,
        }
    }
}
