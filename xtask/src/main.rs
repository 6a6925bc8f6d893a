//! Airmail's workshop: one entry for developers and for continuous integration.
//!
//! `verify` looks at everything and changes nothing; `fix` mends what a machine can mend; `test`
//! brings the tools that the tests use and runs them all; `tidy` is the house rules alone; `prove`
//! kills, fills and damages a real node as often as one asks; `rivals` measures it beside others,
//! whose `servers` it can bring; `pairs` measures two versions of it in turn; `partitioners`
//! measures ours on live brokers of Kafka; `fuzz` fuzzes every decoder and core with libFuzzer.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command line"
)]

mod fix;
mod fuzz;
mod kafka;
mod maven;
mod overseen;
mod pairs;
mod partitioners;
mod parts;
mod process;
mod prove;
mod quartiles;
mod rivals;
mod servers;
mod test;
mod tidy;
mod tools;
mod verify;
mod workspace;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Airmail's workshop", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check format, lints, tests, documentation and house rules; changes nothing.
    Verify(verify::Options),
    /// Format, and apply what clippy can mend.
    Fix,
    /// Bring the tools that tests use, then run all tests.
    Test(test::Options),
    /// Build the fuzz targets and give each a number of inputs; the canary must be found.
    Fuzz(fuzz::Options),
    /// Check the house rules only.
    Tidy,
    /// Measure Airmail beside other systems, which are fetched, started and stopped.
    Rivals(rivals::Options),
    /// Measure two versions of Airmail in turn: ratios of rates, times and processor time.
    Pairs(Box<pairs::Options>),
    /// Measure the partitioners for Kafka on live brokers, which are fetched, started and stopped.
    Partitioners(partitioners::Options),
    /// Bring the servers that `airmail-lab rivals` and `partitioners` measure.
    Servers(servers::Options),
    /// Hurt the real binary, or watch it for long, as often as one asks.
    Prove(prove::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Verify(options) => verify::run(&options),
        Task::Fix => fix::run(),
        Task::Test(options) => test::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Tidy => tidy::run(),
        Task::Rivals(options) => rivals::run(&options),
        Task::Pairs(options) => pairs::run(&options),
        Task::Partitioners(options) => partitioners::run(&options),
        Task::Servers(options) => servers::run(&options),
        Task::Prove(options) => prove::run(&options),
    }
}
