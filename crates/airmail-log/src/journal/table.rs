//! Tables of batches: one for each block of a segment, by log and sequence, and by topic.
//!
//! The table of the block being written is in memory; a complete block's is in the segment's index
//! file ([`index`](super::index)) and is derived from the segment.

use super::id::{FileOffset, Slot};
use airmail_model::{AppendTime, Extent, Sequence, TopicHash};
use std::collections::BTreeMap;

/// Where one batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The first number that it owns.
    pub first: Sequence,
    /// Number of sequence numbers that it owns.
    pub numbers: u32,
    /// Where its envelope begins in the segment.
    pub offset: FileOffset,
    /// The batch's length, without envelope and padding.
    pub length: u32,
    /// When it was appended.
    pub time: AppendTime,
}

impl Location {
    /// The last number that it owns.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        self.extent().last
    }

    /// The numbers that it owns.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        Extent::starting_at(self.first, self.numbers)
    }

    /// Whether a batch can be so: a file may say anything, with a good checksum as well.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        let last = self.first.0.checked_add(self.numbers as u64);
        self.first.0 > 0 && self.numbers > 0 && last.is_some()
    }

    /// Size of the record in the segment.
    #[must_use]
    pub const fn stored_bytes(&self) -> u64 {
        super::format::padded(super::format::ENVELOPE_BYTES as u64 + self.length as u64)
    }

    /// Place behind it.
    #[must_use]
    pub fn end(&self) -> FileOffset {
        self.offset + self.stored_bytes()
    }
}

/// Fingerprint of a topic of a log in a topic table: half of the topic's hash, mixed with the log's
/// slot. Two topics may share one; a lookup checks the batch itself.
#[must_use]
pub fn fingerprint(slot: Slot, topic: TopicHash) -> u64 {
    let half = (topic.0 >> 64) as u64;
    half ^ u64::from(slot.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A topic of a batch, as a table has it. In order of fingerprint, then of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicEntry {
    /// The topic's [`fingerprint`].
    pub fingerprint: u64,
    /// The batch's place in its log's list.
    pub place: u32,
}

/// The batches of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Places of batches, by slot, then in order of number.
    pub logs: BTreeMap<Slot, Vec<Location>>,
    /// Topics in order of arrival.
    pub topics: Vec<TopicEntry>,
}

impl Table {
    /// Takes up a batch, which follows all of its log that are there.
    pub fn add(&mut self, slot: Slot, location: Location, topics: impl Iterator<Item = TopicHash>) {
        let list = self.logs.entry(slot).or_default();
        let place = u32::try_from(list.len()).unwrap_or(u32::MAX);
        list.push(location);
        self.topics.extend(topics.map(|topic| TopicEntry {
            fingerprint: fingerprint(slot, topic),
            place,
        }));
    }

    /// The batches of a log from the one that holds `number`, or the next after it, on.
    #[must_use]
    pub fn from(&self, slot: Slot, number: Sequence) -> &[Location] {
        let Some(list) = self.logs.get(&slot) else {
            // Input: a log that has nothing in the block.
            return &[];
        };
        &list[list.partition_point(|location| location.last() < number)..]
    }

    /// The places, in a log's list, of the batches that may hold a topic; in order.
    #[must_use]
    pub fn with_topic(&self, slot: Slot, topic: TopicHash) -> Vec<u32> {
        let wanted = fingerprint(slot, topic);
        let topics = self.topics.iter();
        let hits = topics.filter(|topic| topic.fingerprint == wanted);
        hits.map(|topic| topic.place).collect()
    }
}
