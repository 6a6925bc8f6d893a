//! The process that holds a node to its limits, on the node's machine.
//!
//! It gets the node's process and the limits as JSON on standard input, says `held` with the limits
//! that it set and whether these are all, and answers `throttled` with the number of times that the node was stopped. When
//! its input ends it waits for the node's own end, because only then can the control group go.

use super::{Hold, Limits, Throttled};
use airmail_bench::family::Stop;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::family::member::Member;
use airmail_bench::family::place::Place;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Longest wait for the node's end, and the interval at which it is looked for.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(5);

/// Task of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Task {
    pid: u32,
    limits: Limits,
}

/// The process as seen by the one that started it.
#[derive(Debug)]
pub(crate) struct Holder {
    member: Member,
    /// Limits that were set, and those that could not be, for the report.
    pub(crate) means: Vec<String>,
    /// Whether all were set.
    pub(crate) is_whole: bool,
}

impl Holder {
    /// Holds a process of a machine. The wait for it ends when `stop` is set.
    ///
    /// # Errors
    /// The machine cannot be reached. A limit that its system does not allow is no error.
    pub(crate) fn start(
        place: &Place,
        pid: u32,
        limits: Limits,
        stop: &Stop,
    ) -> anyhow::Result<Holder> {
        let task = Task { pid, limits };
        let started = Member::start_at(place, crate::cli::HOLD, &task, stop);
        let mut member = started.with_context(|| place.to_string())?;
        let (means, is_whole) = serde_json::from_str(&member.hear("held")?)?;
        member.outlast_stop();
        Ok(Holder {
            member,
            means,
            is_whole,
        })
    }

    /// Number of times that it was stopped so far; `None` where nothing stops it.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn throttled(&mut self) -> anyhow::Result<Option<Throttled>> {
        self.member.tell("throttled")?;
        Ok(serde_json::from_str(&self.member.hear("throttled")?)?)
    }
}

/// Runs the process.
///
/// # Errors
/// The task cannot be read.
pub(crate) fn hold() -> anyhow::Result<ExitCode> {
    let (leader, Task { pid, limits }) = Leader::open(AtEnd::Tell)?;
    let hold = Hold::on(pid, &limits);
    let held = serde_json::to_string(&(&hold.means, hold.is_whole))?;
    say(&format!("held {held}"))?;
    while let Ok(question) = leader.line() {
        if question == "throttled" {
            let throttled = serde_json::to_string(&hold.throttled())?;
            say(&format!("throttled {throttled}"))?;
        }
    }
    let node = PathBuf::from(format!("/proc/{pid}"));
    let mut waited = Duration::ZERO;
    while node.exists() && waited < PATIENCE {
        sleep(LOOK);
        waited += LOOK;
    }
    drop(hold);
    Ok(ExitCode::SUCCESS)
}
