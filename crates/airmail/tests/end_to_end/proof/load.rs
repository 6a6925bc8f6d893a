//! Publishers and subscribers that run through all acts on the node. Each message is stamped; a
//! subscriber that gets any but the next one of its publisher and topic reports it.

mod following;
mod publishing;

use super::reading;
use super::stamp::Stamp;
use super::victim::{self, Victim};
use airmail_client::{Client, Error, ErrorCode, Position, Start};
use airmail_model::{Limits, LogId, Message, TopicName};
use airmail_testkit::waiting::{Waiting, alive, waiting};
use following::{Follower, Following, Seen};
use parking_lot::Mutex;
use publishing::Publishing;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

pub(crate) use following::Saved;

/// Complaints that are kept.
const COMPLAINTS: usize = 8;

/// A topic of the load.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) namespace: &'static str,
    pub(crate) name: String,
    /// Its place in the list.
    pub(crate) index: u32,
    /// Its logs reserve numbers ahead, and after an unclean stop go on above them.
    pub(crate) reserves: bool,
}

/// Record that all tasks of a load share.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Number of messages handed to the SDK, by (publisher, topic).
    sent: Mutex<BTreeMap<(u32, u32), u64>>,
    /// Log and number that single messages were acknowledged under, where the storage knows that there is no other.
    numbered: Mutex<BTreeMap<Stamp, (LogId, u64)>>,
    /// Messages acknowledged.
    pub(crate) acknowledged: AtomicU64,
    /// Messages received, by all subscribers.
    pub(crate) received: AtomicU64,
    stop: AtomicBool,
    wrong: Mutex<Vec<String>>,
    /// Messages of which it was told that it is not known whether they are stored, as (publisher,
    /// topic, number). `None`: there may be none such.
    unknown: Option<Mutex<BTreeSet<(u32, u32, u64)>>>,
    /// Times of acks, by publisher.
    acked: Mutex<BTreeMap<u32, Waits>>,
}

/// Times at which something came, as far as they were longer than usual.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    last: Option<Instant>,
    /// The longest time without anything since the last mark.
    pub(crate) longest: Duration,
    /// The first time that something came after the mark.
    pub(crate) first: Option<Instant>,
}

impl Waits {
    /// Something has come.
    fn come(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.longest = self.longest.max(now - last);
        }
        self.first.get_or_insert(now);
    }

    fn mark(&mut self) {
        (self.longest, self.first) = (Duration::ZERO, None);
    }
}

impl Tally {
    /// The first things that went wrong are kept: one may be the cause of another.
    fn complain(&self, what: String) {
        let mut wrong = self.wrong.lock();
        if wrong.len() < COMPLAINTS {
            wrong.push(what);
        }
    }

    /// Fails if anything went wrong.
    #[track_caller]
    pub(crate) fn check(&self) {
        let wrong = self.wrong.lock().clone();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Takes acks of this many messages of a publisher.
    fn stored(&self, publisher: u32, count: u64) {
        self.acknowledged.fetch_add(count, Ordering::Relaxed);
        self.acked.lock().entry(publisher).or_default().come();
    }

    /// Takes a failure of these messages; it may only be that their outcome is not known.
    fn failed(&self, first: Stamp, count: u64, error: Option<&Error>) {
        match &self.unknown {
            Some(unknown) if error.is_some_and(|e| e.code() == ErrorCode::OutcomeUnknown) => {
                let numbers = first.number..first.number + count;
                let places = numbers.map(|number| (first.publisher, first.topic, number));
                unknown.lock().extend(places);
            }
            _ => self.complain(format!("{first:?} and {count} in all: {error:?}")),
        }
    }

    /// Whether all of these may be missing.
    fn are_unknown(&self, publisher: u32, topic: u32, mut numbers: Range<u64>) -> bool {
        let Some(unknown) = &self.unknown else {
            return numbers.is_empty();
        };
        let unknown = unknown.lock();
        numbers.all(|number| unknown.contains(&(publisher, topic, number)))
    }

    /// Number of messages that each publisher has handed over for this topic.
    fn sent_to(&self, topic: u32) -> BTreeMap<u32, u64> {
        let sent = self.sent.lock();
        let of_topic = sent.iter().filter(|((_, other), _)| *other == topic);
        of_topic
            .map(|((publisher, _), count)| (*publisher, *count))
            .collect()
    }

    /// Log and number that this message was acknowledged under, if it was sent singly.
    fn place_of(&self, stamp: Stamp) -> Option<(LogId, u64)> {
        self.numbered.lock().get(&stamp).copied()
    }
}

/// The load: its topics, and the runtime of its tasks.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) topics: Vec<Topic>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) runtime: Runtime,
    /// Addresses of the nodes, with commas between them.
    addresses: String,
    /// Name of the machine of further clients; `None`: the system's.
    host: Option<String>,
    publishers: Vec<JoinHandle<()>>,
    followers: Vec<Follower>,
    _alive: Waiting,
}

