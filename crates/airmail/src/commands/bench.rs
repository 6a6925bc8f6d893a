//! `airmail bench`: measures a node, by default one that it starts for the purpose, or a rival.

mod filters;
mod isolation;
mod lanes;
mod late;
mod measured;
mod memory;
mod options;
mod serving;

use crate::cli::UsageError;
use crate::commands::lines::say;
use crate::commands::status_line::{StatusLine, rate};
use airmail_bench::family::own_node::directory;
use airmail_bench::family::place::Program;
use airmail_bench::family::{self, bystander, leader};
use airmail_bench::part::Part;
use airmail_bench::process::Usage;
use airmail_bench::run::Job;
use airmail_bench::{Progress, Report, Settings, Target, csv, disk, html, settings};
use anyhow::{Context as _, bail};
use futures::FutureExt as _;
use measured::Measured;
use options::LoadArgs;
use serde::Serialize;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The helpers of a run, as this program is started for them.
const PART: Program = Program::own(&["bench", "part"]);
const NODE: Program = Program::own(&["bench", "node"]);
const BYSTANDER: Program = Program::own(&["bench", "bystander"]);

/// Arguments of `airmail bench`.
#[derive(clap::Args, Debug)]
pub struct BenchArgs {
    /// The workload to measure.
    #[command(subcommand)]
    pub workload: Workload,
}

/// Workloads that can be measured.
#[derive(clap::Subcommand, Debug)]
pub enum Workload {
    /// Publishing to the ack: rate and latency
    Pub(LoadArgs),
    /// Receiving others' messages, or stored ones; ends with --messages, with --duration, or
    /// when nothing has come for 10 s
    Sub(LoadArgs),
    /// From publish to delivery: rate and latency, with loss, duplicates and order counted
    E2e(LoadArgs),
    /// From publish to delivery at a rate, each message from when it was due
    Latency(LoadArgs),
    /// From one publisher to many subscribers, each on a connection of its own
    Fanout(LoadArgs),
    /// Cost, to other subscribers, of one that stops reading, one at 1 % speed, and one that begins
    /// at the earliest stored message
    Isolation(isolation::IsolationArgs),
    /// Many subscribers that begin behind, each of a topic of its own and elsewhere in one log: how often the
    /// log is read for them, and how long they take
    Late(late::LateArgs),
    /// Memory of a node: for each topic published to, each subscription, each producer
    Topics(memory::TopicsArgs),
    /// Memory of a node: for each idle connection with a subscription, each further stream on it
    Clients(memory::ClientsArgs),
    /// Very many filters: how many messages a second one core holds against them, by the index and by a loop; or, with
    /// --streams, how many a node holds against them and delivers
    Filters(filters::FiltersArgs),
    /// A flood of one lane, and beside it the other one: how long each waits, and what each gets
    Lanes(lanes::LanesArgs),
    /// The disk alone: writing and syncing 4 KiB into a file that was written before
    Disk(DiskArgs),
    /// A share of a run over several processes
    #[command(hide = true)]
    Part,
    /// A node that ends with its standard input
    #[command(hide = true)]
    Node,
    /// A subscriber that others are measured beside
    #[command(hide = true)]
    Bystander,
}

/// Arguments of `airmail bench disk`.
#[derive(clap::Args, Debug)]
pub struct DiskArgs {
    /// Time for which to write, as 10s
    #[arg(long, value_name = "TIME", value_parser = settings::milliseconds, default_value = "10s")]
    pub duration: u64,
    /// Writes a second at most; one that takes longer than its turn puts off the next
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub rate: u64,
    /// Where the file is meanwhile [default: /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs it: 0 if every message arrived once and in order, else 1.
///
/// # Errors
/// The node cannot be started or reached.
pub fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let paced = match &args.workload {
        Workload::Part => return Ok(leader::tell_failure(family::take_part())?),
        Workload::Node => return Ok(leader::tell_failure(serving::serve())?),
        Workload::Bystander => return Ok(leader::tell_failure(bystander::stand_by())?),
        Workload::Isolation(args) => return isolation::isolation(args),
        Workload::Filters(args)
            if args.delivered.streams.is_none() && args.delivered.backlog.is_none() =>
        {
            return filters::filters(args);
        }
        Workload::Latency(_) => true,
        Workload::E2e(args) | Workload::Pub(args) | Workload::Fanout(args) => args.rate.is_some(),
        _ => false,
    };
    let runtime = family::runtime(paced)?;
    let result = runtime.block_on(choose(args).boxed_local());
    runtime.shutdown_background();
    result
}

