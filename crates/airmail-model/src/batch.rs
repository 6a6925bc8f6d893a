//! STUB of the batch module: signatures that others build against.

use crate::error::Error;
use crate::id::*;
use crate::limits::Limits;
use crate::topic::TopicName;
use bytes::Bytes;
use std::ops::Deref;

/// A value that has passed its check. Cores never see unchecked bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked<T>(T);

impl<T> Deref for Checked<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    String(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
}

/// A message as a user makes it (owned) - publishers and the pilot encode it.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub topic: TopicName,
    pub payload: Bytes,
    pub attributes: Vec<(String, AttributeValue)>,
    pub key: Option<Bytes>,
    pub ttl_ms: Option<u32>,
    pub deliver_at: Option<i64>,
    pub version: Option<u64>,
    pub audience: Vec<u32>,
}

/// Who published a batch and where it stands in their sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStamp {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    /// Of the record with index 0.
    pub sequence: ProducerSequence,
}

/// The encoded batch: a view over its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    bytes: Bytes,
}

/// One distinct topic of a batch.
#[derive(Clone, Copy, Debug)]
pub struct TopicEntry<'a> {
    pub hash: TopicHash,
    pub name: &'a str,
}

/// One record of a batch, by reference.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Index in the original batch: sequence = extent.first + index.
    pub index: u16,
    /// Into the batch's topic table.
    pub topic: u16,
    pub topic_name: &'a str,
    pub topic_hash: TopicHash,
    pub time: i64,
    pub attributes: Attributes<'a>,
    pub key: Option<&'a [u8]>,
    pub ttl_ms: Option<u32>,
    pub deliver_at: Option<i64>,
    pub version: Option<u64>,
    pub payload: Bytes,
}

/// Iterates the attributes of a record.
#[derive(Clone, Debug)]
pub struct Attributes<'a>(&'a [u8]);
impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, AttributeValue);
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}

impl Batch {
    /// Full check at the edge: structure, every checksum, every hash, limits, refuse unimplemented features.
    pub fn check(_bytes: Bytes, _limits: &Limits) -> Result<Checked<Batch>, Error> {
        todo!()
    }
    /// Check of what storage holds: header must be good; returns also the record-table positions whose body checksum fails.
    pub fn check_stored(_bytes: Bytes) -> Result<(Checked<Batch>, Vec<u16>), Error> {
        todo!()
    }
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
    pub fn records(&self) -> u16 {
        todo!()
    }
    /// How many sequence numbers the batch owns: last index + 1.
    pub fn numbers(&self) -> u32 {
        todo!()
    }
    pub fn topics(&self) -> impl ExactSizeIterator<Item = TopicEntry<'_>> {
        std::iter::empty()
    }
    pub fn topic(&self, _n: u16) -> TopicEntry<'_> {
        todo!()
    }
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        std::iter::empty()
    }
    /// (index, topic) of each record, without touching bodies.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = (u16, u16)> {
        std::iter::empty()
    }
    pub fn log(&self) -> LogId {
        todo!()
    }
    pub fn map_epoch(&self) -> MapEpoch {
        todo!()
    }
    pub fn producer(&self) -> Option<ProducerStamp> {
        todo!()
    }
    pub fn is_control(&self) -> bool {
        todo!()
    }
    pub fn is_sliced(&self) -> bool {
        todo!()
    }
    /// A slice with the records for which `keep(index, topic)` holds; None if none.
    pub fn slice(&self, _keep: impl FnMut(u16, u16) -> bool) -> Option<Slice> {
        todo!()
    }
}

/// Some of a batch's records: same format, tables rewritten, bodies by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    head: Bytes,
    bodies: Vec<Bytes>,
}
impl Slice {
    pub fn len(&self) -> usize {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        false
    }
    pub fn records(&self) -> u16 {
        todo!()
    }
    /// Head and bodies, to be written one after the other.
    pub fn parts(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.head).chain(&self.bodies)
    }
    /// As one checked batch; copies the bodies once.
    pub fn to_batch(&self) -> Checked<Batch> {
        todo!()
    }
}

/// What a batch is made for.
#[derive(Clone, Copy, Debug)]
pub struct BatchTarget {
    pub log: LogId,
    pub epoch: MapEpoch,
    pub producer: Option<ProducerStamp>,
    pub producer_time: i64,
}

/// Encodes messages into one batch.
#[derive(Debug)]
pub struct BatchEncoder {
    _private: (),
}
impl BatchEncoder {
    pub fn new(_namespace: NamespaceId) -> BatchEncoder {
        todo!()
    }
    /// Adds a message. Err(full) (hands nothing over) when the batch is full by limits; other errors for a bad message.
    pub fn push(
        &mut self,
        _message: &Message,
        _time: i64,
        _limits: &Limits,
    ) -> Result<(), PushError> {
        todo!()
    }
    pub fn records(&self) -> u16 {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// Encoded size if finished now.
    pub fn len(&self) -> usize {
        todo!()
    }
    /// A control batch's flag.
    pub fn control(&mut self) {
        todo!()
    }
    /// Writes header and tables; the encoder is empty again and keeps its buffers.
    pub fn finish(&mut self, _target: &BatchTarget) -> Checked<Batch> {
        todo!()
    }
}

/// Why a message was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The batch is full: finish it and push again.
    Full,
    /// The message can be in no batch.
    Refused(Error),
}