impl Load {
    /// A load of the given topics on a node that runs; nothing of it runs yet.
    pub(crate) fn new(victim: &Victim, topics: Vec<Topic>) -> Load {
        Load::at(victim.address.clone(), topics)
    }

    /// A load of the given topics on nodes at these addresses; nothing of it runs yet.
    pub(crate) fn at(addresses: String, topics: Vec<Topic>) -> Load {
        let tally = Tally {
            sent: Mutex::default(),
            numbered: Mutex::default(),
            acknowledged: AtomicU64::new(0),
            received: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            wrong: Mutex::default(),
            unknown: None,
            acked: Mutex::default(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        Load {
            topics,
            tally: Arc::new(tally),
            runtime,
            addresses,
            host: None,
            publishers: Vec::new(),
            followers: Vec::new(),
            _alive: alive("a load"),
        }
    }

    /// Takes it that the outcome of a message is not known. To be said before anything runs.
    pub(crate) fn with_unknown_outcomes(mut self) -> Load {
        if let Some(tally) = Arc::get_mut(&mut self.tally) {
            tally.unknown = Some(Mutex::default());
        }
        self
    }

    /// Has the clients that begin from now on be of a machine, and know a node of it.
    pub(crate) fn begin_on(&mut self, host: &str, address: &str) {
        self.addresses = address.to_owned();
        self.host = Some(host.to_owned());
    }

    /// A client of the load's.
    pub(crate) fn connect(&self) -> Client {
        let _waiting = waiting("a connection");
        let mut client = victim::client(&self.addresses);
        if let Some(host) = &self.host {
            client = client.host(host);
        }
        self.runtime.block_on(client.connect()).unwrap()
    }

    /// Starts a publisher to all topics, each of about `rate` messages a second.
    pub(crate) fn publish(&mut self, seed: u64, rate: u64) {
        let work = Publishing {
            id: self.publishers.len() as u32,
            client: self.connect(),
            topics: self.topics.clone(),
            tally: Arc::clone(&self.tally),
            random: SmallRng::seed_from_u64(seed),
            rate,
            acks: JoinSet::new(),
        };
        self.publishers.push(self.runtime.spawn(work.run()));
    }

    /// Starts a subscriber of a topic, from its first message or from its end.
    pub(crate) fn follow(&mut self, topic: &Topic, from_the_end: bool) {
        let start = if from_the_end {
            Start::Latest
        } else {
            Start::Earliest
        };
        let seen = Seen {
            from_the_end,
            may_skip: self.tally.unknown.is_some(),
            ..Seen::default()
        };
        self.follow_from(topic, start, seen);
    }

    /// Starts a subscriber where another one was stopped.
    pub(crate) fn resume(&mut self, saved: &Saved) {
        let text = saved.position.to_string();
        let position: Position = text.parse().unwrap();
        self.follow_from(&saved.topic, Start::Position(position), saved.seen.clone());
    }

    fn follow_from(&mut self, topic: &Topic, start: Start, seen: Seen) {
        let client = self.connect();
        let stop = Arc::new(Notify::new());
        let seen = Arc::new(Mutex::new(seen));
        let following = Following {
            client,
            topic: topic.clone(),
            start,
            stop: Arc::clone(&stop),
            seen: Arc::clone(&seen),
            tally: Arc::clone(&self.tally),
        };
        let task = self.runtime.spawn(following.run());
        let topic = topic.clone();
        self.followers.push(Follower {
            stop,
            seen,
            task,
            topic,
        });
    }

    /// Number of running subscribers.
    pub(crate) fn followers(&self) -> usize {
        self.followers.len()
    }

    /// Stops a subscriber, and gives where it may go on.
    pub(crate) fn stop_following(&mut self, which: usize) -> Option<Saved> {
        let follower = self.followers.remove(which);
        follower.stop.notify_one();
        let _waiting = waiting("the end of a subscriber that was stopped");
        let position = self.runtime.block_on(follower.task).unwrap()?;
        let seen = follower.seen.lock().clone();
        let topic = follower.topic;
        Some(Saved {
            topic,
            position,
            seen,
        })
    }

    /// Stops the publishers, and waits until all that they sent is acknowledged.
    pub(crate) fn stop_publishing(&mut self) {
        self.tally.stop.store(true, Ordering::Relaxed);
        let _waiting = waiting("acks of all that was published");
        for publisher in std::mem::take(&mut self.publishers) {
            self.runtime.block_on(publisher).unwrap();
        }
        self.tally.check();
    }

    /// Waits until every subscriber that began before the end has everything that was sent.
    pub(crate) fn wait_for_followers(&self) {
        airmail_testkit::node::wait_until("every subscriber to have everything", || {
            self.tally.check();
            self.followers.iter().all(|follower| {
                let seen = follower.seen.lock();
                let sent = self.tally.sent_to(follower.topic.index);
                let has_all = |(publisher, count): (&u32, &u64)| {
                    let next = seen.next.get(publisher).copied().unwrap_or(0);
                    self.tally
                        .are_unknown(*publisher, follower.topic.index, next..*count)
                };
                seen.from_the_end || sent.iter().all(has_all)
            })
        });
        for follower in &self.followers {
            let seen = follower.seen.lock();
            for (publisher, skipped) in &seen.skipped {
                let topic = follower.topic.index;
                let unknown = self.tally.are_unknown(*publisher, topic, skipped.clone());
                assert!(
                    unknown,
                    "topic {topic}, publisher {publisher}: {skipped:?} did not come"
                );
            }
        }
    }

    /// Begins to look anew how long publishers and subscribers wait.
    pub(crate) fn mark(&self) {
        self.tally.acked.lock().values_mut().for_each(Waits::mark);
        for follower in &self.followers {
            follower.seen.lock().waits.mark();
        }
    }

    /// Times of all publishers and subscribers since the mark.
    pub(crate) fn waits(&self) -> Vec<Waits> {
        let acked: Vec<Waits> = self.tally.acked.lock().values().copied().collect();
        acked.into_iter().chain(self.subscribers_waits()).collect()
    }

    /// Times of all subscribers since the mark, in the order in which they began.
    pub(crate) fn subscribers_waits(&self) -> Vec<Waits> {
        let followers = self.followers.iter();
        followers
            .map(|follower| follower.seen.lock().waits)
            .collect()
    }

    /// Waits until something has come to every publisher and subscriber from now on. A wait that has begun is over then,
    /// and counted.
    pub(crate) fn wait_for_all(&self) {
        let (begun, between) = (Instant::now(), Duration::from_millis(25));
        let is_waiting = |waits: &Waits| waits.last.is_none_or(|last| last < begun);
        airmail_testkit::waiting::until("something to come to everyone", between, || {
            self.tally.check();
            let followers = self.followers.iter().enumerate();
            let waiting = followers.filter(|(_, one)| is_waiting(&one.seen.lock().waits));
            let waiting = waiting.map(|(number, _)| format!("subscriber {number}"));
            let acked = self.tally.acked.lock();
            let unacked = acked.iter().filter(|(_, waits)| is_waiting(waits));
            let unacked = unacked.map(|(number, _)| format!("publisher {number}"));
            let waiting: Vec<String> = waiting.chain(unacked).collect();
            waiting.is_empty().then_some(()).ok_or(waiting.join(", "))
        });
    }

    /// Waits until something more is acknowledged, and received.
    pub(crate) fn wait_for_progress(&self) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &self.tally;
        let (acknowledged, received) = (count(&tally.acknowledged), count(&tally.received));
        airmail_testkit::node::wait_until("something to be acknowledged and received", || {
            tally.check();
            count(&tally.acknowledged) > acknowledged && count(&tally.received) > received
        });
    }

    /// Every topic's history is what was sent, once each, in the order of each publisher, under the
    /// numbers that were acknowledged. Gives how many messages that are.
    pub(crate) fn check_history(&self) -> usize {
        let client = self.connect();
        let mut messages = 0;
        for topic in &self.topics {
            let read = self.runtime.block_on(reading::history(&client, topic));
            let sent = self.tally.sent_to(topic.index);
            let mut next: BTreeMap<u32, u64> = sent.keys().map(|one| (*one, 0)).collect();
            for ((number, stamp), log) in read.messages.iter().zip(&read.logs) {
                let expected = next.entry(stamp.publisher).or_insert(u64::MAX);
                let place = format!("{topic:?} number {number}: {stamp:?}, not {expected}");
                assert!(stamp.number >= *expected, "{place}");
                let skipped = *expected..stamp.number;
                let unknown = self
                    .tally
                    .are_unknown(stamp.publisher, topic.index, skipped);
                assert!(unknown, "{place}");
                *expected = stamp.number + 1;
                let acknowledged = self.tally.place_of(*stamp);
                assert!(
                    acknowledged.is_none_or(|acknowledged| acknowledged == (*log, *number)),
                    "{stamp:?} is number {number} of {log}, and was acknowledged as {acknowledged:?}"
                );
            }
            for (publisher, sent) in sent {
                let rest = next[&publisher]..sent;
                let unknown = self.tally.are_unknown(publisher, topic.index, rest.clone());
                assert!(
                    unknown,
                    "{topic:?}, publisher {publisher}: {rest:?} are not there"
                );
            }
            assert!(
                topic.reserves || read.lost.is_empty(),
                "{topic:?}: {:?}",
                read.lost
            );
            messages += read.messages.len();
        }
        messages
    }
}

/// The message of a stamp.
pub(crate) fn message(topic: &Topic, stamp: Stamp) -> Message {
    let name = TopicName::new(&topic.name, &Limits::DEFAULT).unwrap();
    Message::new(name, stamp.payload())
}