async fn choose(args: BenchArgs) -> anyhow::Result<ExitCode> {
    use airmail_bench::Workload as Kind;
    let (kind, args) = match args.workload {
        Workload::Pub(args) => (Kind::Pub, args),
        Workload::Sub(args) => (Kind::Sub, args),
        Workload::E2e(args) => (Kind::E2e, args),
        Workload::Latency(args) => (Kind::Latency, args),
        Workload::Fanout(args) => (Kind::Fanout, args),
        Workload::Late(args) => return late::late(&args).await,
        Workload::Filters(args) => return filters::delivered(&args).await,
        Workload::Lanes(args) => return lanes::lanes(&args).await,
        Workload::Topics(args) => return memory::topics(&args).await,
        Workload::Clients(args) => return memory::clients(&args).await,
        Workload::Disk(args) => return measure_disk(&args),
        Workload::Part | Workload::Node | Workload::Bystander | Workload::Isolation(_) => {
            bail!("has a runtime of its own")
        }
    };
    let settings = args.settings(kind)?;
    let target = args.target.clone();
    let report = measure(&args, settings, target).await?;
    args.report
        .write(|| csv::table(&report.samples), || html::page(&report))?;
    print(&report, report.is_sound(), args.report.json)?;
    Ok(ExitCode::from(u8::from(!report.is_sound())))
}

async fn measure(
    args: &LoadArgs,
    mut settings: Settings,
    target: Option<String>,
) -> anyhow::Result<Report> {
    let id = std::process::id();
    let node = match target {
        Some(_) => None,
        None => Some(start_node(args).context("cannot start a node to measure")?),
    };
    let own_namespace = node.is_none() && args.durability.is_some();
    if own_namespace {
        settings.namespace = format!("bench-{id:08x}");
    }
    let url = target
        .or_else(|| node.as_ref().map(Measured::url))
        .unwrap_or_default();
    let target: Target = url
        .parse()
        .map_err(|unknown| UsageError(format!("--{unknown}")))?;
    let name = args.name.clone().unwrap_or_else(|| format!("{id:08x}"));
    let job = Job {
        target: url,
        own_namespace,
        id: args.name.as_deref().map_or(id, number_of),
        prefix: format!("bench/{name}"),
        settings,
        ..Job::default()
    };
    let pids = args.pid.map(|pid| vec![pid]);
    let pids = pids.or_else(|| node.as_ref().map(Measured::pids));
    let usage = || pids.as_deref().map(Usage::of_all);
    let before = usage();
    let settings = job.settings.clone();
    let part = run_job(&target, job).await?;
    let usage = usage()
        .zip(before)
        .map(|(after, before)| after.since(&before));
    Ok(Report::new(target.name(), settings, part, usage))
}

async fn run_job(target: &Target, job: Job) -> anyhow::Result<Part> {
    if job.settings.processes > 1 {
        return Ok(family::lead(PART, &job)?);
    }
    let progress = Arc::new(Progress::default());
    let watch = show(job.settings.clone(), Arc::clone(&progress));
    tokio::select! {
        part = target.run_alone(job, progress) => Ok(part?),
        never = watch => match never {},
    }
}

#[expect(clippy::print_stderr, reason = "what a figure depends on")]
fn start_node(args: &LoadArgs) -> anyhow::Result<Measured> {
    let durability = args.durability.as_ref();
    let durability = durability.map(|durability| format!("--durability={durability}"));
    let node = args.node.start(durability, &[])?;
    eprintln!(
        "airmail: measuring a node with its data in {}",
        node.data().display()
    );
    Ok(node)
}

/// The same number for the same name (FNV-1a), so that `pub` and `sub` know one another's messages.
fn number_of(name: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5, mix)
}

fn measure_disk(args: &DiskArgs) -> anyhow::Result<ExitCode> {
    let directory = directory(args.directory.as_deref())?;
    let report = disk::measure(&directory.path().join("file"), args.duration, args.rate)?;
    if args.json {
        say(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        let (writes, p50, p99) = (report.writes, report.p50_us, report.p99_us);
        say(&format!(
            "{writes} writes of 4 KiB, each synced: p50 {p50} us, p99 {p99} us\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &PathBuf, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[expect(clippy::print_stderr, reason = "a command's result")]
fn print<R: Serialize + Display>(report: &R, is_sound: bool, json: bool) -> anyhow::Result<()> {
    if json {
        say(&format!("{}\n", serde_json::to_string(report)?))?;
    } else {
        say(&report.to_string())?;
    }
    if !is_sound {
        eprintln!("airmail: not every message arrived once and in order");
    }
    Ok(())
}

/// Shows the deliveries, if standard error is a terminal. Does not end by itself.
async fn show(settings: Settings, progress: Arc<Progress>) -> std::convert::Infallible {
    let mut line = StatusLine::begin();
    let of = settings.deliveries().map(|all| format!(" of {all}"));
    let of = of.unwrap_or_default();
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let done = progress.delivered().max(progress.acknowledged());
        line.show(|since| format!("messages{of}: {}", rate(done, since)));
    }
}
