//! Kafka, through `rdkafka` (librdkafka): a topic of one partition for each topic, `acks=all` with an
//! idempotent producer, and consumers that are assigned their partitions.
//!
//! An ack means that all in-sync replicas have the batch, in their page cache as a broker comes; with
//! one broker that is one copy. Batches wait for `linger.ms`, as Kafka's own client does by default,
//! where the run is about throughput; a run at a rate is about latency, and has none.

use super::{Failure, Outcome, System};
use crate::chunk::Chunk;
use crate::run::Account;
use crate::settings::Settings;
use futures::FutureExt;
use parking_lot::Mutex;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, DeliveryResult, Message};
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Time that Kafka's own client waits for a batch to fill, in milliseconds.
const LINGER_MS: u32 = 5;
/// Bytes of a batch: eight times the default, as users set it who want throughput.
const BATCH_BYTES: &str = "131072";
/// Messages of a publisher that wait for their acks.
const WINDOW: u32 = 1 << 16;
/// Messages that are entered as having arrived at once, at most: a queue that is never empty would be
/// one moment without end.
const AT_ONCE: usize = 256;
/// Longest time for an answer of the broker.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time that a publisher waits when the client's queue is full.
const PAUSE: Duration = Duration::from_millis(1);

/// A cluster, and how it is used: `HOST:PORT[,HOST:PORT…][?replicas=N&linger_ms=N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaPlace {
    brokers: String,
    /// Brokers that have each topic. Default 1.
    replicas: i32,
    /// Time that a producer waits for a batch to fill. Absent: none where the run is about latency, else [`LINGER_MS`].
    linger_ms: Option<u32>,
}

/// A place that names no brokers, or has a parameter that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotKafkaPlace;

impl FromStr for KafkaPlace {
    type Err = NotKafkaPlace;

    fn from_str(place: &str) -> Result<KafkaPlace, NotKafkaPlace> {
        let (brokers, parameters) = place.split_once('?').unwrap_or((place, ""));
        let mut found = KafkaPlace {
            brokers: brokers.to_owned(),
            replicas: 1,
            linger_ms: None,
        };
        for parameter in parameters.split('&').filter(|one| !one.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or(NotKafkaPlace)?;
            let value: u16 = value.parse().map_err(|_| NotKafkaPlace)?;
            match name {
                "replicas" if value > 0 => found.replicas = value.into(),
                "linger_ms" => found.linger_ms = Some(value.into()),
                _ => return Err(NotKafkaPlace),
            }
        }
        Ok(found)
    }
}

/// A cluster, in a run.
#[derive(Clone, Debug)]
pub struct Kafka {
    place: KafkaPlace,
    /// Topics of the run.
    topics: u32,
    linger_ms: u32,
}

impl Kafka {
    /// The cluster, for a run with these settings.
    #[must_use]
    pub fn new(place: &KafkaPlace, settings: &Settings) -> Kafka {
        let usual = if settings.rate.is_some() || settings.unbatched {
            0
        } else {
            LINGER_MS
        };
        Kafka {
            place: place.clone(),
            topics: settings.topics,
            linger_ms: place.linger_ms.unwrap_or(usual),
        }
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.place.brokers);
        config.set("socket.nagle.disable", "true");
        config.set("topic.metadata.refresh.fast.interval.ms", "20");
        config.set_log_level(RDKafkaLogLevel::Error);
        config
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>, Failure> {
        Ok(self.config().create()?)
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        let topics = 0..self.topics;
        topics
            .map(|topic| name(&format!("{prefix}/{topic}")))
            .collect()
    }
}

fn patient() -> AdminOptions {
    let options = AdminOptions::new().request_timeout(Some(PATIENCE));
    options.operation_timeout(Some(PATIENCE))
}

/// A topic as Kafka can call it.
fn name(topic: &str) -> String {
    topic.replace('/', ".")
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Failure {
        Failure::new(error)
    }
}

impl System for Kafka {
    type Client = Kafka;
    type Publisher = KafkaPublisher;
    type Subscription = KafkaSubscription;

