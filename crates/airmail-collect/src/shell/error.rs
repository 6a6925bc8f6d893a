//! Errors for which the collector ends, or begins anew.

use airmail_partition::TopicUnknown;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Reason for which collecting ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A client refuses its settings.
    #[error("{which} cluster: {error}")]
    Client {
        /// The cluster of the client.
        which: &'static str,
        /// The client's error.
        error: KafkaError,
    },
    /// The main cluster does not have a topic that records are to go to.
    #[error("the main cluster has no topic {topic}")]
    TopicMissing {
        /// Its name.
        topic: String,
    },
    /// The main cluster does not take a record, and never will. To pass over it would lose it.
    #[error("the main cluster refuses record {number} of {source_name}: {error}")]
    Refused {
        /// Cluster, topic and partition that it came from.
        source_name: String,
        /// Its number there.
        number: u64,
        /// The error of librdkafka.
        error: KafkaError,
    },
    /// The commits of this group are of another topic: the list of topics has changed.
    #[error("group {group} has collected topic {found} in place of {topic}: take another group")]
    OtherTopic {
        /// The group.
        group: String,
        /// The topic that is to be collected.
        topic: String,
        /// The one that was.
        found: String,
    },
    /// A source has fewer records than were collected of it: it was made anew, or has lost some. Its numbers
    /// would be taken for repeats.
    #[error(
        "{topic}/{partition} goes back from {expected} to {number}: was it made anew? take another group \
         than {group}"
    )]
    WentBack {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The group that had collected more.
        group: String,
        /// The number that was to come.
        expected: u64,
        /// The one that has.
        number: u64,
    },
    /// A node of Airmail refuses, or is not there at first.
    #[error("airmail: {0}")]
    Airmail(#[from] airmail_model::Error),
    /// A cluster does not answer, or a client has failed: to be begun anew.
    #[error("{0}")]
    Kafka(#[from] KafkaError),
    /// The main cluster's metadata has lost a topic.
    #[error(transparent)]
    TopicUnknown(#[from] TopicUnknown),
    /// A thread cannot be had.
    #[error("no thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl CollectError {
    /// Whether beginning anew cannot help.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            CollectError::Kafka(_) | CollectError::TopicUnknown(_) => false,
            CollectError::Airmail(error) => !error.code().retriable(),
            _ => true,
        }
    }

    /// Whether a record is too large, or a batch that it is in.
    pub(super) fn is_too_large(&self) -> bool {
        use RDKafkaErrorCode::{MessageBatchTooLarge, MessageSizeTooLarge};
        let CollectError::Refused { error, .. } = self else {
            return false;
        };
        let code = error.rdkafka_error_code();
        code.is_some_and(|code| matches!(code, MessageSizeTooLarge | MessageBatchTooLarge))
    }
}
