//! Questions and orders to brokers, and everything that is told.
//!
//! A *question* is about one partition and goes to its leader; it changes nothing and is asked often. An *order*
//! is about topics or the cluster, goes to any broker, and is rare.

use super::topic::{Described, Partition, Settings, Topic};
use super::{ConsumerId, Produced, Token, Unstored};
use crate::place::Offset;

/// A question about a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Asks for its first offset and its high watermark. Answer: [`Answer::Watermarks`].
    Watermarks,
    /// Asks for the first record that was appended at `at_ms` (milliseconds since 1970, not below 0) or later.
    /// Answer: [`Answer::Offset`].
    OffsetAt {
        /// The time.
        at_ms: i64,
    },
    /// Asks where a leader's epoch ended in the present leader's log (`OffsetForLeaderEpoch`). Answer:
    /// [`Answer::Offset`].
    EpochEnd {
        /// The epoch of the leader that appended a record.
        epoch: u32,
    },
}

/// An order to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Makes a topic. One that is there is [`Failure::Exists`]. Answer: [`Answer::Done`], once every partition has a
    /// leader.
    Create {
        /// Its name.
        topic: Topic,
        /// Number of its partitions, 1 or more.
        partitions: u16,
        /// Number of replicas of each partition.
        replicas: u8,
        /// Settings that differ from the brokers' defaults.
        settings: Settings,
    },
    /// Describes a topic. Answer: [`Answer::Described`], or [`Failure::NoTopic`].
    Describe {
        /// Its name.
        topic: Topic,
    },
    /// Changes the named settings of a topic, and no others. Answer: [`Answer::Done`].
    Alter {
        /// Its name.
        topic: Topic,
        /// The settings to change.
        settings: Settings,
    },
    /// Deletes a topic and all it holds. One that is not there is [`Failure::NoTopic`]. Answer: [`Answer::Done`].
    Delete {
        /// Its name.
        topic: Topic,
    },
    /// Deletes a partition's records before an offset that is not above its high watermark; one that is below its first
    /// offset changes nothing. Answer: [`Answer::Done`].
    DeleteRecords {
        /// The partition.
        partition: Partition,
        /// The first offset to be kept.
        before: Offset,
    },
    /// Lists the topics whose names begin so. Answer: [`Answer::Topics`].
    List {
        /// Beginning of their names.
        prefix: String,
    },
    /// Asks how old the oldest broker is. Kafka has no request for it; an implementation may tell those before 4.0 by
    /// settings of a broker that 4.0 has removed, such as `inter.broker.protocol.version`. Answer:
    /// [`Answer::Version`].
    Version,
}

/// The answer to a question or an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The partition's first offset and its high watermark.
    Watermarks {
        /// The first offset that is kept.
        low: Offset,
        /// The offset behind the last record that consumers can see.
        high: Offset,
    },
    /// An offset; `None` if there is none.
    Offset(Option<Offset>),
    /// The topic.
    Described(Box<Described>),
    /// Names, in byte order.
    Topics(Vec<Topic>),
    /// The major version of the oldest broker, as far as it can be told: at least this.
    Version {
        /// The version, such as 4.
        major: u8,
    },
    /// It is done, on every broker that it concerns.
    Done,
    /// It was not done, or it is not known; nothing was told.
    Failed(Failure),
}

/// Reason for which a question, an order or a consumer has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answered within the time.
    TimedOut,
    /// The topic or partition is not there.
    NoTopic,
    /// The topic is there already.
    Exists,
    /// The partition is not the one that was read, and nobody says from where on; the reason, in Kafka's words.
    Cut(String),
    /// Another reason, in Kafka's words.
    Other(String),
}

/// News of the brokers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Fate of a record. Those of one partition are told in the order in which they were handed over,
    /// where they are stored; one that is not known may be told earlier or later than its neighbours.
    Produced {
        /// The record's.
        token: Token,
        /// Where it is, or why nobody knows.
        result: Result<Produced, Unstored>,
    },
    /// There is something to take from a consumer. Told once until it was taken from, and had nothing more.
    Readable {
        /// The consumer.
        consumer: ConsumerId,
    },
    /// The offset at which a consumer would go on is not in the partition. It gives nothing more, and is to be stopped.
    OutOfRange {
        /// The consumer.
        consumer: ConsumerId,
    },
    /// The partition was cut below what a consumer has given, by the leader's word on an epoch. It gives nothing more,
    /// and is to be stopped.
    Truncated {
        /// The consumer.
        consumer: ConsumerId,
        /// The first offset that is not as it was.
        at: Offset,
    },
    /// A consumer has failed. It gives nothing more, and is to be stopped. What passes by itself is not told. Another
    /// consumer may do better a while later, but for [`Failure::NoTopic`] and [`Failure::Cut`].
    Ended {
        /// The consumer.
        consumer: ConsumerId,
        /// The reason.
        why: Failure,
    },
    /// The answer to a question or an order.
    Answered {
        /// The question's or order's.
        token: Token,
        /// The answer.
        answer: Answer,
    },
}
