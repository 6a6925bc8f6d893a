//! `cargo test`, overseen: its output is passed on, each test binary's time is noted, and a binary
//! that prints nothing for long is ended, by name, with the tests that have not come to an end. What
//! failing tests printed is printed once more after all others, where whoever reads only the end finds it.
//!
//! Tests bound their own waits, and name them; this is for a test that does not.

use crate::parts::{Parts, now};
use crate::process::{self, show};
use anyhow::{Context as _, bail};
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest silence: longer than any test takes, also on a machine that is busy with other things,
/// and longer than the tests' own waits.
const SILENCE: Duration = Duration::from_secs(30 * 60);
/// Lines that may wait to be passed on.
const LINES: usize = 256;
/// Lines of failing tests that are printed once more, of each binary: the last ones, as their names come last.
const LINES_OF_FAILURES: usize = 150;

/// Runs it, and notes the time of each test binary. Fails unless it ends with 0.
pub(crate) fn run(command: &mut Command, parts: &mut Parts) -> anyhow::Result<()> {
    run_for(command, parts, SILENCE)
}

fn run_for(command: &mut Command, parts: &mut Parts, silence: Duration) -> anyhow::Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;
    // The command holds the pipe's other end, which must end with the processes.
    command.stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::null());
    let (sender, lines) = sync_channel(LINES);
    let pass_on = move || {
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
        }
    };
    let passing = thread::Builder::new().name("lines".into());
    passing.spawn(pass_on)?;
    let mut progress = Progress::new();
    let ended = progress.follow(&lines, parts, silence);
    for line in &progress.failures {
        println!("{line}");
    }
    if let Err(hanging) = ended {
        end_with_children(&mut child);
        bail!("`{shown}`: {hanging}");
    }
    let status = child.wait()?;
    anyhow::ensure!(status.success(), "`{shown}`: {status}");
    Ok(())
}

/// Where it is.
struct Progress {
    binary: String,
    begun: Instant,
    /// Tests that were said to take long and have not ended.
    long: BTreeSet<String>,
    /// Output of this binary's failing tests, between its tests and its result.
    failing: Option<VecDeque<String>>,
    /// The same of the binaries before, each under its name.
    failures: Vec<String>,
}

impl Progress {
    fn new() -> Progress {
        Progress {
            binary: "before the first test".to_owned(),
            begun: now(),
            long: BTreeSet::new(),
            failing: None,
            failures: Vec::new(),
        }
    }

    /// Passes lines on until there are no more; an error if none comes for so long.
    fn follow(
        &mut self,
        lines: &Receiver<String>,
        parts: &mut Parts,
        silence: Duration,
    ) -> Result<(), String> {
        loop {
            match lines.recv_timeout(silence) {
                Ok(line) => {
                    println!("{line}");
                    self.read(&line, parts);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.next("", parts);
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.next("", parts);
                    return Err(self.hanging(silence));
                }
            }
        }
    }

    fn read(&mut self, line: &str, parts: &mut Parts) {
        self.read_failures(line);
        let trimmed = line.trim_start();
        if let Some(binary) = trimmed.strip_prefix("Running ") {
            // As `Running tests/end_to_end/main.rs (target/debug/deps/end_to_end-0123)`.
            let path = binary.rsplit_once('(').map_or(binary, |(_, path)| path);
            let file = path.trim_end_matches(')').rsplit('/').next();
            let name = file.and_then(|file| file.rsplit_once('-'));
            self.next(name.map_or(binary, |(name, _)| name), parts);
        } else if let Some(package) = trimmed.strip_prefix("Doc-tests ") {
            self.next(&format!("examples in {package}"), parts);
        } else if let Some(test) = line.strip_prefix("test ") {
            if let Some((name, _)) = test.split_once(" has been running for over ") {
                self.long.insert(name.to_owned());
            } else if let Some((name, _)) = test.split_once(" ... ") {
                self.long.remove(name);
            }
        }
    }

    /// Keeps the lines from a binary's `failures:` to its result.
    fn read_failures(&mut self, line: &str) {
        if line.starts_with("test result: ") {
            self.keep_failures();
        } else if line == "failures:" && self.failing.is_none() {
            self.failing = Some(VecDeque::new());
        } else if let Some(lines) = &mut self.failing {
            if lines.len() == LINES_OF_FAILURES {
                lines.pop_front();
            }
            lines.push_back(line.to_owned());
        }
    }

    fn keep_failures(&mut self) {
        if let Some(lines) = self.failing.take() {
            self.failures.push(format!("failed in {}:", self.binary));
            self.failures.extend(lines);
        }
    }

