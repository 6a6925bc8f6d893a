//! `airmail-lab copilots`: a tower with 1, 2 and 4 copilots before it, and the same subscribers spread
//! evenly over these.
//!
//! Copilots are held to a part of a core each, so that they are what runs short and not the machine that
//! they share; nothing else is held. Two series: in one each subscriber has topics of its own, so a
//! copilot has less to do the more of them there are, and so has its link; in the other each subscriber
//! has all topics, so each link carries everything, and is to carry it once, however many subscribers are
//! behind it. Bytes are counted by the nodes themselves, before and after a run, and judged against what
//! was published: no time is part of that.
//!
//! Clients are the bench's, with its accounts of every message. The publisher and each copilot's
//! subscribers are processes of their own, and every client is bound to its node by the name of the
//! machine that both are given: clients would spread over copilots by themselves, but not the same way
//! each time. First all runs as fast as there is room, then all at half of the least that came of that.

mod cluster;
mod figures;
mod report;
mod run;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::hold::{CpuLimit, Limits};
use crate::hosts::Hosts;
use crate::narration::say;
use airmail_bench::family::Stop;
use airmail_bench::family::own_node::OwnNodeArgs;
use cluster::Cluster;
use run::{Pace, Run};
use std::process::ExitCode;

/// Period of the copilots' quota: short beside a delivery that waits for its end.
const PERIOD_US: u64 = 10_000;

/// Arguments of `airmail-lab copilots`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CopilotsArgs {
    /// Numbers of copilots, each a part of the subscribers
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) copilots: Vec<u32>,
    /// Ways to give topics to subscribers
    #[arg(long, value_name = "SERIES,...", value_delimiter = ',', value_enum, default_values_t = [Series::Divided, Series::Shared])]
    pub(crate) series: Vec<Series>,
    /// Subscribers, spread evenly over the copilots
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) subscribers: u32,
    /// Topics, as many for each subscriber as for any other
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) topics: u32,
    /// Payload of each message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(24..=1_000_000))]
    pub(crate) size: u32,
    /// Cores that each copilot may have, in periods of 10 ms; 0: all there are
    #[arg(long, value_name = "N", default_value_t = 0.2)]
    pub(crate) quota: f64,
    /// The tower's storage: disk: or memory:
    #[arg(long, value_name = "URL", default_value = "disk:")]
    pub(crate) log: String,
    /// Duration of each run, in seconds [default: 10, with --quick 2]
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<f64>,
    /// Number of repetitions of everything [default: 5, with --quick 1]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u32>,
    /// End with 1 if a copilot's link carried more than what its subscribers want, once, and a quarter of it
    #[arg(long)]
    pub(crate) judge: bool,
    #[command(flatten)]
    pub(crate) node: OwnNodeArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Ways to give topics to subscribers.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    /// Each subscriber has topics of its own: a copilot wants an even part of what is published
    Divided,
    /// Each subscriber has all topics: every copilot wants everything
    Shared,
}

impl Series {
    /// Name in rows and tables.
    fn name(self) -> &'static str {
        match self {
            Series::Divided => "divided",
            Series::Shared => "shared",
        }
    }

    /// The part of what is published that each of so many copilots wants.
    fn wanted_share(self, copilots: u32) -> f64 {
        match self {
            Series::Divided => 1.0 / f64::from(copilots),
            Series::Shared => 1.0,
        }
    }
}

impl CopilotsArgs {
    fn seconds(&self) -> f64 {
        let usual = if self.common.quick { 2.0 } else { 10.0 };
        self.seconds.unwrap_or(usual)
    }

    fn rounds(&self) -> u32 {
        let usual = if self.common.quick { 1 } else { 5 };
        self.rounds.unwrap_or(usual)
    }

    fn limits(&self) -> Option<Limits> {
        let cpu = CpuLimit::cores(self.quota, PERIOD_US);
        (self.quota > 0.0).then_some(Limits {
            cpu: Some(cpu),
            ..Limits::default()
        })
    }

