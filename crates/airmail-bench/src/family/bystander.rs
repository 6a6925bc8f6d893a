//! The process of a subscriber that others are measured beside.
//!
//! It gets its task as JSON on standard input, says `ready` when its subscription stands, is told
//! `stop`, and ends with its account as JSON.

use super::error::{FamilyError, system};
use super::leader::{AtEnd, Leader, say};
use super::member::Member;
use super::place::Program;
use super::runtime;
use crate::bystander::{Bystander as Standing, Taken, Task};
use std::process::ExitCode;
use tokio::sync::oneshot;

/// Steps of priority by which a process that gives way stands behind the others: a tenth of their weight.
/// With less, it would also stand behind whatever else the machine does.
const GIVING_WAY: i32 = 10;

/// The process as seen by the one that started it.
#[derive(Debug)]
pub struct Bystander(Member);

impl Bystander {
    /// Starts it here, and waits until its subscription stands.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub fn start(program: Program, task: &Task) -> Result<Bystander, FamilyError> {
        Bystander::stand(Member::start(program, task)?)
    }

    /// One that has been started; waits until its subscription stands.
    ///
    /// # Errors
    /// It fails.
    pub fn stand(mut member: Member) -> Result<Bystander, FamilyError> {
        member.hear("ready")?;
        Ok(Bystander(member))
    }

    /// Ends it, and gives the messages that it got.
    ///
    /// # Errors
    /// It fails.
    pub fn stop(mut self) -> Result<Taken, FamilyError> {
        self.0.tell("stop")?;
        self.0.end()
    }
}

/// Runs the process of a subscriber beside which others are measured.
///
/// # Errors
/// The node cannot be reached, or the subscription fails.
pub fn stand_by() -> Result<ExitCode, FamilyError> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Tell)?;
    if task.yields {
        // Refused, it stays as it is; its processor time is reported in any case.
        let _ = rustix::process::nice(GIVING_WAY);
    }
    let runtime = runtime(true)?;
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
            })
            .map_err(system("a thread"))?;
        let stopped = async {
            // The thread ends only after it has sent.
            let _ = stopped.await;
        };
        Ok::<_, FamilyError>(standing.read_until(stopped).await?)
    })?;
    say(&serde_json::to_string(&taken)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}
