//! The process that publishes the rounds, on the first machine that load comes from.
//!
//! It gets its task as JSON on standard input, says `ready` when it is connected, is told `round
//! NUMBER`, and says `done CPU`, its processor time in rounds so far, when all of that round is acknowledged;
//! it ends with its input.

use super::crowd::connect;
use super::round_book::MESSAGES;
use crate::hosts::Hosts;
use airmail_bench::clock::now_us;
use airmail_bench::family::Stop;
use airmail_bench::family::leader::{AtEnd, Leader, say};
use airmail_bench::family::member::Member;
use airmail_bench::process::Usage;
use airmail_bench::stamp::Stamp;
use airmail_client::Publisher;
use airmail_model::{Limits, TopicName};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use tokio::sync::mpsc;

/// Task of the publisher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The node, as `airmail://HOST:PORT`.
    pub(super) target: String,
    /// Name of the machine that it says it is on; absent: the system's.
    pub(super) host: Option<String>,
    /// The topic that all clients subscribe to.
    pub(super) topic: String,
    /// Distinguishes this run's messages from others'.
    pub(super) run: u32,
    /// Payload of a message, in bytes.
    pub(super) size: usize,
}

/// The process as seen by the one that started it.
#[derive(Debug)]
pub(super) struct RoundPublisher {
    member: Member,
    /// Processor time of the process in its rounds so far, in microseconds.
    pub(super) cpu_us: u64,
}

impl RoundPublisher {
    /// Starts it, and waits until it is connected. A round that has begun is published whole.
    ///
    /// # Errors
    /// The machine or the node cannot be reached.
    pub(super) fn start(hosts: &Hosts, task: &Task) -> anyhow::Result<RoundPublisher> {
        let started = hosts.spread(1, crate::cli::ROUNDS, &Stop::default(), |_| task.clone())?;
        let mut member = started.into_iter().next().context("no publisher")?;
        member.hear("ready")?;
        Ok(RoundPublisher { member, cpu_us: 0 })
    }

    /// Publishes a round, and waits for its acks.
    ///
    /// # Errors
    /// A message is refused, or the process has ended.
    pub(super) fn round(&mut self, number: u32) -> anyhow::Result<()> {
        self.member.tell(&format!("round {number}"))?;
        self.cpu_us = self.member.hear("done")?.parse()?;
        Ok(())
    }
}

/// Runs the publisher's process.
///
/// # Errors
/// The node cannot be reached, or refuses a message.
pub(crate) fn publish_rounds() -> anyhow::Result<ExitCode> {
    let (leader, task): (Leader, Task) = Leader::open(AtEnd::Exit)?;
    // One thread: a round is handed over before any of it is sent.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // That thread has the connection too, so another one waits for the leader.
    let (tell, mut told) = mpsc::channel(1);
    std::thread::Builder::new()
        .name("rounds".into())
        .spawn(move || {
            while let Ok(number) = leader.number("round") {
                if tell.blocking_send(number).is_err() {
                    break;
                }
            }
        })?;
    runtime.block_on(async {
        let client = connect(&task.target, task.host.as_deref()).await?;
        let publisher = client.publisher();
        // The publisher stands too, when the first round begins.
        let before = format!("{}/before", task.topic);
        publisher.publish(&before, "").await?;
        let topic = TopicName::new(&task.topic, &Limits::DEFAULT)?;
        let before = Usage::own();
        say("ready")?;
        while let Some(round) = told.recv().await {
            publish(&task, &publisher, &topic, round).await?;
            let used = Usage::own().since(&before);
            say(&format!("done {}", used.cpu_us))?;
        }
        client.close().await?;
        anyhow::Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn publish(
    task: &Task,
    publisher: &Publisher,
    topic: &TopicName,
    round: u64,
) -> anyhow::Result<()> {
    let begun_us = now_us();
    let mut acks = Vec::new();
    for number in 0..MESSAGES {
        let stamp = Stamp {
            run: task.run,
            publisher: 0,
            number: round * MESSAGES + number,
            // The round's, which is what counts.
            sent_us: begun_us,
        };
        let payload = stamp.payload(task.size);
        acks.push(publisher.send_ref(topic, &payload).await?);
    }
    publisher.flush().await?;
    for ack in acks {
        ack.await?;
    }
    Ok(())
}
