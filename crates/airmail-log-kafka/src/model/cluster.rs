//! The brokers of the model: topics, and everything that is under way.
//!
//! What happens is an event with a time. Events of one time happen in the order in which they were made, and those
//! of one client and partition never overtake each other.

use super::faults::Faults;
use super::partition::{ModelPartition, is_compacted};
use crate::brokers::{
    ConsumerId, Failure, NewRecord, Order, Partition, Question, Record, Settings, Token, Told,
    Topic,
};
use crate::place::Offset;
use airmail_model::{Mono, Now, random};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time after which a record of which nothing is known is given up, as `message.timeout.ms` has it.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest time from a record of a compacted topic to the next compaction.
const COMPACTION: Duration = Duration::from_secs(120);

/// A client of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientId(u64);

/// A topic.
#[derive(Clone, Debug)]
pub(super) struct ModelTopic {
    pub(super) partitions: Vec<ModelPartition>,
    pub(super) replicas: u8,
    pub(super) settings: Settings,
}

/// Something that will happen.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Append {
        client: ClientId,
        token: Option<Token>,
        partition: Partition,
        record: NewRecord,
        given_up_at: Mono,
    },
    Tell(ClientId, Told),
    Fetch(ClientId, ConsumerId),
    Ask(ClientId, Token, Partition, Question),
    Order(ClientId, Token, Order),
}

/// A consumer.
#[derive(Clone, Debug)]
pub(super) struct ModelConsumer {
    pub(super) partition: Partition,
    pub(super) position: Offset,
    /// Before this everything is fetched.
    pub(super) visible: Offset,
    pub(super) is_end_due: bool,
    pub(super) is_fetching: bool,
    pub(super) is_told: bool,
    pub(super) is_over: bool,
}

/// A client's side of the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    pub(super) told: Vec<Told>,
    pub(super) consumers: BTreeMap<ConsumerId, ModelConsumer>,
    /// Records not told.
    pub(super) produced: u64,
    /// Until when nothing gets from it to the brokers, or back.
    pub(super) cut_until: Mono,
}

/// The brokers.
#[derive(Debug)]
pub(super) struct Cluster {
    seed: u64,
    draws: u64,
    pub(super) faults: Faults,
    pub(super) now: Now,
    began: Option<Now>,
    pub(super) topics: BTreeMap<Topic, ModelTopic>,
    events: BTreeMap<(Mono, u64), Event>,
    last_event: u64,
    /// When the last event of a client and partition is due.
    due: BTreeMap<(ClientId, Partition), Mono>,
    pub(super) clients: BTreeMap<ClientId, Client>,
}

impl Cluster {
    pub(super) fn new(seed: u64, faults: Faults) -> Cluster {
        Cluster {
            seed,
            draws: 0,
            faults,
            now: Now::default(),
            began: None,
            topics: BTreeMap::new(),
            events: BTreeMap::new(),
            last_event: 0,
            due: BTreeMap::new(),
            clients: BTreeMap::new(),
        }
    }

    pub(super) fn new_client(&mut self) -> ClientId {
        self.last_event += 1;
        let id = ClientId(self.last_event);
        self.clients.insert(id, Client::default());
        id
    }

    /// Forgets a client that has died: what it handed over may be stored all the same.
    pub(super) fn remove_client(&mut self, id: ClientId) {
        self.clients.remove(&id);
    }

    pub(super) fn client(&mut self, id: ClientId) -> &mut Client {
        self.clients.entry(id).or_default()
    }

    /// A number below `bound`, which is at least 1.
    pub(super) fn draw(&mut self, bound: u64) -> u64 {
        self.draws += 1;
        random::nth(self.seed, self.draws) % bound
    }

    /// Whether something happens that has this share of 1,000.
    pub(super) fn happens(&mut self, share: u16) -> bool {
        share > 0 && self.draw(1000) < u64::from(share)
    }

    pub(super) fn later(&mut self) -> Mono {
        let (min, max) = (self.faults.delay_min, self.faults.delay_max);
        let span = u64::try_from(max.saturating_sub(min).as_nanos()).unwrap_or(u64::MAX);
        let more = if span == 0 { 0 } else { self.draw(span + 1) };
        self.now.mono.plus(min).plus(Duration::from_nanos(more))
    }

    pub(super) fn at(&mut self, at: Mono, event: Event) {
        self.last_event += 1;
        self.events.insert((at, self.last_event), event);
    }

