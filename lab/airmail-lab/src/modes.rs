//! `airmail-lab modes`: the experiments of the paper on a publisher/subscriber service, on one node and on
//! several that together are one service, all in memory and each held to the same part of a core.
//!
//! Three series. *Clients*: the rounds of [`crate::rounds`] by number of clients, as in the paper's figures 3,
//! 5 and 6. *Reach*: the same with so many clients at the single node, and three times as many at each other
//! mode, raised until one of them has time-outs. *Publish*: 1 to 1,000 publishers and few subscribers, which the
//! paper leaves for later.
//!
//! Within a repetition the modes follow one another at each step, in an order that turns, so that a slow minute
//! of the machine meets all of them; they are compared by ratios within repetitions. Each case has nodes of its
//! own. Quotas make nodes what runs short, and not the machine that they share.

mod args;
mod cluster;
mod figures;
mod groups;
mod mode;
mod publishing;
mod report;
mod rows;
mod tables;
mod verdict;

use crate::hosts::Hosts;
use crate::narration::say;
use crate::rounds::{self, OTHER_FILES, Outcome, Plan};
use airmail_bench::family::Stop;
use airmail_bench::process::raise_open_files;
pub(crate) use args::ModesArgs;
use args::Series;
use cluster::Cluster;
use mode::Mode;
use publishing::Run;
use std::process::ExitCode;

/// Publishers of the rounds, which take turns: one for each node of the largest mode.
const ROUND_PUBLISHERS: u32 = 4;

/// Rounds of a mode in a repetition.
#[derive(Clone, Debug)]
struct Case {
    series: Series,
    mode: Mode,
    /// Number of the repetition, from 1.
    repeat: u32,
    /// Clients of the single node that it is compared with.
    step: u32,
    outcome: Outcome,
}

/// Everything that was measured.
#[derive(Debug, Default)]
struct Found {
    cases: Vec<Case>,
    runs: Vec<Run>,
}

impl Found {
    /// Cases of a mode at a step.
    fn cases(&self, series: Series, mode: Mode, step: u32) -> impl Iterator<Item = &Case> + Clone {
        let cases = self.cases.iter();
        cases.filter(move |case| (case.series, case.mode, case.step) == (series, mode, step))
    }

    /// Steps of a series that were measured, in order.
    fn steps(&self, series: Series) -> Vec<u32> {
        let of_series = self.cases.iter().filter(|case| case.series == series);
        let mut steps: Vec<u32> = of_series.map(|case| case.step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// Time-outs of a mode at a step, in all repetitions; `None` where it was not measured.
    fn timeouts(&self, series: Series, mode: Mode, step: u32) -> Option<u64> {
        let cases = self.cases(series, mode, step);
        let each = cases.map(|case| case.outcome.all().timeouts());
        each.reduce(|sum, one| sum + one)
    }

    fn is_sound(&self) -> bool {
        let rounds = self.cases.iter().all(|case| case.outcome.is_sound());
        rounds && self.runs.iter().all(|run| run.report.is_sound())
    }
}

pub(super) fn run(args: &ModesArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    args.check()?;
    let hosts = args.common.hosts.read(None, stop)?;
    let mut found = Found::default();
    let measured = measure(args, &hosts, &mut found);
    // What was measured before a case that failed is reported all the same.
    crate::experiment::finish(&report::findings(args, &found, &hosts), &args.common)?;
    match measured {
        Err(error) if !stop.is_set() => return Err(error),
        _ => {}
    }
    let sound = found.is_sound();
    if !sound {
        say("not every message arrived once and in order");
    }
    let well = !args.judge || verdict::judge(args, &found);
    Ok(ExitCode::from(u8::from(!sound || !well)))
}

fn measure(args: &ModesArgs, hosts: &Hosts, found: &mut Found) -> anyhow::Result<()> {
    let files = u32::try_from(raise_open_files()).unwrap_or(u32::MAX);
    let sockets = files.saturating_sub(OTHER_FILES).max(1);
    for series in &args.series {
        match series {
            Series::Clients => {
                for step in args.steps() {
                    step_of(args, hosts, (*series, step, sockets), found)?;
                }
            }
            Series::Reach => reach(args, hosts, sockets, found)?,
            Series::Publish => publish(args, hosts, found)?,
        }
    }
    Ok(())
}

/// All repetitions of a step, in all modes.
fn step_of(
    args: &ModesArgs,
    hosts: &Hosts,
    (series, step, sockets): (Series, u32, u32),
    found: &mut Found,
) -> anyhow::Result<()> {
    for repeat in 1..=args.repeat() {
        for mode in args.in_turn(repeat) {
            if hosts.stop().is_set() {
                return Ok(());
            }
            let several = series == Series::Reach && mode != Mode::Single;
            let clients = if several {
                step * args.rounds.times
            } else {
                step
            };
            let nodes = mode.members().len() as u32;
            // Each node, and each process of clients, has only so many sockets.
            let connections = clients.min(sockets.saturating_mul(nodes));
            let plan = Plan {
                clients,
                connections,
                publishers: ROUND_PUBLISHERS,
                rounds: args.rounds(),
                interval_ms: args.rounds.interval_ms,
                timeout_ms: args.rounds.timeout_ms,
                size: args.size as usize,
            };
            let each = connections.div_ceil(nodes);
            let mut cluster = Cluster::start(mode, args, hosts, each)?;
            let outcome = rounds::run(&plan, &mut cluster.servers, hosts)?;
            say(&format!("{} {repeat}: {outcome}", mode.name()));
            found.cases.push(Case {
                series,
                mode,
                repeat,
                step,
                outcome,
            });
        }
    }
    Ok(())
}

/// Raises the number of clients until any mode has time-outs.
fn reach(args: &ModesArgs, hosts: &Hosts, sockets: u32, found: &mut Found) -> anyhow::Result<()> {
    for step in args.reach() {
        step_of(args, hosts, (Series::Reach, step, sockets), found)?;
        let has_timeouts = |mode: &Mode| found.timeouts(Series::Reach, *mode, step) > Some(0);
        if args.mode.iter().any(has_timeouts) {
            break;
        }
    }
    Ok(())
}

/// Publishers: as fast as there is room, and at a rate.
fn publish(args: &ModesArgs, hosts: &Hosts, found: &mut Found) -> anyhow::Result<()> {
    for publishers in args.publishers() {
        for repeat in 1..=args.repeat() {
            for rate in [None, Some(args.publish.rate)] {
                for mode in args.in_turn(repeat) {
                    if hosts.stop().is_set() {
                        return Ok(());
                    }
                    let run = Run::make(args, hosts, (mode, repeat, publishers), rate)?;
                    say(&run.to_string());
                    found.runs.push(run);
                }
            }
        }
    }
    Ok(())
}
