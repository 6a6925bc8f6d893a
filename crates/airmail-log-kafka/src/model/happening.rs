//! Events of the model: what each does to the brokers, and to whom it is told.

use super::cluster::{ClientId, Cluster, Event, ModelTopic};
use super::partition::{ModelPartition, OldLeader};
use crate::brokers::{
    Answer, ConsumerId, Described, Failure, NewRecord, Order, Partition, Produced, Question,
    Settings, Taken, Token, Told, Unstored,
};
use crate::place::Offset;
use std::collections::BTreeSet;
use std::time::Duration;

impl Cluster {
    /// Something happens: the event of this number.
    pub(super) fn happen(&mut self, number: u64, event: Event) {
        match event {
            Event::Append {
                client,
                token,
                partition,
                record,
            } => self.append(number, (client, token), partition, record),
            Event::Tell(id, told) => {
                if let (Some(back), Told::Produced { .. }) = (self.is_cut(id), &told) {
                    return self.put_off(number, back, Event::Tell(id, told));
                }
                if let Some(client) = self.clients.get_mut(&id) {
                    client.produced -= u64::from(matches!(told, Told::Produced { .. }));
                    if client.produced == 0 {
                        self.failing.remove(&id);
                    }
                    client.told.push(told);
                }
            }
            Event::Fetch(client, consumer) => self.fetch(client, consumer),
            Event::Ask(client, token, about, question) => {
                let is_cut = self.is_cut(client).is_some();
                if let Some(answer) = self.question(&about, question).filter(|_| !is_cut) {
                    self.tell(client, Told::Answered { token, answer });
                } else {
                    let at = self.now.mono.plus(Duration::from_millis(500));
                    let answer = Answer::Failed(Failure::TimedOut);
                    self.at(at, Event::Tell(client, Told::Answered { token, answer }));
                }
            }
            Event::Order(client, token, order) => {
                let is_cut = self.is_cut(client).is_some();
                // Cut off, nobody knows whether it has got there.
                let is_lost = is_cut && self.draw(2) == 0;
                let carried_out = (!is_lost).then(|| self.carry_out(order));
                let told = carried_out.filter(|_| !is_cut);
                let answer = told.unwrap_or(Answer::Failed(Failure::TimedOut));
                self.tell(client, Told::Answered { token, answer });
            }
        }
    }

    fn tell(&mut self, client: ClientId, told: Told) {
        let at = self.later();
        self.at(at, Event::Tell(client, told));
    }

    fn append(
        &mut self,
        number: u64,
        (client, token): (ClientId, Option<Token>),
        to: Partition,
        record: NewRecord,
    ) {
        let (clock_ms, now) = (self.clock_ms(), self.now.mono);
        let Some(partition) = self.partition(&to) else {
            // Input: a topic that was deleted.
            return self.report(client, token, &to, Err(Unstored("no such topic".into())));
        };
        let stopped = partition.stopped_until;
        // What is no longer anybody's is with the brokers already.
        let cut = token.and_then(|_| self.is_cut(client)).unwrap_or_default();
        let stopped = stopped.max(cut);
        if stopped > now {
            let append = Event::Append {
                client,
                token,
                partition: to,
                record,
            };
            return self.put_off(number, stopped, append);
        }
        if self.happens(self.faults.leader_moves) {
            let most = i64::from(self.faults.skew_ms);
            let skew = self.draw(2 * u64::from(self.faults.skew_ms) + 1);
            if let Some(partition) = self.partition(&to) {
                partition.skew_ms = i64::try_from(skew).unwrap_or(0) - most;
            }
        }
        let is_failing = token.is_some() && self.is_failing(client, &to);
        if is_failing && self.is_lost(client, &to) {
            return self.report(client, token, &to, Err(Unstored("lost".into())));
        }
        let is_twice = token.is_some() && self.happens(self.faults.twice);
        let is_behind_hole = self.happens(self.faults.holes);
        let Some(partition) = self.partition(&to) else {
            // Input: a topic that was deleted.
            return;
        };
        // A birth record is the first that there is, and nobody sends it again.
        let is_first = partition.high() == Offset(0);
        let again = (is_twice && !is_first).then(|| record.clone());
        if is_behind_hole && !is_first {
            partition.skip();
        }
        let produced = partition.append(record, clock_ms);
        self.compact_later(&to);
        if let Some(record) = again {
            let at = self.later();
            let again = Event::Append {
                client,
                token: None,
                partition: to.clone(),
                record,
            };
            self.at(at, again);
        }
        let result = if is_failing || self.happens(self.faults.unknown_stored) {
            Err(Unstored("no answer".into()))
        } else {
            Ok(produced)
        };
        self.report(client, token, &to, result);
        self.wake(&to);
    }

