//! A run over several processes: one leads, the others each do a share.
//!
//! Leader and part talk by lines: the part is given its job as JSON on standard input, says `ready`,
//! is told `start TIME`; says `published ACKS`, is told `total ACKS`; and ends with what it found as
//! JSON. A part whose leader is gone ends.

use std::process::ExitCode;
use std::sync::Arc;

use airmail_bench::clock::now_us;
use airmail_bench::part::Part;
use airmail_bench::run::{Job, LevelFile, Meeting, Share, start_us};
use airmail_bench::system::Failure;
use airmail_bench::{Progress, Target};

use super::experiment::Stop;
use super::leader::{AtEnd, Leader, say};
use super::member::Member;
use super::place::Place;

/// From the moment that all are ready to the first message, in microseconds, where some of them are
/// told so over a network.
const NOTICE_US: u64 = 500_000;

/// Runs a job as several processes of this machine, and adds up what they found.
pub(super) fn lead(job: &Job) -> anyhow::Result<Part> {
    Ok(lead_at(&[Place::Here], job, &Stop::default())?.0)
}

/// Runs a job as several processes, at these places in turn, at least one at each, and adds up what
/// they found. Gives also by how much their clocks may differ, in microseconds.
pub(super) fn lead_at(places: &[Place], job: &Job, stop: &Stop) -> anyhow::Result<(Part, u64)> {
    let parts = job.settings.processes.max(places.len() as u32);
    let here = places.iter().all(Place::is_here);
    // Memory is shared within a machine only, and this process must be on it.
    let levels = match here && parts > 1 {
        true => Some(LevelFile::make()?),
        false => None,
    };
    let mut members = Vec::new();
    for (part, place) in (0..parts).zip(places.iter().cycle()) {
        let mut job = job.clone();
        job.levels = levels.as_ref().map(LevelFile::path);
        job.share = Share { part, parts };
        members.push(Member::start_at(place, "part", &job, stop)?);
        // The first makes what the others need.
        if part == 0 {
            members[0].hear("prepared")?;
        }
    }
    meet(places, &mut members)?;
    let clocks = members.iter().map(Member::clock_error_us);
    let clock_error_us = clocks.max().unwrap_or_default();
    let mut sum: Option<Part> = None;
    for member in members {
        let part: Part = member.end()?;
        match &mut sum {
            Some(sum) => sum.add(&part),
            None => sum = Some(part),
        }
    }
    Ok((sum.unwrap_or_default(), clock_error_us))
}

/// Leads the meeting of processes that were started at these places: tells them when to begin, and how
/// much there was in all.
pub(super) fn meet(places: &[Place], members: &mut [Member]) -> anyhow::Result<()> {
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
pub(super) fn begin_us(places: &[Place]) -> u64 {
    if places.iter().all(Place::is_here) {
        start_us()
    } else {
        now_us() + NOTICE_US
    }
}

/// Does one share, as it is told on standard input.
pub(super) fn take_part() -> anyhow::Result<ExitCode> {
    let (mut leader, job): (Leader, Job) = Leader::open(AtEnd::Exit)?;
    let target: Target = job.target.parse()?;
    let runtime = super::runtime(job.settings.rate.is_some())?;
    let progress = Arc::new(Progress::default());
    let part = runtime.block_on(target.run(job, &mut leader, progress))?;
    say(&serde_json::to_string(&part)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
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
