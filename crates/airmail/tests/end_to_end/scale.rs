//! How much the tests do, and which tools they have: `cargo xtask test` says so by the environment.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

/// Lines of the log file to publish.
pub(crate) fn lines() -> usize {
    number("AIRMAIL_TEST_LINES").unwrap_or(20_000)
}

/// Times to kill the node.
pub(crate) fn kills() -> usize {
    number("AIRMAIL_TEST_KILLS").unwrap_or(2)
}

/// The backlog of the late subscriber, in bytes.
pub(crate) fn backlog_bytes() -> usize {
    number("AIRMAIL_TEST_BACKLOG_MIB").unwrap_or(16) << 20
}

/// A tool that `cargo xtask test` brings, by its path below the tools' directory. Without it the
/// test says that it did not run.
pub(crate) fn tool(path: &str) -> Option<PathBuf> {
    let found = variable("AIRMAIL_TEST_TOOLS")
        .map(|directory| PathBuf::from(directory).join(path))
        .filter(|tool| tool.exists());
    if found.is_none() {
        not_run(&format!("no {path}; `cargo xtask test` brings it"));
    }
    found
}

/// A program of the system. Without it the test says that it did not run.
pub(crate) fn program(name: &str) -> Option<Command> {
    let found = Command::new(name)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success());
    if !found {
        not_run(&format!("no {name} on this machine"));
    }
    found.then(|| Command::new(name))
}

/// Says that a test, or a part of one, did not run, and why. Past the harness, which would show it
/// only if the test failed.
pub(crate) fn not_run(why: &str) {
    let test = thread::current();
    let test = test.name().unwrap_or_default();
    say(&format!("NOT RUN: {test}: {why}\n"));
}

/// Says something past the harness.
pub(crate) fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).ok();
}

/// A setting of `cargo xtask prove`.
pub(crate) fn prove(name: &str) -> Option<u64> {
    number(&format!("AIRMAIL_PROVE_{name}")).map(|number| number as u64)
}

/// Whether generated pages are to be written rather than compared.
pub(crate) fn rewrite() -> bool {
    variable("AIRMAIL_REWRITE").is_some()
}

fn number(name: &str) -> Option<usize> {
    variable(name).map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text}: a number"))
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests' own settings, read only here"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The directory of the tools that are programs; a place without any where nothing was brought.
pub(crate) fn tools() -> PathBuf {
    let brought =
        variable("AIRMAIL_TEST_TOOLS").map(|directory| PathBuf::from(directory).join("bin"));
    brought.unwrap_or_else(|| PathBuf::from("/nonexistent"))
}

/// The variables of the environment that `airmail` would take settings from.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests' own settings, read only here"
)]
pub(crate) fn settings() -> Vec<String> {
    std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("AIRMAIL_"))
        .collect()
}
