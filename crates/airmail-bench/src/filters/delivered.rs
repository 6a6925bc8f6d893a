//! Filters through a node: messages go in, and each member of the sets of many streams gets what its filter matches.
//!
//! Filters are those of the matching alone; each is a member of one of the streams' sets, for all topics of a namespace of one log.
//! Some may be changed while messages flow. After the run everything is read once more, in the log's order, and held against
//! the filters that were in force at each number, by an index; every hundredth message by a loop too. So whatever is
//! missing, too much, doubled or out of order is noticed.

mod check;
mod reader;
mod report;

use super::Wanted;
use super::workload::{self, Kind};
use crate::alarm::Alarm;
use crate::clock::now_us;
use crate::latency::Latencies;
use crate::process::Usage;
use crate::system::Failure;
use airmail_client::{Client, Message};
use airmail_model::random;
use airmail_model::{Limits, TopicName};
use bytes::Bytes;
use check::{Checked, Versions};
use reader::{Asked, Reader, ReaderGot};
pub use report::DeliveredRun;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Bytes of the time at which a message was due, at the head of its payload.
const DUE_BYTES: usize = 8;
/// Sets of attributes that messages have, in an order that follows from the seed.
const ATTRIBUTE_SETS: u64 = 4096;
/// Longest time until a connection stands, and until all has come after the last message.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for which messages that are due gather before they are sent.
const GATHER_US: u64 = 1_000;

/// A load of filters on a node.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The node, as `airmail://HOST:PORT`.
    pub target: String,
    /// Namespace, which is made, with one log.
    pub namespace: String,
    /// Filters and messages.
    pub wanted: Wanted,
    /// Streams, each with a set of its share of the filters.
    pub streams: NonZeroU32,
    /// Connections that they share.
    pub connections: NonZeroU32,
    /// Topics, used in turn.
    pub topics: NonZeroU32,
    /// Messages a second, whether or not the node keeps up.
    pub rate: u64,
    /// Time for which to publish, in milliseconds.
    pub duration_ms: u64,
    /// Filters a second that are changed meanwhile.
    pub changes: u64,
}

/// Messages that were published.
#[derive(Clone, Copy, Debug)]
struct Published {
    messages: u64,
    /// Time that it took, in microseconds.
    time_us: u64,
    /// Number of the last message in the log.
    last: u64,
}

impl Delivered {
    /// Runs it. The usage of the node is taken by `node`, before the first message and after the last.
    ///
    /// # Errors
    /// The node cannot be reached, or refuses a filter or a message.
    pub async fn measure(&self, node: impl Fn() -> Usage) -> Result<DeliveredRun, Failure> {
        let texts: Arc<[String]> = workload::filters(&self.wanted, Kind::Intervals).into();
        let (stop, stopped) = watch::channel(None);
        let (readers, changers) = self.readers(&texts, stopped).await?;
        let mut tasks = JoinSet::new();
        for reader in readers {
            tasks.spawn(reader.read());
        }
        let (used, node_used) = (Usage::own(), node());
        let mut changing = JoinSet::new();
        changing.spawn(ask_changes(
            changers,
            (self.changes, self.duration_ms),
            self.wanted,
        ));
        let published = self.publish().await?;
        let asked = match changing.join_next().await {
            Some(asked) => asked.map_err(Failure::new)?,
            None => 0,
        };
        stop.send_replace(Some(published.last));
        let mut got = Vec::new();
        while let Some(reader) = tasks.join_next().await {
            got.push(reader.map_err(Failure::new)??);
        }
        let used = Usage::own().since(&used);
        let node_used = node().since(&node_used);
        let mut latencies = Latencies::new();
        got.iter().for_each(|got| latencies.add(&got.latencies));
        let answered = got.iter().map(|got| got.versions.len() as u64).sum();
        let checked = self.check(&texts, &got, published.last).await?;
        Ok(DeliveredRun {
            filters: self.wanted.filters,
            streams: self.streams.get(),
            messages: published.messages,
            publish_us: published.time_us,
            named: got.iter().map(|got| got.messages).sum(),
            delivered: got.iter().map(|got| got.delivered()).sum(),
            latency_us: latencies.percentiles(),
            changes_asked: asked,
            changes_made: answered,
            out_of_order: got.iter().map(|got| got.out_of_order).sum(),
            gaps: got.iter().map(|got| got.gaps).sum(),
            missing: checked.missing,
            extra: checked.extra,
            looped: checked.looped,
            index_agrees: checked.index_agrees,
            cpu_us: used.cpu_us,
            node_cpu_us: node_used.cpu_us,
            node_rss_bytes: node_used.rss_bytes,
        })
    }

