//! Processes that offer a load, each its share of the streams, on the machines that load comes from.
//!
//! A process gets its share as JSON on standard input, says `ready` when its streams are open, is
//! told `start TIME`, says `offered` when its load is over, is told `read` when all of them have
//! said so, reads back the messages that the node stored of its streams, and ends with its findings
//! as JSON. Each times its own batches, from due to answered, so that no clock is compared with
//! another machine's.

use super::generator::{Load, Offered};
use super::kept::{Kept, Wrong};
use super::reckoning::{Sums, sums};
use crate::hosts::Hosts;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::stamp::Stamp;
use airmail_client::{Client, Item};
use anyhow::ensure;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// A load to offer, and the part of it that counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Offering {
    /// The load.
    pub(super) load: Load,
    /// Time at its beginning that does not count, in microseconds.
    pub(super) warmup_us: u64,
}

/// Outcome of a load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Rates and times.
    pub(super) sums: Sums,
    /// Faults in the stored messages.
    pub(super) wrong: Wrong,
}

impl Offering {
    /// Offers it from the machines that load comes from, in a process on each as far as there are
    /// streams.
    ///
    /// # Errors
    /// A process fails, or the run is stopped.
    pub(super) fn lead(&self, hosts: &Hosts) -> anyhow::Result<Outcome> {
        let processes = (hosts.loads().len() as u32).min(self.load.streams);
        let share = |share| {
            let mut own = self.clone();
            own.load.share = share;
            own
        };
        let mut members = hosts.spread(processes, crate::cli::OFFER, hosts.stop(), share)?;
        for member in &mut members {
            member.hear("ready")?;
        }
        let begin_us = hosts.begin_us();
        for member in &mut members {
            member.tell(&format!("start {begin_us}"))?;
        }
        for member in &mut members {
            member.hear("offered")?;
        }
        // Reading takes time of the node, which nobody's load is to feel.
        for member in &mut members {
            member.tell("read")?;
        }
        let mut all = Outcome::default();
        for member in members {
            let Outcome { sums, wrong } = member.end()?;
            all.sums.add(sums);
            all.wrong.add(wrong);
        }
        Ok(all)
    }

    async fn take_part(&self, leader: &Leader) -> anyhow::Result<Outcome> {
        let open = self.load.open().await?;
        say("ready")?;
        let start_us = leader.number("start")?;
        let offered = self.load.offer(open, start_us).await?;
        say("offered")?;
        let told = leader.line()?;
        ensure!(told == "read", "{told:?} is not read");
        Ok(Outcome {
            sums: sums(&offered, self.warmup_us, self.load.batch),
            wrong: read_back(&self.load, &offered).await?,
        })
    }
}

/// Runs the process that offers a load.
///
/// # Errors
/// The node cannot be reached, or the leader is gone.
pub(crate) fn offer() -> anyhow::Result<ExitCode> {
    let (leader, offering): (Leader, Offering) = Leader::open(AtEnd::Exit)?;
    let runtime = airmail_bench::family::runtime(true)?;
    let outcome = runtime.block_on(offering.take_part(&leader))?;
    say(&serde_json::to_string(&outcome)?)?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Compares the stored messages of the streams with the acknowledged ones.
async fn read_back(load: &Load, offered: &Offered) -> anyhow::Result<Wrong> {
    let client = Client::connect(&load.url).await?;
    let mut wrong = Wrong::default();
    for (story, stream) in offered.streams.iter().zip(load.own_streams()) {
        let mut kept = Kept::new(story, load.batch);
        let mut history = client.history(&load.topic(stream)).open()?;
        while let Some(item) = history.next().await? {
            let Item::Message(message) = item else {
                kept.see_strange();
                continue;
            };
            let stamp = Stamp::read(&message.payload);
            let own = |stamp: &Stamp| (stamp.run, stamp.publisher) == (load.run, stream);
            match stamp.filter(own) {
                Some(stamp) => kept.see(stamp.number, message.sequence.0),
                None => kept.see_strange(),
            }
        }
        wrong.add(kept.end());
    }
    client.close().await?;
    Ok(wrong)
}
