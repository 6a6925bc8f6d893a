//! Lanes: a flood of one lane, and beside it the other one at a rate, to one subscriber; how long each waits, and what each gets.
//!
//! The flood is as much as goes: its publisher hands over what the SDK has room for, and waits for nothing else. Beside it comes
//! the other lane at a rate, and at the same rate a *control* of the flood's own lane: what the other one has over the control
//! is its lane's, and no merit of being few or of a connection of one's own. Each of them has a publisher and a connection of
//! its own, as whoever raises an alarm would, or all are published by one client. The time of a message is from when it was
//! handed over, or, at a rate, from when it was due, until the subscriber has it. Everything is counted: what each publishes
//! has to come whole, once and in order.

mod report;
mod stream;

use crate::alarm::Alarm;
use crate::clock::now_us;
use crate::process::Usage;
use crate::system::Failure;
use airmail_client::{Client, Item, Lane, Message, Publisher};
use airmail_model::{Limits, TopicName};
use bytes::Bytes;
pub use report::{LanesReport, LanesRun, StreamOfRun};
use std::time::Duration;
pub use stream::Role;
use stream::{Got, Stamp};
use tokio::task::JoinSet;

/// The topic of both lanes.
const TOPIC: &str = "bench/lanes";
/// Longest time until a connection stands, and without a message before the run is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A load on both lanes.
#[derive(Clone, Debug)]
pub struct LanesLoad {
    /// The node, as `airmail://HOST:PORT`.
    pub target: String,
    /// Namespace, which is made.
    pub namespace: String,
    /// The lane of the flood.
    pub flood: Lane,
    /// Messages a second of the other lane, and of the control. 0: the other lane is a flood, too, and there is no control.
    pub rate: u64,
    /// One client publishes everything.
    pub together: bool,
    /// Time for which to publish, in milliseconds.
    pub duration_ms: u64,
    /// Payload of each message, in bytes, at least 16.
    pub size: usize,
    /// Credit of the subscriber, in bytes; `None`: as the SDK has it.
    pub credit: Option<u32>,
}

impl LanesLoad {
    /// Runs it. The usage of the node is taken by `node`, before the first message and after the last.
    ///
    /// # Errors
    /// The node cannot be reached, refuses a message, or falls silent.
    pub async fn measure(&self, node: impl Fn() -> Usage) -> Result<LanesRun, Failure> {
        let clients = self.publishing().await?;
        let admin = clients[0].admin();
        admin.create(&self.namespace, Some(1), None, None).await?;
        // The first message makes the logs of lane high.
        for lane in Lane::ALL {
            clients[0].publish(TOPIC, "").lane(lane).await?;
        }
        let reader = self.client().await?;
        let subscription = reader.subscribe(TOPIC).open().await?;
        let (used, node_used) = (Usage::own(), node());
        let begun_us = now_us();
        let mut publishers = JoinSet::new();
        for (role, client) in self.roles().iter().zip(clients.iter().cycle()) {
            let (load, publisher) = (self.clone(), client.publisher());
            publishers.spawn(async move { load.publish(publisher, *role).await });
        }
        let mut reading = JoinSet::new();
        let (stop, stopped) = tokio::sync::watch::channel(None);
        reading.spawn(read(subscription, begun_us, stopped));
        let mut published = [0; Role::ALL.len()];
        while let Some(done) = publishers.join_next().await {
            let (role, messages) = done.map_err(Failure::new)??;
            published[role as usize] = messages;
        }
        stop.send_replace(Some(published));
        let Some(got) = reading.join_next().await else {
            return Err(Failure::new("the reader is gone"));
        };
        let got = got.map_err(Failure::new)??;
        let streams = self.roles().iter().map(|role| {
            let at = *role as usize;
            got[at].report(self.lane(*role), *role, published[at])
        });
        let run = LanesRun {
            flood: self.flood.to_string(),
            rate: self.rate,
            together: self.together,
            streams: streams.collect(),
            time_us: now_us() - begun_us,
            cpu_us: Usage::own().since(&used).cpu_us,
            node_cpu_us: node().since(&node_used).cpu_us,
        };
        for client in clients {
            client.close().await?;
        }
        Ok(run)
    }

    /// Publishers of the load.
    fn roles(&self) -> &'static [Role] {
        if self.rate == 0 {
            &[Role::Flood, Role::Beside]
        } else {
            &Role::ALL
        }
    }

    fn lane(&self, role: Role) -> Lane {
        match (role, self.flood) {
            (Role::Flood | Role::Control, flood) => flood,
            (Role::Beside, Lane::Normal) => Lane::High,
            (Role::Beside, Lane::High) => Lane::Normal,
        }
    }

    /// The clients that they share, in turn.
    async fn publishing(&self) -> Result<Vec<Client>, Failure> {
        let count = if self.together { 1 } else { self.roles().len() };
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.client().await?);
        }
        Ok(clients)
    }

    async fn client(&self) -> Result<Client, Failure> {
        let builder = Client::builder().url(&*self.target);
        let mut builder = builder.connect_timeout(PATIENCE).call_timeout(PATIENCE);
        if let Some(bytes) = self.credit {
            builder = builder.credit_bytes(bytes);
        }
        Ok(builder.namespace(&*self.namespace).connect().await?)
    }

    /// Publishes for the time; gives who it was, and how many messages.
    async fn publish(&self, publisher: Publisher, role: Role) -> Result<(Role, u64), Failure> {
        let lane = self.lane(role);
        let topic = TopicName::new(TOPIC, &Limits::DEFAULT)?;
        let mut payload = vec![0; self.size.max(Stamp::BYTES)];
        let rate = if role == Role::Flood { 0 } else { self.rate };
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
                alarm.wait_until(due_us).await?;
                continue;
            }
            let stamp = Stamp {
                role,
                number,
                due_us,
            };
            payload[..Stamp::BYTES].copy_from_slice(&stamp.bytes());
            let payload = Bytes::copy_from_slice(&payload);
            let message = Message::new(topic.clone(), payload).lane(lane);
            drop(publisher.send(message).await?);
            number += 1;
        }
        publisher.flush().await?;
        Ok((role, number))
    }
}

/// Reads until it has so many messages of each publisher as are told at the end.
async fn read(
    mut subscription: airmail_client::Subscription,
    begun_us: u64,
    mut stopped: tokio::sync::watch::Receiver<Option<[u64; Role::ALL.len()]>>,
) -> Result<[Got; Role::ALL.len()], Failure> {
    let mut got: [Got; Role::ALL.len()] = Default::default();
    loop {
        let wanted = *stopped.borrow_and_update();
        if wanted.is_some_and(|wanted| {
            let mut all = got.iter().zip(wanted);
            all.all(|(got, wanted)| got.messages >= wanted)
        }) {
            return Ok(got);
        }
        tokio::select! {
            message = tokio::time::timeout(PATIENCE, subscription.next()) => {
                let message = message.map_err(Failure::new)??;
                match message {
                    Some(Item::Message(message)) => {
                        if let Some(stamp) = Stamp::read(&message.payload) {
                            got[stamp.role as usize].take(stamp, begun_us, message.payload.len());
                        }
                    }
                    Some(other) => return Err(Failure::new(format!("{other:?} came"))),
                    None => return Err(Failure::new("the subscription has ended")),
                }
            }
            changed = stopped.changed() => changed.map_err(Failure::new)?,
        }
    }
}
