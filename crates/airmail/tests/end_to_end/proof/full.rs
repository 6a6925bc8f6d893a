//! A disk that fills up under load, over and over, and has room again.
//!
//! What must hold: while it is full, publishes are refused with the reason, and stored messages are
//! read, by histories and by subscribers. When there is room the node goes on by itself, or after a
//! `kill -9` and a start in the midst of it. In the end every message that was sent is there once,
//! in order, and every subscriber has had it; a refused message was not stored. A message that was
//! under way when there was no room even to give it up may be reported as OUTCOME_UNKNOWN: it is
//! there once or not at all.

use super::Plan;
use super::load::{self, Load, Topic};
use super::reading;
use super::stamp::Stamp;
use super::victim::Victim;
use crate::small_disk::{Ballast, SmallDisk};
use airmail_client::{Client, ErrorCode};
use airmail_testkit::node;
use rand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

const MEBIBYTES: usize = 192;
const PUBLISHERS: u64 = 2;
/// Messages a second of each publisher.
const RATE: u64 = 1_000;
const TOPICS: u32 = 4;
/// Time for which the prober tries a message.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Messages that may still fit into what was taken before the disk was full.
const PROBES: u64 = 400;

#[test]
fn a_disk_that_fills_up_refuses_serves_and_heals() {
    let plan = Plan::new("full", 1);
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path(), MEBIBYTES) else {
        return;
    };
    let victim = Victim::new(&disk.path.join("data"));
    let mut choices = plan.choices(u64::MAX);
    let mut running = Some(victim.start());
    let mut load = Load::new(&victim, topics()).with_unknown_outcomes();
    for _ in 0..PUBLISHERS {
        load.publish(choices.random(), RATE);
    }
    for topic in load.topics.clone() {
        load.follow(&topic, false);
    }
    let mut prober = Prober::new(&victim, &load);
    for round in plan.rounds() {
        let _watch = plan.watch(round, &victim.data);
        let mut choices = plan.choices(round);
        load.wait_for_progress();
        thread::sleep(Duration::from_millis(choices.random_range(0..300)));
        let ballast = disk.fill();
        let refused = prober.until_refused(&load, &ballast);
        serves(&load);
        let kill = choices.random_ratio(1, 2);
        if kill {
            running.take().unwrap().kill();
            ballast.grow();
            running = Some(victim.start());
            prober.client = connect(&victim, &load);
            serves(&load);
            prober.until_refused(&load, &ballast);
        }
        drop(ballast);
        load.wait_for_progress();
        prober.until_stored(&load);
        let acknowledged = &load.tally.acknowledged;
        plan.tell(
            round,
            &format!("{refused}; killed: {kill}; {acknowledged:?} acknowledged"),
        );
    }
    let _watch = plan.watch(plan.rounds().end, &victim.data);
    load.stop_publishing();
    load.wait_for_followers();
    load.check_history();
    prober.check(&load);
    running.take().unwrap().kill();
    let _running = victim.start();
    load.check_history();
    prober.check(&load);
}

fn topics() -> Vec<Topic> {
    let topics = (0..TOPICS).map(|index| Topic {
        namespace: "default",
        name: format!("topic-{index}"),
        index,
        reserves: false,
    });
    topics.collect()
}

/// Histories are whole, and subscribers get what is stored.
fn serves(load: &Load) {
    let acknowledged = load.tally.acknowledged.load(Ordering::Relaxed);
    let client = load.connect();
    let read = load.topics.iter().map(|topic| {
        let read = load.runtime.block_on(reading::history(&client, topic));
        assert!(read.lost.is_empty(), "{topic:?}: {:?}", read.lost);
        read.messages.len() as u64
    });
    let read: u64 = read.sum();
    assert!(
        read >= acknowledged,
        "{read} are read and {acknowledged} were acknowledged"
    );
    node::wait_until("subscribers to have what is stored", || {
        load.tally.check();
        load.tally.received.load(Ordering::Relaxed) >= acknowledged
    });
}

/// A client that is told what the node says, rather than trying for long.
fn connect(victim: &Victim, load: &Load) -> Client {
    let client = victim.client().delivery_timeout(PATIENCE).connect();
    load.runtime.block_on(client).unwrap()
}

/// Publishes single messages to a topic of its own, and remembers what became of each.
struct Prober {
    client: Client,
    topic: Topic,
    next: u64,
    stored: BTreeSet<u64>,
    refused: BTreeSet<u64>,
}

impl Prober {
    fn new(victim: &Victim, load: &Load) -> Prober {
        let topic = Topic {
            namespace: "default",
            name: "probe".into(),
            index: TOPICS,
            reserves: false,
        };
        Prober {
            client: connect(victim, load),
            topic,
            next: 0,
            stored: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Publishes until the node says that its disk is full; gives its words.
    fn until_refused(&mut self, load: &Load, ballast: &Ballast) -> String {
        for _ in 0..PROBES {
            if let Err(error) = self.send(load)
                && error.code() == ErrorCode::StorageFull
            {
                return error.to_string();
            }
            // What the node has given back meanwhile.
            ballast.grow();
        }
        panic!("{PROBES} messages were stored on a full disk");
    }

    /// Publishes until a message is stored.
    fn until_stored(&mut self, load: &Load) {
        node::wait_until("a message to be stored", || self.send(load).is_ok());
    }

    fn send(&mut self, load: &Load) -> Result<(), airmail_client::Error> {
        let stamp = Stamp {
            publisher: 0,
            topic: self.topic.index,
            number: self.next,
            bytes: 40_000,
        };
        self.next += 1;
        let message = load::message(&self.topic, stamp);
        let sent = load.runtime.block_on(async {
            let ack = self.client.publisher().send(message).await.unwrap();
            ack.await
        });
        match &sent {
            Ok(_) => drop(self.stored.insert(stamp.number)),
            Err(error) => match error.code() {
                // Or a busy machine did not get to saying so, or to taking it, in time; nothing is stored
                // either way.
                ErrorCode::StorageFull | ErrorCode::Overloaded | ErrorCode::Disconnected => {
                    self.refused.insert(stamp.number);
                }
                // It was under way when there was no room even to give it up.
                ErrorCode::OutcomeUnknown => {}
                _ => panic!("{stamp:?} on a full disk: {error}"),
            },
        }
        sent.map(|_| ())
    }

    /// Checks that acknowledged messages are there, once, and refused ones are not.
    fn check(&self, load: &Load) {
        let read = load
            .runtime
            .block_on(reading::history(&self.client, &self.topic));
        assert!(read.lost.is_empty(), "{:?}", read.lost);
        let mut times: BTreeMap<u64, u32> = BTreeMap::new();
        for (_, stamp) in &read.messages {
            *times.entry(stamp.number).or_default() += 1;
        }
        assert!(times.values().all(|times| *times == 1), "twice: {times:?}");
        let there: BTreeSet<u64> = times.into_keys().collect();
        let lost: Vec<_> = self.stored.difference(&there).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let refused: Vec<_> = self.refused.intersection(&there).collect();
        assert!(refused.is_empty(), "refused and stored: {refused:?}");
    }
}
