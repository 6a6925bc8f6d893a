//! Common parts of all experiments with real nodes: their options, and their ends.

use crate::hosts::HostsArgs;
use crate::narration::print;
use crate::{clients, copilots, flow, modes, overload, partitioners, pilot, rivals, size};
use airmail_bench::family::Stop;
use airmail_experiments::results::Findings;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The experiments.
#[derive(clap::Subcommand, Clone, Debug)]
pub(crate) enum Experiment {
    /// Limiters on a real node: topics, distributions, storages (figures 5.4 to 5.23 of RocketSpeed's
    /// paper)
    Flow(Box<flow::FlowArgs>),
    /// Many clients: time of a round and time-outs, up to 2,000 in steps, then 20,000 (figures 3 to 9 of
    /// the publisher/subscriber service's paper)
    Clients(clients::ClientsArgs),
    /// One node beside several as one service, each with the same part of a core: rounds of clients, how many
    /// there may be, and many publishers (figures 3, 5 and 6 of the publisher/subscriber service's paper)
    Modes(modes::ModesArgs),
    /// A tower with 1, 2 and 4 copilots before it: throughput, latency, and bytes on each copilot's link
    ///
    /// Copilots run on this machine, each held to a part of a core; with --hosts on those of its lines that
    /// begin with copilot, or else on the node's. Nodes of several machines need --node=--secret-file=PATH
    /// with a file that is on each
    Copilots(copilots::CopilotsArgs),
    /// Payloads of 16 bytes to 1 MiB: throughput and latency
    Size(size::SizeArgs),
    /// A tenth to ten times the node's capacity: goodput, refusals, latency and memory
    Overload(overload::OverloadArgs),
    /// Partitioners for Kafka's producers: two brokers as in the paper's tables 7.1 to 7.18, then three,
    /// with faults
    Partitioners(Box<partitioners::PartitionersArgs>),
    /// A pilot on Kafka beside librdkafka alone: rate, topics, latency, and several pilots
    Pilot(Box<pilot::PilotArgs>),
    /// The common workloads beside NATS, JetStream, Redis Streams and Kafka
    Rivals(rivals::RivalsArgs),
}

/// Options of all experiments.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CommonArgs {
    /// A sample of the cases, in at most two minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where tables, pictures and the page go [default: airmail-experiments]
    #[arg(long, value_name = "DIR", default_value = "airmail-experiments")]
    pub(crate) out: PathBuf,
    /// Print a line of JSON for each row
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) hosts: HostsArgs,
}

/// Runs it: 0 if all messages were accounted for, else 1. When `stop` is set, the run under way ends.
///
/// # Errors
/// A node cannot be started or reached, or the files cannot be written.
pub(crate) fn run(experiment: &Experiment, stop: &Stop) -> anyhow::Result<ExitCode> {
    match experiment {
        Experiment::Flow(args) => flow::run(args, stop),
        Experiment::Clients(args) => clients::run(args, stop),
        Experiment::Modes(args) => modes::run(args, stop),
        Experiment::Copilots(args) => copilots::run(args, stop),
        Experiment::Size(args) => size::run(args, stop),
        Experiment::Overload(args) => overload::run(args, stop),
        Experiment::Partitioners(args) => partitioners::run(args, stop),
        Experiment::Pilot(args) => pilot::run(args, stop),
        Experiment::Rivals(args) => rivals::run(args, stop),
    }
}

pub(crate) fn finish(findings: &Findings, args: &CommonArgs) -> anyhow::Result<()> {
    tell(findings, &args.out, args.json)
}

/// Writes the findings, and prints their rows or tables.
#[expect(clippy::print_stderr, reason = "standard output is for the rows")]
pub(crate) fn tell(findings: &Findings, out: &Path, json: bool) -> anyhow::Result<()> {
    let page = findings.write(out)?;
    if json {
        for row in &findings.rows {
            print(&format!("{}\n", serde_json::to_string(row)?))?;
        }
    } else {
        print(&findings.to_string())?;
    }
    eprintln!("airmail-lab: the report is {}", page.display());
    Ok(())
}
