//! Running other programs: each is shown before it runs, and its failure ends the task.

use crate::workspace;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// A call of cargo in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(workspace::root());
    command
}

/// Shows the command, runs it, and fails unless it ends with 0.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("cannot run `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}`: {status}");
    }
    Ok(())
}

/// Standard output of the command; fails unless it ends with 0.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = show(command);
    let output = command
        .output()
        .with_context(|| format!("cannot run `{shown}`"))?;
    if !output.status.success() {
        bail!(
            "`{shown}`: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether the command can be run and ends with 0; its output is dropped.
pub(crate) fn succeeds(program: impl AsRef<Path>, arguments: &[&str]) -> bool {
    Command::new(program.as_ref())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
