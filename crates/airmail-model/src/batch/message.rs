//! A message as its publisher makes it, and the bounds that it must keep.

use super::attributes::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTES_BYTES_MAX, AttributeValue, encoded_bytes,
};
use super::layout::{MESSAGE_BYTES_MAX, TOPIC_BYTES_MAX};
use crate::error::{Error, ErrorCode};
use crate::id::{Lane, RoleId};
use crate::limits::Limits;
use crate::topic::TopicName;
use bytes::Bytes;

/// A message as a user makes it. Publishers encode it into a batch; so does a node for clients
/// that send plain messages.
///
/// ```
/// use airmail_model::batch::AttributeValue;
/// use airmail_model::{Limits, Message, TopicName};
/// let topic = TopicName::new("orders", &Limits::DEFAULT)?;
/// let message = Message::new(topic, "hello").attribute("n", AttributeValue::Integer(1));
/// message.check(&Limits::DEFAULT)?;
/// # Ok::<(), airmail_model::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Where it goes.
    pub topic: TopicName,
    /// The message's content; may be empty.
    pub payload: Bytes,
    /// Its priority class, which chooses the log: no part of the encoded message.
    pub lane: Lane,
    /// Facts about it, in any order, each name once.
    pub attributes: Vec<(String, AttributeValue)>,
    /// Ordering key, at most 65,535 bytes. Reserved: refused.
    pub key: Option<Bytes>,
    /// Milliseconds after its append time when it expires, at least 1: from then on it is handed over to nobody.
    pub ttl_ms: Option<u32>,
    /// Microseconds since 1970 before which it is not delivered. Reserved: refused.
    pub deliver_at: Option<i64>,
    /// Its key's or topic's version. Reserved: refused.
    pub version: Option<u64>,
    /// The roles that may receive it, at most 255, in any order; empty means all.
    pub audience: Vec<RoleId>,
}

impl Message {
    /// A message with only a topic and a payload.
    #[must_use]
    pub fn new(topic: TopicName, payload: impl Into<Bytes>) -> Message {
        Message {
            topic,
            payload: payload.into(),
            lane: Lane::Normal,
            attributes: Vec::new(),
            key: None,
            ttl_ms: None,
            deliver_at: None,
            version: None,
            audience: Vec::new(),
        }
    }

