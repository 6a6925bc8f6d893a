//! The command line: its grammar, and the choice of the command that runs.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage. Errors go to standard error as `airmail-lab: …`.

use crate::experiment::{self, Experiment};
use crate::{
    flow, hold, mailbox, narration, overload, partitioners, rivals, rounds, scenario, virtual_time,
};
use airmail_bench::family::place::Program;
use airmail_bench::family::{self, Stop, bystander, leader};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The helpers of a run, as this program is started for them.
pub(crate) const PART: Program = Program::own(&["part"]);
pub(crate) const DATABASE: Program = Program::own(&["database"]);
pub(crate) const SERVER: Program = Program::own(&["server"]);
pub(crate) const BYSTANDER: Program = Program::own(&["bystander"]);
pub(crate) const CROWD: Program = Program::own(&["crowd"]);
pub(crate) const ROUNDS: Program = Program::own(&["rounds"]);
pub(crate) const BROKERS: Program = Program::own(&["brokers"]);
pub(crate) const HOLD: Program = Program::own(&["hold"]);
pub(crate) const FLIGHT: Program = Program::own(&["flight"]);
pub(crate) const OFFER: Program = Program::own(&["offer"]);
/// The node: the product, which is beside this program.
pub(crate) const NODE: Program = Program::beside("airmail", &["bench", "node"]);

/// The papers' experiments, and ours.
#[derive(Debug, Parser)]
#[command(name = "airmail-lab", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Distance of each limiter from the knee, on servers and on models of a node, and its recovery when the
    /// capacity has been halved or doubled; in virtual time
    Limiters(virtual_time::LimitersArgs),
    /// Waits of jobs under each way to spread them over queues, and the messages that it takes; in
    /// virtual time
    Dispatch(virtual_time::RunArgs),
    #[command(flatten)]
    Experiment(Experiment),
    /// The experiments on mailboxes, on a PostgreSQL that is started for them
    Mailbox(mailbox::MailboxArgs),
    /// Several experiments, one after the other, as a file says
    Scenario(scenario::ScenarioArgs),
    #[command(flatten)]
    Helper(Helper),
}

/// Processes of a run: each is told what to do on standard input, and ends with it.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Helper {
    /// A share of a run over several processes
    #[command(hide = true)]
    Part,
    /// A PostgreSQL server that ends with its standard input
    #[command(hide = true)]
    Database,
    /// A rival's server that ends with its standard input
    #[command(hide = true)]
    Server,
    /// A subscriber that others are measured beside
    #[command(hide = true)]
    Bystander,
    /// Many clients of an experiment
    #[command(hide = true)]
    Crowd,
    /// The publisher of rounds to them
    #[command(hide = true)]
    Rounds,
    /// Kafka's brokers, each held to a part of the machine
    #[command(hide = true)]
    Brokers,
    /// The process that holds a node to a part of its machine
    #[command(hide = true)]
    Hold,
    /// Publishers that hold themselves to a limiter, each with its subscriber
    #[command(hide = true)]
    Flight,
    /// A share of an overload
    #[command(hide = true)]
    Offer,
}

/// The command line was well formed but asks for something that cannot be: exit code 2.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Reads the command line, runs the command, and gives its exit code.
pub(crate) fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            narration::say(&format!("{error:#}"));
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Limiters(args) => virtual_time::limiters(&args),
        Command::Dispatch(args) => virtual_time::dispatch(&args),
        Command::Experiment(experiment) => experiment::run(&experiment, &Stop::on_ctrl_c()?),
        Command::Mailbox(args) => mailbox::run(&args),
        Command::Scenario(args) => scenario::run(&args),
        Command::Helper(helper) => Ok(leader::tell_failure(help(helper))?),
    }
}

fn help(helper: Helper) -> anyhow::Result<ExitCode> {
    match helper {
        Helper::Part => Ok(family::take_part()?),
        Helper::Bystander => Ok(bystander::stand_by()?),
        Helper::Database => mailbox::keep(),
        Helper::Server => rivals::server::keep_server(),
        Helper::Crowd => rounds::be_a_crowd(),
        Helper::Rounds => rounds::publish_rounds(),
        Helper::Brokers => partitioners::keep_brokers(),
        Helper::Hold => hold::hold(),
        Helper::Flight => flow::take_flight(),
        Helper::Offer => overload::offer(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
