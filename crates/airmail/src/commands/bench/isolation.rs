//! `airmail bench isolation`: the cost to other subscribers of one that stops, is slow, or catches
//! up.
//!
//! In each round the others, in a process of their own, do the same alone and beside each such
//! subscriber, in an order that turns: at half of the rate that they reach, by timetable, and then
//! as fast as there is room.

use super::measured::{Measured, MeasuredArgs};
use super::options::ReportArgs;
use super::{BYSTANDER, PART};
use crate::cli::UsageError;
use airmail_bench::bystander::{Conduct, Task};
use airmail_bench::counters::Counters;
use airmail_bench::family;
use airmail_bench::family::bystander::Bystander;
use airmail_bench::isolation::{NodeUse, Phase};
use airmail_bench::process::Usage;
use airmail_bench::run::Job;
use airmail_bench::settings;
use airmail_bench::{IsolationReport, Report, Settings, Workload, html};
use airmail_client::Lane;
use anyhow::{Context as _, ensure};
use std::process::ExitCode;

/// The thread of a node that its first shard works on.
const SHARD_THREAD: &str = "shard-0";
/// Factor by which a subscriber at 1 % speed gets fewer messages.
const SLOWNESS: u64 = 100;

/// Arguments of `airmail bench isolation`.
#[derive(clap::Args, Clone, Debug)]
pub struct IsolationArgs {
    /// The node, as airmail://HOST:PORT, with --pid; without one, a node is started for the run
    #[arg(long, alias = "url", value_name = "URL", requires = "pid")]
    pub target: Option<String>,
    /// The target's process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Where the target's metrics are, as HOST:PORT; without it, nothing is told of what it detached
    #[arg(long, value_name = "HOST:PORT", requires = "target")]
    pub metrics: Option<String>,
    /// Payload to store before, as 5GiB; 0 with --name: what an earlier run has stored
    #[arg(long, value_name = "BYTES", value_parser = settings::bytes, default_value = "5GiB")]
    pub backlog: u64,
    /// Lane in which it is stored, normal or high; the others use lane normal
    #[arg(long, value_name = "LANE", default_value = "normal")]
    pub backlog_lane: Lane,
    /// Rounds, in each of which the others run beside nobody and beside each
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: u32,
    /// Length of each phase, as 5s: a round has six
    #[arg(long, value_name = "TIME", value_parser = settings::milliseconds, default_value = "5s")]
    pub duration: u64,
    /// Time at the beginning of each phase that is left out of rates and times, as 500ms
    #[arg(long, value_name = "TIME", value_parser = settings::milliseconds, default_value = "500ms")]
    pub warmup: u64,
    /// Messages a second of half load [default: half of the rate reached at the beginning]
    #[arg(long, value_name = "N")]
    pub rate: Option<u64>,
    /// Payload of each message, in bytes, at least 16
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub size: usize,
    /// Publishers, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub publishers: u32,
    /// Subscribers that are measured, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub subscribers: u32,
    /// At half load too, the subscriber beside them takes processor time from the others; without
    /// this it is a process that gives way, as if it were on another machine
    #[arg(long)]
    pub compete: bool,
    /// Beginning of the topic's name; a new one for each run
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// End with 1 if, beside the one that begins at the earliest message, a median of the others' rates is below 0.95 times
    /// theirs beside nobody
    #[arg(long)]
    pub judge: bool,
    #[command(flatten)]
    pub node: MeasuredArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Runs it: 0 if every message arrived once and in order, on both sides, and no bar is missed that it is judged by, else 1.
///
/// # Errors
/// The node cannot be started or reached, or the backlog cannot be stored.
#[expect(clippy::print_stderr, reason = "what was missed")]
pub(super) fn isolation(args: &IsolationArgs) -> anyhow::Result<ExitCode> {
    let own = match &args.target {
        Some(_) => None,
        None => Some(args.node.start(None, &[])?),
    };
    let url = args
        .target
        .clone()
        .or_else(|| own.as_ref().map(Measured::url));
    let pids = args.pid.map(|pid| vec![pid]);
    let pids = pids.or_else(|| own.as_ref().map(Measured::pids));
    let metrics = args.metrics.clone();
    let mut run = Run {
        metrics: metrics.or_else(|| own.as_ref().map(|node| node.front().http().to_owned())),
        url: url.context("no node")?,
        pids: pids.context("--pid is needed with --target")?,
        runs: 0,
        args,
    };
    let report = run.measure()?;
    args.report
        .write(|| report.table(), || html::isolation_page(&report))?;
    super::print(&report, report.is_sound(), args.report.json)?;
    let missed = if args.judge {
        report.missed()
    } else {
        Vec::new()
    };
    for bar in &missed {
        eprintln!("airmail: missed: {bar}");
    }
    let has_failed = !report.is_sound() || !missed.is_empty();
    Ok(ExitCode::from(u8::from(has_failed)))
}

/// A node, and the phases so far.
struct Run<'a> {
    url: String,
    /// Address of its metrics.
    metrics: Option<String>,
    /// Its processes.
    pids: Vec<u32>,
    /// Runs so far: each has messages of its own.
    runs: u32,
    args: &'a IsolationArgs,
}

