//! Batches for the log's own simulation, made with the encoder that publishers use.

use crate::invariants::filters;
use crate::message::{MessageId, payload};
use airmail_model::batch::{BatchTarget, ProducerStamp};
use airmail_model::{
    Batch, BatchEncoder, Checked, Lane, Limits, LogId, MapEpoch, Message, RoleId, TopicName,
};

/// A message of a batch to be.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its lane.
    pub lane: Lane,
    /// The message.
    pub id: MessageId,
    /// The message's topic.
    pub topic: TopicName,
    /// Bytes of its payload beyond the least.
    pub filler: u32,
    /// Milliseconds after its append time when it expires.
    pub ttl_ms: Option<u32>,
    /// The roles that it is for; none: everybody.
    pub audience: Vec<RoleId>,
    /// The number that it has as an attribute.
    pub number: Option<i64>,
}

/// A topic's name, by its number.
#[must_use]
pub fn topic_name(number: u64) -> TopicName {
    let name = format!("topic/{number}");
    TopicName::new(&name, &Limits::DEFAULT).unwrap_or_else(|_| unreachable!("a fixed, legal name"))
}

/// A message as its publisher hands it over.
#[must_use]
pub fn message(part: &Part) -> Message {
    Message {
        lane: part.lane,
        ttl_ms: part.ttl_ms,
        audience: part.audience.clone(),
        attributes: filters::attributes(part.number),
        ..Message::new(part.topic.clone(), payload(part.id, part.filler))
    }
}

/// The parts as one batch; how many of them did fit.
#[must_use]
pub fn batch(log: LogId, producer: ProducerStamp, parts: &[Part]) -> (Checked<Batch>, usize) {
    let mut encoder = BatchEncoder::new(log.namespace);
    let mut taken = 0;
    for part in parts {
        if encoder.push(&message(part), 0, &Limits::DEFAULT).is_err() {
            break;
        }
        taken += 1;
    }
    let target = BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: Some(producer),
        producer_time: 0,
    };
    (encoder.finish(&target), taken)
}
