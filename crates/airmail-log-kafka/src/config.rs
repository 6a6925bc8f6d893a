//! Settings of the storage.

use crate::marks::MarkBounds;
use crate::producers::KnownBounds;
use airmail_model::{Durability, Synced};
use std::time::Duration;

/// Settings of the statements about logs, and of what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementConfig {
    /// Longest time from what a log has new until a statement has it, where brokers answer. Shorter for a log that keeps
    /// its records for less than four times this. Default 60 s.
    pub interval: Duration,
    /// Bytes of a log that are read at most before there is another statement. Fewer for a log that keeps less than four
    /// times as much. Default 256 MiB.
    pub bytes: u64,
    /// Bounds on the producers that are known. The same on every node of a cluster.
    pub known: KnownBounds,
    /// Bounds on the marks of copies. The same on every node of a cluster.
    pub marks: MarkBounds,
}

impl Default for StatementConfig {
    fn default() -> StatementConfig {
        StatementConfig {
            interval: Duration::from_secs(60),
            bytes: 256 << 20,
            known: KnownBounds::default(),
            marks: MarkBounds::default(),
        }
    }
}

/// Settings. The owner of a storage chooses them; every node of a cluster has the same but for `seed` and the bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaConfig {
    /// Beginning of the names of all topics, 1 to 64 of `a-z A-Z 0-9 _ -`. Default `airmail`.
    pub prefix: String,
    /// The cluster that the logs belong to: incarnations come from it.
    pub cluster: u64,
    /// Log 0 is in another storage, and so a topic says whose the prefix is: that of the first cluster that has used it,
    /// and no other. Default: log 0 is here.
    pub is_further: bool,
    /// Seed of what has to be unlike everywhere, such as the names of new topics. Of the system's entropy.
    pub seed: u64,
    /// Replicas of each partition. Default 3.
    pub replicas: u8,
    /// Replicas that must be in sync for a record to be taken (`min.insync.replicas`). Default 2.
    pub min_insync: u8,
    /// Whether each record is flushed to the disks before it is acknowledged (`flush.messages=1`). Default: not.
    pub is_flushed: bool,
    /// Most by which an append time may be before an earlier one: brokers' clocks differ. Default 5 s.
    pub skew: Duration,
    /// Bytes of appends under way, of all logs together. Default 64 MiB.
    pub queue_bytes: u64,
    /// Bytes of the newest batches that are kept for each log. Default 4 MiB.
    pub recent_bytes: u64,
    /// Consumers that read what is not among the newest. Default 4.
    pub catch_up_readers: u8,
    /// Statements about logs.
    pub statements: StatementConfig,
    /// A planted bug.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

#[cfg(feature = "sabotage")]
impl KafkaConfig {
    pub(crate) fn has_bug(&self, bug: crate::sabotage::Bug) -> bool {
        self.bug == Some(bug)
    }
}

impl Default for KafkaConfig {
    fn default() -> KafkaConfig {
        KafkaConfig {
            prefix: "airmail".to_owned(),
            cluster: 0,
            is_further: false,
            seed: 0,
            replicas: 3,
            min_insync: 2,
            is_flushed: false,
            skew: Duration::from_secs(5),
            queue_bytes: 64 << 20,
            recent_bytes: 4 << 20,
            catch_up_readers: 4,
            statements: StatementConfig::default(),
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}

impl KafkaConfig {
    /// Durability of every log: held by as many as must be in sync, each as its system holds what is written.
    #[must_use]
    pub fn durability(&self) -> Durability {
        Durability {
            synced: if self.is_flushed {
                Synced::Fsync
            } else {
                Synced::Os
            },
            copies: self.min_insync,
        }
    }
}
