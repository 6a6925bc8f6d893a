//! A record's body: the optional fields that the record's flags announce, then attributes, then
//! payload.
//!
//! In this order: `ttl_ms` u32, `deliver_at` i64, version u64, key (u16 length, bytes), audience
//! (u8 count, u32 ids, ascending), each only if its flag is set; then the attributes, whose length
//! the record table has; the payload is the rest.

use super::Message;
use super::attributes;
use super::layout::{
    HAS_ANY, HAS_AUDIENCE, HAS_DELIVER_AT, HAS_KEY, HAS_TTL, HAS_VERSION, array, u32_at,
};
use super::record::Audience;
use crate::error::Error;

/// A body taken apart. A field without its flag is absent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Body<'a> {
    pub(crate) ttl_ms: Option<u32>,
    pub(crate) deliver_at: Option<i64>,
    pub(crate) version: Option<u64>,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) audience: Audience<'a>,
    pub(crate) attributes: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl<'a> Body<'a> {
    /// Takes a body apart; else the name of the field that cannot be there.
    #[inline]
    pub(crate) fn read(
        mut body: &'a [u8],
        flags: u16,
        attributes_bytes: u16,
    ) -> Result<Body<'a>, &'static str> {
        let mut read = Body::default();
        if flags & HAS_ANY != 0 {
            body = read.optional(body, flags)?;
        }
        (read.attributes, read.payload) = body
            .split_at_checked(attributes_bytes.into())
            .ok_or("attributes_length")?;
        Ok(read)
    }

    /// Reads a body like [`Body::read`], but gives an empty one where it cannot be read.
    #[inline]
    pub(crate) fn read_or_empty(body: &'a [u8], flags: u16, attributes_bytes: u16) -> Body<'a> {
        if flags & HAS_ANY == 0 {
            // Nearly all; kept apart because going through a `Result` copies a body three times.
            let (attributes, payload) = body
                .split_at_checked(attributes_bytes.into())
                .unwrap_or_default();
            return Body {
                attributes,
                payload,
                ..Body::default()
            };
        }
        Body::read(body, flags, attributes_bytes).unwrap_or_default()
    }

    /// Takes off the fields that the flags announce.
    #[cold]
    fn optional(&mut self, mut body: &'a [u8], flags: u16) -> Result<&'a [u8], &'static str> {
        let mut take = |bytes: usize, field: &'static str| {
            let (taken, rest) = body.split_at_checked(bytes).ok_or(field)?;
            body = rest;
            Ok::<_, &'static str>(taken)
        };
        if flags & HAS_TTL != 0 {
            self.ttl_ms = Some(u32_at(take(4, "ttl_ms")?, 0));
        }
        if flags & HAS_DELIVER_AT != 0 {
            self.deliver_at = Some(i64::from_le_bytes(array(take(8, "deliver_at")?, 0)));
        }
        if flags & HAS_VERSION != 0 {
            self.version = Some(u64::from_le_bytes(array(take(8, "version")?, 0)));
        }
        if flags & HAS_KEY != 0 {
            let bytes = u16::from_le_bytes(array(take(2, "key")?, 0));
            self.key = Some(take(bytes.into(), "key")?);
        }
        if flags & HAS_AUDIENCE != 0 {
            let roles = usize::from(take(1, "audience")?[0]);
            self.audience = Audience(take(roles * 4, "audience")?);
            // Ascending and not empty, so that one audience has one encoding.
            if roles == 0 || !self.audience.is_sorted_by(|a, b| a < b) {
                return Err("audience");
            }
        }
        Ok(body)
    }
}

/// Refuses the parts that do not work yet.
#[inline]
pub(crate) fn reserved(flags: u16) -> Result<(), Error> {
    if flags & HAS_ANY == 0 {
        return Ok(());
    }
    refuse_reserved(flags)
}

#[cold]
fn refuse_reserved(flags: u16) -> Result<(), Error> {
    let parts = [
        (HAS_KEY, "key"),
        (HAS_DELIVER_AT, "deliver_at"),
        (HAS_VERSION, "version"),
    ];
    match parts.into_iter().find(|(flag, _)| flags & flag != 0) {
        Some((_, field)) => Err(Error::unimplemented(field)),
        None => Ok(()),
    }
}

/// Bytes that a message's body takes.
pub(crate) fn body_bytes(message: &Message) -> usize {
    let attributes: usize = message
        .attributes
        .iter()
        .map(|(name, value)| attributes::encoded_bytes(name, value))
        .sum();
    let audience = if message.audience.is_empty() {
        0
    } else {
        1 + message.audience.len() * 4
    };
    message.ttl_ms.map_or(0, |_| 4)
        + message.deliver_at.map_or(0, |_| 8)
        + message.version.map_or(0, |_| 8)
        + message.key.as_ref().map_or(0, |key| 2 + key.len())
        + audience
        + attributes
        + message.payload.len()
}

/// Writes a message's body; gives its flags and the size of its attributes.
pub(crate) fn write_body(message: &Message, out: &mut Vec<u8>) -> (u16, u16) {
    let mut flags = 0;
    if let Some(ttl_ms) = message.ttl_ms {
        flags |= HAS_TTL;
        out.extend_from_slice(&ttl_ms.to_le_bytes());
    }
    if let Some(deliver_at) = message.deliver_at {
        flags |= HAS_DELIVER_AT;
        out.extend_from_slice(&deliver_at.to_le_bytes());
    }
    if let Some(version) = message.version {
        flags |= HAS_VERSION;
        out.extend_from_slice(&version.to_le_bytes());
    }
    if let Some(key) = &message.key {
        flags |= HAS_KEY;
        out.extend_from_slice(&narrow16(key.len()).to_le_bytes());
        out.extend_from_slice(key);
    }
    if !message.audience.is_empty() {
        flags |= HAS_AUDIENCE;
        let mut roles = message.audience.clone();
        roles.sort_unstable();
        roles.dedup();
        out.push(u8::try_from(roles.len()).unwrap_or(u8::MAX));
        roles
            .iter()
            .for_each(|role| out.extend_from_slice(&role.0.to_le_bytes()));
    }
    let start = out.len();
    attributes::encode(&message.attributes, out);
    let attributes_bytes = narrow16(out.len() - start);
    out.extend_from_slice(&message.payload);
    (flags, attributes_bytes)
}

#[expect(clippy::cast_possible_truncation, reason = "checked with the message")]
fn narrow16(value: usize) -> u16 {
    value as u16
}
