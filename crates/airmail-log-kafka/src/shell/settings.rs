//! Settings of the shell.

use std::time::Duration;

/// The least that a consumer fetches ahead for a partition, in bytes.
pub(super) const FETCH_AHEAD_BYTES_MIN: u64 = 256 << 10;

/// Settings of [`LibrdkafkaBrokers`](super::LibrdkafkaBrokers).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaSettings {
    /// HOST:PORT of some brokers, with commas between.
    pub bootstrap_servers: String,
    /// Name of this client in the brokers' logs and quotas.
    pub client_id: String,
    /// Further properties of librdkafka, such as for TLS and SASL. One that this build of it cannot do, or on which a
    /// promise of ours rests, is refused by name.
    pub properties: Vec<(String, String)>,
    /// Bytes of all records that are under way, at most. Default: 64 MiB.
    pub queue_bytes: u64,
    /// Records that are under way or whose reports were not told yet, at most; from 1 to 10,000,000. Default: 100,000.
    pub records_max: usize,
    /// Bytes that a consumer of a partition fetches ahead, about; not below 256 KiB. Default: 4 MiB.
    pub fetch_ahead_bytes: u64,
    /// Number of slots, from 1. Default: 5.
    pub slots: u8,
    /// Time that closing waits for records under way before it gives them up. Default: 10 s.
    pub flush: Duration,
}

impl KafkaSettings {
    /// The defaults, for the cluster of these brokers.
    #[must_use]
    pub fn new(bootstrap_servers: &str) -> KafkaSettings {
        KafkaSettings {
            bootstrap_servers: bootstrap_servers.to_owned(),
            client_id: "airmail".to_owned(),
            properties: Vec::new(),
            queue_bytes: 64 << 20,
            records_max: 100_000,
            fetch_ahead_bytes: 4 << 20,
            slots: 5,
            flush: Duration::from_secs(10),
        }
    }
}
