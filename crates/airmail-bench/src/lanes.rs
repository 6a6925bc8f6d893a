//! Lanes: a flood of one lane, and beside it the other one at a rate, to one subscriber; how long each waits, and what each gets.
//!
//! The flood is as much as goes: its publisher hands over what the SDK has room for, and waits for nothing else. The other lane
//! has a publisher and a connection of its own, as whoever raises an alarm would. The time of a message is from when it was
//! handed over, or, at a rate, from when it was due, until the subscriber has it. Everything is counted: each lane has to come
//! whole, once and in order.

mod report;

use crate::alarm::Alarm;
use crate::clock::now_us;
use crate::latency::Latencies;
use crate::process::Usage;
use crate::system::Failure;
use airmail_client::{Client, Item, Lane, Message};
use airmail_model::{Limits, TopicName};
use bytes::Bytes;
pub use report::{LaneOfRun, LanesReport, LanesRun};
use std::time::Duration;
use tokio::task::JoinSet;

/// The topic of both lanes.
const TOPIC: &str = "bench/lanes";
/// Bytes at the head of each payload: when it was handed over, or due, and its number in its lane.
const HEAD_BYTES: usize = 16;
/// Longest time until a connection stands, and without a message before the run is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for which messages that are due gather before they are sent.
const GATHER_US: u64 = 500;

/// A load on both lanes.
#[derive(Clone, Debug)]
pub struct LanesLoad {
    /// The node, as `airmail://HOST:PORT`.
    pub target: String,
    /// Namespace, which is made.
    pub namespace: String,
    /// The lane of the flood.
    pub flood: Lane,
    /// Messages a second of the other lane. 0: a flood, too.
    pub rate: u64,
    /// Time for which to publish, in milliseconds.
    pub duration_ms: u64,
    /// Payload of each message, in bytes, at least 16.
    pub size: usize,
    /// Credit of the subscriber, in bytes; `None`: as the SDK has it.
    pub credit: Option<u32>,
}

/// Outcome of a lane.
#[derive(Debug, Default)]
struct Got {
    latencies: Latencies,
    messages: u64,
    out_of_order: u64,
    /// Bytes of payload that came in each second of the run.
    by_second: Vec<u64>,
}

impl LanesLoad {
    /// Runs it. The usage of the node is taken by `node`, before the first message and after the last.
    ///
    /// # Errors
    /// The node cannot be reached, refuses a message, or falls silent.
    pub async fn measure(&self, node: impl Fn() -> Usage) -> Result<LanesRun, Failure> {
        let clients = [self.client().await?, self.client().await?];
        let admin = clients[0].admin();
        admin.create(&self.namespace, Some(1), None, None).await?;
        // The first message makes the logs of lane high.
        for (client, lane) in clients.iter().zip(Lane::ALL) {
            client.publish(TOPIC, "").lane(lane).await?;
        }
        let reader = self.client().await?;
        let subscription = reader.subscribe(TOPIC).open().await?;
        let (used, node_used) = (Usage::own(), node());
        let begun_us = now_us();
        let mut publishers = JoinSet::new();
        for (client, lane) in clients.into_iter().zip(Lane::ALL) {
            let load = self.clone();
            publishers.spawn(async move { load.publish(client, lane).await });
        }
        let mut reading = JoinSet::new();
        let (stop, stopped) = tokio::sync::watch::channel(None);
        reading.spawn(read(subscription, begun_us, stopped));
        let mut published = [0; 2];
        while let Some(done) = publishers.join_next().await {
            let (lane, messages) = done.map_err(Failure::new)??;
            published[lane as usize] = messages;
        }
        stop.send_replace(Some(published));
        let Some(got) = reading.join_next().await else {
            return Err(Failure::new("the reader is gone"));
        };
        let got = got.map_err(Failure::new)??;
        let of_lane = |lane: Lane, got: &Got| LaneOfRun {
            lane: lane.to_string(),
            published: published[lane as usize],
            delivered: got.messages,
            out_of_order: got.out_of_order,
            latency_us: got.latencies.percentiles(),
            bytes_by_second: got.by_second.clone(),
        };
        let [normal, high] = &got;
        Ok(LanesRun {
            flood: self.flood.to_string(),
            rate: self.rate,
            lanes: vec![of_lane(Lane::Normal, normal), of_lane(Lane::High, high)],
            time_us: now_us() - begun_us,
            cpu_us: Usage::own().since(&used).cpu_us,
            node_cpu_us: node().since(&node_used).cpu_us,
        })
    }

