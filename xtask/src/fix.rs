//! `cargo xtask fix`: brings the lock file of the fuzz targets up to date, applies clippy's own suggestions,
//! formats.

use crate::fuzz;
use crate::process::{self, cargo};

/// Adds to that lock file what it lacks, lets clippy apply its suggestions, then formats.
pub(crate) fn run() -> anyhow::Result<()> {
    process::run(cargo(&["fetch"]).args(fuzz::WORKSPACE))?;
    process::run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
    ]))?;
    process::run(&mut cargo(&["fmt", "--all"]))
}