    fn check(&self) -> Result<(), UsageError> {
        let wrong = |what: String| Err(UsageError(what));
        let subscribers = self.subscribers;
        // The system takes no quota below a millisecond.
        if self.quota != 0.0 && !(0.1..=1024.0).contains(&self.quota) {
            return wrong("--quota: 0, or from 0.1 to 1024".to_owned());
        }
        if !(0.1..=86_400.0).contains(&self.seconds()) {
            return wrong("--seconds: from 0.1 to 86400".to_owned());
        }
        let mut copilots = self.copilots.iter();
        if let Some(copilots) = copilots.find(|copilots| !subscribers.is_multiple_of(**copilots)) {
            return wrong(format!(
                "--copilots: {copilots}; {subscribers} subscribers do not spread evenly over them"
            ));
        }
        if !self.topics.is_multiple_of(subscribers) {
            let topics = self.topics;
            return wrong(format!(
                "--topics: {topics}; a multiple of --subscribers, {subscribers}"
            ));
        }
        Ok(())
    }

    /// Numbers of copilots in the order of a round's number: each comes first as often as last.
    fn in_turn(&self, round: u32) -> Vec<u32> {
        let mut copilots = self.copilots.clone();
        if round.is_multiple_of(2) {
            copilots.reverse();
        }
        copilots
    }
}

pub(super) fn run(args: &CopilotsArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    args.check()?;
    let hosts = args.common.hosts.read_with_copilots(None, stop)?;
    let mut found = Found::default();
    match measure(args, &hosts, &mut found) {
        Err(error) if !stop.is_set() => return Err(error),
        _ => {}
    }
    crate::experiment::finish(&report::findings(args, &found, &hosts), &args.common)?;
    let sound = found.runs.iter().all(Run::is_sound);
    if !sound {
        say("not every message arrived once and in order");
    }
    let once = !args.judge || judge(&found);
    Ok(ExitCode::from(u8::from(!sound || !once)))
}

/// Everything that was measured.
#[derive(Debug, Default)]
struct Found {
    runs: Vec<Run>,
    /// Limits that were set on copilots, and those that could not be.
    means: Vec<String>,
}

impl Found {
    /// Runs of a series on so many copilots.
    fn of(&self, pace: Pace, series: Series, copilots: u32) -> impl Iterator<Item = &Run> {
        let runs = self.runs.iter();
        runs.filter(move |run| (run.pace, run.series, run.copilots()) == (pace, series, copilots))
    }

    /// Half of the least rate of publishes that any number of copilots came to in a series, in messages a
    /// second.
    fn half_rate(&self, series: Series) -> Option<u64> {
        let runs = self.runs.iter();
        let fast = runs.filter(|run| (run.pace, run.series) == (Pace::Fast, series));
        let least = fast.map(|run| run.report.published_per_s).reduce(f64::min);
        least.map(|per_s| ((per_s / 2.0) as u64).max(1))
    }
}

/// Whether every link carried what was wanted behind it, once; says which did not.
fn judge(found: &Found) -> bool {
    let judged = found.runs.iter().filter(|run| run.is_judged());
    let mut faults = judged.clone().flat_map(Run::faults).peekable();
    if judged.count() == 0 {
        say("nothing was measured by which to judge");
        return false;
    }
    if faults.peek().is_none() {
        say("each link carried what was wanted behind it, once");
        return true;
    }
    faults.for_each(|fault| say(&fault));
    false
}

fn measure(args: &CopilotsArgs, hosts: &Hosts, found: &mut Found) -> anyhow::Result<()> {
    for pace in [Pace::Fast, Pace::Half] {
        for round in 1..=args.rounds() {
            for copilots in args.in_turn(round) {
                if hosts.stop().is_set() {
                    return Ok(());
                }
                let mut cluster = Cluster::start(args, hosts, copilots)?;
                cluster.tell_means(&mut found.means);
                for series in args.series.iter().copied() {
                    let rate = match pace {
                        Pace::Fast => None,
                        Pace::Half => found.half_rate(series),
                    };
                    let run = Run::make(args, hosts, &mut cluster, (series, round), rate)?;
                    say(&run.to_string());
                    found.runs.push(run);
                }
            }
        }
    }
    Ok(())
}
