//! Storage on Kafka: which cluster it is, and a shard's own clients to it; and a gateway's, to append alone.

use super::KafkaUrl;
use super::storage_set::Failure;
use crate::config::Config;
use airmail_log::{LogStorage, Waker};
use airmail_log_kafka::shell::{self, KafkaSettings, LibrdkafkaBrokers, cluster_number};
use airmail_log_kafka::{KafkaAppender, KafkaConfig, KafkaStorage};
use std::time::Duration;

/// Time of one question for the cluster, and number of questions before a start is given up.
const QUESTION: Duration = Duration::from_secs(5);
const QUESTIONS_MAX: u32 = 12;
/// Time in which topics are removed.
const REMOVAL: Duration = Duration::from_secs(30);

/// No broker has answered.
#[derive(Debug, thiserror::Error)]
#[error("none of the brokers {0} has answered")]
struct NoBroker(String);

/// The number of the cluster that logs there are of. Waits for a broker, for a minute at most.
pub(super) fn cluster(url: &KafkaUrl) -> Result<u64, Failure> {
    let settings = settings(url);
    for _ in 0..QUESTIONS_MAX {
        if let Some(cluster) = cluster_number(&settings, &url.prefix, QUESTION)? {
            return Ok(cluster);
        }
        tracing::warn!(
            brokers = settings.bootstrap_servers,
            "no broker of Kafka has answered yet"
        );
    }
    Err(NoBroker(settings.bootstrap_servers).into())
}

/// Opens a shard's part: the logs that it is told to open, of this cluster; and whether another storage has log 0.
pub(super) fn open(
    url: &KafkaUrl,
    (cluster, is_further): (u64, bool),
    (config, seed): (&Config, u64),
    waker: &Waker,
) -> Result<Box<dyn LogStorage>, Failure> {
    let brokers = LibrdkafkaBrokers::open(of_node(url, config), waker.clone())?;
    let of_logs = KafkaConfig {
        is_further,
        ..of_logs(url, cluster, (config, seed))
    };
    #[cfg(feature = "test-switches")]
    if let Some(file) = &config.held_reading {
        let held = super::held_reading::HeldReading::new(brokers, file.clone());
        return Ok(Box::new(KafkaStorage::new(of_logs, held)));
    }
    Ok(Box::new(KafkaStorage::new(of_logs, brokers)))
}

/// Opens a shard's handle to append by, beside a storage of other nodes whose logs are on this cluster.
pub(super) fn append(
    url: &KafkaUrl,
    cluster: u64,
    (config, seed): (&Config, u64),
    waker: &Waker,
) -> Result<KafkaAppender<LibrdkafkaBrokers>, Failure> {
    let brokers = LibrdkafkaBrokers::open(of_node(url, config), waker.clone())?;
    let of_logs = of_logs(url, cluster, (config, seed));
    Ok(KafkaAppender::new(of_logs, brokers))
}

fn of_node(url: &KafkaUrl, config: &Config) -> KafkaSettings {
    KafkaSettings {
        client_id: format!("airmail-{}", config.name),
        queue_bytes: config.pending.0,
        ..settings(url)
    }
}

fn of_logs(url: &KafkaUrl, cluster: u64, (config, seed): (&Config, u64)) -> KafkaConfig {
    KafkaConfig {
        prefix: url.prefix.clone(),
        cluster,
        seed,
        replicas: url.replicas,
        min_insync: url.min_insync,
        is_flushed: url.is_flushed,
        skew: url.skew,
        queue_bytes: config.pending.0,
        ..KafkaConfig::default()
    }
}

impl KafkaUrl {
    /// Deletes all topics of its prefix, and with them all that is stored there, whoever uses it. Blocks for half a minute
    /// at most.
    ///
    /// # Errors
    /// The brokers do not answer, or one refuses it.
    pub fn remove_topics(&self) -> Result<(), Failure> {
        shell::remove_topics(&settings(self), &self.prefix, REMOVAL)?;
        Ok(())
    }
}

fn settings(url: &KafkaUrl) -> KafkaSettings {
    KafkaSettings {
        properties: url.properties.clone(),
        ..KafkaSettings::new(&url.brokers.join(","))
    }
}
