//! Provisioning: the topics of a new map are made, and proven, before anybody says that it is there.
//!
//! The topics of both lanes are made, under a name that nobody else has chosen, and a birth record is put at offset 0 of
//! each partition. A topic that turns out otherwise than it has to be is refused by name, and what was made is deleted.
//! Whoever stops half-way leaves topics that no command names; those are removed by
//! upkeep. Whoever loses removes its own (`withdrawing`).

use crate::brokers::{
    Answer, Brokers, Failure, NewRecord, Order, Partition, Produced, Topic, Unstored,
};
use crate::layout::{MapTopics, check, log_settings};
use crate::place::Offset;
use crate::storage::{KafkaStorage, Purpose};
use crate::withdrawing::Withdrawing;
use airmail_log::{Completion, LogSpec, Refusal, Tag};
use airmail_model::{LogId, random};
use std::collections::BTreeMap;

/// All provisionings, and what takes them back.
#[derive(Debug, Default)]
pub(crate) struct Provisionings {
    under_way: BTreeMap<Tag, Provisioning>,
    pub(crate) withdrawals: BTreeMap<Tag, Withdrawing>,
    /// Number of topics named so far.
    nonces: u64,
}

/// Provisioning under way.
#[derive(Debug)]
pub(crate) struct Provisioning {
    topics: MapTopics,
    names: Vec<Topic>,
    /// Answers and reports that are still to come.
    left: usize,
    step: Step,
    failure: Option<Refusal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Not begun: the storage is starting.
    Due(LogSpec),
    Create,
    Describe,
    Births,
}

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn provision(&mut self, t: Tag, log: LogId, logs: u16, spec: LogSpec) {
        if !spec.storage.is_first() {
            return self.refuse(t, Refusal::Elsewhere(airmail_model::Holder::default()));
        }
        if !self.config.durability().satisfies(spec.durability) {
            return self.refuse(t, Refusal::Unsupported("durability".into()));
        }
        if logs == 0 || log.index.0.checked_add(logs).is_none() {
            return self.refuse(t, Refusal::Unsupported("so many logs".into()));
        }
        self.work.provisionings.nonces += 1;
        let topics = MapTopics {
            epoch: spec.epoch,
            first: log.index,
            logs,
            replicas: self.config.replicas,
            min_insync: self.config.min_insync,
            nonce: random::nth(self.config.seed, self.work.provisionings.nonces),
        };
        let provisioning = Provisioning {
            topics,
            names: topics.names(&self.config, log).to_vec(),
            left: 0,
            step: Step::Due(spec),
            failure: None,
        };
        self.work.provisionings.under_way.insert(t, provisioning);
    }

    /// Begins what waits for the start to be over.
    pub(crate) fn begin_provisionings(&mut self) {
        let failure = self.start.failure().map(str::to_owned);
        if !self.start.is_over() && failure.is_none() {
            return;
        }
        let due = self.work.provisionings.under_way.iter();
        let due: Vec<(Tag, LogSpec)> = due
            .filter_map(|(t, of)| match of.step {
                Step::Due(spec) => Some((*t, spec)),
                _ => None,
            })
            .collect();
        for (t, spec) in due {
            if let Some(why) = &failure {
                self.work.provisionings.under_way.remove(&t);
                self.refuse(t, Refusal::Io(why.clone()));
                continue;
            }
            let Some(of) = self.work.provisionings.under_way.get_mut(&t) else {
                // Input: an answer to what was given up.
                continue;
            };
            of.step = Step::Create;
            of.left = of.names.len();
            let (topics, names) = (of.topics, of.names.clone());
            for topic in names {
                let create = Order::Create {
                    topic,
                    partitions: topics.logs,
                    replicas: topics.replicas,
                    settings: log_settings(&self.config, &spec.retention),
                };
                self.order(Purpose::Provision(t), create);
            }
        }
    }

    pub(crate) fn provision_answered(&mut self, t: Tag, answer: Answer) {
        let Some(of) = self.work.provisionings.under_way.get_mut(&t) else {
            // Input: an answer to what was given up.
            return;
        };
        let failure = match answer {
            Answer::Done => None,
            Answer::Described(found) => {
                let topic = of.names.first();
                let wrong = topic.map(|topic| check(&self.config, topic, &found, of.topics.logs));
                wrong.and_then(Result::err).map(Refusal::Io)
            }
            Answer::Failed(Failure::TimedOut) => Some(KafkaStorage::<B>::busy()),
            other => Some(Refusal::Io(format!("topics cannot be made: {other:?}"))),
        };
        self.provision_step(t, failure);
    }

    pub(crate) fn birth_reported(&mut self, t: Tag, result: Result<Produced, Unstored>) {
        let failure = match result {
            Ok(stored) if stored.offset == Offset(0) => None,
            Ok(stored) => {
                let found = format!(
                    "a new topic has its first record at offset {}",
                    stored.offset
                );
                Some(Refusal::Io(found))
            }
            Err(_) => Some(KafkaStorage::<B>::busy()),
        };
        self.provision_step(t, failure);
    }

    /// One answer less to wait for; the next step after the last.
    fn provision_step(&mut self, t: Tag, failure: Option<Refusal>) {
        let Some(of) = self.work.provisionings.under_way.get_mut(&t) else {
            // Input: a report of what was given up.
            return;
        };
        of.failure = of.failure.take().or(failure);
        of.left = of.left.saturating_sub(1);
        if of.left > 0 {
            return;
        }
        if of.failure.is_some() {
            return self.provision_failed(t);
        }
        let (topics, names) = (of.topics, of.names.clone());
        match of.step {
            Step::Due(_) => {}
            Step::Create => {
                of.step = Step::Describe;
                of.left = names.len();
                for topic in names {
                    self.order(Purpose::Provision(t), Order::Describe { topic });
                }
            }
            Step::Describe => {
                of.step = Step::Births;
                of.left = names.len() * usize::from(topics.logs);
                self.bear(t, &topics, &names);
            }
            Step::Births => {
                self.work.provisionings.under_way.remove(&t);
                let provisions = Box::new(topics.encode());
                self.out.push(Completion::Provisioned { t, provisions });
            }
        }
    }

    /// Hands over the birth records.
    fn bear(&mut self, t: Tag, topics: &MapTopics, names: &[Topic]) {
        let sent_ms = self.wall_ms();
        for topic in names {
            for number in 0..topics.logs {
                let record = NewRecord {
                    key: None,
                    value: Some(topics.birth()),
                    sent_ms,
                };
                let token = self.token(Purpose::Birth(t));
                let partition = Partition::new(topic, number);
                if self.brokers.produce(token, &partition, record).is_err() {
                    self.untoken(token);
                    self.provision_step(t, Some(KafkaStorage::<B>::busy()));
                }
            }
        }
    }

    fn provision_failed(&mut self, t: Tag) {
        let Some(of) = self.work.provisionings.under_way.remove(&t) else {
            // Input: an answer to what was given up.
            return;
        };
        for topic in of.names {
            self.order(Purpose::Nothing, Order::Delete { topic });
        }
        self.refuse(t, of.failure.unwrap_or_else(KafkaStorage::<B>::busy));
    }
}
