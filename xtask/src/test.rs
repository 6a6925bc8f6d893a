//! `cargo xtask test`: brings the tests' tools, then runs all tests: cargo's, then Maven's.
//!
//! The counts that a test runs at are small by default, for continuous integration; the options
//! here ask for more. They reach the tests as `AIRMAIL_TEST_*`.

use crate::maven;
use crate::overseen;
use crate::parts::Parts;
use crate::process::{self, cargo};
use crate::tools::{Tools, Without};

/// Feature with which `airmail` is built for tests, for options that only tests want. It is the
/// same everywhere, so that nothing is compiled a second time.
pub(crate) const TEST_SWITCHES: &str = "--features=airmail/test-switches";

/// The amount of testing.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Number of seeds of the simulator to run after the tests.
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
    /// Leave out the tests that want this: they say so, loudly, and nothing is shown by them. A tool
    /// that is not there and not left out is a failure.
    #[arg(long, value_enum, value_delimiter = ',')]
    without: Vec<Without>,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

/// Brings the tools and runs the tests.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut parts = Parts::of("test");
    let tools = parts.part("tools", || Tools::bring(&options.without))?;
    let all = ["test", "--workspace", TEST_SWITCHES, "--locked"];
    parts.part("build", || process::run(cargo(&all).arg("--no-run")))?;
    let mut tests = cargo(&all);
    tests.arg("--no-fail-fast").args(&options.filter);
    tests.env("AIRMAIL_TEST_TOOLS", tools.directory());
    let without: Vec<&str> = options.without.iter().map(|one| one.name()).collect();
    tests.env("AIRMAIL_TEST_WITHOUT", without.join(","));
    for (name, count) in [
        ("AIRMAIL_TEST_LINES", options.lines),
        ("AIRMAIL_TEST_KILLS", options.kills),
        ("AIRMAIL_TEST_BACKLOG_MIB", options.backlog_mib),
    ] {
        if let Some(count) = count {
            tests.env(name, count.to_string());
        }
    }
    overseen::run(&mut tests, &mut parts)?;
    // A filter names tests of cargo's.
    if options.filter.is_none() && !options.without.contains(&Without::Maven) {
        parts.part("Maven", maven::verify)?;
    }
    if let Some(seeds) = options.seeds {
        let simulate = || simulate(seeds);
        parts.part("simulator", simulate)?;
    }
    if !without.is_empty() {
        println!("test: LEFT OUT: whatever wants {}", without.join(", "));
    }
    Ok(())
}

fn simulate(seeds: u64) -> anyhow::Result<()> {
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
    process::run(&mut cargo(&run))
}
