//! The process of a subscriber that others are measured beside.
//!
//! It is given its task as JSON on standard input, says `ready` when its subscription stands, is told
//! `stop`, and ends with what it got as JSON.

use std::process::ExitCode;

use airmail_bench::bystander::{Bystander as Standing, Taken, Task};
use tokio::sync::oneshot;

use super::super::leader::{AtEnd, Leader, say};
use super::super::member::Member;

/// What it is started as.
pub(in super::super) const WORD: &str = "bystander";
/// Steps of priority by which a process that gives way stands behind the others: a tenth of their weight.
/// With less, it would also stand behind whatever else the machine does.
const GIVING_WAY: i32 = 10;

/// The process, as whoever started it sees it.
#[derive(Debug)]
pub(in super::super) struct Bystander(Member);

impl Bystander {
    /// Starts it here, and waits until its subscription stands.
    pub(super) fn start(task: &Task) -> anyhow::Result<Bystander> {
        Bystander::stand(Member::start(WORD, task)?)
    }

    /// One that was started as [`WORD`]; waits until its subscription stands.
    pub(in super::super) fn stand(mut member: Member) -> anyhow::Result<Bystander> {
        member.hear("ready")?;
        Ok(Bystander(member))
    }

    /// Ends it; what it got.
    pub(in super::super) fn stop(mut self) -> anyhow::Result<Taken> {
        self.0.tell("stop")?;
        self.0.end()
    }
}

/// What the process does.
///
/// # Errors
/// The node cannot be reached, or the subscription fails.
pub(in super::super) fn stand_by() -> anyhow::Result<ExitCode> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Tell)?;
    if task.yields {
        // Refused, it stays as it is; its processor time is reported in any case.
        let _ = rustix::process::nice(GIVING_WAY);
    }
    let runtime = super::super::runtime(true)?;
    let taken = runtime.block_on(async {
        let standing = Standing::open(task).await?;
        say("ready")?;
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("leader".into())
            .spawn(move || {
                // Whatever comes, also the end of a leader that is gone, is the end.
                let _ = leader.line();
                let _ = stop.send(());
            })?;
        let stopped = async {
            // The thread ends only after it has sent.
            let _ = stopped.await;
        };
        anyhow::Ok(standing.read_until(stopped).await?)
    })?;
    say(&serde_json::to_string(&taken)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}