impl Run<'_> {
    fn measure(&mut self) -> anyhow::Result<IsolationReport> {
        let args = self.args;
        self.settings(None)?;
        self.fill()?;
        let saturated_per_s = match args.rate {
            Some(rate) => rate as f64 * 2.0,
            None => self.others(None)?.delivered_per_s / f64::from(args.subscribers),
        };
        let rate = ((saturated_per_s / 2.0) as u64).max(1);
        let mut report = IsolationReport {
            system: "airmail",
            backlog_bytes: args.backlog,
            backlog_lane: args.backlog_lane.to_string(),
            saturated_per_s,
            offered_per_s: rate as f64,
            size: args.size,
            publishers: args.publishers,
            subscribers: args.subscribers,
            ratios: Vec::new(),
            phases: Vec::new(),
        };
        for round in 1..=args.rounds {
            let mut turns = [
                None,
                Some(Conduct::Stopped),
                Some(Conduct::Slow),
                Some(Conduct::Earliest),
            ];
            let turn = (round as usize - 1) % turns.len();
            turns.rotate_left(turn);
            for beside in turns {
                report.phases.push(self.phase(round, Some(rate), beside)?);
            }
            for beside in [None, Some(Conduct::Earliest)] {
                report.phases.push(self.phase(round, None, beside)?);
            }
        }
        report.reckon();
        Ok(report)
    }

    /// Stores the backlog for the subscriber that begins at the earliest message.
    fn fill(&mut self) -> anyhow::Result<()> {
        let messages = self.args.backlog / self.args.size as u64;
        if messages == 0 {
            return Ok(());
        }
        self.say(&format!("storing {messages} messages"));
        let settings = Settings {
            workload: Workload::Pub,
            messages: Some(messages),
            duration_ms: None,
            warmup_ms: 0,
            publishers: 1,
            high: self.args.backlog_lane == Lane::High,
            ..self.settings(None)?
        };
        let report = self.run(settings)?;
        ensure!(
            report.is_sound(),
            "storing the backlog: {} of {messages} stored: {}",
            report.acknowledged,
            report.first_error.unwrap_or_default()
        );
        Ok(())
    }

    /// Settings of the other subscribers for a phase: at a rate, or as fast as there is room.
    fn settings(&self, rate: Option<u64>) -> Result<Settings, UsageError> {
        let args = self.args;
        let workload = if rate.is_some() {
            Workload::Latency
        } else {
            Workload::E2e
        };
        let settings = Settings {
            workload,
            messages: None,
            duration_ms: Some(args.duration),
            warmup_ms: args.warmup,
            size: args.size,
            publishers: args.publishers,
            subscribers: args.subscribers,
            rate,
            ..Settings::default()
        };
        let checked = settings.check();
        checked.map_err(|wrong| UsageError(format!("--{wrong}")))?;
        Ok(settings)
    }

    fn others(&mut self, rate: Option<u64>) -> anyhow::Result<Report> {
        self.run(self.settings(rate)?)
    }

    fn run(&mut self, settings: Settings) -> anyhow::Result<Report> {
        self.runs += 1;
        let job = Job {
            target: self.url.clone(),
            settings: settings.clone(),
            id: (std::process::id() << 10).wrapping_add(self.runs),
            prefix: self.prefix(),
            ..Job::default()
        };
        let part = family::lead(PART, &job)?;
        Ok(Report::new("airmail", settings, part, None))
    }

    fn phase(
        &mut self,
        round: u32,
        rate: Option<u64>,
        beside: Option<Conduct>,
    ) -> anyhow::Result<Phase> {
        let bystander = match beside {
            Some(conduct) => Some(Bystander::start(BYSTANDER, &self.task(conduct, rate))?),
            None => None,
        };
        let before = self.node_use()?;
        let report = self.others(rate)?;
        let used = self.node_use()?.since(&before);
        let taken = match bystander {
            Some(bystander) => beside.zip(Some(bystander.stop()?)),
            None => None,
        };
        let phase = Phase::new((round, rate.is_none()), taken, &report, used);
        self.say(&phase.to_string());
        if let Some(error) = report.first_error {
            self.say(&error);
        }
        Ok(phase)
    }

    fn task(&self, conduct: Conduct, rate: Option<u64>) -> Task {
        let slow = (conduct == Conduct::Slow).then(|| rate.unwrap_or(SLOWNESS) / SLOWNESS);
        Task {
            target: self.url.clone(),
            namespace: Settings::default().namespace,
            topic: format!("{}/0", self.prefix()),
            conduct,
            per_s: slow,
            credit_bytes: None,
            yields: rate.is_some() && !self.args.compete,
        }
    }

    fn node_use(&self) -> anyhow::Result<NodeUse> {
        let counters = self.metrics.as_deref().map(Counters::of).transpose();
        Ok(NodeUse {
            node: Usage::of_all(&self.pids),
            shard: Usage::of_threads(&self.pids, SHARD_THREAD),
            counters: counters.context("--metrics")?.unwrap_or_default(),
        })
    }

    fn prefix(&self) -> String {
        match &self.args.name {
            Some(name) => format!("bench/{name}"),
            None => format!("bench/{:08x}", std::process::id()),
        }
    }

    #[expect(clippy::print_stderr, reason = "how far it is")]
    fn say(&self, text: &str) {
        if !self.args.report.json {
            eprintln!("{text}");
        }
    }
}
