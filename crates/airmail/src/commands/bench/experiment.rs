//! `airmail bench experiment`: the papers' experiments, and ours; each is one command that runs many
//! cases, repeats them, and leaves tables, pictures and one page.

mod clients;
mod flow;
mod flow_control;
mod measured_node;
mod narration;
mod overload;
mod partitioners;
mod rivals;
mod size;
mod stop;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airmail_bench::experiment::Findings;

use super::hosts::HostsArgs;
use crate::commands::lines;
pub(super) use clients::{be_a_crowd, hold, publish_rounds};
pub(super) use flow::take_flight;
pub(super) use narration::say;
pub(super) use overload::offer;
pub(super) use partitioners::keep_brokers;

pub(super) use rivals::keep_server;
pub(super) use stop::Stop;

/// Arguments of `airmail bench experiment`.
#[derive(clap::Args, Clone, Debug)]
pub struct ExperimentArgs {
    /// Which one
    #[command(subcommand)]
    pub experiment: Experiment,
}

/// The experiments.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum Experiment {
    /// Limiters on a real node: topics, distributions, storages (figures 5.4 to 5.23 of RocketSpeed's
    /// paper)
    Flow(Box<flow::FlowArgs>),
    /// Many clients: time of a round and time-outs, up to 2,000 in steps, then 20,000 (figures 3 to 9 of
    /// the publisher/subscriber service's paper)
    Clients(clients::ClientsArgs),
    /// Payloads of 16 bytes to 1 MiB: throughput and latency
    Size(size::SizeArgs),
    /// A tenth to ten times what the node can do: what gets done, what is refused, what it takes
    Overload(overload::OverloadArgs),
    /// Partitioners for Kafka's producers: two brokers as in the paper's tables 7.1 to 7.18, then three,
    /// with faults
    Partitioners(Box<partitioners::PartitionersArgs>),
    /// The common workloads beside NATS, JetStream, Redis Streams and Kafka
    Rivals(rivals::RivalsArgs),
}

/// What all experiments are asked.
#[derive(clap::Args, Clone, Debug)]
pub struct CommonArgs {
    /// A sample of the cases, in at most two minutes
    #[arg(long)]
    pub quick: bool,
    /// Where tables, pictures and the page go [default: airmail-experiments]
    #[arg(long, value_name = "DIR", default_value = "airmail-experiments")]
    pub out: PathBuf,
    /// Print a line of JSON for each row
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// Runs it: 0 if all messages were accounted for, else 1.
///
/// # Errors
/// A node cannot be started or reached, or the files cannot be written.
pub(super) fn run(args: &ExperimentArgs) -> anyhow::Result<ExitCode> {
    run_until(args, &Stop::on_ctrl_c()?)
}

/// As [`run`]; when `stop` is set, what is under way ends.
///
/// # Errors
/// As [`run`].
pub(super) fn run_until(args: &ExperimentArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    match &args.experiment {
        Experiment::Flow(args) => flow::run(args, stop),
        Experiment::Clients(args) => clients::run(args, stop),
        Experiment::Size(args) => size::run(args, stop),
        Experiment::Overload(args) => overload::run(args, stop),
        Experiment::Partitioners(args) => partitioners::run(args, stop),
        Experiment::Rivals(args) => rivals::run(args, stop),
    }
}

fn finish(findings: &Findings, args: &CommonArgs) -> anyhow::Result<()> {
    tell(findings, &args.out, args.json)
}

/// Writes what was found, and prints its rows or its tables.
#[expect(clippy::print_stderr, reason = "standard output is for the rows")]
pub(super) fn tell(findings: &Findings, out: &Path, json: bool) -> anyhow::Result<()> {
    let page = findings.write(out)?;
    if json {
        for row in &findings.rows {
            lines::say(&format!("{}\n", serde_json::to_string(row)?))?;
        }
    } else {
        lines::say(&findings.to_string())?;
    }
    eprintln!("airmail: the report is {}", page.display());
    Ok(())
}
