//! `airmail-lab mailbox`: the experiments of the Paštas report (chapters 2, 3 and 6),
//! and ours, on nodes and a PostgreSQL that are started for them.
//!
//! One table has all experiments ([`plan`]): the cases of each, which differ by a few factors, and
//! its figures. One runner runs any case ([`runner`]), one report shows any experiment
//! ([`report`]), drawn from a file that has every call.

mod case;
mod database;
mod pgbench;
mod plan;
mod report;
mod results;
mod runner;
mod sampling;
mod service;
mod statements;

use crate::cli::UsageError;
use crate::experiment::tell;
use airmail_bench::family::Stop;
use airmail_bench::settings::milliseconds;
use airmail_experiments::mailbox::record::{Reader, Recorder};
use airmail_experiments::results::machine;
use plan::{Plan, Scale};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) use database::keep;

/// Arguments of `airmail-lab mailbox`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct MailboxArgs {
    /// The experiment
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
}

/// The experiments.
#[derive(clap::Subcommand, Clone, Debug)]
pub(crate) enum Experiment {
    /// The paper's workload, beside the bare statements through pgbench: 10 clients, 2 nodes, 200 and
    /// 2,000 bytes (table 6.2, section 6.3.5)
    Workload(RunArgs),
    /// A request that the database is not asked for, on one node and on two (figures 3.5 to 3.8)
    Ping(RunArgs),
    /// Many messages in a request, beside one statement a message, as pgmq works
    Batch(RunArgs),
    /// Throughput and times over an hour, also beside a transaction that is held open (figures 6.3 to
    /// 6.10)
    Stability(RunArgs),
    /// 10^3 to 10^7 messages that nobody reads (what chapter 7 left open)
    Backlog(RunArgs),
    /// Threads, connections and clients, on one, two and four nodes (figures 6.11 to 6.22)
    Factors(RunArgs),
    /// The database alone, by connections (figures 2.7 and 2.8)
    Database(RunArgs),
    /// Bytes of a message (figure 6.23)
    Size(RunArgs),
    /// Where the time of a request goes (figure 6.24)
    Time(RunArgs),
    /// The report of an experiment again, from its record
    Report(ReportArgs),
}

/// Options of every experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// A sample of the cases, in at most two minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Time for which each case is measured, as 30s or 60m, without warm-up and cool-down
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) duration: Option<u64>,
    /// Number of repetitions of everything
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u32>,
    /// Connections of each node to the database, one case for each of several [default: as the experiment
    /// has them]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: Vec<u32>,
    /// Only the cases whose names, which are told when they begin, have this in them, as `held open`
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// The PostgreSQL server to use, as postgres://USER@HOST/DATABASE; USER makes databases beside that
    /// one, and drops them [default: one that is started on the loopback, with its own defaults]
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Where a server that is started keeps its data meanwhile [default: /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// Where a report goes.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OutArgs {
    /// Where tables, pictures, the page and the record of all calls go
    #[arg(long, value_name = "DIR", default_value = "airmail-experiments")]
    pub(crate) out: PathBuf,
    /// Print a line of JSON for each row
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `airmail-lab mailbox report`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// The record that an experiment has left: mailbox-NAME.sqlite
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// Description of an experiment in its record.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Document {
    /// Its name in the table.
    experiment: String,
    /// Where it was measured.
    machine: String,
    /// The server that it was measured on.
    server: String,
    quick: bool,
    rounds: u32,
}

/// Runs it: 0, or 1 if any request failed.
///
/// # Errors
/// PostgreSQL or a node cannot be started, or the files cannot be written.
pub(super) fn run(args: &MailboxArgs) -> anyhow::Result<ExitCode> {
    let (name, args) = match &args.experiment {
        Experiment::Workload(args) => ("workload", args),
        Experiment::Ping(args) => ("ping", args),
        Experiment::Batch(args) => ("batch", args),
        Experiment::Stability(args) => ("stability", args),
        Experiment::Backlog(args) => ("backlog", args),
        Experiment::Factors(args) => ("factors", args),
        Experiment::Database(args) => ("database", args),
        Experiment::Size(args) => ("size", args),
        Experiment::Time(args) => ("time", args),
        Experiment::Report(args) => return draw(&args.file, &args.out),
    };
    let plan = plan::find(name).ok_or_else(|| UsageError(name.to_owned()))?;
    let scale = Scale::new(plan, args);
    if plan.cases(&scale, 0).is_empty() {
        let names = plan
            .all(args.quick)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        return Err(UsageError(format!(
            "--only {}: no case has that in its name; they are: {}",
            args.only.as_deref().unwrap_or_default(),
            names.join("; ")
        ))
        .into());
    }
    let stop = Stop::on_ctrl_c()?;
    std::fs::create_dir_all(&args.out.out)?;
    let record = args.out.out.join(format!("mailbox-{name}.sqlite"));
    measure(plan, &scale, args, &stop, &record)?;
    draw(&record, &args.out)
}

fn measure(
    plan: &Plan,
    scale: &Scale,
    args: &RunArgs,
    stop: &Stop,
    record: &Path,
) -> anyhow::Result<()> {
    let needs_database = plan.cases(scale, 0).iter().any(case::Case::needs_database);
    let runner = runner::Runner::new(args, needs_database, stop)?;
    let document = Document {
        experiment: plan.name.to_owned(),
        machine: machine(),
        server: runner.server().to_owned(),
        quick: args.quick,
        rounds: scale.rounds,
    };
    let mut recorder = Recorder::create(record, &document)?;
    let ran = runner.run(plan, scale, &mut recorder);
    if stop.is_set() {
        recorder.note("It was stopped before its end.")?;
    }
    recorder.close()?;
    match ran {
        Err(error) if !stop.is_set() => Err(error),
        _ => Ok(()),
    }
}

/// Draws the report of a record.
fn draw(record: &Path, out: &OutArgs) -> anyhow::Result<ExitCode> {
    let reader = Reader::open(record)?;
    let document: Document = reader.experiment()?;
    let plan = plan::find(&document.experiment)
        .ok_or_else(|| anyhow::anyhow!("{}: no experiment is called that", document.experiment))?;
    let results = results::read(&reader)?;
    tell(
        &report::findings(plan, &document, &reader, &results)?,
        &out.out,
        out.json,
    )?;
    let failed: u64 = results.iter().map(|result| result.failed).sum();
    Ok(ExitCode::from(u8::from(failed > 0)))
}
