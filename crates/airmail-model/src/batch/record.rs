//! One record of a batch, by reference.

use super::attributes::Attributes;
use crate::id::{RoleId, TopicHash};
use crate::topic::TopicName;

/// One record of a batch, by reference: looking at it costs no count of references.
/// [`super::Batch::share`] gives a payload that outlives the look.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Its index in the original batch: sequence = extent.first + index, in slices too.
    pub index: u16,
    /// Its topic's place in this batch's topic table.
    pub topic: u16,
    /// Its topic's name.
    pub topic_name: &'a str,
    /// Its topic's hash.
    pub topic_hash: TopicHash,
    /// When its producer made it, by the producer's clock: microseconds since 1970.
    pub time: i64,
    /// Its attributes, in order of name.
    pub attributes: Attributes<'a>,
    /// Its ordering key.
    pub key: Option<&'a [u8]>,
    /// Milliseconds after its append time when it expires.
    pub ttl_ms: Option<u32>,
    /// Microseconds since 1970 before which it is not delivered.
    pub deliver_at: Option<i64>,
    /// Its version.
    pub version: Option<u64>,
    /// The roles that may receive it; empty means all.
    pub audience: Audience<'a>,
    /// The record's content.
    pub payload: &'a [u8],
}

impl Record<'_> {
    /// Its topic's name, for longer than the look at it. It was checked with its batch.
    #[must_use]
    pub fn name(&self) -> TopicName {
        TopicName::of_checked(self.topic_name)
    }
}

/// Iterates the roles that may receive a record, ascending. Without any, everybody may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audience<'a>(pub(super) &'a [u8]);

impl Audience<'_> {
    /// Whether there are no more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Iterator for Audience<'_> {
    type Item = RoleId;

    fn next(&mut self) -> Option<RoleId> {
        let (role, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(RoleId(u32::from_le_bytes(*role)))
    }
}