    /// The time of an event that does not overtake others of this client and partition.
    pub(super) fn in_order(&mut self, client: ClientId, partition: &Partition) -> Mono {
        let at = self.later();
        let due = self.due.entry((client, partition.clone())).or_default();
        *due = at.max(*due);
        *due
    }

    pub(super) fn clock_ms(&self) -> i64 {
        let began = self.began.unwrap_or_default();
        let passed = self.now.mono.since(began.mono);
        (began.wall.0 + i64::try_from(passed.as_micros()).unwrap_or(0)) / 1000
    }

    pub(super) fn partition(&mut self, partition: &Partition) -> Option<&mut ModelPartition> {
        let topic = self.topics.get_mut(&partition.topic)?;
        topic.partitions.get_mut(usize::from(partition.number.0))
    }

    pub(super) fn topics(&self, prefix: &str) -> Vec<Topic> {
        let names = self.topics.keys();
        names
            .filter(|topic| topic.as_str().starts_with(prefix))
            .cloned()
            .collect()
    }

    pub(super) fn stop(&mut self, partition: &Partition, time: Duration) {
        let until = self.now.mono.plus(time);
        if let Some(partition) = self.partition(partition) {
            // What waits for its end must not be overtaken.
            partition.stopped_until = partition.stopped_until.max(until);
        }
    }

    /// Cuts a client off, of those that there are: the `n`th, counted round.
    pub(super) fn cut_off(&mut self, n: usize, time: Duration) {
        let until = self.now.mono.plus(time);
        let count = self.clients.len().max(1);
        if let Some(client) = self.clients.values_mut().nth(n % count) {
            client.cut_until = client.cut_until.max(until);
        }
    }

    pub(super) fn is_cut(&self, client: ClientId) -> Option<Mono> {
        let until = self.clients.get(&client)?.cut_until;
        (until > self.now.mono).then_some(until)
    }

    /// Ends whatever lasts. What has waited for its end happens now, in its order.
    pub(super) fn calm(&mut self) {
        self.faults = Faults::NONE;
        let partitions = self.topics.values_mut().flat_map(|t| &mut t.partitions);
        for partition in partitions {
            partition.stopped_until = Mono(0);
            partition.old_leader = None;
        }
        for client in self.clients.values_mut() {
            client.cut_until = Mono(0);
        }
        let late = self.events.split_off(&(self.now.mono, u64::MAX));
        for event in late.into_values() {
            self.at(self.now.mono, event);
        }
        self.due.clear();
    }

