//! Runs a plan: each run on a node of its own, a sweep on one for all its bounds.
//!
//! Told to stop, the run under way ends, and its results go into the report. Messages that a
//! stopped run misses were not lost by the node, so a run that was stopped counts only if it is
//! whole.

use super::case::{Case, Place, Storage, topics_text};
use super::plan::Plan;
use super::{FlowArgs, flying, pilot};
use crate::hosts::Hosts;
use airmail_bench::family::own_node::OwnNode;
use airmail_experiments::flow::{Distribution, Flown, Load, Mean, PilotWindow, Sweep, Throttling};
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// The highest bound of a sweep.
const SWEEP_BOUND_MAX: u64 = 1 << 15;
/// Time between what a bar shows.
const LOOK: Duration = Duration::from_millis(100);

/// Results of all runs.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) sweeps: Vec<SweepOf>,
    /// Cases in the plan's order; those without a round are left out.
    pub(super) cases: Vec<Measurement>,
    /// Reason for which it ended before its time.
    pub(super) ended: Option<String>,
    /// Faults of the sweeps' runs.
    pub(super) sweep_faults: Vec<String>,
}

/// The sweep over fixed bounds of one storage and number of topics.
#[derive(Debug)]
pub(super) struct SweepOf {
    pub(super) storage: Storage,
    pub(super) place: Place,
    pub(super) topics: u32,
    pub(super) sweep: Sweep,
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
    /// Windows of the node's own limiter, where that was the one.
    pub(super) pilot: Vec<PilotWindow>,
}

impl Measured {
    /// Whether no run lost, doubled or reordered anything, and none failed.
    pub(super) fn is_sound(&self) -> bool {
        let mut rounds = self.cases.iter().flat_map(|case| &case.rounds);
        let failed = self.ended.as_ref().is_some_and(|why| why != STOPPED);
        !failed && self.sweep_faults.is_empty() && rounds.all(|round| round.flown.is_sound())
    }

    /// The sweep that such a case is held against.
    pub(super) fn sweep(&self, case: &Case) -> Option<&Sweep> {
        let what = (case.storage, case.place, case.topics);
        let mut sweeps = self.sweeps.iter();
        let found = sweeps.find(|sweep| (sweep.storage, sweep.place, sweep.topics) == what);
        found.map(|found| &found.sweep)
    }

