//! Settings of librdkafka's clients, so that nothing is lost and no record overtakes another.

use super::acks::{Acks, Deliveries};
use super::error::CollectError;
use super::properties;
use super::settings::{Origin, Settings};
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::producer::ThreadedProducer;
use std::sync::Arc;
use std::time::Duration;

/// Sends to the main cluster.
pub(super) type Sender = ThreadedProducer<Deliveries>;

/// Size of librdkafka's queue of records fetched ahead, in KiB.
const AHEAD_KIB: &str = "16384";
/// Records that librdkafka holds beyond what the core lets be under way: those that a pause came too late for.
const QUEUE_SPARE: usize = 100_000;
/// Room in librdkafka's queue for the same, in KiB.
const QUEUE_SPARE_KIB: u64 = 65_536;
/// librdkafka's own limit on it.
const QUEUE_KIB_MAX: u64 = 2_147_483_647;

/// Ways to group records into batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Batches {
    /// Fills batches as far as the settings let it.
    Filled,
    /// Each by itself: a broker refuses a batch whole if that is larger than its topic takes, though every
    /// record of it may be small enough, and does not say which is not.
    Single,
}

/// The producer. Idempotent with all replicas' acks: a record sent again after a lost answer is
/// stored once, and never behind a later one. It never gives up: a record that it passed over would
/// be lost.
pub(super) fn sender(
    settings: &Settings,
    acks: Arc<Acks>,
    batches: Batches,
) -> Result<Sender, CollectError> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &settings.target);
    config.set("enable.idempotence", "true").set("acks", "all");
    config.set("message.timeout.ms", "0");
    config.set("linger.ms", millis(settings.linger));
    config.set("batch.size", settings.batch_bytes.to_string());
    let records = settings.bounds.records.saturating_add(QUEUE_SPARE);
    config.set("queue.buffering.max.messages", records.to_string());
    let kib = (settings.bounds.bytes / 1024).saturating_add(QUEUE_SPARE_KIB);
    config.set(
        "queue.buffering.max.kbytes",
        kib.min(QUEUE_KIB_MAX).to_string(),
    );
    config.set("reconnect.backoff.max.ms", "1000");
    config.set("socket.nagle.disable", "true");
    properties::add(&mut config, &settings.target_properties, "main")?;
    if batches == Batches::Single {
        config.set("batch.num.messages", "1");
    }
    let created = config.create_with_context(Deliveries(acks));
    created.map_err(|error| CollectError::Client {
        which: "main",
        error,
    })
}

/// A connection to the cluster that has the group.
pub(super) fn connection(settings: &Settings) -> Result<ClientConfig, CollectError> {
    let mut config = ClientConfig::new();
    let (brokers, properties, which) = match &settings.origin {
        Origin::Kafka { brokers } => (brokers, &settings.source_properties, "small"),
        // The group is kept where the records go.
        Origin::Airmail { .. } => (&settings.target, &settings.target_properties, "main"),
    };
    config.set("bootstrap.servers", brokers);
    config.set("reconnect.backoff.max.ms", "1000");
    config.set("socket.nagle.disable", "true");
    properties::add(&mut config, properties, which)?;
    Ok(config)
}

/// The member of the group.
pub(super) fn member(settings: &Settings) -> Result<ClientConfig, CollectError> {
    let mut config = connection(settings)?;
    config.set("group.id", &settings.group);
    config.set("partition.assignment.strategy", "cooperative-sticky");
    config.set("enable.auto.commit", "false");
    config.set("enable.auto.offset.store", "false");
    config.set("auto.offset.reset", "earliest");
    config.set("isolation.level", "read_committed");
    config.set("session.timeout.ms", millis(settings.session));
    config.set("heartbeat.interval.ms", millis(settings.session / 6));
    config.set("statistics.interval.ms", "1000");
    config.set("fetch.wait.max.ms", "100");
    config.set("fetch.queue.backoff.ms", "1");
    config.set("queued.max.messages.kbytes", AHEAD_KIB);
    Ok(config)
}

fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

/// librdkafka's own log, as ours.
pub(super) fn log(cluster: &str, level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(cluster, facility, message, "librdkafka");
        }
        RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
            tracing::warn!(cluster, facility, message, "librdkafka");
        }
        _ => tracing::debug!(cluster, facility, message, "librdkafka"),
    }
}
