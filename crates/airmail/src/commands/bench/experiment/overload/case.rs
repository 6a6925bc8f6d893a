//! One load on one node: start it, offer, listen, read back what is stored.

use std::time::Duration;

use airmail_bench::process::Usage;
use airmail_bench::stamp::Stamp;
use airmail_client::{Client, Item};
use tokio::time::sleep;

use super::super::super::own_node::{OwnNode, OwnNodeArgs};
use super::super::Stop;
use super::super::flow_control::FlowControl;
use super::generator::{Load, Offered, Plan, topic};
use super::kept::{Kept, Wrong};
use super::reckoning::{Sums, sums};

/// How often the node's memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What stays the same from case to case.
#[derive(Clone, Debug)]
pub(super) struct Bench {
    /// How nodes are started.
    pub(super) node: OwnNodeArgs,
    /// How long a node takes for a batch, in microseconds.
    pub(super) service_us: u32,
    /// Streams of the load.
    pub(super) streams: u32,
    /// Messages in a batch.
    pub(super) batch: u32,
    /// Payload of a message, in bytes.
    pub(super) size: usize,
    /// How long each load lasts, in microseconds.
    pub(super) duration_us: u64,
    /// What of it does not count, in microseconds.
    pub(super) warmup_us: u64,
    /// How long answers are waited for after a load.
    pub(super) patience: Duration,
}

/// What a case found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Rates and times.
    pub(super) sums: Sums,
    /// What is wrong with what is stored.
    pub(super) wrong: Wrong,
    /// The most memory that the node held.
    pub(super) rss_bytes: u64,
}

impl Found {
    /// Whether everything that was acknowledged is there, and every refusal was one.
    pub(super) fn is_sound(&self) -> bool {
        let Sums {
            strange, errors, ..
        } = &self.sums;
        self.wrong == Wrong::default() && strange.is_empty() && errors.is_empty()
    }
}

impl Bench {
    /// Offers a load to a new node. `None` if it was stopped before its end.
    pub(super) fn run(
        &self,
        plan: Plan,
        flow: FlowControl,
        stop: &Stop,
    ) -> anyhow::Result<Option<Found>> {
        let log = format!("--log=memory:?service_us={}", self.service_us);
        let node = OwnNode::start(&self.node, Some(log), &flow.environment())?;
        let load = Load {
            url: node.url(),
            run: node.pid(),
            streams: self.streams,
            batch: self.batch,
            size: self.size,
            plan,
            duration_us: self.duration_us,
            patience: self.patience,
        };
        let runtime = super::super::super::runtime(true)?;
        let found = runtime.block_on(async {
            let (offered, rss_bytes) = watch(node.pid(), load.offer(stop)).await;
            let offered = offered?;
            if stop.is_set() {
                return Ok(None);
            }
            Ok(Some(Found {
                sums: sums(&offered, self.warmup_us, self.batch),
                wrong: self.read_back(&load, &offered).await?,
                rss_bytes,
            }))
        });
        runtime.shutdown_background();
        found
    }

    async fn read_back(&self, load: &Load, offered: &Offered) -> anyhow::Result<Wrong> {
        let client = Client::connect(&load.url).await?;
        let mut wrong = Wrong::default();
        for (story, stream) in offered.streams.iter().zip(0..) {
            let mut kept = Kept::new(story, self.batch);
            let mut history = client.history(&topic(stream)).open()?;
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
}

/// Does something, and looks meanwhile how much memory a process holds at most.
async fn watch<T>(pid: u32, work: impl Future<Output = T>) -> (T, u64) {
    let mut most = 0;
    let mut work = std::pin::pin!(work);
    loop {
        most = most.max(Usage::of(pid).rss_bytes);
        tokio::select! {
            done = work.as_mut() => return (done, most.max(Usage::of(pid).rss_bytes)),
            () = sleep(LOOK) => {}
        }
    }
}
