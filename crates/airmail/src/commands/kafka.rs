//! `airmail kafka`: for operators of Kafka clusters, with no node of ours.

mod bootstrap;
mod metadata;
mod topology;

use crate::cli::UsageError;
use std::process::ExitCode;

/// Arguments of `airmail kafka`.
#[derive(clap::Args, Debug)]
pub struct KafkaArgs {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on a Kafka cluster.
#[derive(clap::Subcommand, Debug)]
pub enum Action {
    /// Tell whether a cluster is balanced, what would unbalance it, and what to move
    ///
    /// Exit code 0: balanced. 1: something was found, with --faults also that a fault would unbalance
    /// something. 2: it cannot be told, as no broker answers or the file cannot be read.
    Topology(topology::TopologyArgs),
}

/// Runs it.
///
/// # Errors
/// It cannot be told: always exit code 2, as 1 says that something was found.
pub fn run(args: &KafkaArgs) -> anyhow::Result<ExitCode> {
    let Action::Topology(args) = &args.action;
    topology::run(args).map_err(|error| UsageError(format!("{error:#}")).into())
}