    /// The same with one attribute more.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: AttributeValue) -> Message {
        self.attributes.push((name.into(), value));
        self
    }

    /// The same in a lane: one of lane `high` overtakes those of lane `normal` that wait.
    ///
    /// ```
    /// use airmail_model::{Lane, Limits, Message, TopicName};
    /// let topic = TopicName::new("alarms", &Limits::DEFAULT)?;
    /// let alarm = Message::new(topic, "pressure").lane(Lane::High);
    /// assert_eq!(alarm.lane, Lane::High);
    /// # Ok::<(), airmail_model::Error>(())
    /// ```
    #[must_use]
    pub fn lane(mut self, lane: Lane) -> Message {
        self.lane = lane;
        self
    }

    /// The same for who has one of these roles, and nobody else.
    #[must_use]
    pub fn for_roles(mut self, roles: impl IntoIterator<Item = RoleId>) -> Message {
        self.audience.extend(roles);
        self
    }

    /// Whether a node with these limits takes it.
    ///
    /// # Errors
    /// `MESSAGE_TOO_LARGE`, `ATTRIBUTES_INVALID`, `TOPIC_INVALID`, `INVALID_ARGUMENT` for a `ttl` of 0, or
    /// `UNIMPLEMENTED` for a field that is reserved; each with the field, the value and the limit.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        self.check_reserved()?;
        check_ttl(self.ttl_ms)?;
        self.check_size(limits)
    }

    /// Refuses every field that the format has room for and that does not work yet.
    #[inline]
    fn check_reserved(&self) -> Result<(), Error> {
        let used = [
            (self.key.is_some(), "key"),
            (self.deliver_at.is_some(), "deliver_at"),
            (self.version.is_some(), "version"),
        ];
        match used.into_iter().find(|(used, _)| *used) {
            Some((_, field)) => Err(Error::unimplemented(field)),
            None => Ok(()),
        }
    }

    /// Checks the bounds of the format and of the limits; reserved fields are allowed.
    pub(crate) fn check_size(&self, limits: &Limits) -> Result<(), Error> {
        check_topic_bytes(&self.topic, limits)?;
        let attributes_bytes = self.check_attributes(limits)?;
        let key_bytes = self.key.as_ref().map_or(0, Bytes::len);
        if key_bytes > u16::MAX.into() {
            return Err(too_large("key", key_bytes, u16::MAX.into()));
        }
        let bytes = key_bytes + attributes_bytes + self.payload.len();
        check_message_bytes(bytes, limits)?;
        if self.audience.len() > u8::MAX.into() {
            return Err(Error::new(ErrorCode::InvalidArgument)
                .field("audience")
                .value(format_args!("{} roles", self.audience.len()))
                .limit("at most 255 roles"));
        }
        Ok(())
    }

    /// The encoded bytes of the attributes, if all are good.
    fn check_attributes(&self, limits: &Limits) -> Result<usize, Error> {
        if self.attributes.is_empty() {
            return Ok(0);
        }
        let bad = |field: String, value: String, limit: String| {
            Err(Error::new(ErrorCode::AttributesInvalid)
                .field(field)
                .value(value)
                .limit(limit))
        };
        let count = self.attributes.len();
        if count > limits.attributes as usize {
            let limit = format!("at most {}", limits.attributes);
            return bad("attributes".into(), count.to_string(), limit);
        }
        let mut bytes = 0;
        for (at, (name, value)) in self.attributes.iter().enumerate() {
            if name.is_empty() || name.len() > ATTRIBUTE_NAME_BYTES_MAX {
                let (field, value) = (format!("attributes[{at}].name"), name.len());
                return bad(field, format!("{value} bytes"), "1 to 255 bytes".into());
            }
            if let AttributeValue::Float(number) = value
                && !number.is_finite()
            {
                let field = format!("attributes.{name}");
                return bad(field, number.to_string(), "a finite number".into());
            }
            // At most 64 by default: comparing each with those before costs less than a set.
            if self.attributes[..at].iter().any(|(other, _)| other == name) {
                return bad(format!("attributes.{name}"), "twice".into(), "once".into());
            }
            bytes += encoded_bytes(name, value);
        }
        if bytes > ATTRIBUTES_BYTES_MAX {
            let limit = format!("at most {ATTRIBUTES_BYTES_MAX} bytes");
            return bad("attributes".into(), format!("{bytes} bytes"), limit);
        }
        Ok(bytes)
    }
}

/// Checks the limits for a message that has a payload and nothing else.
pub(crate) fn check_bytes(topic: &TopicName, bytes: usize, limits: &Limits) -> Result<(), Error> {
    check_topic_bytes(topic, limits)?;
    check_message_bytes(bytes, limits)
}

/// A message that has always been too old is a mistake of whoever made it.
fn check_ttl(ttl_ms: Option<u32>) -> Result<(), Error> {
    match ttl_ms {
        Some(0) => Err(Error::new(ErrorCode::InvalidArgument)
            .field("ttl")
            .value("0 ms")
            .limit("at least 1 ms")),
        _ => Ok(()),
    }
}

/// A name's letters were checked when it was made, its length perhaps by other limits.
fn check_topic_bytes(topic: &TopicName, limits: &Limits) -> Result<(), Error> {
    let bytes = topic.as_str().len();
    let limit = limits.topic_bytes.min(TOPIC_BYTES_MAX);
    if bytes <= limit as usize {
        return Ok(());
    }
    Err(Error::new(ErrorCode::TopicInvalid)
        .field("topic")
        .value(format_args!("{bytes} bytes"))
        .limit(format_args!("at most {limit} bytes")))
}

fn check_message_bytes(bytes: usize, limits: &Limits) -> Result<(), Error> {
    let limit = limits.message_bytes.min(MESSAGE_BYTES_MAX) as usize;
    if bytes <= limit {
        return Ok(());
    }
    Err(too_large("message", bytes, limit))
}

fn too_large(field: &str, bytes: usize, limit: usize) -> Error {
    Error::new(ErrorCode::MessageTooLarge)
        .field(field)
        .value(format_args!("{bytes} bytes"))
        .limit(format_args!("{limit} bytes"))
}
