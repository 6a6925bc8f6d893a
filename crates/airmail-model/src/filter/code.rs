//! A filter's tree as bytes, so that a hundred thousand of them are read from memory in order.
//!
//! A node is a kind, the length of its body and the body. The body of `and`, `or` and `not` is nodes;
//! that of a test is the attribute's name and the values. A name is its first 8 bytes as a number, its
//! length, and the bytes behind the eighth: so most names are compared as one number. A value is its
//! type and its bytes. All numbers are little-endian.
//!
//! Nothing but [`encode`] makes such bytes, and they are never stored or sent: so what cannot be read in
//! them is a programmer error.

use super::expression::{Check, Comparison, Expression, Test};
use crate::batch::{AttributeRef, AttributeValue};
use crate::bug;

pub(super) const AND: u8 = 1;
pub(super) const OR: u8 = 2;
pub(super) const NOT: u8 = 3;
pub(super) const EQUAL: u8 = 4;
pub(super) const UNEQUAL: u8 = 5;
pub(super) const LESS: u8 = 6;
pub(super) const LESS_OR_EQUAL: u8 = 7;
pub(super) const GREATER: u8 = 8;
pub(super) const GREATER_OR_EQUAL: u8 = 9;
pub(super) const BETWEEN: u8 = 10;
pub(super) const IN: u8 = 11;
pub(super) const NOT_IN: u8 = 12;
pub(super) const STARTS_WITH: u8 = 13;
pub(super) const HAS: u8 = 14;

const STRING: u8 = 1;
const INTEGER: u8 = 2;
const FLOAT: u8 = 3;
const BOOL: u8 = 4;

/// Bytes of a node before its body.
const HEAD_BYTES: usize = 3;
/// Bytes of a name that are compared as one number.
const NAME_HEAD_BYTES: usize = 8;

/// A name as tests have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// The first 8 bytes, as a number in the order of the bytes; zeros behind a shorter one.
    pub(super) head: u64,
    /// The length of all of it, in bytes.
    pub(super) length: u8,
    /// The bytes behind the eighth.
    pub(super) tail: &'a [u8],
}

impl<'a> Name<'a> {
    /// A name of at most 255 bytes, as all attributes have.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "names of attributes have at most 255 bytes"
    )]
    pub(super) fn of(name: &'a str) -> Name<'a> {
        let bytes = name.as_bytes();
        let (head, tail) = match bytes.split_first_chunk::<NAME_HEAD_BYTES>() {
            Some((head, tail)) => (*head, tail),
            None => {
                let mut head = [0; NAME_HEAD_BYTES];
                head[..bytes.len()].copy_from_slice(bytes);
                (head, &[][..])
            }
        };
        Name {
            head: u64::from_be_bytes(head),
            length: bytes.len() as u8,
            tail,
        }
    }

    /// The name before a test's values, and these.
    #[inline]
    pub(super) fn split(body: &'a [u8]) -> Option<(Name<'a>, &'a [u8])> {
        let (head, rest) = body.split_first_chunk::<NAME_HEAD_BYTES>()?;
        let (length, rest) = rest.split_first()?;
        let tail_bytes = usize::from(*length).saturating_sub(NAME_HEAD_BYTES);
        let (tail, values) = rest.split_at_checked(tail_bytes)?;
        let name = Name {
            head: u64::from_le_bytes(*head),
            length: *length,
            tail,
        };
        Some((name, values))
    }

    fn text(&self) -> Option<String> {
        let head = self.head.to_be_bytes();
        let head = head.get(..usize::from(self.length).min(NAME_HEAD_BYTES))?;
        String::from_utf8([head, self.tail].concat()).ok()
    }
}

/// Takes the first node off: kind, body, and the nodes behind it.
#[inline]
pub(super) fn split(nodes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, low, high], rest) = nodes.split_first_chunk::<HEAD_BYTES>()?;
    let length = u16::from_le_bytes([low, high]);
    let (body, rest) = rest.split_at_checked(length.into())?;
    Some((kind, body, rest))
}

/// Takes the first value off.
#[inline]
pub(super) fn split_value(values: &[u8]) -> Option<(AttributeRef<'_>, &[u8])> {
    let (kind, rest) = values.split_first()?;
    match *kind {
        INTEGER => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((AttributeRef::Integer(i64::from_le_bytes(*number)), rest))
        }
        FLOAT => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((AttributeRef::Float(f64::from_le_bytes(*number)), rest))
        }
        STRING => {
            let (length, rest) = rest.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            Some((AttributeRef::String(std::str::from_utf8(text).ok()?), rest))
        }
        BOOL => {
            let (bit, rest) = rest.split_first()?;
            Some((AttributeRef::Bool(*bit != 0), rest))
        }
        _ => None,
    }
}

/// Takes the first value off if it is an integer.
#[inline]
pub(super) fn split_integer(values: &[u8]) -> Option<(i64, &[u8])> {
    let (&[kind, ref number @ ..], rest) = values.split_first_chunk::<9>()?;
    (kind == INTEGER).then_some((i64::from_le_bytes(*number), rest))
}

/// The bytes of a tree.
pub(super) fn encode(expression: &Expression) -> Box<[u8]> {
    let mut code = Vec::new();
    put(expression, &mut code);
    code.into_boxed_slice()
}

