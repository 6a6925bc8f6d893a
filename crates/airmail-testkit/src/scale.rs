//! Amount of testing, and the tools that there are: `cargo xtask test` sets both through the
//! environment.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

/// Lines of the log file to publish.
pub fn lines() -> usize {
    number("AIRMAIL_TEST_LINES").unwrap_or(20_000)
}

/// Times to kill the node.
pub fn kills() -> usize {
    number("AIRMAIL_TEST_KILLS").unwrap_or(2)
}

/// Shards of every node that a test starts, if it does not say how many.
pub fn shards() -> u16 {
    number("AIRMAIL_TEST_SHARDS").map_or(1, |shards| u16::try_from(shards).unwrap_or(u16::MAX))
}

/// Whether every node that a test starts is two: a gateway, and the node that has its logs.
pub fn is_apart() -> bool {
    number("AIRMAIL_TEST_APART").is_some_and(|apart| apart > 0)
}

/// Links between every node that a test starts and the root of a tree that has its logs; 0: it has them itself.
pub fn tree_depth() -> usize {
    number("AIRMAIL_TEST_TREE").unwrap_or(0)
}

/// Brokers of the Kafka that has the logs of every node that a test starts, if it does not say where they are; 0: the
/// node has them itself.
pub fn kafka_brokers() -> usize {
    number("AIRMAIL_TEST_KAFKA").unwrap_or(0)
}

/// The backlog of the late subscriber, in bytes.
pub fn backlog_bytes() -> usize {
    number("AIRMAIL_TEST_BACKLOG_MIB").unwrap_or(16) << 20
}

/// A tool that `cargo xtask test` brings, by its path below the tools' directory; none where it was left
/// out.
///
/// # Panics
/// It is not there, and was not left out: what is wanted and absent is a failure.
pub fn tool(path: &str) -> Option<PathBuf> {
    let found = variable("AIRMAIL_TEST_TOOLS")
        .map(|directory| PathBuf::from(directory).join(path))
        .filter(|tool| tool.exists());
    let name = match path.split_once('/') {
        Some(("servers", _)) => "kafka",
        Some(("python", _)) => "python",
        _ => path.rsplit('/').next().unwrap_or(path),
    };
    if is_left_out(name) {
        return None;
    }
    if found.is_none() {
        want(name, &format!("no {path}; `cargo xtask test` brings it"));
    }
    found
}

/// A program of the system, which the tests that may be left out as `name` want; as [`tool`].
pub fn program(program: &str, name: &str) -> Option<Command> {
    if is_left_out(name) {
        return None;
    }
    let found = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success());
    if !found {
        want(name, &format!("no {program} on this machine"));
    }
    Some(Command::new(program))
}

/// Whether tests that want this were left out; said past the harness, which would show it only if the test
/// failed.
pub fn is_left_out(name: &str) -> bool {
    let without = variable("AIRMAIL_TEST_WITHOUT").unwrap_or_default();
    let left_out = without.split(',').any(|one| one == name);
    if left_out {
        let test = thread::current();
        let test = test.name().unwrap_or_default();
        say(&format!("LEFT OUT: {test}: --without {name}\n"));
    }
    left_out
}

/// Fails for want of something.
pub fn want(name: &str, why: &str) -> ! {
    panic!(
        "{why}. Without it: `cargo xtask test --without {name}`, or AIRMAIL_TEST_WITHOUT={name} for \
         `cargo test`"
    );
}

/// Says something past the harness.
pub fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).ok();
}

/// A setting of `cargo xtask prove`.
pub fn prove(name: &str) -> Option<u64> {
    number(&format!("AIRMAIL_PROVE_{name}")).map(|number| number as u64)
}

/// The names of the acts that `cargo xtask prove hostile` is to draw from, if not from all.
pub fn acts() -> Option<String> {
    variable("AIRMAIL_PROVE_ACTS")
}

/// Cases of the conformance suite to run on brokers: `all`, or those whose names contain this; a sample if it is empty.
pub fn suite_on_kafka() -> String {
    variable("AIRMAIL_TEST_KAFKA_SUITE").unwrap_or_default()
}

/// Whether generated pages and transcripts are to be written rather than compared.
pub fn rewrite() -> bool {
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
pub fn tools() -> PathBuf {
    let brought =
        variable("AIRMAIL_TEST_TOOLS").map(|directory| PathBuf::from(directory).join("bin"));
    brought.unwrap_or_else(|| PathBuf::from("/nonexistent"))
}

/// The variables of the environment that `airmail` would take settings from.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests' own settings, read only here"
)]
pub fn settings() -> Vec<String> {
    std::env::vars()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("AIRMAIL_"))
        .collect()
}
