//! Plain messages: encoded into batches for clients without an SDK, and taken out of them again.
//!
//! The same encoder and checker as the SDK's are used, so that a message is stored in one form
//! whoever sent it. A field that is reserved is refused by name, never ignored.

use crate::v1;
use airmail_model::batch::{AttributeValue, TopicEntry, batches_by_log};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Batch, Checked, Error, ErrorCode, Extent, Incarnation, Lane, Limits, LogId,
    LogIndex, LogMap, MapEpoch, Message, Position, RoleId, Sequence, TopicName,
};

/// A message to be published, from its message.
///
/// # Errors
/// `TOPIC_INVALID`, `ATTRIBUTES_INVALID`, `INVALID_ARGUMENT` for a lane that there is not, and `UNIMPLEMENTED` for
/// each reserved field in use.
pub fn message_from_proto(message: v1::Message, limits: &Limits) -> Result<Message, Error> {
    refuse_reserved(&message)?;
    let mut attributes = Vec::with_capacity(message.attributes.len());
    for (key, attribute) in message.attributes {
        let Some(value) = attribute.value else {
            return Err(Error::new(ErrorCode::AttributesInvalid)
                .field("attributes")
                .value(format!("{key} without a value"))
                .limit("text, integer, float or boolean"));
        };
        attributes.push((key, attribute_from_proto(value)));
    }
    Ok(Message {
        topic: TopicName::new(&message.topic, limits)?,
        payload: message.payload,
        lane: lane_from_proto(message.lane).ok_or_else(|| no_such_lane(message.lane))?,
        attributes,
        key: None,
        ttl_ms: message.ttl_ms,
        deliver_at: None,
        version: None,
        audience: message.audience.into_iter().map(RoleId).collect(),
    })
}

fn refuse_reserved(message: &v1::Message) -> Result<(), Error> {
    let reserved = [
        ("key", message.key.is_some()),
        ("deliver_at_us", message.deliver_at_us.is_some()),
        ("version", message.version.is_some()),
    ];
    match reserved.into_iter().find(|(_, used)| *used) {
        Some((field, _)) => Err(Error::unimplemented(field)),
        None => Ok(()),
    }
}

/// A message to be published, as a message. Fields that the API reserves are kept.
#[must_use]
pub fn message_to_proto(message: &Message) -> v1::Message {
    let attributes = message.attributes.iter();
    v1::Message {
        topic: message.topic.as_str().to_owned(),
        payload: message.payload.clone(),
        attributes: attributes
            .map(|(key, value)| (key.clone(), attribute_to_proto(value)))
            .collect(),
        lane: lane_to_proto(message.lane).into(),
        key: message.key.clone(),
        ttl_ms: message.ttl_ms,
        deliver_at_us: message.deliver_at,
        version: message.version,
        audience: message.audience.iter().map(|role| role.0).collect(),
    }
}

/// An attribute's value as a message.
#[must_use]
pub fn attribute_to_proto(value: &AttributeValue) -> v1::Attribute {
    use v1::attribute::Value;
    v1::Attribute {
        value: Some(match value {
            AttributeValue::String(text) => Value::Text(text.clone()),
            AttributeValue::Integer(number) => Value::Integer(*number),
            AttributeValue::Float(number) => Value::Float(*number),
            AttributeValue::Bool(flag) => Value::Boolean(*flag),
        }),
    }
}

/// An attribute's value from a message.
#[must_use]
pub fn attribute_from_proto(value: v1::attribute::Value) -> AttributeValue {
    use v1::attribute::Value;
    match value {
        Value::Text(text) => AttributeValue::String(text),
        Value::Integer(number) => AttributeValue::Integer(number),
        Value::Float(number) => AttributeValue::Float(number),
        Value::Boolean(flag) => AttributeValue::Bool(flag),
    }
}

/// Encodes plain messages into as few batches as the map and the limits allow, in order of log.
/// Messages of one topic keep their order.
///
/// # Errors
/// The first message's refusal: nothing is encoded then.
pub fn messages_to_batches(
    map: &LogMap,
    messages: Vec<v1::Message>,
    time_us: i64,
    limits: &Limits,
) -> Result<Vec<Checked<Batch>>, Error> {
    let messages = messages.into_iter();
    let messages = messages.map(|message| message_from_proto(message, limits));
    batches_by_log(map, messages, time_us, limits)
}

