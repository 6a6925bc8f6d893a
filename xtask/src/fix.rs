//! `cargo xtask fix`: brings both lock files up to date, applies clippy's own suggestions, formats.

use crate::process::{self, cargo};
use crate::verify::FUZZ_TARGETS;

/// Adds to the lock files what they lack, lets clippy apply its suggestions, then formats.
pub(crate) fn run() -> anyhow::Result<()> {
    process::run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
    ]))?;
    process::run(cargo(&["fetch"]).args(FUZZ_TARGETS))?;
    process::run(&mut cargo(&["fmt", "--all"]))
}
