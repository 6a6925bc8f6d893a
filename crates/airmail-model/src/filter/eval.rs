//! Whether a filter holds for a record. Allocates nothing.
//!
//! What is asked first decides first: `and` stops at the first part that is false, `or` at the first that
//! is true.

use super::code::{self, Name, split, split_value};
use super::compare::compare;
use super::facts::Facts;
use crate::batch::{AttributeRef, Attributes};
use crate::bug;
use std::cmp::Ordering;

/// Where a test finds an attribute's value.
pub(super) trait Lookup {
    /// The value of a name.
    fn value(&self, name: Name<'_>) -> Option<AttributeRef<'_>>;
}

impl Lookup for Facts<'_> {
    #[inline]
    fn value(&self, name: Name<'_>) -> Option<AttributeRef<'_>> {
        Facts::value(self, name)
    }
}

/// Attributes where they lie: each name is looked for from the front, up to its place in the order.
impl Lookup for Attributes<'_> {
    fn value(&self, name: Name<'_>) -> Option<AttributeRef<'_>> {
        let mut attributes = *self;
        while let Some((other, value)) = attributes.next_ref() {
            let other = Name::of(other);
            if other == name {
                return Some(value);
            }
            if other.head > name.head {
                return None;
            }
        }
        None
    }
}

/// Whether a node of a filter's code holds.
pub(super) fn holds(node: &[u8], record: &impl Lookup) -> bool {
    match split(node) {
        Some((code::AND, parts, _)) => all(parts, |part| holds(part, record)),
        Some((code::OR, parts, _)) => !all(parts, |part| !holds(part, record)),
        Some((code::NOT, part, _)) => !holds(part, record),
        Some((kind, body, _)) => passes(kind, body, record).unwrap_or_else(|| unreadable(node)),
        None => unreadable(node),
    }
}

#[cold]
fn unreadable(node: &[u8]) -> bool {
    bug!("a node of a filter cannot be read: {node:?}");
    false
}

/// Whether all nodes are so. Each is given with those behind it.
#[inline]
fn all(mut nodes: &[u8], is: impl Fn(&[u8]) -> bool) -> bool {
    while !nodes.is_empty() {
        if !is(nodes) {
            return false;
        }
        nodes = split(nodes).map_or(&[], |(_, _, rest)| rest);
    }
    true
}

/// Whether a test holds; `None` if it cannot be read.
#[inline]
fn passes(kind: u8, body: &[u8], record: &impl Lookup) -> Option<bool> {
    let (name, values) = Name::split(body)?;
    let Some(found) = record.value(name) else {
        // Input: a record without the attribute.
        return Some(false);
    };
    if kind == code::HAS {
        return Some(true);
    }
    if kind == code::IN {
        return any_equal(found, values);
    }
    if kind == code::NOT_IN {
        let of_their_type = compare(found, split_value(values)?.0).is_some();
        return Some(of_their_type && !any_equal(found, values)?);
    }
    if let AttributeRef::Integer(found) = found
        && let Some(is) = passes_integer(kind, found, values)
    {
        return Some(is);
    }
    let (value, rest) = split_value(values)?;
    if kind == code::STARTS_WITH {
        return Some(match (found, value) {
            (AttributeRef::String(found), AttributeRef::String(start)) => found.starts_with(start),
            _ => false,
        });
    }
    let Some(order) = compare(found, value) else {
        // Input: an attribute of another type.
        return Some(false);
    };
    Some(match kind {
        code::EQUAL => order == Ordering::Equal,
        code::UNEQUAL => order != Ordering::Equal,
        code::LESS => order == Ordering::Less,
        code::LESS_OR_EQUAL => order != Ordering::Greater,
        code::GREATER => order == Ordering::Greater,
        code::GREATER_OR_EQUAL => order != Ordering::Less,
        code::BETWEEN => {
            order != Ordering::Less
                && compare(found, split_value(rest)?.0) != Some(Ordering::Greater)
        }
        _ => return None,
    })
}

/// The same of an integer that is compared with integers alone, which is the most common test; `None` if it is
/// another.
#[inline]
fn passes_integer(kind: u8, found: i64, values: &[u8]) -> Option<bool> {
    let (value, rest) = code::split_integer(values)?;
    Some(match kind {
        code::BETWEEN => {
            let (high, _) = code::split_integer(rest)?;
            value <= found && found <= high
        }
        code::EQUAL => found == value,
        code::UNEQUAL => found != value,
        code::LESS => found < value,
        code::LESS_OR_EQUAL => found <= value,
        code::GREATER => found > value,
        code::GREATER_OR_EQUAL => found >= value,
        _ => return None,
    })
}

/// Whether a value is one of a list.
fn any_equal(found: AttributeRef<'_>, mut values: &[u8]) -> Option<bool> {
    while !values.is_empty() {
        let (value, rest) = split_value(values)?;
        if compare(found, value) == Some(Ordering::Equal) {
            return Some(true);
        }
        values = rest;
    }
    Some(false)
}