    fn report(
        &mut self,
        client: ClientId,
        token: Option<Token>,
        of: &Partition,
        result: Result<Produced, Unstored>,
    ) {
        if let Some(token) = token {
            let at = self.in_order(client, of);
            self.at(at, Event::Tell(client, Told::Produced { token, result }));
        }
    }

    /// Whether a client's record is under way while it fails, which may begin with this one.
    fn is_failing(&mut self, client: ClientId, of: &Partition) -> bool {
        if self.happens(self.faults.unknown_lost) {
            let lost = || BTreeSet::from([of.clone()]);
            self.failing.entry(client).or_insert_with(lost);
        }
        self.failing.contains_key(&client)
    }

    /// Whether a record of a client that fails is lost: some of a partition's last ones may be, and none between others.
    fn is_lost(&mut self, client: ClientId, of: &Partition) -> bool {
        let begins = self.draw(2) == 0;
        let lost = self.failing.entry(client).or_default();
        if begins {
            lost.insert(of.clone());
        }
        lost.contains(of)
    }

    /// Has every consumer of a partition fetch what is new.
    fn wake(&mut self, partition: &Partition) {
        let mut fetches = Vec::new();
        for (client, of) in &mut self.clients {
            for (id, consumer) in &mut of.consumers {
                if consumer.partition == *partition && !consumer.is_fetching && !consumer.is_over {
                    consumer.is_fetching = true;
                    fetches.push(Event::Fetch(*client, *id));
                }
            }
        }
        for fetch in fetches {
            let at = self.later();
            self.at(at, fetch);
        }
    }

    fn fetch(&mut self, client: ClientId, id: ConsumerId) {
        let consumer = self.clients.get(&client).and_then(|c| c.consumers.get(&id));
        let Some((of, position)) = consumer.map(|c| (c.partition.clone(), c.position)) else {
            // Input: a client that has died, or has stopped its consumer.
            return;
        };
        let now = self.now.mono;
        let old = self.old_leader(&of).filter(|_| self.draw(2) == 0);
        let is_old = old.is_some();
        let cut = self.is_cut(client).unwrap_or_default();
        let state = self.partition(&of);
        let state = state.map(|p| {
            let (low, high) = p.bounds(now, is_old);
            (low, high, p.stopped_until.max(cut))
        });
        if let Some((.., until)) = state.filter(|(.., until)| *until > now) {
            return self.at(until, Event::Fetch(client, id));
        }
        if let Some(old) = old {
            // It asks on, and finds the other leader in the end.
            self.at(old.until, Event::Fetch(client, id));
        }
        let Some(of) = self.clients.get_mut(&client) else {
            // Input: a client that has died, or has stopped its consumer.
            return;
        };
        let Some(consumer) = of.consumers.get_mut(&id) else {
            // Input: a client that has died, or has stopped its consumer.
            return;
        };
        consumer.is_fetching = is_old;
        if consumer.is_over {
            return;
        }
        let told = match state {
            None => {
                consumer.is_over = true;
                let why = Failure::NoTopic;
                Told::Ended { consumer: id, why }
            }
            Some((low, high, _)) if position < low || position > high => {
                consumer.is_over = true;
                Told::OutOfRange { consumer: id }
            }
            Some((_, high, _)) => {
                consumer.visible = high;
                consumer.is_end_due = true;
                if std::mem::replace(&mut consumer.is_told, true) {
                    return;
                }
                Told::Readable { consumer: id }
            }
        };
        of.told.push(told);
    }

