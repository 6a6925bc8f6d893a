//! Airmail's workshop: one entry for whoever builds it, and for continuous integration.
//!
//! `verify` looks at everything and changes nothing; `fix` mends what a machine can mend; `test`
//! brings the tools that the tests use and runs them all; `tidy` is the house rules alone.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command line"
)]

mod fix;
mod process;
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
    /// Check the house rules only.
    Tidy,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Verify(options) => verify::run(&options),
        Task::Fix => fix::run(),
        Task::Test(options) => test::run(&options),
        Task::Tidy => tidy::run(),
    }
}