    /// When something happens next: now, if a client has something to be told.
    pub(super) fn next(&self, client: ClientId) -> Option<Mono> {
        let told = self.clients.get(&client);
        if told.is_some_and(|client| !client.told.is_empty()) {
            return Some(self.now.mono);
        }
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Draws when a partition is compacted next, if its topic is compacted.
    pub(super) fn compact_later(&mut self, partition: &Partition) {
        let topic = self.topics.get(&partition.topic);
        let is_compacted = topic.is_some_and(|topic| is_compacted(&topic.settings));
        let found = self.partition(partition).filter(|_| is_compacted);
        if found.is_some_and(|partition| partition.compacted_at.is_none()) {
            let span = u64::try_from(COMPACTION.as_nanos()).unwrap_or(u64::MAX);
            let at = self.now.mono.plus(Duration::from_nanos(self.draw(span)));
            if let Some(partition) = self.partition(partition) {
                partition.compacted_at = Some(at);
            }
        }
    }

    /// Ends every consumer of a partition.
    pub(super) fn end_consumers(&mut self, partition: &Partition, why: &Failure) {
        for client in self.clients.values_mut() {
            for (id, consumer) in &mut client.consumers {
                if consumer.partition == *partition && !consumer.is_over {
                    consumer.is_over = true;
                    let (consumer, why) = (*id, why.clone());
                    client.told.push(Told::Ended { consumer, why });
                }
            }
        }
    }

    pub(super) fn truncate(&mut self, partition: &Partition, at: Offset) {
        if let Some(partition) = self.partition(partition) {
            partition.cut(at);
        }
        for client in self.clients.values_mut() {
            for (id, consumer) in &mut client.consumers {
                if consumer.partition == *partition && consumer.position > at && !consumer.is_over {
                    consumer.is_over = true;
                    let consumer = *id;
                    client.told.push(Told::Truncated { consumer, at });
                }
            }
        }
    }

    /// Makes a topic again. Consumers that had got somewhere in the one before find out: the topic is not there for a
    /// while, or its leader has not their epoch.
    /// Somebody has filled the new one with so many records of the old one, in any order, but not with births.
    pub(super) fn remake(&mut self, name: &Topic, records: usize) {
        let clock_ms = self.clock_ms();
        let mut old = self.topics.get_mut(name).map(|topic| {
            let count = topic.partitions.len();
            std::mem::replace(
                &mut topic.partitions,
                vec![ModelPartition::default(); count],
            )
        });
        for (number, before) in old.iter_mut().flatten().enumerate() {
            let history = before.history.get(1..).unwrap_or_default();
            let records = if history.is_empty() { 0 } else { records };
            for _ in 0..records {
                let at = usize::try_from(self.draw(history.len() as u64)).unwrap_or(0);
                let Record { key, value, .. } = history[at].clone();
                let sent_ms = clock_ms;
                let record = NewRecord {
                    key,
                    value,
                    sent_ms,
                };
                let topic = self.topics.get_mut(name);
                if let Some(partition) = topic.and_then(|t| t.partitions.get_mut(number)) {
                    partition.append(record, clock_ms);
                }
            }
        }
        let is_missed = self.draw(2) == 0;
        for client in self.clients.values_mut() {
            for (id, consumer) in &mut client.consumers {
                let has_begun = consumer.position > Offset(0) && !consumer.is_over;
                if consumer.partition.topic != *name || !has_begun {
                    continue;
                }
                consumer.is_over = true;
                let consumer = *id;
                client.told.push(if is_missed {
                    let why = Failure::NoTopic;
                    Told::Ended { consumer, why }
                } else {
                    let at = Offset(0);
                    Told::Truncated { consumer, at }
                });
            }
        }
        self.fetch_anew(name);
    }

    pub(super) fn delete(&mut self, topic: &Topic) {
        self.topics.remove(topic);
        self.fetch_anew(topic);
    }

    /// Has every consumer of a topic ask for what there is now.
    fn fetch_anew(&mut self, topic: &Topic) {
        for (id, client) in &mut self.clients {
            let of_topic = client.consumers.iter_mut();
            for (consumer, _) in of_topic.filter(|(_, c)| c.partition.topic == *topic) {
                self.last_event += 1;
                let fetch = Event::Fetch(*id, *consumer);
                self.events.insert((self.now.mono, self.last_event), fetch);
            }
        }
    }

    pub(super) fn set(&mut self, topic: &Topic, name: &str, value: &str) {
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.settings.insert(name.to_owned(), value.to_owned());
        }
    }

    pub(super) fn produce(
        &mut self,
        client: ClientId,
        token: Token,
        partition: Partition,
        record: NewRecord,
    ) {
        self.client(client).produced += 1;
        let at = self.in_order(client, &partition);
        let given_up_at = self.now.mono.plus(MESSAGE_TIMEOUT);
        let append = Event::Append {
            client,
            token: Some(token),
            partition,
            record,
            given_up_at,
        };
        self.at(at, append);
    }

    pub(super) fn consume(
        &mut self,
        client: ClientId,
        id: ConsumerId,
        partition: Partition,
        from: Offset,
    ) {
        let consumer = ModelConsumer {
            partition,
            position: from,
            visible: from,
            is_end_due: false,
            is_fetching: true,
            is_told: false,
            is_over: false,
        };
        self.client(client).consumers.insert(id, consumer);
        let at = self.later();
        self.at(at, Event::Fetch(client, id));
    }

    pub(super) fn ask(&mut self, client: ClientId, token: Token, about: Partition, q: Question) {
        let at = self.later();
        self.at(at, Event::Ask(client, token, about, q));
    }

    pub(super) fn order(&mut self, client: ClientId, token: Token, order: Order) {
        let at = self.later();
        self.at(at, Event::Order(client, token, order));
    }

    /// Lets everything happen that is due. When the next is due.
    pub(super) fn advance(&mut self, now: Now) -> Option<Mono> {
        self.began.get_or_insert(now);
        let until = self.now.mono.max(now.mono);
        // Each at its own time: brokers do not wait for who looks at them.
        while let Some(next) = self.events.first_entry() {
            let at = next.key().0;
            if at > until {
                break;
            }
            self.now.mono = self.now.mono.max(at);
            let event = next.remove();
            self.happen(event);
        }
        self.now.mono = until;
        let clock_ms = self.clock_ms();
        for topic in self.topics.values_mut() {
            for partition in &mut topic.partitions {
                partition.retain(&topic.settings, until, clock_ms);
            }
        }
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.events.is_empty() && self.clients.values().all(|client| client.told.is_empty())
    }
}
