//! `cargo xtask rivals`: brings the servers, builds the measured and the measuring programs, and
//! runs `airmail-lab rivals`.

use crate::process::{self, cargo};
use crate::{servers, workspace};
use std::process::Command;

/// Options of the experiment.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Options of `airmail-lab rivals`, as --quick or --only=e2e,fanout
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Runs it; fails where it does. A server that cannot be brought is named, and not measured.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let servers = servers::directory();
    if let Err(error) = servers::bring(&servers) {
        println!("rivals: {error:#}");
    }
    let build = [
        "build",
        "--release",
        "--locked",
        "-p",
        "airmail",
        "-p",
        "airmail-lab",
    ];
    process::run(cargo(&build).args(["--features", "airmail-lab/rivals"]))?;
    let mut rivals = Command::new(workspace::target_directory()?.join("release/airmail-lab"));
    rivals.arg("rivals").arg("--servers").arg(servers);
    process::run(rivals.args(&options.options))
}
