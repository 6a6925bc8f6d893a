//! One run of one version's bench, and the resources that it and its node used.

use super::figures::Figures;
use super::workloads::Workload;
use anyhow::{Context as _, bail};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a run may take beyond its duration: a node starts, clients connect, the last of a
/// queue is delivered, data is removed. A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(600);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// Length of a clock tick of `/proc/PID/stat`, in microseconds; Linux has no other on any machine
/// of ours.
const TICK_US: u64 = 10_000;

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement<'a> {
    pub(super) workload: Workload,
    pub(super) duration: Duration,
    /// Where nodes have their data.
    pub(super) data: Option<&'a Path>,
    /// Where reports are written; they can be longer than a pipe holds.
    pub(super) scratch: &'a Path,
}

/// A time such as `10s`, `500ms` or `2m`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text}: a number with ms, s or m, as 10s");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let milliseconds = match &text[digits.len()..] {
        "ms" => Some(number),
        "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        _ => None,
    };
    let duration = Duration::from_millis(milliseconds.ok_or_else(wrong)?);
    if duration.is_zero() {
        Err(wrong())
    } else {
        Ok(duration)
    }
}

impl Measurement<'_> {
    /// Runs the bench of a program, with a node of its own.
    pub(super) fn take(&self, program: &Path) -> anyhow::Result<Figures> {
        let (report, told) = (self.scratch.join("report"), self.scratch.join("told"));
        let mut bench = Command::new(program);
        bench.arg("bench").args(self.workload.arguments());
        if self.workload.is_timed() {
            let duration = format!("{}ms", self.duration.as_millis());
            bench.args(["--duration", &duration]);
        }
        if let Some(data) = self.data {
            bench.arg("--data").arg(data);
        }
        let before_us = children_cpu_us();
        let sound = wait(
            bench
                .arg("--json")
                .stdin(Stdio::null())
                .stdout(File::create(&report)?)
                .stderr(File::create(&told)?),
            self.duration + PATIENCE,
        );
        let used_us = children_cpu_us().zip(before_us);
        let used_us = used_us.map(|(after, before)| after.saturating_sub(before));
        let text = fs::read_to_string(&report)?;
        let said = || fs::read_to_string(&told).unwrap_or_default();
        let sound = sound.with_context(said)?;
        Figures::read(self.workload, &text, used_us, sound)
            .with_context(|| format!("no report of `airmail bench`: {}", said().trim()))
    }
}

/// Whether it ended with 0.
#[expect(
    clippy::disallowed_methods,
    reason = "that something hangs is known by the clock alone"
)]
fn wait(command: &mut Command, patience: Duration) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut child = command.spawn().context("cannot run the bench")?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() > patience {
            // Its node ends with it, for its standard input does. It may have ended just now.
            let _ = child.kill();
            child.wait()?;
            bail!("the bench did not end within {} s", patience.as_secs());
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Processor time of all processes that this one has started and waited for, and theirs: a version whose
/// bench tells less than ours is measured by it.
fn children_cpu_us() -> Option<u64> {
    children_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Fields 16 and 17, counted behind the name, which may hold anything.
fn children_of(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * TICK_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_a_unit() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["10", "s", "0s", "1h", "", "1 s", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_time_of_those_that_were_waited_for_is_read_behind_the_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4 10 0 0 0 25 5 3 4 20 0 3 0 9";
        assert_eq!(children_of(stat), Some(70_000));
        assert!(children_cpu_us().is_some());
    }

    #[test]
    fn a_bench_that_hangs_is_ended_and_told() {
        let told = wait(Command::new("sleep").arg("600"), Duration::from_millis(1));
        assert!(told.unwrap_err().to_string().contains("did not end"));
    }
}
