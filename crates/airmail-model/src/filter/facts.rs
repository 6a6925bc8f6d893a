//! A record's attributes, decoded once for many filters.

use super::code::Name;
use crate::batch::{AttributeRef, Attributes};
use smallvec::SmallVec;

/// Attributes that are held without allocating.
const INLINE: usize = 16;

/// A record's attributes, decoded once, so that many filters can be asked about it. Borrows from the record;
/// allocates if there are more than 16.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a>(SmallVec<[Fact<'a>; INLINE]>);

#[derive(Clone, Copy, Debug)]
struct Fact<'a> {
    name: &'a str,
    key: Name<'a>,
    value: AttributeRef<'a>,
}

impl<'a> Facts<'a> {
    /// The attributes of a record.
    #[must_use]
    pub fn read(mut attributes: Attributes<'a>) -> Facts<'a> {
        let mut facts = SmallVec::new();
        while let Some((name, value)) = attributes.next_ref() {
            let key = Name::of(name);
            facts.push(Fact { name, key, value });
        }
        Facts(facts)
    }

    /// Names and values, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, AttributeRef<'a>)> {
        self.0.iter().map(|fact| (fact.name, fact.value))
    }

    #[inline]
    pub(super) fn value(&self, name: Name<'_>) -> Option<AttributeRef<'a>> {
        // In this order: the numbers tell nearly all names apart.
        let is = |fact: &&Fact<'_>| {
            fact.key.head == name.head
                && fact.key.length == name.length
                && fact.key.tail == name.tail
        };
        self.0.iter().find(is).map(|fact| fact.value)
    }
}
