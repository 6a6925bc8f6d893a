//! Attributes: small typed facts about a message, sorted by name.
//!
//! Encoded one after the other: name length u8 (1 to 255), kind u8, name, value. Kinds: 1 string
//! (u16 length, UTF-8), 2 integer (i64), 3 float (f64, finite), 4 bool (u8, 0 or 1). Sorted by the
//! names' bytes, each name once: so one set of attributes has exactly one encoding.

use super::layout::array;

const KIND_STRING: u8 = 1;
const KIND_INTEGER: u8 = 2;
const KIND_FLOAT: u8 = 3;
const KIND_BOOL: u8 = 4;

/// The longest name of an attribute, in bytes.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 255;
/// All the attributes of one message together, encoded, in bytes.
pub const ATTRIBUTES_BYTES_MAX: usize = u16::MAX as usize;

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// Text of at most 65,535 bytes.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A finite number: neither infinite nor NaN, which JSON cannot say.
    Float(f64),
    /// Yes or no.
    Bool(bool),
}

/// An attribute's value where it lies in a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeRef<'a> {
    /// Text.
    String(&'a str),
    /// A whole number.
    Integer(i64),
    /// A finite number.
    Float(f64),
    /// Yes or no.
    Bool(bool),
}

macro_rules! value_from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for AttributeValue {
            fn from(value: $type) -> AttributeValue {
                AttributeValue::$variant(value.into())
            }
        })*
    };
}

value_from!(String => String, &str => String, i64 => Integer, i32 => Integer, u32 => Integer,
    f64 => Float, bool => Bool);

impl From<AttributeRef<'_>> for AttributeValue {
    fn from(value: AttributeRef<'_>) -> AttributeValue {
        match value {
            AttributeRef::String(text) => AttributeValue::String(text.to_owned()),
            AttributeRef::Integer(number) => AttributeValue::Integer(number),
            AttributeRef::Float(number) => AttributeValue::Float(number),
            AttributeRef::Bool(bit) => AttributeValue::Bool(bit),
        }
    }
}

/// Iterates the attributes of a record, in order of name.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Iterates over encoded attributes; an unreadable one ends the iteration.
    #[inline]
    pub(crate) fn new(encoded: &'a [u8]) -> Attributes<'a> {
        Attributes(encoded)
    }

    /// Whether there are no more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes as encoded, of those not yet taken.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The next attribute, by reference: nothing is allocated.
    pub fn next_ref(&mut self) -> Option<(&'a str, AttributeRef<'a>)> {
        let (name, value, rest) = split(self.0)?;
        self.0 = rest;
        Some((name, value))
    }

    /// Counts the attributes in `encoded` if it is well formed; otherwise says what is wrong.
    #[inline]
    pub(crate) fn check(mut encoded: &[u8]) -> Result<usize, &'static str> {
        let mut count = 0;
        let mut previous = "";
        while !encoded.is_empty() {
            let (name, _, rest) = split(encoded).ok_or("cannot be read")?;
            if name.is_empty() {
                return Err("an empty name");
            }
            // The first has nothing before it: the empty name sorts below all others.
            if name <= previous {
                return Err("names not sorted, or one twice");
            }
            previous = name;
            encoded = rest;
            count += 1;
        }
        Ok(count)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, AttributeValue);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_ref().map(|(name, value)| (name, value.into()))
    }
}

/// Takes the first attribute off; `None` if there is none that can be read.
fn split(encoded: &[u8]) -> Option<(&str, AttributeRef<'_>, &[u8])> {
    let (&[name_bytes, kind], rest) = encoded.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(name_bytes.into())?;
    let name = std::str::from_utf8(name).ok()?;
    let (value, rest) = match kind {
        KIND_STRING => {
            let (length, rest) = rest.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            (AttributeRef::String(std::str::from_utf8(text).ok()?), rest)
        }
        KIND_INTEGER => {
            let (number, rest) = rest.split_at_checked(8)?;
            (
                AttributeRef::Integer(i64::from_le_bytes(array(number, 0))),
                rest,
            )
        }
        KIND_FLOAT => {
            let (number, rest) = rest.split_at_checked(8)?;
            let number = f64::from_le_bytes(array(number, 0));
            (
                number.is_finite().then_some(AttributeRef::Float(number))?,
                rest,
            )
        }
        KIND_BOOL => match rest.split_first()? {
            (0, rest) => (AttributeRef::Bool(false), rest),
            (1, rest) => (AttributeRef::Bool(true), rest),
            _ => return None,
        },
        _ => return None,
    };
    Some((name, value, rest))
}

/// Bytes that one attribute takes.
pub(crate) fn encoded_bytes(name: &str, value: &AttributeValue) -> usize {
    let value = match value {
        AttributeValue::String(text) => 2 + text.len(),
        AttributeValue::Integer(_) | AttributeValue::Float(_) => 8,
        AttributeValue::Bool(_) => 1,
    };
    2 + name.len() + value
}

/// Encodes attributes that `Message::check` has found good, sorted by name.
pub(crate) fn encode(attributes: &[(String, AttributeValue)], out: &mut Vec<u8>) {
    if attributes.is_sorted_by(|(a, _), (b, _)| a < b) {
        attributes
            .iter()
            .for_each(|(name, value)| encode_one(name, value, out));
    } else {
        let mut sorted: Vec<_> = attributes.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| name.as_str());
        sorted
            .into_iter()
            .for_each(|(name, value)| encode_one(name, value, out));
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "lengths were checked with the message"
)]
fn encode_one(name: &str, value: &AttributeValue, out: &mut Vec<u8>) {
    let kind = match value {
        AttributeValue::String(_) => KIND_STRING,
        AttributeValue::Integer(_) => KIND_INTEGER,
        AttributeValue::Float(_) => KIND_FLOAT,
        AttributeValue::Bool(_) => KIND_BOOL,
    };
    out.extend_from_slice(&[name.len() as u8, kind]);
    out.extend_from_slice(name.as_bytes());
    match value {
        AttributeValue::String(text) => {
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        AttributeValue::Integer(number) => out.extend_from_slice(&number.to_le_bytes()),
        AttributeValue::Float(number) => out.extend_from_slice(&number.to_le_bytes()),
        AttributeValue::Bool(bit) => out.push(u8::from(*bit)),
    }
}
