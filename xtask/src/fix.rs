//! `cargo xtask fix`: formats, and applies clippy's own suggestions.

use crate::process::{self, cargo};

/// Lets clippy apply its suggestions, then formats.
pub(crate) fn run() -> anyhow::Result<()> {
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