fn put(expression: &Expression, code: &mut Vec<u8>) {
    let (kind, parts) = match expression {
        Expression::And(parts) => (AND, parts.as_slice()),
        Expression::Or(parts) => (OR, parts.as_slice()),
        Expression::Not(part) => (NOT, std::slice::from_ref(&**part)),
        Expression::Test(test) => return put_test(test, code),
    };
    let at = begin(kind, code);
    for part in parts {
        put(part, code);
    }
    end(at, code);
}

fn begin(kind: u8, code: &mut Vec<u8>) -> usize {
    code.extend_from_slice(&[kind, 0, 0]);
    code.len()
}

/// Writes the length of the body that begins there.
fn end(at: usize, code: &mut [u8]) {
    let length = code.len() - at;
    // A filter's text has 4 KiB, and its tests some bytes each.
    let Ok(length) = u16::try_from(length) else {
        bug!("a filter's node has {length} bytes");
        return;
    };
    code[at - 2..at].copy_from_slice(&length.to_le_bytes());
}

fn put_test(test: &Test, code: &mut Vec<u8>) {
    let kind = match &test.check {
        Check::Compare(comparison, _) => match comparison {
            Comparison::Equal => EQUAL,
            Comparison::Unequal => UNEQUAL,
            Comparison::Less => LESS,
            Comparison::LessOrEqual => LESS_OR_EQUAL,
            Comparison::Greater => GREATER,
            Comparison::GreaterOrEqual => GREATER_OR_EQUAL,
        },
        Check::Between(..) => BETWEEN,
        Check::In(_) => IN,
        Check::NotIn(_) => NOT_IN,
        Check::StartsWith(_) => STARTS_WITH,
        Check::Has => HAS,
    };
    let at = begin(kind, code);
    let name = Name::of(&test.name);
    code.extend_from_slice(&name.head.to_le_bytes());
    code.push(name.length);
    code.extend_from_slice(name.tail);
    match &test.check {
        Check::Compare(_, value) => put_value(value, code),
        Check::Between(low, high) => {
            put_value(low, code);
            put_value(high, code);
        }
        Check::In(values) | Check::NotIn(values) => {
            values.iter().for_each(|value| put_value(value, code));
        }
        Check::StartsWith(text) => put_text(text, code),
        Check::Has => {}
    }
    end(at, code);
}

fn put_value(value: &AttributeValue, code: &mut Vec<u8>) {
    match value {
        AttributeValue::String(text) => put_text(text, code),
        AttributeValue::Integer(number) => {
            code.push(INTEGER);
            code.extend_from_slice(&number.to_le_bytes());
        }
        AttributeValue::Float(number) => {
            code.push(FLOAT);
            code.extend_from_slice(&number.to_le_bytes());
        }
        AttributeValue::Bool(bit) => code.extend_from_slice(&[BOOL, u8::from(*bit)]),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a filter's text has 4 KiB at most"
)]
fn put_text(text: &str, code: &mut Vec<u8>) {
    code.push(STRING);
    code.extend_from_slice(&(text.len() as u16).to_le_bytes());
    code.extend_from_slice(text.as_bytes());
}

/// The tree of its bytes.
pub(super) fn decode(code: &[u8]) -> Expression {
    match read(code) {
        Some((expression, [])) => expression,
        _ => {
            bug!("a filter's code cannot be read: {code:?}");
            // Matches nothing, as does code that cannot be read.
            Expression::Or(Vec::new())
        }
    }
}

fn read(nodes: &[u8]) -> Option<(Expression, &[u8])> {
    let (kind, body, rest) = split(nodes)?;
    let expression = match kind {
        AND => Expression::And(read_all(body)?),
        OR => Expression::Or(read_all(body)?),
        NOT => Expression::Not(Box::new(read(body)?.0)),
        _ => Expression::Test(read_test(kind, body)?),
    };
    Some((expression, rest))
}

fn read_all(mut nodes: &[u8]) -> Option<Vec<Expression>> {
    let mut parts = Vec::new();
    while !nodes.is_empty() {
        let (part, rest) = read(nodes)?;
        parts.push(part);
        nodes = rest;
    }
    Some(parts)
}

fn read_test(kind: u8, body: &[u8]) -> Option<Test> {
    let (name, mut rest) = Name::split(body)?;
    let mut values = Vec::new();
    while !rest.is_empty() {
        let (value, behind) = split_value(rest)?;
        values.push(AttributeValue::from(value));
        rest = behind;
    }
    let check = match kind {
        IN => Check::In(values),
        NOT_IN => Check::NotIn(values),
        HAS => Check::Has,
        BETWEEN => {
            let high = values.pop()?;
            Check::Between(values.pop()?, high)
        }
        STARTS_WITH => match values.pop()? {
            AttributeValue::String(text) => Check::StartsWith(text),
            _ => return None,
        },
        _ => Check::Compare(comparison(kind)?, values.pop()?),
    };
    let name = name.text()?;
    Some(Test { name, check })
}

fn comparison(kind: u8) -> Option<Comparison> {
    match kind {
        EQUAL => Some(Comparison::Equal),
        UNEQUAL => Some(Comparison::Unequal),
        LESS => Some(Comparison::Less),
        LESS_OR_EQUAL => Some(Comparison::LessOrEqual),
        GREATER => Some(Comparison::Greater),
        GREATER_OR_EQUAL => Some(Comparison::GreaterOrEqual),
        _ => None,
    }
}
