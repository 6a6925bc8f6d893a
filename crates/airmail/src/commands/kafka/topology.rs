//! `airmail kafka topology`: whether a cluster is balanced, the faults that would unbalance it, and
//! the moves that mend it.

mod document;
mod findings;
mod text;

use super::bootstrap;
use crate::commands::lines::printed;
use airmail_topology::{Advice, Cluster, Goal, drawing};
use anyhow::Context as _;
use findings::Findings;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `airmail kafka topology`.
#[derive(clap::Args, Debug)]
pub struct TopologyArgs {
    /// The cluster to describe.
    #[command(flatten)]
    pub source: Source,
    /// Traffic that producers send to a topic, in any unit; a topic without one gets nothing
    /// [default: all the same]
    #[arg(long = "rate", value_name = "TOPIC=RATE", value_parser = rate)]
    pub rates: Vec<(String, f64)>,
    /// Lose each node in turn, or also each pair of nodes, and show the imbalance that each loss would cause
    #[arg(long, value_name = "0|1|2", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    pub faults: u8,
    /// Propose reassignments
    #[arg(long)]
    pub advise: bool,
    /// Most partitions to reassign where moves are counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub moves: u32,
    /// Print nothing but this plan, as the JSON that kafka-reassign-partitions takes
    #[arg(long, value_name = "GOAL", conflicts_with_all = ["advise", "json", "pairs", "watch"])]
    pub plan: Option<PlanGoal>,
    /// Draw the cluster
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// List every pair of max groups that overlap, however many there are
    #[arg(long)]
    pub pairs: bool,
    /// Go on, and tell again whenever the cluster has changed
    #[arg(long)]
    pub watch: bool,
    /// Interval at which --watch looks, as 5s
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "5s")]
    pub interval: Duration,
}

/// Where the cluster is described.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Source {
    /// Ask a live cluster, by its brokers' plain listeners
    #[arg(long, value_name = "HOST:PORT[,HOST:PORT…]")]
    pub bootstrap: Option<String>,
    /// Read it: {"nodes": [1,2,3], "topics": {"A": [[1,2],[2,3]]}}, for each partition its replicas,
    /// leader first
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Goals of a plan.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum PlanGoal {
    /// No two max groups share a node
    NoOverlap,
    /// One max group on all nodes
    CompleteOverlap,
    /// The best balance that --moves can give
    WithinMoves,
}

/// The shortest interval: below it, watching would be a load of its own.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Runs it.
///
/// # Errors
/// No broker answers; the file cannot be read or is no cluster; there is no such plan; the picture or
/// standard output cannot be written.
pub(super) fn run(args: &TopologyArgs) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    printed(look(args, &mut code))?;
    Ok(code)
}

/// Once, or with `--watch` until nobody reads any more.
fn look(args: &TopologyArgs, code: &mut ExitCode) -> anyhow::Result<()> {
    let mut cluster = read(args)?;
    if let Some(goal) = args.plan {
        return print_plan(&cluster, args, goal);
    }
    tell(&cluster, args, code)?;
    if !args.watch {
        return Ok(());
    }
    loop {
        std::thread::sleep(args.interval.max(INTERVAL_MIN));
        match read(args) {
            Ok(now) if now != cluster => {
                tell(&now, args, code)?;
                cluster = now;
            }
            Ok(_) => {}
            // A file may be being written just now, a broker starting.
            Err(error) => warn(&error),
        }
    }
}

/// Prints the findings. Sets the exit code first: a reader that closes the output after some lines
/// gets the verdict nevertheless.
fn tell(cluster: &Cluster, args: &TopologyArgs, code: &mut ExitCode) -> anyhow::Result<()> {
    let findings = Findings::of(cluster, args);
    *code = if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    if let Some(path) = &args.svg {
        let written = std::fs::write(path, drawing(cluster));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.json {
        document::write(&mut out, &findings)?;
    } else {
        text::write(&mut out, &findings)?;
    }
    Ok(out.flush()?)
}

fn print_plan(cluster: &Cluster, args: &TopologyArgs, goal: PlanGoal) -> anyhow::Result<()> {
    let goal = match goal {
        PlanGoal::NoOverlap => Goal::NoOverlap,
        PlanGoal::CompleteOverlap => Goal::CompleteOverlap,
        PlanGoal::WithinMoves => Goal::WithinMoves,
    };
    let advice = Advice::of(cluster, args.moves as usize);
    let found = advice.plans.iter().find(|plan| plan.goal == goal);
    let Some(plan) = found else {
        let reason = advice.not_offered.iter().find(|(other, _)| *other == goal);
        let reason = reason.map_or(String::new(), |(_, reason)| format!(": {reason}"));
        anyhow::bail!("--plan {}: there is none{reason}", goal.name());
    };
    let mut text = serde_json::to_string(&plan.reassignment.for_kafka(cluster))?;
    text.push('\n');
    printed(
        std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(Into::into),
    )
}

fn read(args: &TopologyArgs) -> anyhow::Result<Cluster> {
    let mut cluster = match (&args.source.bootstrap, &args.source.file) {
        (Some(brokers), _) => Cluster::new(bootstrap::describe(brokers)?)?,
        (None, Some(file)) => read_file(file)?,
        (None, None) => anyhow::bail!("--bootstrap or --file is needed"),
    };
    if !args.rates.is_empty() {
        cluster.set_rates(0.0);
    }
    for (topic, rate) in &args.rates {
        cluster.set_rate(topic, *rate).context("--rate")?;
    }
    Ok(cluster)
}

fn read_file(path: &Path) -> anyhow::Result<Cluster> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let description = serde_json::from_slice(&text);
    let description = description.with_context(|| path.display().to_string())?;
    Cluster::new(description).with_context(|| path.display().to_string())
}

fn rate(text: &str) -> Result<(String, f64), String> {
    // A topic's name has no `=`.
    let parted = text.split_once('=');
    let (topic, rate) = parted.ok_or_else(|| "is not TOPIC=RATE".to_owned())?;
    let rate = rate.parse().map_err(|_| format!("{rate:?} is no number"))?;
    Ok((topic.to_owned(), rate))
}

#[expect(clippy::print_stderr, reason = "a command's remark")]
fn warn(error: &anyhow::Error) {
    eprintln!("airmail: {error:#}");
}