    fn in_flight(&self) -> Option<u32> {
        Some(WINDOW)
    }

    async fn prepare(&self, prefix: &str) -> Result<(), Failure> {
        let names = self.names(prefix);
        let topics: Vec<NewTopic<'_>> = names
            .iter()
            .map(|name| NewTopic::new(name, 1, TopicReplication::Fixed(self.place.replicas)))
            .collect();
        let options = patient();
        let made = self.admin()?.create_topics(&topics, &options).await?;
        for topic in made {
            topic.map_err(|(name, code)| Failure::new(format!("{name}: {code}")))?;
        }
        Ok(())
    }

    async fn clear(&self, prefix: &str) -> Result<(), Failure> {
        let names = self.names(prefix);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let options = patient();
        self.admin()?.delete_topics(&names, &options).await?;
        Ok(())
    }

    async fn connect(&self) -> Result<Kafka, Failure> {
        // A producer and a consumer are connections of their own.
        Ok(self.clone())
    }

    fn publisher(&self, _client: &Kafka, topics: &[String]) -> Result<KafkaPublisher, Failure> {
        let mut config = self.config();
        config.set("acks", "all").set("enable.idempotence", "true");
        config.set("linger.ms", self.linger_ms.to_string());
        config.set("batch.size", BATCH_BYTES);
        config.set("queue.buffering.max.messages", "1000000");
        config.set("queue.buffering.max.kbytes", "262144");
        let producer: ThreadedProducer<Deliveries> = config.create_with_context(Deliveries)?;
        let names: Vec<String> = topics.iter().map(|topic| name(topic)).collect();
        // So that the first message finds the way known.
        for name in names.iter().take(1) {
            producer.client().fetch_metadata(Some(name), PATIENCE)?;
        }
        Ok(KafkaPublisher {
            producer: Arc::new(producer),
            names,
        })
    }

    async fn subscribe(
        &self,
        _client: &Kafka,
        topics: &[String],
        from_earliest: bool,
    ) -> Result<KafkaSubscription, Failure> {
        let mut config = self.config();
        config.set("group.id", "bench");
        config.set("enable.auto.commit", "false");
        config.set("enable.auto.offset.store", "false");
        // As soon as there is anything; and no rest of a second where much has been fetched ahead.
        config.set("fetch.min.bytes", "1");
        config.set("fetch.queue.backoff.ms", "1");
        config.set("queued.min.messages", "100000");
        let consumer: StreamConsumer = config.create()?;
        let mut assignment = TopicPartitionList::new();
        for topic in topics {
            let name = name(topic);
            let offset = if from_earliest {
                Offset::Beginning
            } else {
                Offset::Offset(consumer.fetch_watermarks(&name, 0, PATIENCE)?.1)
            };
            assignment.add_partition_offset(&name, 0, offset)?;
        }
        consumer.assign(&assignment)?;
        Ok(KafkaSubscription {
            consumer,
            several: topics.len() > 1,
        })
    }

    async fn close(&self, _client: Kafka) -> Result<(), Failure> {
        Ok(())
    }
}

/// Takes the client's report on each message.
#[derive(Clone, Copy, Debug)]
struct Deliveries;

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Arc<Fate>;

    fn delivery(&self, result: &DeliveryResult<'_>, fate: Arc<Fate>) {
        if let Err((error, _)) = result {
            fate.fail(error);
        }
        fate.decide();
    }
}

/// Outcome of a chunk in the making.
#[derive(Debug)]
struct Fate {
    count: u64,
    undecided: AtomicU64,
    failed: AtomicU64,
    error: Mutex<Option<Failure>>,
    decided: Notify,
}

impl Fate {
    fn new(count: u64) -> Fate {
        Fate {
            count,
            undecided: AtomicU64::new(count),
            failed: AtomicU64::new(0),
            error: Mutex::new(None),
            decided: Notify::new(),
        }
    }

