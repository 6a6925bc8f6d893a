//! `cargo xtask verify`: all checks that must pass before a commit. Changes nothing but build
//! output.

use crate::parts::Parts;
use crate::process::{self, cargo};
use crate::{fuzz, test, tidy};
use std::process::Command;

/// Arguments that make every lint's complaint a failure.
const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

/// Parts to leave out.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Leave out the tests, which `cargo xtask test` has run.
    #[arg(long)]
    without_tests: bool,
}

/// Runs the checks, quickest first, and stops at the first that fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut parts = Parts::of("verify");
    if options.without_tests {
        parts.after("test");
    }
    let mut part = |name, command: &mut Command| parts.part(name, || process::run(command));
    tidy::run()?;
    part("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    part(
        "lints",
        &mut clippy(&["--workspace", test::WORKSPACE_SWITCHES]),
    )?;
    let rivals = [
        "--package=airmail",
        "--package=airmail-bench",
        "--package=airmail-lab",
        "--features=airmail/rivals,airmail-lab/rivals",
        test::TEST_SWITCHES,
    ];
    part("lints of rivals", &mut clippy(&rivals))?;
    // As it is released: all else here has the switches.
    let released = ["clippy", "--package=airmail", "--bins", "--locked"];
    let mut released = cargo(&released);
    part("lints of what is released", released.args(DENY_WARNINGS))?;
    let doc = [
        "doc",
        "--workspace",
        test::WORKSPACE_SWITCHES,
        "--no-deps",
        "--locked",
        "--quiet",
    ];
    let mut doc = cargo(&doc);
    part("documentation", doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    anyhow::ensure!(
        process::succeeds("c++", &["--version"]),
        "the fuzz targets need a C++ compiler: install one (Debian: g++)"
    );
    let mut check = cargo(&["check", "--locked", "--all-features"]);
    check.args(fuzz::WORKSPACE);
    part("fuzz targets", check.args(["--target-dir", "target/fuzz"]))?;
    drop(parts);
    if !options.without_tests {
        test::run(&test::Options::default())?;
    }
    Ok(())
}

fn clippy(what: &[&str]) -> Command {
    let mut clippy = cargo(&["clippy"]);
    clippy.args(what).args(["--all-targets", "--locked"]);
    clippy.args(DENY_WARNINGS);
    clippy
}
