//! The finder: asks any broker who leads the partitions of a topic, and passes their questions on.
//!
//! It also serves the events of the askers' client, which has no other reader, and looks whether brokers are back
//! while none was there: librdkafka tells when the last one has gone, and not when the first has come.

use super::clock::now;
use super::error::{failure, failure_of};
use super::routes::{Leader, Query, Routes, WAITING_MAX, closing, full};
use crate::brokers::{Answer, Failure, Topic};
use rdkafka::consumer::Consumer as _;
use rdkafka::metadata::MetadataTopic;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// The most time between looks at the client's events, and for brokers that were not there.
const LOOK: Duration = Duration::from_millis(500);
/// Time that brokers have to show that they are there.
const PROBE: Duration = Duration::from_millis(500);
/// librdkafka counts in milliseconds, and takes 0 for no time at all.
const TIME_MIN: Duration = Duration::from_millis(1);

/// The owner's end of finder and askers. They end when it is dropped; closing has begun before.
#[derive(Debug)]
pub(super) struct Finder {
    /// Dropped before the queue, so that the thread, which waits for the queue's end, has the client last.
    routes: Arc<Routes>,
    queue: SyncSender<Query>,
}

impl Finder {
    /// Starts the finder's thread.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn start(routes: Arc<Routes>) -> io::Result<Finder> {
        let (queue, queries) = sync_channel(WAITING_MAX);
        let finding = Arc::clone(&routes);
        routes
            .news
            .spawn("kafka-finder", move || find_all(&finding, &queries))?;
        Ok(Finder { routes, queue })
    }

    /// Asks a question: of the leader if it is known, else after it was found.
    pub(super) fn ask(&self, query: Query) {
        if self.routes.is_blocked(&query.partition) {
            self.routes.news.fail(query.token, Failure::TimedOut);
            return;
        }
        if let Leader::Broker(broker) = self.routes.leader(&query.partition) {
            self.routes.pass(broker, query);
            return;
        }
        match self.queue.try_send(query) {
            Ok(()) => {}
            Err(TrySendError::Full(query)) => self.routes.news.fail(query.token, full()),
            Err(TrySendError::Disconnected(query)) => {
                self.routes.news.fail(query.token, closing());
            }
        }
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.routes.close();
    }
}

fn find_all(routes: &Arc<Routes>, queries: &Receiver<Query>) {
    loop {
        match queries.recv_timeout(LOOK) {
            Ok(query) if routes.news.is_closing() => routes.news.fail(query.token, closing()),
            Ok(query) => find(routes, query),
            Err(RecvTimeoutError::Timeout) => probe(routes),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(event) = routes.client.poll(Duration::ZERO) {
            if let Err(error) = event {
                tracing::debug!(%error, "Kafka's client for questions reports an error");
            }
        }
    }
}

/// Finds the leader of a question's partition, and passes the question on.
fn find(routes: &Arc<Routes>, query: Query) {
    let known = routes.leader(&query.partition);
    if matches!(known, Leader::Unknown | Leader::Nobody) {
        let left = query.until.saturating_duration_since(now());
        if left < TIME_MIN {
            return routes.news.fail(query.token, Failure::TimedOut);
        }
        if let Err(why) = look_up(routes, &query.partition.topic, left) {
            routes.forget(&query.partition.topic);
            if why == Failure::TimedOut {
                routes.block(&query.partition);
            }
            return routes.news.fail(query.token, why);
        }
    }
    match routes.leader(&query.partition) {
        Leader::Broker(broker) => routes.pass(broker, query),
        Leader::NoPartition => {
            routes.forget(&query.partition.topic);
            routes.news.fail(query.token, Failure::NoTopic);
        }
        Leader::Unknown | Leader::Nobody => {
            let why = Failure::Other("nobody leads the partition at the moment".to_owned());
            routes.news.answer(query.token, Answer::Failed(why));
        }
    }
}

/// Asks any broker for the leaders of a topic's partitions.
fn look_up(routes: &Routes, topic: &Topic, left: Duration) -> Result<(), Failure> {
    let metadata = routes.client.fetch_metadata(Some(topic.as_str()), left);
    let metadata = metadata.map_err(|error| failure(&error))?;
    routes.news.note_answer();
    let found = metadata
        .topics()
        .iter()
        .find(|one| one.name() == topic.as_str());
    routes.learn(topic, leaders(found.ok_or(Failure::NoTopic)?)?);
    Ok(())
}

/// The leader of each partition of a topic, in their order; below 0: nobody.
pub(super) fn leaders(topic: &MetadataTopic) -> Result<Vec<i32>, Failure> {
    if let Some(error) = topic.error() {
        return Err(failure_of(error.into()));
    }
    let mut leaders = vec![-1; topic.partitions().len()];
    for partition in topic.partitions() {
        let at = usize::try_from(partition.id()).ok();
        if let Some(leader) = at.and_then(|at| leaders.get_mut(at)) {
            *leader = partition.leader();
        }
    }
    Ok(leaders)
}

/// Looks whether brokers are back, if none was there.
fn probe(routes: &Routes) {
    // `None` would be all topics.
    if routes.news.is_down() && routes.client.client().fetch_cluster_id(PROBE).is_some() {
        routes.news.note_answer();
    }
}
