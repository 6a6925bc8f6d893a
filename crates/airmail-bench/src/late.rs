//! Many late subscribers of one log: each of a topic of its own, from a place of its own.
//!
//! A [`Backlog`] is stored first: each topic gets a message in turn, so that all of them share the log's
//! batches, and the places are spread evenly over the log, in another order than the topics; where the
//! storage's acks are not exact, they are those of the messages of 16 topics. Then a
//! [`Crowd`] subscribes to all of it at once. Each subscriber knows which message is the first and the last
//! for it, so that whatever is missing, comes again or out of order is noticed.

mod report;

use crate::clock::now_us;
use crate::latency::{Latencies, Percentiles};
use crate::process::Usage;
use crate::system::Failure;
use airmail_client::{Client, Item, Items, Start};
use airmail_model::{Limits, Sequence, TopicName};
pub use report::{LateReport, LateRun};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Longest time until a connection of the crowd's stands: it may give way to others on a machine that has much to do. It
/// is no part of what is measured.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a message's number in its topic, at the head of its payload.
const NUMBER_BYTES: usize = 8;
/// Steps from one topic's place to the next one's; a prime, so that every place is somebody's where there are
/// fewer topics or it does not divide their number.
const PLACE_STEP: u64 = 7919;
/// Topics that are read to know where the others' messages are, where acks do not tell.
const RULERS: usize = 16;

/// A request for a backlog.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Namespace, which is made, with one log.
    pub namespace: String,
    /// Topics, each with a subscriber.
    pub topics: NonZeroU32,
    /// Bytes of payload in all.
    pub bytes: u64,
    /// Payload of each message, in bytes, at least 8.
    pub size: usize,
}

/// Messages that are stored, and who is to read which of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Backlog {
    namespace: String,
    /// Messages of each topic.
    each: u64,
    /// The place from which each topic is read.
    places: Vec<Place>,
}

/// A place of the log.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Place {
    /// Its number in the log.
    at: u64,
    /// Number of the first message of the topic behind it.
    first: u64,
}

impl Backlog {
    /// Makes the namespace, and stores everything.
    ///
    /// # Errors
    /// The node cannot be reached, or refuses a message.
    pub async fn store(url: &str, wanted: &Wanted) -> Result<Backlog, Failure> {
        let client = Client::builder()
            .url(url)
            .namespace(&*wanted.namespace)
            .connect()
            .await?;
        client
            .admin()
            .create(&wanted.namespace, Some(1), None, None)
            .await?;
        let topics = u64::from(wanted.topics.get());
        let each = (wanted.bytes / wanted.size.max(1) as u64 / topics).max(1);
        let names = (0..wanted.topics.get()).map(topic_name);
        let names: Vec<TopicName> = names.collect::<Result<_, _>>()?;
        let publisher = client.publisher();
        let mut payload = vec![b'.'; wanted.size.max(NUMBER_BYTES)];
        let mut acks = Vec::new();
        for message in 0..each * topics {
            payload[..NUMBER_BYTES].copy_from_slice(&(message / topics).to_le_bytes());
            let topic = &names[(message % topics) as usize];
            let ack = publisher.send_ref(topic, &payload).await?;
            if message % each == 0 {
                acks.push(ack);
            }
        }
        let (mut starts, mut is_exact) = (Vec::with_capacity(acks.len()), true);
        for ack in acks {
            let ack = ack.await?;
            is_exact &= ack.exact;
            starts.push(ack.sequence.0);
        }
        publisher.flush().await?;
        let known: BTreeMap<u64, u64> = if is_exact {
            let starts = (0..).zip(starts);
            starts.map(|(start, at)| (start * each, at)).collect()
        } else {
            rulers(&client, &names).await?
        };
        client.close().await?;
        let place = |topic: u64| {
            let start = topic * PLACE_STEP % topics * each;
            // The first topic has the first message, and is a ruler.
            let before = known.range(..=start).next_back();
            let (message, at) = before.map_or((0, 1), |(message, at)| (*message, *at));
            Place {
                at,
                first: first_behind(message, topic, topics),
            }
        };
        Ok(Backlog {
            namespace: wanted.namespace.clone(),
            each,
            places: (0..topics).map(place).collect(),
        })
    }

    /// Number of messages that are stored.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.each * self.places.len() as u64
    }

    /// Number of messages that its subscribers have to get.
    #[must_use]
    pub fn due(&self) -> u64 {
        let due = self.places.iter().map(|place| self.each - place.first);
        due.sum()
    }
}

/// Number in the log of every message, of all, that some topics have, the first among them. So a backlog is measured
/// where acks are not exact: the number in one may be that of a copy, behind the message that readers are given.
async fn rulers(client: &Client, names: &[TopicName]) -> Result<BTreeMap<u64, u64>, Failure> {
    let mut known = BTreeMap::new();
    for (topic, name) in (0..).zip(names).step_by(names.len().div_ceil(RULERS)) {
        let mut history = client.history(name.as_str()).open()?;
        let mut message = topic;
        while let Some(item) = history.next().await? {
            if let Item::Message(found) = item {
                known.insert(message, found.sequence.0);
                message += names.len() as u64;
            }
        }
    }
    Ok(known)
}

fn topic_name(number: u32) -> Result<TopicName, airmail_model::Error> {
    TopicName::new(&format!("bench/late/{number}"), &Limits::DEFAULT)
}

/// Number, in its topic, of the topic's first message that is not before `message` of all: each of the
/// `topics` gets one in turn.
fn first_behind(message: u64, topic: u64, topics: u64) -> u64 {
    message.saturating_sub(topic).div_ceil(topics)
}

