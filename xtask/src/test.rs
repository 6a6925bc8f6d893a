//! `cargo xtask test`: brings what the tests need, then runs all of them: cargo's, then Maven's.
//!
//! The counts that a test runs at are small by default, for continuous integration; the options
//! here ask for more. They reach the tests as `AIRMAIL_TEST_*`.

use crate::maven;
use crate::process::{self, cargo};
use crate::tools::Tools;

/// How much to test.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// After the tests, run this many seeds of the simulator.
    #[arg(long)]
    seeds: Option<u64>,
    /// Lines of a log file to publish, read back and compare.
    #[arg(long)]
    lines: Option<u64>,
    /// Times to kill the server with publisher and subscriber left running.
    #[arg(long)]
    kills: Option<u64>,
    /// Size of the backlog that a late subscriber reads, in MiB.
    #[arg(long)]
    backlog_mib: Option<u64>,
    /// Fail if a tool that a test wants cannot be brought, rather than leave that test out.
    #[arg(long)]
    all_tools: bool,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

/// Brings the tools and runs the tests.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let tools = Tools::bring(options.all_tools)?;
    let mut tests = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    tests.args(&options.filter);
    tests.env("AIRMAIL_TEST_TOOLS", tools.directory());
    for (name, count) in [
        ("AIRMAIL_TEST_LINES", options.lines),
        ("AIRMAIL_TEST_KILLS", options.kills),
        ("AIRMAIL_TEST_BACKLOG_MIB", options.backlog_mib),
    ] {
        if let Some(count) = count {
            tests.env(name, count.to_string());
        }
    }
    process::run(&mut tests)?;
    // A filter names tests of cargo's.
    if options.filter.is_none() && maven::find().is_ok() {
        maven::verify()?;
    }
    if let Some(seeds) = options.seeds {
        let seeds = seeds.to_string();
        let run = [
            "run",
            "--release",
            "--locked",
            "-p",
            "airmail-sim",
            "--",
            "--seeds",
            &seeds,
        ];
        process::run(&mut cargo(&run))?;
    }
    Ok(())
}