    async fn client(&self) -> Result<Client, Failure> {
        let builder = Client::builder().url(&*self.target);
        let builder = builder.connect_timeout(PATIENCE).call_timeout(PATIENCE);
        Ok(builder.namespace(&*self.namespace).connect().await?)
    }

    /// Makes the namespace, and a reader for each stream, whose members are all there.
    async fn readers(
        &self,
        texts: &Arc<[String]>,
        stopped: watch::Receiver<Option<u64>>,
    ) -> Result<(Vec<Reader>, Vec<mpsc::Sender<Asked>>), Failure> {
        let mut clients = Vec::new();
        for _ in 0..self.connections.get() {
            clients.push(self.client().await?);
        }
        let admin = clients.first().map(Client::admin);
        if let Some(admin) = admin {
            admin.create(&self.namespace, Some(1), None, None).await?;
        }
        let mut tasks = JoinSet::new();
        for stream in 0..self.streams.get() {
            let client = clients[stream as usize % clients.len()].clone();
            let of_all = (stream, self.streams.get());
            let (texts, stopped) = (Arc::clone(texts), stopped.clone());
            tasks.spawn(Reader::begin(client, of_all, texts, stopped));
        }
        let (mut readers, mut changers) = (Vec::new(), Vec::new());
        while let Some(made) = tasks.join_next().await {
            let (reader, changer) = made.map_err(Failure::new)??;
            readers.push(reader);
            changers.push(changer);
        }
        Ok((readers, changers))
    }

    /// Publishes by the timetable.
    async fn publish(&self) -> Result<Published, Failure> {
        let client = self.client().await?;
        let publisher = client.publisher();
        let templates = workload::messages(&self.wanted, Kind::Intervals);
        let topics = (0..self.topics.get())
            .map(|topic| TopicName::new(&format!("bench/filters/{topic}"), &Limits::DEFAULT));
        let topics: Vec<TopicName> = topics.collect::<Result<_, _>>()?;
        let alarm = Alarm::new()?;
        let begun_us = now_us();
        let all = self.rate * self.duration_ms / 1_000;
        let mut number = 0_u64;
        while number < all {
            let due_us = begun_us + number * 1_000_000 / self.rate;
            let now = now_us();
            if now < due_us {
                alarm.wait_until(now + GATHER_US).await?;
                continue;
            }
            let set = random::nth(self.wanted.seed, number) % ATTRIBUTE_SETS;
            let template = &templates[set as usize % templates.len()];
            let message = Message {
                topic: topics[(number % u64::from(self.topics.get())) as usize].clone(),
                payload: Bytes::copy_from_slice(&due_us.to_le_bytes()),
                ..template.clone()
            };
            drop(publisher.send(message).await?);
            number += 1;
        }
        publisher.flush().await?;
        let time_us = now_us() - begun_us;
        let end = client.publish("bench/filters/end", "").await?;
        client.close().await?;
        Ok(Published {
            messages: number,
            time_us,
            last: end.sequence.0,
        })
    }

    /// Holds everything that readers have got against the filters, apart from this runtime's threads.
    async fn check(
        &self,
        texts: &Arc<[String]>,
        got: &[ReaderGot],
        last: u64,
    ) -> Result<Checked, Failure> {
        let client = self.client().await?;
        let mut versions = Versions::new(texts).map_err(Failure::new)?;
        for got in got {
            let changed = got.versions.iter();
            for (member, from, text) in changed {
                versions
                    .change(*member, *from, text)
                    .map_err(Failure::new)?;
            }
        }
        let mut seen = check::Seen::new(last);
        got.iter().for_each(|got| seen.add(got));
        let checked = versions.hold(&client, &seen, last).await?;
        client.close().await?;
        Ok(checked)
    }
}

/// Asks for changes at their rate, of members in turn; how many.
async fn ask_changes(
    changers: Vec<mpsc::Sender<Asked>>,
    (rate, duration_ms): (u64, u64),
    wanted: Wanted,
) -> u64 {
    let mut asked = 0;
    if rate == 0 {
        return asked;
    }
    let again = Wanted {
        seed: wanted.seed.wrapping_add(1),
        ..wanted
    };
    let texts = workload::filters(&again, Kind::Intervals);
    let begun_us = now_us();
    let all = rate * duration_ms / 1_000;
    while asked < all {
        let due = (now_us() - begun_us) * rate / 1_000_000;
        if asked >= due.min(all) {
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        }
        let changer = &changers[asked as usize % changers.len()];
        let text = texts[asked as usize % texts.len()].clone();
        let member = asked / changers.len() as u64;
        if changer.send(Asked { member, text }).await.is_err() {
            break;
        }
        asked += 1;
    }
    asked
}

/// The time at which a message was due, from its payload.
fn due_us(payload: &[u8]) -> Option<u64> {
    let bytes = payload.get(..DUE_BYTES)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}
