//! Brokers: everything that the storage wants of Kafka, as values in and values out.
//!
//! One trait, [`Brokers`], so that all that is decided about Kafka can be decided without it: the shell on a client
//! library implements it, and a model in memory does, which reorders, loses answers and repeats as Kafka may.
//!
//! Nothing blocks. What is asked is told by [`Brokers::poll`] later, under the caller's [`Token`], once; each
//! question and each order is answered or fails within the implementation's own time-out, so that nobody waits
//! for a dead broker for ever. Partitions do not wait for each other.
//!
//! What an implementation promises, and what it does not:
//!
//! - **Producing.** Records of one partition are stored in the order in which they were produced, each once, or
//!   are told as [`Unstored`]: an error there says *nothing* about whether the record is stored, nor about
//!   those behind it, which may succeed. A [`Produced`] record is held by all replicas in sync (`acks=all`).
//! - **Consuming.** Records come in the order of their offsets, each once for a consumer, and never from above the
//!   partition's high watermark. There may be holes between offsets.
//! - **Answers may be old.** A leader that was isolated may answer a question with what it knew. Nothing here
//!   takes a low watermark for a loss.
//!
//! - [`topic`]: topics, partitions, and how a topic is set. [`answer`]: what is asked, ordered and told.

pub mod answer;
pub mod topic;

pub use answer::{Answer, Failure, Order, Question, Told};
pub use topic::{Described, Partition, PartitionNumber, Settings, Topic};

use crate::place::Offset;
use airmail_model::{Mono, Now};
use bytes::Bytes;
use std::fmt;

/// Comes back with what is told of a record, a question or an order. The caller's choice; unique among those
/// not yet told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A consumer of one partition, by the caller's choice; never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsumerId(pub u64);

/// One of the few client handles that consumers share: those of a slot are read together. 0 is for tails, the
/// others are for catching up. At a time, a partition has at most one consumer in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u8);

impl Slot {
    /// The slot of the tails.
    pub const TAIL: Slot = Slot(0);
}

/// A record to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// Key, in compacted topics; none elsewhere. At most 64 bytes.
    pub key: Option<Bytes>,
    /// Contents: one batch, or a row of a compacted topic, where none removes the key's row. At most 2 MiB.
    pub value: Option<Bytes>,
    /// When it was handed over, by this node's clock: milliseconds since 1970. Stands in the header `sent`, as
    /// decimal digits; every record has a header `v` with the value `1` beside it.
    pub sent_ms: i64,
}

/// A record that was not taken. Nothing was stored, and nothing more is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The queue of all records under way is full.
    Full,
    /// Kafka would refuse it for what it is, such as its size; the reason.
    Invalid(String),
    /// The client has failed for good, or is closing; the reason.
    Failed(String),
}

/// Report of a stored record: all replicas that are in sync have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// Where it is stored.
    pub offset: Offset,
    /// When it was appended, by the clock of the partition's leader: milliseconds since 1970.
    pub appended_ms: i64,
}

/// Report of a record of which it is not known whether it is stored; the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unstored(pub String);

/// Something that a consumer has come upon, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The next record.
    Record(Record),
    /// There is nothing more at the moment: everything before `next` was taken, and the partition's high watermark
    /// was `next`. Given each time that the end is reached again.
    End {
        /// The offset behind the last record there.
        next: Offset,
    },
}

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it is.
    pub offset: Offset,
    /// When it was appended, by the clock of the leader of that time: milliseconds since 1970.
    pub appended_ms: i64,
    /// When it was handed over, by the clock of the node that did: milliseconds since 1970. `None` where the header
    /// `sent` is not there or is no number, or `v` is not 1: no record of ours.
    pub sent_ms: Option<i64>,
    /// Key.
    pub key: Option<Bytes>,
    /// Contents.
    pub value: Option<Bytes>,
}

impl Record {
    /// Bytes that it takes in memory, about; it counts so against bounds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let key = self.key.as_ref().map_or(0, Bytes::len);
        let value = self.value.as_ref().map_or(0, Bytes::len);
        (key + value) as u64 + RECORD_OVERHEAD_BYTES
    }
}

/// Bytes of a record beside its key and contents: headers and framing, about.
pub const RECORD_OVERHEAD_BYTES: u64 = 32;

/// Brokers of one Kafka cluster. Owned by one thread; see the module's documentation for what is promised.
pub trait Brokers: Send + fmt::Debug {
    /// Hands over a record to be stored. Answer: [`Told::Produced`], however late: a record whose partition is dead may
    /// be stored when that is back.
    ///
    /// Records of a partition are stored in the order in which they were handed over, and without gaps: one that is not
    /// stored is followed by none that is, among those that are handed over before it is told.
    ///
    /// # Errors
    /// The record was not taken, and nothing of it is stored.
    fn produce(
        &mut self,
        token: Token,
        partition: &Partition,
        record: NewRecord,
    ) -> Result<(), NotTaken>;

    /// Starts a consumer at an offset. It fetches ahead by itself, up to a bound of the implementation's own; one
    /// that is not taken from keeps what it has, and fetches nothing more. Another consumer of this partition in
    /// this slot was stopped before.
    fn consume(&mut self, consumer: ConsumerId, slot: Slot, partition: &Partition, from: Offset);

    /// Ends a consumer. Nothing more is told or taken of it.
    fn stop(&mut self, consumer: ConsumerId);

    /// Takes what a consumer has, in order: records until they are `bytes_max` or more together, and the end where
    /// it is reached. Returns whether there may be more at once; if not, [`Told::Readable`] tells when there is. One
    /// that is not known gives nothing.
    fn take(&mut self, consumer: ConsumerId, bytes_max: u64, taken: &mut Vec<Taken>) -> bool;

    /// Asks about a partition. Answer: [`Told::Answered`], within 500 ms. The answer was made by the leader after
    /// the question was asked, or fails; it is never one that was kept.
    fn ask(&mut self, token: Token, partition: &Partition, question: Question);

    /// Orders a change, or asks about topics and brokers. Answer: [`Told::Answered`], within 30 s. A change that
    /// fails may have been made all the same.
    fn order(&mut self, token: Token, order: Order);

    /// Tells what has happened since the last poll. Returns when to poll again if nothing else happens before: nothing
    /// is handed over or asked, and the [`Waker`](airmail_log::Waker) that the implementation was made with is not
    /// called.
    fn poll(&mut self, now: Now, told: &mut Vec<Told>) -> Option<Mono>;

    /// Begins to close: what was produced is stored and told, or told as [`Unstored`]; consumers end.
    fn close(&mut self, now: Now);

    /// Whether it is closed: everything produced was told, and nothing is under way any more.
    fn is_closed(&self) -> bool;

    /// The error for which nothing can be stored at the moment, if there is one: no broker is there, or the client
    /// has failed for good.
    fn trouble(&self) -> Option<String>;
}
