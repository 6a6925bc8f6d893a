//! `cargo xtask verify`: all that must hold before a commit. Changes nothing but build output.

use crate::process::{self, cargo};
use crate::{test, tidy};

/// What to leave out.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Leave out the tests, which `cargo xtask test` has run.
    #[arg(long)]
    without_tests: bool,
}

/// Runs the checks, quickest first, and stops at the first that fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    tidy::run()?;
    process::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    process::run(&mut cargo(&clippy))?;
    let rivals = [
        "clippy",
        "--package=airmail",
        "--package=airmail-bench",
        "--features=airmail/rivals",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    process::run(&mut cargo(&rivals))?;
    let doc = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
    process::run(cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    if process::succeeds("c++", &["--version"]) {
        let check = [
            "check",
            "--locked",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--all-features",
        ];
        process::run(cargo(&check).args(["--target-dir", "target/fuzz"]))?;
    } else {
        println!("not run: the fuzz targets, which need a C++ compiler");
    }
    if process::succeeds("cargo", &["deny", "--version"]) {
        process::run(&mut cargo(&[
            "deny", "check", "bans", "licenses", "sources",
        ]))?;
    } else {
        println!("not run: cargo deny, which `cargo install --locked cargo-deny` brings");
    }
    if !options.without_tests {
        test::run(&test::Options::default())?;
    }
    Ok(())
}