    /// Most power that a fixed bound gave, of a publisher or of the pilot. A pilot in front of memory has
    /// none: what it admits is answered in the same turn, in no time.
    pub(super) fn power_best(&self, case: &Case) -> Option<f64> {
        if (case.place, case.storage) == (Place::Pilot, Storage::Memory) {
            return None;
        }
        let best = self.sweep(case)?.best()?.power()?;
        Some(best.median)
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
    eprintln!("airmail-lab: {runs} runs; after Ctrl-C the report has those that are done");
}

/// A bar on standard error, where that is a terminal: a step for each run of a case and each sweep.
fn progress(plan: &Plan) -> ProgressBar {
    let sweeps = match plan.sweep_ms {
        0 => 0,
        _ => plan.storages.len() * plan.places.len() * plan.topics.len(),
    };
    let steps = (plan.cases().len() + sweeps) as u64 * u64::from(plan.repeat);
    let bar = ProgressBar::new(steps);
    bar.enable_steady_tick(LOOK);
    match ProgressStyle::with_template("{bar:30} {pos}/{len}, {elapsed}: {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

struct Runner<'a> {
    plan: &'a Plan,
    args: &'a FlowArgs,
    hosts: &'a Hosts,
    bar: ProgressBar,
    /// Number of the latest run.
    id: u32,
    measured: Measured,
}

impl Runner<'_> {
    fn all(&mut self) -> anyhow::Result<()> {
        let cases = self.plan.cases();
        let unmeasured = cases.iter().map(|&case| Measurement {
            case,
            rounds: Vec::new(),
        });
        self.measured.cases = unmeasured.collect();
        for _ in 0..self.plan.repeat {
            self.sweeps(&cases)?;
            for (place, case) in cases.iter().enumerate() {
                if self.stopped() {
                    return Ok(());
                }
                self.bar.set_message(case.to_string());
                let round = self.round(case)?;
                self.measured.cases[place].rounds.extend(round);
                self.bar.inc(1);
            }
        }
        Ok(())
    }

    fn round(&mut self, case: &Case) -> anyhow::Result<Option<Round>> {
        let node = self.node(case, self.plan.throttling(case.limiter))?;
        let load = self
            .plan
            .load(case, &self.url(node.as_ref()), self.next_id());
        self.fly(case, node.as_ref(), load)
    }

    /// Once more over all bounds, wherever limiters are compared.
    fn sweeps(&mut self, cases: &[Case]) -> anyhow::Result<()> {
        if self.plan.sweep_ms == 0 {
            return Ok(());
        }
        let what = |case: &Case| (case.storage, case.place, case.topics);
        for (at, case) in cases.iter().enumerate() {
            if cases[..at].iter().any(|before| what(before) == what(case)) {
                continue;
            }
            let case = &Case {
                distribution: Distribution::Uniform,
                ..*case
            };
            let known = self.measured.sweep(case).map(Sweep::bounds);
            let once = self.sweep(case, &known.unwrap_or_default())?;
            let mut known = self.measured.sweeps.iter_mut();
            match known.find(|known| (known.storage, known.place, known.topics) == what(case)) {
                None => self.measured.sweeps.push(SweepOf {
                    storage: case.storage,
                    place: case.place,
                    topics: case.topics,
                    sweep: once,
                }),
                Some(known) => {
                    for point in once.points {
                        known.sweep.enter(point.bound, point.means);
                    }
                }
            }
            self.bar.inc(1);
        }
        Ok(())
    }

    /// Tries the bounds that are known from the round before, or finds out which are worth it.
    fn sweep(&mut self, case: &Case, known: &[u64]) -> anyhow::Result<Sweep> {
        // A pilot's bound is a setting of its node.
        let node = match case.place {
            Place::Publisher => self.node(case, Plan::sweep_throttling(1))?,
            Place::Pilot => None,
        };
        let mut sweep = Sweep::default();
        for &bound in known {
            self.bound(&mut sweep, case, bound, node.as_ref())?;
        }
        if !known.is_empty() {
            return Ok(sweep);
        }
        let mut bound = 1;
        while bound <= SWEEP_BOUND_MAX && !sweep.is_spent() {
            self.bound(&mut sweep, case, bound, node.as_ref())?;
            let highest = sweep.bounds().last().copied();
            if highest.is_some_and(|highest| highest < bound) {
                // So much is not even acknowledged in the time that there is.
                break;
            }
            bound *= 2;
        }
        // The powers of two are coarse: the best may lie between them.
        let best = sweep.best().map_or(0, |point| point.bound);
        for bound in [best * 3 / 4, best * 3 / 2] {
            if bound > 0 && !sweep.bounds().contains(&bound) {
                self.bound(&mut sweep, case, bound, node.as_ref())?;
            }
        }
        Ok(sweep)
    }

    /// One more point, unless it is to stop.
    fn bound(
        &mut self,
        sweep: &mut Sweep,
        case: &Case,
        bound: u64,
        node: Option<&OwnNode>,
    ) -> anyhow::Result<()> {
        if self.stopped() {
            return Ok(());
        }
        let (storage, place, topics) = (case.storage, case.place.name(), topics_text(case.topics));
        let name = format!("{storage}, {topics}, a fixed bound of {bound} in the {place}");
        self.bar.set_message(name.clone());
        let own = match case.place {
            Place::Publisher => None,
            Place::Pilot => self.node(case, Plan::sweep_throttling(bound))?,
        };
        let node = node.or(own.as_ref());
        let load = self
            .plan
            .sweep_load(case, bound, &self.url(node), self.next_id());
        if let Some(round) = self.fly(case, node, load)? {
            if !round.flown.is_sound() {
                self.measured.sweep_faults.push(name);
            }
            let means = settled(case.place, &round);
            if !means.is_empty() {
                sweep.enter(bound, means);
            }
        }
        Ok(())
    }

    /// One run; nothing if it was stopped and is not whole.
    fn fly(
        &self,
        case: &Case,
        node: Option<&OwnNode>,
        mut load: Load,
    ) -> anyhow::Result<Option<Round>> {
        let address = node.map(OwnNode::http);
        let watched = address.filter(|_| case.place == Place::Pilot);
        load.pilot = watched.map(str::to_owned);
        let mut flown = match flying::fly(self.hosts, &load) {
            Err(_) if self.stopped() => return Ok(None),
            Ok(flown) if self.stopped() && !flown.is_sound() => return Ok(None),
            flown => flown.with_context(|| case.to_string())?,
        };
        let pilot = std::mem::take(&mut flown.pilot);
        Ok(Some(Round { flown, pilot }))
    }

    fn stopped(&self) -> bool {
        self.hosts.stop().is_set()
    }

    /// A node with the case's storage, and this limiter if it is in the pilot, unless one was named.
    fn node(&self, case: &Case, throttling: Throttling) -> anyhow::Result<Option<OwnNode>> {
        if self.args.target.is_some() {
            return Ok(None);
        }
        let environment = pilot::environment(case.place, &throttling.gate());
        let storage = case.storage.option();
        let node = self
            .hosts
            .start_node(&self.args.node, storage, &environment)?;
        Ok(Some(node))
    }

    fn url(&self, node: Option<&OwnNode>) -> String {
        let own = node.map(OwnNode::url);
        own.or_else(|| self.args.target.clone()).unwrap_or_default()
    }

    fn next_id(&mut self) -> u32 {
        self.id = self.id.wrapping_add(1);
        self.id
    }
}

/// Means of a run with a fixed bound, without its first third, in which the system fills.
fn settled(place: Place, round: &Round) -> Vec<Mean> {
    match place {
        Place::Publisher => {
            let flights = round.flown.flights.iter();
            let windows = flights.map(|flight| &flight.windows);
            windows
                .filter_map(|windows| Mean::of(&windows[windows.len() / 3..]))
                .collect()
        }
        Place::Pilot => {
            let mean = Mean::of_pilot(&round.pilot[round.pilot.len() / 3..]);
            mean.into_iter().collect()
        }
    }
}
