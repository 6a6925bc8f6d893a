//! Where and of what figures were measured: without it they mean nothing.

use crate::workspace;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Machine, programs, and what else went on.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Circumstances {
    /// When it began, in UTC.
    date: String,
    /// The commit, and whether there was more in the tree.
    commit: String,
    processor: String,
    cores: usize,
    kernel: String,
    memory_mib: u64,
    nats: String,
    /// Processes that were running or waiting, on average: of the last minute, at the beginning.
    load_before: String,
    rounds: u32,
    seconds: u32,
}

impl Circumstances {
    pub(super) fn look(nats: &Path, rounds: u32, seconds: u32) -> Circumstances {
        let first_of = |file: &str, name: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
        };
        let memory = first_of("/proc/meminfo", "MemTotal");
        let kib = memory.split_whitespace().next().map(str::parse::<u64>);
        Circumstances {
            date: said(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M"])),
            commit: commit(),
            processor: first_of("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: said(Command::new("uname").arg("-r")),
            memory_mib: kib.and_then(Result::ok).unwrap_or_default() / 1024,
            nats: said(Command::new(nats).arg("--version")),
            load_before: load(),
            rounds,
            seconds,
        }
    }

    /// In one paragraph.
    pub(super) fn paragraph(&self, load_after: &str) -> String {
        let Circumstances {
            date,
            commit,
            processor,
            cores,
            kernel,
            memory_mib,
            nats,
            load_before,
            rounds,
            seconds,
        } = self;
        format!(
            "Medians of {rounds} alternating rounds of {seconds} s, least and most behind them; \
             begun {date} UTC, of commit {commit}, beside {nats}, on {cores} cores of {processor} \
             with {memory_mib} MiB, Linux {kernel}, clients and servers together. Load of the \
             machine: {load_before} before, {load_after} after.\n"
        )
    }
}

/// Processes that are running or waiting, on average of the last minute.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        said(command.args(arguments).current_dir(workspace::root()))
    };
    let commit = git(&["rev-parse", "--short", "HEAD"]);
    let more = !git(&["status", "--porcelain"]).is_empty();
    format!("{commit}{}", if more { " and changes" } else { "" })
}

/// What a program says in one line; nothing if it cannot.
fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout);
    let text = String::from_utf8(output.unwrap_or_default());
    text.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_has_machine_and_commit() {
        let looked = Circumstances::look(Path::new("nats-server"), 5, 10);
        assert!(looked.cores > 0 && looked.memory_mib > 0);
        let paragraph = looked.paragraph("1.0");
        assert!(paragraph.contains(&looked.processor), "{paragraph}");
        assert!(paragraph.contains(&looked.commit), "{paragraph}");
    }
}
