//! A subscriber against what a node may say, and when.

mod expiry;
mod gathering;
mod invariants;
mod matching;
mod parts;
mod permutations;
mod ranges;
mod reconnects;
mod selections;
mod transcripts;

use super::*;
use airmail_model::batch::{BatchTarget, ProducerStamp};
use airmail_model::frame::{
    Channel, DELIVERY_OVERHEAD_BYTES, Delivered, Delivery, GapReason, Reply,
};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Batch, BatchEncoder, Checked, Error, ErrorCode, Extent, Incarnation, Lane, Limits,
    LogId, Message, Sequence, TopicHash, TopicName,
};

const NAMESPACE: NamespaceId = NamespaceId(1);
const LIFE: Incarnation = Incarnation(7);
const LOG: LogId = LogId {
    namespace: NAMESPACE,
    lane: airmail_model::Lane::Normal,
    index: airmail_model::LogIndex(0),
};

fn topic(name: &str) -> TopicHash {
    TopicName::hash_of(NAMESPACE, name)
}

/// A batch of messages to these topics.
fn batch(topics: &[&str]) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    for name in topics {
        let topic = TopicName::new(name, &Limits::DEFAULT).unwrap();
        let message = Message::new(topic, (*name).to_owned());
        encoder.push(&message, 1, &Limits::DEFAULT).unwrap();
    }
    encoder.finish(&BatchTarget {
        log: LOG,
        epoch: MapEpoch(1),
        producer: None::<ProducerStamp>,
        producer_time: 1,
    })
}

/// Drives a subscriber, and keeps its outputs.
struct Driver {
    subscriber: Subscriber,
    now: Mono,
    sent: Vec<Request>,
    events: Vec<(SubscriptionKey, Event)>,
}

impl Driver {
    fn new() -> Driver {
        Driver {
            subscriber: Subscriber::new(SubscriberConfig::default()),
            now: Mono(0),
            sent: Vec::new(),
            events: Vec::new(),
        }
    }

    fn connected() -> Driver {
        let mut driver = Driver::new();
        driver.subscriber.connected();
        driver
    }

    fn add(&mut self, name: &str, start: Start) -> SubscriptionKey {
        self.subscriber.add(SubscriptionSpec {
            namespace: NAMESPACE,
            wanted: Wanted::Topic(topic(name)),
            start,
            until: None,
            tell_expired: false,
            filter: None,
            headers_only: false,
        })
    }

    /// A subscription that the node has made live at `next`.
    fn live(&mut self, name: &str, next: u64) -> SubscriptionKey {
        let key = self.add(name, Start::Latest);
        let add = self.asked();
        self.status(&add, live_at(next));
        self.events.clear();
        key
    }

    /// A subscription that the node has begun behind the tail, at `next`.
    fn detached(&mut self, name: &str, next: u64) -> (SubscriptionKey, Subscribe) {
        let key = self.add(name, Start::Earliest);
        let add = self.asked();
        self.status(&add, detached_at(next));
        self.events.clear();
        (key, add)
    }

    fn poll(&mut self) -> Option<Mono> {
        let mut out = SubscriberOutput::default();
        let wake = self.subscriber.poll(self.now, &mut out);
        self.sent.append(&mut out.requests);
        wake
    }

    /// Lists the subscriptions requested by now; forgets what else was sent.
    fn asked_all(&mut self) -> Vec<Subscribe> {
        self.poll();
        let adds = self.sent.drain(..).filter_map(|request| match request {
            Request::Add(add) => Some(add),
            _ => None,
        });
        adds.collect()
    }

    /// Gives the only subscription requested by now.
    fn asked(&mut self) -> Subscribe {
        let adds = self.asked_all();
        assert_eq!(adds.len(), 1, "{adds:?}");
        adds[0].clone()
    }

    fn reply(&mut self, reply: Reply) {
        let mut out = SubscriberOutput::default();
        self.subscriber.reply(self.now, reply, &mut out);
        self.events.append(&mut out.events);
    }

    fn status(&mut self, add: &Subscribe, state: State) {
        self.reply(Reply::Status {
            subscription: add.subscription,
            generation: add.generation,
            state,
        });
    }

    /// Delivers a batch whose first record has the number after `previous`.
    fn deliver(&mut self, channel: Channel, previous: u64, topics: &[&str]) {
        let last = previous + topics.len() as u64;
        self.reply(delivery(channel, previous, last, previous + 1, topics));
    }

    /// Lists the numbers of the messages that `key` got since the last call.
    fn numbers(&mut self, key: SubscriptionKey) -> Vec<u64> {
        let mut numbers = Vec::new();
        for (of, event) in &self.events {
            if let (true, Event::Messages(arrived)) = (*of == key, event) {
                numbers.extend(arrived.iter().map(|(sequence, _)| sequence.0));
            }
        }
        self.events.retain(|(of, _)| *of != key);
        numbers
    }

    fn next(&self, key: SubscriptionKey) -> Option<u64> {
        let position = self.subscriber.position(key)?;
        Some(position.logs[0].next.0)
    }
}

fn delivery(channel: Channel, previous: u64, last: u64, base: u64, topics: &[&str]) -> Reply {
    Reply::Delivery(Delivery {
        channel,
        log: LOG,
        previous: Sequence(previous),
        last: Sequence(last),
        base: Sequence(base),
        appended: AppendTime(5),
        clock: None,
        body: Delivered::Whole(batch(topics)),
        matches: None,
    })
}

fn gap(channel: Channel, previous: u64, last: u64, why: GapReason) -> Reply {
    Reply::Gap {
        channel,
        log: LOG,
        previous: Sequence(previous),
        last: Sequence(last),
        why,
    }
}

fn place_at(next: u64) -> LogPosition {
    LogPosition {
        log: LOG,
        incarnation: LIFE,
        next: Sequence(next),
    }
}

fn live_at(next: u64) -> State {
    State::live(place_at(next))
}

fn detached_at(next: u64) -> State {
    State::Detached {
        log: LOG,
        incarnation: LIFE,
        next: Sequence(next),
        resumed: false,
        lost_before: None,
        beside: None,
    }
}

fn channel_of(add: &Subscribe) -> Channel {
    Channel::Detached(add.subscription, add.generation)
}

fn starts_at(add: &Subscribe) -> Option<u64> {
    match &add.start {
        Start::Position(position) => Some(position.logs[0].next.0),
        _ => None,
    }
}