    pub(super) fn take(
        &mut self,
        client: ClientId,
        id: ConsumerId,
        bytes_max: u64,
        taken: &mut Vec<Taken>,
    ) -> bool {
        let Some(of) = self.clients.get_mut(&client) else {
            // Input: a client that has died, or has stopped its consumer.
            return false;
        };
        let Some(consumer) = of.consumers.get_mut(&id).filter(|c| !c.is_over) else {
            // Input: a client that has died, or has stopped its consumer.
            return false;
        };
        consumer.is_told = false;
        let topic = self.topics.get(&consumer.partition.topic);
        let number = usize::from(consumer.partition.number.0);
        let Some(partition) = topic.and_then(|topic| topic.partitions.get(number)) else {
            // Input: a topic that was deleted.
            return false;
        };
        if consumer.position < partition.low() {
            consumer.is_over = true;
            of.told.push(Told::OutOfRange { consumer: id });
            return false;
        }
        let mut bytes = 0;
        while bytes < bytes_max {
            let next = partition.from(consumer.position);
            let Some(record) = next.filter(|record| record.offset < consumer.visible) else {
                // Input: a consumer that has come to the end.
                consumer.position = consumer.position.max(consumer.visible);
                if std::mem::take(&mut consumer.is_end_due) {
                    let next = consumer.position;
                    taken.push(Taken::End { next });
                }
                return false;
            };
            bytes += record.bytes();
            consumer.position = record.offset.plus(1);
            taken.push(Taken::Record(record.clone()));
        }
        consumer.is_told = true;
        true
    }

    /// The old leader of a partition, if there is one: half of what is asked comes to it.
    fn old_leader(&mut self, partition: &Partition) -> Option<OldLeader> {
        let now = self.now.mono;
        let old = self.partition(partition).and_then(|p| p.old_leader);
        old.filter(|old| old.until > now)
    }

    /// The leader's answer, or nothing from a leader that is stopped.
    fn question(&mut self, about: &Partition, question: Question) -> Option<Answer> {
        let is_of_old = self.old_leader(about).is_some() && self.draw(2) == 0;
        let is_old = self.happens(self.faults.old_answers);
        let is_lost = self.happens(self.faults.unanswered);
        let back = self.draw(3);
        let now = self.now.mono;
        let Some(partition) = self.partition(about) else {
            // Input: a topic that was deleted.
            return Some(Answer::Failed(Failure::NoTopic));
        };
        if is_lost || partition.stopped_until > now {
            return None;
        }
        Some(match question {
            Question::Watermarks => {
                let (low, mut high) = partition.bounds(now, is_of_old);
                if is_old {
                    high = Offset(high.0.saturating_sub(back)).max(low);
                }
                Answer::Watermarks { low, high }
            }
            Question::OffsetAt { at_ms } => Answer::Offset(partition.at(at_ms)),
            Question::EpochEnd { .. } => Answer::Offset(Some(partition.high())),
        })
    }

    fn carry_out(&mut self, order: Order) -> Answer {
        match order {
            Order::Create {
                topic,
                partitions,
                replicas,
                settings,
            } => {
                if self.topics.contains_key(&topic) {
                    return Answer::Failed(Failure::Exists);
                }
                let made = ModelTopic {
                    partitions: vec![ModelPartition::default(); partitions.into()],
                    replicas,
                    settings: defaults().into_iter().chain(settings).collect(),
                };
                self.topics.insert(topic, made);
            }
            Order::Describe { topic } => {
                return match self.topics.get(&topic) {
                    Some(topic) => Answer::Described(Box::new(Described {
                        partitions: u16::try_from(topic.partitions.len()).unwrap_or(u16::MAX),
                        replicas: topic.replicas,
                        settings: topic.settings.clone(),
                    })),
                    None => Answer::Failed(Failure::NoTopic),
                };
            }
            Order::Alter { topic, settings } => match self.topics.get_mut(&topic) {
                Some(topic) => topic.settings.extend(settings),
                None => return Answer::Failed(Failure::NoTopic),
            },
            Order::Delete { topic } => {
                if !self.topics.contains_key(&topic) {
                    return Answer::Failed(Failure::NoTopic);
                }
                self.delete(&topic);
            }
            Order::DeleteRecords { partition, before } => match self.partition(&partition) {
                Some(partition) if before > partition.high() => {
                    return Answer::Failed(Failure::Other("offset out of range".into()));
                }
                Some(partition) => partition.remove_before(before),
                None => return Answer::Failed(Failure::NoTopic),
            },
            Order::List { prefix } => return Answer::Topics(self.topics(&prefix)),
            Order::Version => return Answer::Version { major: 4 },
        }
        Answer::Done
    }
}

/// A topic's settings where nobody says otherwise, as Kafka 4 has them.
fn defaults() -> Settings {
    let defaults = [
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "CreateTime"),
        ("min.insync.replicas", "1"),
        ("unclean.leader.election.enable", "false"),
        ("max.message.bytes", "1048588"),
        ("compression.type", "producer"),
        ("retention.ms", "604800000"),
        ("retention.bytes", "-1"),
        ("flush.messages", "9223372036854775807"),
    ];
    let owned = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
    owned.into_iter().collect()
}