/// The subscribers of a backlog.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Crowd {
    /// The node, as `airmail://HOST:PORT`.
    pub target: String,
    /// The machine that its clients say they are on, to keep to a node; absent: this one.
    pub host: Option<String>,
    /// Connections that they share.
    pub connections: NonZeroU32,
    /// Everything that they read.
    pub backlog: Backlog,
}

/// Messages of a crowd, and times.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CaughtUp {
    /// Subscribers that have got their last message.
    pub complete: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Messages that were left out between others.
    pub missing: u64,
    /// Messages that came again, or out of order.
    pub again: u64,
    /// Gaps that they were told.
    pub gaps: u64,
    /// Time until the last was complete, in microseconds.
    pub time_us: u64,
    /// Time until a subscriber had its first message.
    pub first_us: Percentiles,
    /// Time until it had its last.
    pub last_us: Percentiles,
    /// Processor time of their process, in microseconds.
    pub cpu_us: u64,
}

/// Messages of one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    messages: u64,
    bytes: u64,
    missing: u64,
    again: u64,
    gaps: u64,
    first_us: u64,
    last_us: u64,
}

impl Crowd {
    /// Subscribes to everything at once, and reads until all are complete.
    ///
    /// # Errors
    /// The node cannot be reached, or a subscription ends.
    pub async fn catch_up(&self) -> Result<CaughtUp, Failure> {
        let mut clients = Vec::new();
        for _ in 0..self.connections.get() {
            let builder = Client::builder().url(&*self.target);
            let builder = builder.connect_timeout(CONNECT_PATIENCE);
            let mut builder = builder.namespace(&*self.backlog.namespace);
            if let Some(host) = &self.host {
                builder = builder.host(&**host);
            }
            clients.push(Arc::new(builder.connect().await?));
        }
        let (begun_us, before) = (now_us(), Usage::own());
        let mut tasks = JoinSet::new();
        for ((topic, place), client) in (0..).zip(&self.backlog.places).zip(clients.iter().cycle())
        {
            let (client, place, each) = (Arc::clone(client), *place, self.backlog.each);
            tasks.spawn(async move { read(&client, topic, place, each, begun_us).await });
        }
        let (mut sum, mut first, mut last) =
            (CaughtUp::default(), Latencies::new(), Latencies::new());
        while let Some(got) = tasks.join_next().await {
            let got = got.map_err(|error| Failure::new(error.to_string()))??;
            sum.complete += 1;
            sum.messages += got.messages;
            sum.bytes += got.bytes;
            sum.missing += got.missing;
            sum.again += got.again;
            sum.gaps += got.gaps;
            first.record(got.first_us);
            last.record(got.last_us);
        }
        sum.time_us = now_us() - begun_us;
        sum.cpu_us = Usage::own().since(&before).cpu_us;
        (sum.first_us, sum.last_us) = (first.percentiles(), last.percentiles());
        Ok(sum)
    }
}

impl CaughtUp {
    /// Whether everybody got all of a backlog that was for them, once and in order.
    #[must_use]
    pub fn is_whole(&self, of: &Backlog) -> bool {
        [self.missing, self.again, self.gaps] == [0; 3]
            && self.complete == of.places.len() as u64
            && self.messages == of.due()
    }
}

/// Reads one topic from its place to its last message.
async fn read(
    client: &Client,
    topic: u32,
    place: Place,
    each: u64,
    begun_us: u64,
) -> Result<Got, Failure> {
    let mut got = Got::default();
    let mut next = place.first;
    if next >= each {
        // Input: a place behind the topic's last message.
        return Ok(got);
    }
    let start = Start::Sequence(Sequence(place.at));
    let name = topic_name(topic)?;
    let mut subscription = client.subscribe(name.as_str()).from(start).open().await?;
    while next < each {
        match subscription.next_batch().await? {
            Some(Items::Messages(messages)) => {
                for (_, record) in messages.iter() {
                    if got.messages == 0 {
                        got.first_us = now_us() - begun_us;
                    }
                    got.messages += 1;
                    got.bytes += record.payload.len() as u64;
                    let head = record.payload.first_chunk();
                    let number = head.map_or(u64::MAX, |head| u64::from_le_bytes(*head));
                    if number < next {
                        got.again += 1;
                        continue;
                    }
                    got.missing += number.min(each) - next;
                    next = number.saturating_add(1);
                }
            }
            Some(Items::Gap(_)) => got.gaps += 1,
            // Nobody asks to be told of what has expired.
            Some(Items::Expired(_)) => {}
            None => return Err(Failure::new("the subscription has ended")),
        }
    }
    got.last_us = now_us() - begun_us;
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_behind_a_place_is_the_topics_next_turn() {
        // Turns of three topics: 0 1 2 | 0 1 2 | …
        let of = |message, topic| first_behind(message, topic, 3);
        assert_eq!([of(0, 0), of(0, 1), of(0, 2)], [0, 0, 0]);
        assert_eq!([of(1, 0), of(1, 1), of(1, 2)], [1, 0, 0]);
        assert_eq!([of(3, 0), of(3, 2), of(5, 2), of(6, 2)], [1, 1, 1, 2]);
    }

    #[test]
    fn a_subscriber_that_missed_something_makes_the_crowd_not_whole() {
        let places = vec![Place { at: 1, first: 0 }; 2];
        let backlog = Backlog {
            namespace: "late".to_owned(),
            each: 3,
            places,
        };
        let whole = CaughtUp {
            complete: 2,
            messages: 6,
            ..CaughtUp::default()
        };
        assert!(whole.is_whole(&backlog));
        let missed = CaughtUp {
            messages: 5,
            missing: 1,
            ..whole
        };
        assert!(!missed.is_whole(&backlog));
    }
}
