//! Layout of the main cluster, its partitions' leaders: asked for every second by a thread of its
//! own, since the answer may take as long as a node takes to fail.

use super::clients::Sender;
use super::error::CollectError;
use airmail_partition::{Cluster, NodeId};
use parking_lot::Mutex;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;
use rdkafka::producer::Producer as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Interval between questions.
const EVERY: Duration = Duration::from_secs(1);
/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks for the layout of these topics.
///
/// # Errors
/// No answer; or a topic is not there.
pub(super) fn ask(sender: &Sender, topics: &[String]) -> Result<Cluster, CollectError> {
    let mut cluster = Cluster::default();
    for topic in topics {
        let metadata = sender.client().fetch_metadata(Some(topic), PATIENCE)?;
        read(&metadata, topic, &mut cluster)?;
    }
    Ok(cluster)
}

fn read(metadata: &Metadata, name: &str, cluster: &mut Cluster) -> Result<(), CollectError> {
    let brokers = metadata.brokers().iter();
    cluster
        .nodes
        .extend(brokers.map(|broker| NodeId(broker.id())));
    for topic in metadata
        .topics()
        .iter()
        .filter(|topic| topic.name() == name)
    {
        match topic.error().map(RDKafkaErrorCode::from) {
            None => {}
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                let topic = name.to_owned();
                return Err(CollectError::TopicMissing { topic });
            }
            Some(code) => return Err(KafkaError::MetadataFetch(code).into()),
        }
        let partitions = topic.partitions().iter();
        let leaders: BTreeMap<i32, Option<NodeId>> = partitions
            .map(|partition| {
                let leader = partition.leader();
                (partition.id(), (leader >= 0).then_some(NodeId(leader)))
            })
            .collect();
        let leaders = leaders.into_values().collect();
        cluster.topics.insert(name.to_owned(), leaders);
    }
    Ok(())
}

/// The thread. It ends with this.
#[derive(Debug)]
pub(super) struct Watch {
    changed: Arc<Mutex<Option<Cluster>>>,
    /// Nothing is sent: its end is the sign.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Asks on from `known`.
    pub(super) fn start(
        sender: Arc<Sender>,
        topics: Vec<String>,
        known: Cluster,
    ) -> Result<Watch, CollectError> {
        let changed = Arc::new(Mutex::new(None));
        let (stop, stopped) = sync_channel(0);
        let found = Arc::clone(&changed);
        let watch = move || watch(&sender, &topics, known, &found, &stopped);
        let thread = Builder::new().name("layout".into()).spawn(watch)?;
        Ok(Watch {
            changed,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The cluster, if it has changed since this was last asked.
    pub(super) fn changed(&self) -> Option<Cluster> {
        self.changed.lock().take()
    }
}

fn watch(
    sender: &Sender,
    topics: &[String],
    mut known: Cluster,
    changed: &Mutex<Option<Cluster>>,
    stopped: &Receiver<()>,
) {
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        match ask(sender, topics) {
            Ok(cluster) if cluster != known => {
                tracing::info!(?cluster, "the main cluster has changed");
                known.clone_from(&cluster);
                *changed.lock() = Some(cluster);
            }
            Ok(_) => {}
            // Records go where they went; what cannot be sent waits in the producer.
            Err(error) => tracing::warn!(%error, "the main cluster does not say who leads what"),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It panics only where we do.
            let _ = thread.join();
        }
    }
}