    fn fail(&self, error: &KafkaError) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut first = self.error.lock();
        first.get_or_insert_with(|| Failure::new(error));
    }

    /// Notes that the outcome of one more message is known.
    fn decide(&self) {
        if self.undecided.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Kept for who asks later.
            self.decided.notify_one();
        }
    }

    async fn outcome(&self) -> Outcome {
        if self.undecided.load(Ordering::Acquire) > 0 {
            self.decided.notified().await;
        }
        let failed = self.failed.load(Ordering::Relaxed);
        let mut error = self.error.lock();
        Outcome {
            acknowledged: self.count - failed,
            failed,
            error: error.take(),
        }
    }
}

/// Publishes to some topics.
pub struct KafkaPublisher {
    /// Held by each chunk under way too: it hears of none when it is gone.
    producer: Arc<ThreadedProducer<Deliveries>>,
    names: Vec<String>,
}

impl fmt::Debug for KafkaPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaPublisher").finish_non_exhaustive()
    }
}

impl super::Publisher for KafkaPublisher {
    type Acks = Pin<Box<dyn Future<Output = Outcome> + Send>>;

    async fn send(&mut self, chunk: &Chunk) -> Result<Self::Acks, Failure> {
        let fate = Arc::new(Fate::new(chunk.count()));
        for (topic, payload) in chunk.messages() {
            let record =
                BaseRecord::<(), [u8], _>::with_opaque_to(&self.names[topic], Arc::clone(&fate));
            let mut record = record.partition(0).payload(payload);
            while let Err((error, back)) = self.producer.send(record) {
                if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(Failure::new(error));
                }
                record = back;
                tokio::time::sleep(PAUSE).await;
            }
        }
        let producer = Arc::clone(&self.producer);
        Ok(Box::pin(async move {
            let outcome = fate.outcome().await;
            drop(producer);
            outcome
        }))
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        // Whoever holds acks holds the client.
        Ok(())
    }
}

/// Receives some topics.
pub struct KafkaSubscription {
    consumer: StreamConsumer,
    several: bool,
}

impl fmt::Debug for KafkaSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSubscription").finish_non_exhaustive()
    }
}

impl super::Subscription for KafkaSubscription {
    async fn next(&mut self, account: &mut Account) -> Result<bool, Failure> {
        let several = self.several;
        // The client's queue takes nothing from this task's turn, which would not end by itself.
        tokio::task::yield_now().await;
        let first = self.consumer.recv().await?;
        account.begin();
        enter(account, several, &first);
        for _ in 1..AT_ONCE {
            match self.consumer.recv().now_or_never() {
                Some(message) => enter(account, several, &message?),
                None => break,
            }
        }
        account.end();
        Ok(true)
    }
}

fn enter(account: &mut Account, several: bool, message: &BorrowedMessage<'_>) {
    let payload = message.payload().unwrap_or_default();
    if !several {
        return account.take(payload);
    }
    let place = message
        .topic()
        .rsplit_once('.')
        .map(|(_, last)| last.parse());
    match place {
        Some(Ok(place)) => account.take_of(place, payload),
        _ => account.take_strange(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_may_say_replicas_and_linger() {
        let place = |text: &str| text.parse::<KafkaPlace>();
        let said = place("a:1,b:2?replicas=3&linger_ms=0").expect("a place");
        assert_eq!(
            (&*said.brokers, said.replicas, said.linger_ms),
            ("a:1,b:2", 3, Some(0))
        );
        let unsaid = place("a:1").expect("a place");
        assert_eq!((unsaid.replicas, unsaid.linger_ms), (1, None));
        for wrong in [
            "a:1?acks=1",
            "a:1?replicas=0",
            "a:1?linger_ms",
            "a:1?linger_ms=x",
        ] {
            assert_eq!(place(wrong), Err(NotKafkaPlace), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_chunk_is_decided_with_its_last_message_and_tells_its_first_error() {
        let fate = Fate::new(3);
        fate.decide();
        fate.fail(&KafkaError::Canceled);
        fate.decide();
        assert!(fate.outcome().now_or_never().is_none());
        fate.decide();
        let outcome = fate.outcome().await;
        assert_eq!((outcome.acknowledged, outcome.failed), (2, 1));
        assert!(outcome.error.is_some());
    }
}