    async fn client(&self) -> Result<Client, Failure> {
        let builder = Client::builder().url(&*self.target);
        let mut builder = builder.connect_timeout(PATIENCE).call_timeout(PATIENCE);
        if let Some(bytes) = self.credit {
            builder = builder.credit_bytes(bytes);
        }
        Ok(builder.namespace(&*self.namespace).connect().await?)
    }

    /// Publishes to a lane for the time; gives it, and how many messages.
    async fn publish(&self, client: Client, lane: Lane) -> Result<(Lane, u64), Failure> {
        let publisher = client.publisher();
        let topic = TopicName::new(TOPIC, &Limits::DEFAULT)?;
        let mut payload = vec![0; self.size.max(HEAD_BYTES)];
        let rate = if lane == self.flood { 0 } else { self.rate };
        let alarm = Alarm::new()?;
        let begun_us = now_us();
        let until_us = begun_us + self.duration_ms * 1_000;
        let mut number = 0_u64;
        loop {
            let now = now_us();
            let due_us = match rate {
                0 => now,
                rate => begun_us + number * 1_000_000 / rate,
            };
            if due_us >= until_us {
                break;
            }
            if now < due_us {
                alarm.wait_until(now + GATHER_US).await?;
                continue;
            }
            payload[..8].copy_from_slice(&due_us.to_le_bytes());
            payload[8..HEAD_BYTES].copy_from_slice(&number.to_le_bytes());
            let payload = Bytes::copy_from_slice(&payload);
            let message = Message::new(topic.clone(), payload).lane(lane);
            drop(publisher.send(message).await?);
            number += 1;
        }
        publisher.flush().await?;
        client.close().await?;
        Ok((lane, number))
    }
}

/// Reads until it has so many messages of each lane as are told at the end.
async fn read(
    mut subscription: airmail_client::Subscription,
    begun_us: u64,
    mut stopped: tokio::sync::watch::Receiver<Option<[u64; 2]>>,
) -> Result<[Got; 2], Failure> {
    let mut got: [Got; 2] = Default::default();
    loop {
        let wanted = *stopped.borrow_and_update();
        if wanted.is_some_and(|wanted| {
            let mut lanes = got.iter().zip(wanted);
            lanes.all(|(got, wanted)| got.messages >= wanted)
        }) {
            return Ok(got);
        }
        tokio::select! {
            message = tokio::time::timeout(PATIENCE, subscription.next()) => {
                let message = message.map_err(Failure::new)??;
                match message {
                    Some(Item::Message(message)) => {
                        take(&mut got, begun_us, message.log().lane, &message.payload);
                    }
                    Some(other) => return Err(Failure::new(format!("{other:?} came"))),
                    None => return Err(Failure::new("the subscription has ended")),
                }
            }
            changed = stopped.changed() => changed.map_err(Failure::new)?,
        }
    }
}

/// Counts a message of a lane.
fn take(got: &mut [Got; 2], begun_us: u64, lane: Lane, payload: &[u8]) {
    let got = &mut got[lane as usize];
    let word = |at: usize| {
        let bytes = payload.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let Some((due_us, number)) = word(0).zip(word(8)) else {
        // Input: the message that has made the lane's log.
        return;
    };
    let now = now_us();
    got.latencies.record(now.saturating_sub(due_us));
    got.out_of_order += u64::from(number != got.messages);
    got.messages += 1;
    let second = usize::try_from(now.saturating_sub(begun_us) / 1_000_000).unwrap_or_default();
    if got.by_second.len() <= second {
        got.by_second.resize(second + 1, 0);
    }
    got.by_second[second] += payload.len() as u64;
}
