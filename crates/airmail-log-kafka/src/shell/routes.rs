//! Routes of questions: which broker's asker has the partition's leader, and which partitions have just timed out.
//!
//! A question waits in librdkafka until its leader answers, so that a broker that is dead, or takes connections and
//! says nothing, holds up whoever asks it. Hence an asker for each broker: the others' partitions go on. A partition that
//! has timed out fails at once for a second, so that a queue of questions for a dead broker does not stand in the way
//! of those that come when it is back.
//!
//! Every queue is bounded, and a question that finds it full fails.

use super::asker;
use super::clock::now;
use super::consumer::Events;
use super::news::News;
use crate::brokers::{Failure, Partition, Question, Token, Topic};
use parking_lot::Mutex;
use rdkafka::consumer::BaseConsumer;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// Time in which a question is answered.
pub(super) const ANSWER: Duration = Duration::from_millis(500);
/// Time for which a partition that has timed out fails at once.
const BLOCKED: Duration = Duration::from_secs(1);
/// The most askers. Further brokers share them.
const ASKERS_MAX: usize = 8;
/// The most questions that wait for one asker, or for the finder.
pub(super) const WAITING_MAX: usize = 4096;
/// The most topics whose leaders are kept.
const TOPICS_MAX: usize = 16_384;

/// A question under way.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) token: Token,
    pub(super) partition: Partition,
    pub(super) question: Question,
    pub(super) until: Instant,
}

/// Leader of a partition, by what is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leader {
    /// Nothing is known of the topic.
    Unknown,
    /// The topic does not have that partition.
    NoPartition,
    /// Nobody leads it at the moment.
    Nobody,
    /// This broker does.
    Broker(i32),
}

/// All that the owner, the finder and the askers share.
pub(super) struct Routes {
    pub(super) client: Arc<BaseConsumer<Events>>,
    pub(super) news: Arc<News>,
    /// Brokers that lead the partitions of each topic, in their order; below 0: nobody.
    leaders: Mutex<BTreeMap<Topic, Vec<i32>>>,
    blocked: Mutex<BTreeMap<Partition, Instant>>,
    askers: Mutex<Askers>,
}

/// Queues of the askers, and which broker has which.
#[derive(Debug, Default)]
struct Askers {
    queues: Vec<SyncSender<Query>>,
    of_broker: BTreeMap<i32, usize>,
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes")
            .field("topics", &self.leaders.lock().len())
            .field("blocked", &self.blocked.lock().len())
            .field("askers", &*self.askers.lock())
            .finish_non_exhaustive()
    }
}

impl Routes {
    /// Routes of which nothing is known.
    pub(super) fn new(client: BaseConsumer<Events>, news: Arc<News>) -> Arc<Routes> {
        Arc::new(Routes {
            client: Arc::new(client),
            news,
            leaders: Mutex::default(),
            blocked: Mutex::default(),
            askers: Mutex::default(),
        })
    }

    /// The leader of a partition.
    pub(super) fn leader(&self, partition: &Partition) -> Leader {
        let leaders = self.leaders.lock();
        let Some(topic) = leaders.get(&partition.topic) else {
            // Input: a topic that was not asked about yet, or that a question has failed for.
            return Leader::Unknown;
        };
        match topic.get(usize::from(partition.number.0)) {
            None => Leader::NoPartition,
            Some(broker) if *broker < 0 => Leader::Nobody,
            Some(broker) => Leader::Broker(*broker),
        }
    }

    /// Keeps the leaders of a topic's partitions.
    pub(super) fn learn(&self, topic: &Topic, brokers: Vec<i32>) {
        let mut leaders = self.leaders.lock();
        if leaders.len() >= TOPICS_MAX {
            leaders.clear();
        }
        leaders.insert(topic.clone(), brokers);
    }

    /// Forgets the leaders of a topic: they are to be looked for again.
    pub(super) fn forget(&self, topic: &Topic) {
        self.leaders.lock().remove(topic);
    }

    /// Lets a partition fail at once for a while.
    pub(super) fn block(&self, partition: &Partition) {
        let present = now();
        let mut blocked = self.blocked.lock();
        blocked.retain(|_, until| *until > present);
        blocked.insert(partition.clone(), present + BLOCKED);
    }

    /// Whether a partition has just timed out.
    pub(super) fn is_blocked(&self, partition: &Partition) -> bool {
        let until = self.blocked.lock().get(partition).copied();
        until.is_some_and(|until| until > now())
    }

    /// Puts a question into the queue of a broker's asker, which is started if it is the first.
    pub(super) fn pass(self: &Arc<Routes>, broker: i32, query: Query) {
        let mut askers = self.askers.lock();
        if self.news.is_closing() {
            drop(askers);
            self.news.fail(query.token, closing());
            return;
        }
        let at = match askers.of_broker.get(&broker) {
            Some(at) => *at,
            None => match self.add(&mut askers, broker) {
                Ok(at) => at,
                Err(error) => {
                    drop(askers);
                    let why = Failure::Other(error.to_string());
                    return self.news.fail(query.token, why);
                }
            },
        };
        let sent = askers.queues[at].try_send(query);
        drop(askers);
        match sent {
            Ok(()) => {}
            Err(TrySendError::Full(query)) => self.news.fail(query.token, full()),
            Err(TrySendError::Disconnected(query)) => self.news.fail(query.token, closing()),
        }
    }

    fn add(self: &Arc<Routes>, askers: &mut Askers, broker: i32) -> std::io::Result<usize> {
        let mut at = askers.of_broker.len() % ASKERS_MAX;
        if askers.queues.len() < ASKERS_MAX {
            at = askers.queues.len();
            let (queue, queries) = sync_channel(WAITING_MAX);
            // The asker has the routes for as long as it has not ended, and the routes its queue: closing undoes it.
            let routes = Arc::clone(self);
            self.news.spawn(&format!("kafka-asker-{broker}"), move || {
                asker::ask_all(&routes, &queries);
            })?;
            askers.queues.push(queue);
        }
        askers.of_broker.insert(broker, at);
        Ok(at)
    }

    /// Ends the askers, once they have failed what waits. Closing has begun.
    pub(super) fn close(&self) {
        *self.askers.lock() = Askers::default();
    }
}

/// Failure of whatever comes after closing has begun.
pub(super) fn closing() -> Failure {
    Failure::Other("Kafka's client is closing".to_owned())
}

/// Failure of what finds a queue full.
pub(super) fn full() -> Failure {
    Failure::Other("too much is asked of Kafka at once".to_owned())
}