    fn next(&mut self, binary: &str, parts: &mut Parts) {
        // One that was ended while it told of failures has no result.
        self.keep_failures();
        let ended = now();
        parts.note(&self.binary, ended - self.begun);
        self.begun = ended;
        if !binary.is_empty() {
            binary.clone_into(&mut self.binary);
        }
    }

    fn hanging(&self, silence: Duration) -> String {
        let minutes = silence.as_secs() / 60;
        let long: Vec<&str> = self.long.iter().map(String::as_str).collect();
        let long = if long.is_empty() {
            "no test is known to take long".to_owned()
        } else {
            format!("not at their end: {}", long.join(", "))
        };
        format!(
            "ended, for {} said nothing for {minutes} minutes; {long}",
            self.binary
        )
    }
}

/// Kills a process and all that it has started, which would go on without it.
fn end_with_children(child: &mut Child) {
    let mut doomed = vec![child.id()];
    let mut at = 0;
    while let Some(process) = doomed.get(at).copied() {
        doomed.extend(children_of(process));
        at += 1;
    }
    let ids: Vec<String> = doomed.iter().map(u32::to_string).collect();
    // Some have ended by then, which is well.
    process::succeeds(
        "kill",
        &[
            &["-KILL"][..],
            &ids.iter().map(String::as_str).collect::<Vec<_>>(),
        ]
        .concat(),
    );
    if let Err(error) = child.wait() {
        println!("xtask: waiting for what was ended: {error}");
    }
}

fn children_of(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().filter_map(Result::ok);
    let lists = threads.filter_map(|one| fs::read_to_string(one.path().join("children")).ok());
    let ids = |list: String| -> Vec<u32> {
        list.split_whitespace()
            .filter_map(|id| id.parse().ok())
            .collect()
    };
    lists.flat_map(ids).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(script: &str, silence: Duration) -> anyhow::Result<()> {
        let mut parts = Parts::of("tried");
        let done = run_for(Command::new("sh").args(["-c", script]), &mut parts, silence);
        std::mem::forget(parts);
        done
    }

    #[test]
    fn a_binary_that_hangs_is_ended_with_the_tests_that_have_not() {
        let script = "echo '     Running tests/a.rs (target/debug/deps/a-0123)'
            echo 'test one has been running for over 60 seconds'
            echo 'test two has been running for over 60 seconds'
            echo 'test two ... ok'
            sleep 600 & wait";
        let told = follow(script, Duration::from_secs(1))
            .unwrap_err()
            .to_string();
        assert!(told.contains("for a said nothing"), "{told}");
        assert!(told.contains("not at their end: one"), "{told}");
        assert!(!told.contains("two,"), "{told}");
    }

    #[test]
    fn an_end_is_passed_on() {
        follow("echo; echo 1 >&2", Duration::from_secs(600)).unwrap();
        let failed = follow("exit 3", Duration::from_secs(600)).unwrap_err();
        assert!(failed.to_string().contains('3'), "{failed}");
    }

    #[test]
    fn what_failing_tests_printed_is_kept_under_their_binary() {
        let (mut progress, mut parts) = (Progress::new(), Parts::of("tried"));
        let many = (0..LINES_OF_FAILURES).map(|at| format!("line {at}"));
        let lines = [
            "     Running tests/a.rs (target/debug/deps/a-0123)",
            "test one ... FAILED",
            "failures:",
            "---- one stdout ----",
        ]
        .map(str::to_owned);
        let ends = ["failures:", "    one", "test result: FAILED. 0 passed"].map(str::to_owned);
        for line in lines.into_iter().chain(many).chain(ends) {
            progress.read(&line, &mut parts);
        }
        progress.read("test result: ok. 1 passed", &mut parts);
        let kept = &progress.failures;
        assert_eq!(kept.len(), LINES_OF_FAILURES + 1);
        assert_eq!(kept.first().unwrap(), "failed in a:");
        assert_eq!(kept.last().unwrap(), "    one");
        std::mem::forget(parts);
    }

    #[test]
    fn each_binary_is_a_part() {
        let (mut progress, mut parts) = (Progress::new(), Parts::of("tried"));
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/airmail_log-0123)",
            "test a ... ok",
            "   Doc-tests airmail_log",
        ] {
            progress.read(line, &mut parts);
        }
        assert_eq!(progress.binary, "examples in airmail_log");
        let shown = format!("{parts:?}");
        assert!(shown.contains("\"airmail_log\""), "{shown}");
        std::mem::forget(parts);
    }
}
