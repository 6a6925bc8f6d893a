//! `cargo xtask partitioners`: brings Kafka, builds the measured and the measuring programs, and
//! runs `airmail-lab partitioners`.

use crate::process::{self, cargo};
use crate::{kafka, servers};

/// Options of the experiment.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Options of `airmail-lab partitioners`, as --quick or --parts=nodes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Runs it; fails where it does.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let servers = servers::directory();
    kafka::bring(&servers)?;
    kafka::bring_partitioners(&servers)?;
    let experiment = [
        "run",
        "--release",
        "--locked",
        "-p",
        "airmail-lab",
        "--",
        "partitioners",
        "--servers",
    ];
    process::run(cargo(&experiment).arg(servers).args(&options.options))
}