/// Where a delivered batch stands: what a plain message needs beside its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The log.
    pub log: LogId,
    /// The log's life.
    pub incarnation: Incarnation,
    /// The epoch of the namespace's map.
    pub epoch: MapEpoch,
    /// The number of a record with index 0.
    pub base: Sequence,
    /// When the batch was appended.
    pub appended: AppendTime,
}

impl Placed {
    /// The position that goes on at `next`, and in the other lane's log at `aside`, if there is one; as text.
    #[must_use]
    pub fn position(&self, next: Sequence, aside: Option<LogPosition>) -> String {
        let mut position = position_of(self.log, self.incarnation, self.epoch, next);
        position.logs.extend(aside);
        position.logs.sort_unstable_by_key(|place| place.log);
        position.to_string()
    }
}

/// The position of a subscription to a topic of one log.
#[must_use]
pub fn position_of(
    log: LogId,
    incarnation: Incarnation,
    epoch: MapEpoch,
    next: Sequence,
) -> Position {
    Position {
        namespace: log.namespace,
        epoch,
        logs: vec![LogPosition {
            log,
            incarnation,
            next,
        }],
    }
}

/// The messages of a batch whose numbers lie in `covers`, and that `wanted` takes by their place in the batch, topic
/// and number; it names the subscriptions that each is for, or none where that is not to be told. `aside` says for a
/// topic where the other lane's log goes on, as far as it has been told.
pub fn stored_messages(
    batch: &Batch,
    placed: &Placed,
    covers: Extent,
    mut wanted: impl FnMut(usize, TopicEntry<'_>, Sequence) -> Option<Vec<u32>>,
    mut aside: impl FnMut(TopicEntry<'_>) -> Option<LogPosition>,
) -> Vec<v1::StoredMessage> {
    let mut messages = Vec::with_capacity(batch.records().into());
    for (place, record) in batch.iter().enumerate() {
        let sequence = placed.base.plus(record.index.into());
        let topic = TopicEntry {
            hash: record.topic_hash,
            name: record.topic_name,
        };
        if !covers.contains(sequence) {
            continue;
        }
        let Some(subscriptions) = wanted(place, topic, sequence) else {
            continue;
        };
        let attributes = record.attributes;
        messages.push(v1::StoredMessage {
            topic: record.topic_name.to_owned(),
            payload: batch.share(record.payload),
            attributes: attributes
                .map(|(key, value)| (key.to_owned(), attribute_to_proto(&value)))
                .collect(),
            lane: lane_to_proto(placed.log.lane).into(),
            sequence: sequence.0,
            appended_at_us: placed.appended.0,
            position: placed.position(sequence.plus(1), aside(topic)),
            expires_at_us: record.ttl_ms.map(|ttl_ms| {
                let ttl_us = i64::from(ttl_ms) * 1_000;
                placed.appended.0.saturating_add(ttl_us)
            }),
            subscriptions,
        });
    }
    messages
}

/// A lane as a message.
#[must_use]
pub fn lane_to_proto(lane: Lane) -> v1::Lane {
    match lane {
        Lane::Normal => v1::Lane::Normal,
        Lane::High => v1::Lane::High,
    }
}

/// A lane from a message; `None` for a number that is none's.
#[must_use]
pub fn lane_from_proto(lane: i32) -> Option<Lane> {
    u8::try_from(lane).ok().and_then(Lane::from_u8)
}

/// Refusal of a number that is no lane's.
#[must_use]
pub fn no_such_lane(lane: i32) -> Error {
    Error::new(ErrorCode::InvalidArgument)
        .field("lane")
        .value(lane)
        .limit("0 (normal) or 1 (high)")
}

/// A log as a message.
#[must_use]
pub fn log_to_proto(log: LogId) -> v1::Log {
    v1::Log {
        namespace_id: log.namespace.0,
        lane: lane_to_proto(log.lane).into(),
        index: log.index.0.into(),
    }
}

/// A log from a message.
///
/// # Errors
/// `INVALID_ARGUMENT` if it is absent, or has a lane or index that cannot be.
pub fn log_from_proto(log: Option<&v1::Log>) -> Result<LogId, Error> {
    let invalid = |field: &str| Error::new(ErrorCode::InvalidArgument).field(field);
    let log = log.ok_or_else(|| invalid("log"))?;
    let lane = lane_from_proto(log.lane);
    let index = u16::try_from(log.index);
    Ok(LogId {
        namespace: airmail_model::NamespaceId(log.namespace_id),
        lane: lane.ok_or_else(|| invalid("log.lane").value(log.lane))?,
        index: LogIndex(index.map_err(|_| invalid("log.index").value(log.index))?),
    })
}

#[cfg(test)]
mod tests;
