//! Errors of opening, and what librdkafka's errors mean for the storage.

use crate::brokers::Failure;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use std::{fmt, io};

/// Reason for which the shell cannot begin.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A property is not for users to set: a promise rests on it, or nothing is known of it.
    Reserved {
        /// The property's name.
        property: String,
    },
    /// This build of librdkafka does not have a property, or not with this value.
    Unsupported {
        /// The property's name.
        property: String,
        /// The reason, in librdkafka's words.
        reason: String,
    },
    /// librdkafka cannot make a client with these settings.
    Client(String),
    /// A thread cannot be had, or the system gives no random bytes.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Reserved { property } => {
                write!(f, "property {property} of Kafka's client cannot be set")
            }
            OpenError::Unsupported { property, reason } => {
                write!(f, "property {property} of Kafka's client: {reason}")
            }
            OpenError::Client(reason) => write!(f, "Kafka's client: {reason}"),
            OpenError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::System(error)
    }
}

impl From<KafkaError> for OpenError {
    fn from(error: KafkaError) -> OpenError {
        match error {
            KafkaError::ClientConfig(_, reason, property, _) => {
                OpenError::Unsupported { property, reason }
            }
            other => OpenError::Client(other.to_string()),
        }
    }
}

/// Meaning of an error of a question, an order or a consumer.
pub(super) fn failure(error: &KafkaError) -> Failure {
    let code = match error {
        // Which it does not tell as a code.
        KafkaError::AdminOp(code) => Some(*code),
        _ => error.rdkafka_error_code(),
    };
    code.map_or_else(|| Failure::Other(error.to_string()), failure_of)
}

/// Meaning of an error's code.
pub(super) fn failure_of(code: Code) -> Failure {
    match code {
        Code::OperationTimedOut
        | Code::TimedOutQueue
        | Code::RequestTimedOut
        | Code::BrokerTransportFailure
        | Code::AllBrokersDown => Failure::TimedOut,
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
            Failure::NoTopic
        }
        Code::TopicAlreadyExists => Failure::Exists,
        other => Failure::Other(other.to_string()),
    }
}

/// Whether an error that a consumer meets passes by itself: librdkafka goes on fetching.
pub(super) fn passes(code: Code) -> bool {
    matches!(
        code,
        Code::AllBrokersDown
            | Code::BrokerTransportFailure
            | Code::Resolve
            | Code::OperationTimedOut
            | Code::TimedOutQueue
            | Code::RequestTimedOut
            | Code::NetworkException
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::ReplicaNotAvailable
            | Code::BrokerNotAvailable
            | Code::KafkaStorageError
            | Code::FencedLeaderEpoch
            | Code::UnknownLeaderEpoch
            | Code::OffsetNotAvailable
            | Code::ThrottlingQuotaExceeded
            | Code::Unknown
    )
}
