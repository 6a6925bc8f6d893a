//! A run over several processes: one leads, the others each do a share.
//!
//! Leader and part talk by lines: the part gets its job as JSON on standard input, says `ready`, is
//! told `start TIME`; says `published ACKS`, is told `total ACKS`; and ends with its findings as
//! JSON. A part whose leader is gone ends.
//!
//! - [`place`]: machines, and programs on them.
//! - [`member`], [`leader`]: the two ends of a pipe between processes.
//! - [`own_node`]: a node that is started for a run; [`kafka_logs`]: its logs on Kafka.
//! - [`bystander`]: a subscriber that others are measured beside, as a process.

pub mod bystander;
mod error;
pub mod kafka_logs;
pub mod leader;
pub mod member;
pub mod own_node;
pub mod place;
mod stop;

use crate::clock::now_us;
use crate::part::Part;
use crate::run::{Job, LevelFile, Meeting, Share, start_us};
use crate::system::Failure;
use crate::{Progress, Target};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

pub use error::FamilyError;
use error::system;
use leader::{AtEnd, Leader, say};
use member::Member;
use place::{Place, Program};
pub use stop::Stop;
use tokio::runtime::Runtime;

/// Time from the moment that all are ready to the first message, in microseconds, where some of
/// them are told so over a network.
const NOTICE_US: u64 = 500_000;

/// Runs a job as several processes of this machine, each of which calls [`take_part`], and adds up what
/// they found.
///
/// # Errors
/// A process cannot be started, or fails.
pub fn lead(part: Program, job: &Job) -> Result<Part, FamilyError> {
    Ok(lead_at(part, &[Place::Here], job, &Stop::default())?.0)
}

/// Runs a job as several processes, at these places in turn, at least one at each, and adds up what
/// they found. Gives also by how much their clocks may differ, in microseconds.
///
/// # Errors
/// A process cannot be started, or fails, or is [stopped](FamilyError::Stopped).
pub fn lead_at(
    program: Program,
    places: &[Place],
    job: &Job,
    stop: &Stop,
) -> Result<(Part, u64), FamilyError> {
    let parts = job.settings.processes.max(places.len() as u32);
    let jobs = vec![job.clone(); parts as usize];
    let (parts, clock_error_us) = lead_each(program, places, jobs, stop)?;
    let sum = parts.into_iter().reduce(|mut sum, part| {
        sum.add(&part);
        sum
    });
    Ok((sum.unwrap_or_default(), clock_error_us))
}

/// Runs a job as several processes like [`lead_at`], one for each of `jobs`, which are the same but for where
/// each process finds the node. Gives what each of them found.
///
/// # Errors
/// As [`lead_at`].
pub fn lead_each(
    program: Program,
    places: &[Place],
    jobs: Vec<Job>,
    stop: &Stop,
) -> Result<(Vec<Part>, u64), FamilyError> {
    let parts = jobs.len() as u32;
    let here = places.iter().all(Place::is_here);
    // Memory is shared within a machine only, and this process must be on it.
    let levels = (here && parts > 1)
        .then(LevelFile::make)
        .transpose()
        .map_err(system("a file in shared memory"))?;
    let mut members = Vec::new();
    for ((part, mut job), place) in (0..).zip(jobs).zip(places.iter().cycle()) {
        job.levels = levels.as_ref().map(LevelFile::path);
        job.share = Share { part, parts };
        let mut member = Member::start_at(place, program, &job, stop)?;
        // The first makes what the others need.
        if part == 0 {
            member.hear("prepared")?;
        }
        members.push(member);
    }
    meet(places, &mut members)?;
    let clocks = members.iter().map(Member::clock_error_us);
    let clock_error_us = clocks.max().unwrap_or_default();
    let found = members.into_iter().map(Member::end);
    Ok((found.collect::<Result<_, _>>()?, clock_error_us))
}

/// Leads the meeting of processes that were started at these places: tells them when to begin, and how
/// much there was in all.
///
/// # Errors
/// A process fails, or is [stopped](FamilyError::Stopped).
pub fn meet(places: &[Place], members: &mut [Member]) -> Result<(), FamilyError> {
    for member in &mut *members {
        member.hear("ready")?;
    }
    let begin_us = begin_us(places);
    for member in &mut *members {
        member.tell(&format!("start {begin_us}"))?;
    }
    let mut total = 0;
    for member in &mut *members {
        total += member.hear("published")?.parse::<u64>()?;
    }
    for member in members {
        member.tell(&format!("total {total}"))?;
    }
    Ok(())
}

/// When processes at these places that are ready now can all begin, in microseconds.
#[must_use]
pub fn begin_us(places: &[Place]) -> u64 {
    if places.iter().all(Place::is_here) {
        start_us()
    } else {
        now_us() + NOTICE_US
    }
}

/// Does one share, as it is told on standard input.
///
/// # Errors
/// The leader is gone, or the run fails.
pub fn take_part() -> Result<ExitCode, FamilyError> {
    let (mut leader, job): (Leader, Job) = Leader::open(AtEnd::Exit)?;
    let target: Target = job.target.parse().map_err(Failure::new)?;
    let runtime = runtime(job.settings.rate.is_some())?;
    let progress = Arc::new(Progress::default());
    // As a trait object: `block_on` is compiled for each kind of runtime, with what it is given inside.
    let run: Pin<Box<dyn Future<Output = _>>> = Box::pin(target.run(job, &mut leader, progress));
    let part = runtime.block_on(run)?;
    say(&serde_json::to_string(&part)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Makes the runtime for a run. At a rate it has one worker: a second one would be woken for each
/// message, to find that there is nothing left.
///
/// # Errors
/// The system refuses a thread.
pub fn runtime(paced: bool) -> Result<Runtime, FamilyError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(if paced { 1 } else { 2 })
        .enable_all()
        .build()
        .map_err(system("the threads of a run"))
}

/// Its waits block: beside them only tasks on the runtime's own threads have anything to do.
impl Meeting for Leader {
    async fn prepared(&mut self) -> Result<(), Failure> {
        say("prepared")
    }

    async fn ready(&mut self) -> Result<u64, Failure> {
        say("ready")?;
        self.number("start")
    }

    async fn published(&mut self, acknowledged: u64) -> Result<u64, Failure> {
        say(&format!("published {acknowledged}"))?;
        self.number("total")
    }
}
