//! A slice: some of a batch's records, for a subscriber who wants or may have only those.
//!
//! The head is written anew, with the same header fields, only the topics that are still used, and
//! each record's index and checksum as they were. The bodies are the batch's own memory: records
//! that lay side by side stay one part. Whether some record expires or is restricted is said anew, of
//! the records that are kept.

mod headers;

use super::Checked;
use super::checksum::crc32c;
use super::layout::{
    AT_BODIES_OFFSET, AT_FLAGS, AT_HEADER_CRC, AT_LENGTH, AT_RECORDS, AT_TOPICS, AT_VERSION,
    FLAG_HEADERS, FLAG_SLICED, Layout, RECORD_BODY_END, RECORD_BYTES, RECORD_FLAGS, RECORD_TOPIC,
    TOPIC_BYTES, TOPIC_NAME_END, u16_at,
};
use super::marks::Marks;
use super::view::Batch;
use bytes::Bytes;

/// Ratio of topics in a batch to records kept from which the few used topics are sorted; below it
/// each topic is marked.
const FEW: usize = 8;

/// Some of a batch's records, as a batch: same format, tables rewritten, bodies by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    head: Bytes,
    bodies: Vec<Bytes>,
}

impl Slice {
    /// Its size as a batch, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.bodies.iter().map(Bytes::len).sum::<usize>()
    }

    /// Always false: a slice has at least one record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Number of records in it, at least 1.
    #[must_use]
    pub fn records(&self) -> u16 {
        u16_at(&self.head, AT_RECORDS)
    }

    /// Whether no record of it expires or is for some roles only.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        Marks::of_header(u16_at(&self.head, AT_FLAGS)).is_empty()
    }

    /// Head and bodies, to be written one after the other; together they are one batch.
    pub fn parts(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.head).chain(&self.bodies)
    }

    /// Makes one checked batch of it; copies the bodies once.
    #[must_use]
    pub fn to_batch(&self) -> Checked<Batch> {
        let mut bytes = Vec::with_capacity(self.len());
        for part in self.parts() {
            bytes.extend_from_slice(part);
        }
        Checked(Batch {
            bytes: bytes.into(),
            marks: Marks::of_header(u16_at(&self.head, AT_FLAGS)),
        })
    }
}

impl Batch {
    /// The records for which `keep(index, topic)` holds, where `topic` is a place in this batch's
    /// topic table; `None` if there are none. `keep` is called once for each record, in order.
    pub fn slice(&self, mut keep: impl FnMut(u16, u16) -> bool) -> Option<Slice> {
        let kept: Vec<u16> = self
            .heads()
            .zip(0_u16..)
            .filter_map(|((index, topic), place)| keep(index, topic).then_some(place))
            .collect();
        self.slice_of(&kept)
    }

    /// The records at the given places of the record table, which must ascend; `None` if there
    /// are none. This is how damaged records, which are told by place, are left out.
    ///
    /// # Panics
    /// If a place is not less than [`Batch::records`].
    #[must_use]
    pub fn slice_of(&self, kept: &[u16]) -> Option<Slice> {
        self.slice_by(kept, self.finder(kept), Content::All)
    }

    /// The way in which the topics of so many records are found soonest.
    fn finder(&self, kept: &[u16]) -> Finder {
        let few = kept.len().saturating_mul(FEW) < self.layout().topics;
        if few { Used::sorted } else { Used::marked }
    }

    fn slice_by(&self, kept: &[u16], finder: Finder, content: Content) -> Option<Slice> {
        if kept.is_empty() {
            return None;
        }
        let layout = self.layout();
        let used = finder(self, &layout, kept);
        let mut head = Vec::with_capacity(self.head_bytes(&layout, kept, &used));
        head.extend_from_slice(&self.bytes()[..layout.topic_table]);
        self.write_topics(&layout, &used, &mut head);
        let written = self.write_records(&layout, kept, &used, &mut head);
        let bodies_offset = head.len();
        let mut flags = u16_at(&head, AT_FLAGS) | FLAG_SLICED;
        let (bodies, bodies_bytes) = match content {
            Content::All => {
                let bodies = self.share_bodies(&layout, written.runs);
                (bodies, written.bodies_bytes)
            }
            Content::Headers => {
                flags |= FLAG_HEADERS;
                let table = bodies_offset - kept.len() * RECORD_BYTES;
                let left = self.write_headers(&layout, kept, &mut head[table..]);
                let bytes = left.len();
                (Vec::from_iter((bytes > 0).then_some(left)), bytes)
            }
        };
        let flags = Marks::of_records(written.flags).in_flags(flags);
        put(&mut head, AT_FLAGS, &flags.to_le_bytes());
        put(
            &mut head,
            AT_LENGTH,
            &narrow(bodies_offset + bodies_bytes).to_le_bytes(),
        );
        put(
            &mut head,
            AT_BODIES_OFFSET,
            &narrow(bodies_offset).to_le_bytes(),
        );
        put(&mut head, AT_RECORDS, &narrow16(kept.len()).to_le_bytes());
        let topics = narrow16(used.topics.len());
        put(&mut head, AT_TOPICS, &topics.to_le_bytes());
        let crc = crc32c(&head[AT_VERSION..]);
        put(&mut head, AT_HEADER_CRC, &crc.to_le_bytes());
        Some(Slice {
            head: head.into(),
            bodies,
        })
    }

    fn topic_of(&self, layout: &Layout, place: u16) -> u16 {
        u16_at(self.bytes(), layout.record(place.into()) + RECORD_TOPIC)
    }

    fn head_bytes(&self, layout: &Layout, kept: &[u16], used: &Used) -> usize {
        let name = |&topic: &u16| {
            let (start, end) = layout.name(self.bytes(), topic.into());
            end - start
        };
        let names: usize = used.topics.iter().map(name).sum();
        let tables = used.topics.len() * TOPIC_BYTES + kept.len() * RECORD_BYTES;
        layout.topic_table + tables + names
    }

    /// Writes the table and names of the topics still used.
    fn write_topics(&self, layout: &Layout, used: &Used, head: &mut Vec<u8>) {
        let bytes = self.bytes();
        let mut name_end = 0;
        for &topic in &used.topics {
            let (start, end) = layout.name(bytes, topic.into());
            name_end += end - start;
            let entry = layout.topic(topic.into());
            head.extend_from_slice(&bytes[entry..entry + TOPIC_NAME_END]);
            head.extend_from_slice(&narrow(name_end).to_le_bytes());
        }
        for &topic in &used.topics {
            let (start, end) = layout.name(bytes, topic.into());
            head.extend_from_slice(&bytes[layout.names + start..layout.names + end]);
        }
    }

    /// Writes the record table.
    fn write_records(
        &self,
        layout: &Layout,
        kept: &[u16],
        used: &Used,
        head: &mut Vec<u8>,
    ) -> Written {
        let bytes = self.bytes();
        let mut runs: Vec<(usize, usize)> = Vec::new();
        let mut body_end = 0;
        let mut all_flags = 0;
        for &place in kept {
            let entry = layout.record(place.into());
            let topic = u16_at(bytes, entry + RECORD_TOPIC);
            all_flags |= u16_at(bytes, entry + RECORD_FLAGS);
            let (start, end) = layout.body(bytes, place.into());
            body_end += end - start;
            let at = head.len();
            head.extend_from_slice(&bytes[entry..entry + RECORD_BYTES]);
            put(head, at + RECORD_BODY_END, &narrow(body_end).to_le_bytes());
            put(head, at + RECORD_TOPIC, &used.place(topic).to_le_bytes());
            match runs.last_mut() {
                Some(run) if run.1 == start => run.1 = end,
                _ => runs.push((start, end)),
            }
        }
        Written {
            runs,
            bodies_bytes: body_end,
            flags: all_flags,
        }
    }

    fn share_bodies(&self, layout: &Layout, runs: Vec<(usize, usize)>) -> Vec<Bytes> {
        let runs = runs.into_iter().filter(|(start, end)| start < end);
        runs.map(|(start, end)| self.bytes.slice(layout.bodies + start..layout.bodies + end))
            .collect()
    }
}

/// The facts about a record table that was written.
struct Written {
    /// The places of its bodies, those side by side as one.
    runs: Vec<(usize, usize)>,
    bodies_bytes: usize,
    /// The flags of all its records together.
    flags: u16,
}

/// The part of each body that a slice has.
#[derive(Clone, Copy)]
enum Content {
    All,
    /// All but the payload.
    Headers,
}

/// A way to find the topics of the records that are kept.
type Finder = fn(&Batch, &Layout, &[u16]) -> Used;

/// The topics that a slice still has.
struct Used {
    /// Used topics by their places in the batch, ascending: a topic's place here is its place in
    /// the slice.
    topics: Vec<u16>,
    /// Place in the slice of each topic of the batch; empty if places are searched for.
    places: Vec<u16>,
}

impl Used {
    /// Finds the topics of a few records among many topics: takes no time for topics that are not
    /// used.
    fn sorted(batch: &Batch, layout: &Layout, kept: &[u16]) -> Used {
        let topics = kept.iter().map(|place| batch.topic_of(layout, *place));
        let mut topics: Vec<u16> = topics.collect();
        topics.sort_unstable();
        topics.dedup();
        Used {
            topics,
            places: Vec::new(),
        }
    }

    /// Finds the topics of many records: looks once at each topic, and finds a place at once.
    fn marked(batch: &Batch, layout: &Layout, kept: &[u16]) -> Used {
        const UNUSED: u16 = u16::MAX;
        let mut places = vec![UNUSED; layout.topics];
        for place in kept {
            places[usize::from(batch.topic_of(layout, *place))] = 0;
        }
        let mut topics = Vec::new();
        for (topic, place) in (0_u16..).zip(&mut places) {
            if *place != UNUSED {
                *place = narrow16(topics.len());
                topics.push(topic);
            }
        }
        Used { topics, places }
    }

    fn place(&self, topic: u16) -> u16 {
        match self.places.get(usize::from(topic)) {
            Some(place) => *place,
            None => narrow16(self.topics.partition_point(|other| *other < topic)),
        }
    }
}

fn put(head: &mut [u8], at: usize, value: &[u8]) {
    head[at..at + value.len()].copy_from_slice(value);
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a slice is smaller than its batch"
)]
fn narrow(value: usize) -> u32 {
    value as u32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a slice has no more records than its batch"
)]
fn narrow16(value: usize) -> u16 {
    value as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchEncoder, BatchTarget};
    use crate::{Limits, LogId, MapEpoch, Message, NamespaceId, TopicName};
    use proptest::prelude::*;

    fn batch(topics: &[u16]) -> Checked<Batch> {
        let mut encoder = BatchEncoder::new(NamespaceId(7));
        for (topic, n) in topics.iter().zip(0_u8..) {
            let name = format!("topic/{topic}");
            let topic = TopicName::new(&name, &Limits::DEFAULT).unwrap();
            let message = Message::new(topic, vec![n; usize::from(n % 5)]);
            encoder.push(&message, 0, &Limits::DEFAULT).unwrap();
        }
        encoder.finish(&BatchTarget {
            log: LogId {
                namespace: NamespaceId(7),
                ..LogId::default()
            },
            epoch: MapEpoch(1),
            producer: None,
            producer_time: 0,
        })
    }

    proptest! {
        #[test]
        fn both_ways_to_find_topics_give_one_slice(
            records in prop::collection::vec((0_u16..40, any::<bool>()), 1..120),
        ) {
            let topics: Vec<u16> = records.iter().map(|(topic, _)| *topic).collect();
            let batch = batch(&topics);
            let places = (0_u16..).zip(&records).filter(|(_, (_, keep))| *keep);
            let kept: Vec<u16> = places.map(|(place, _)| place).collect();
            let sorted = batch.slice_by(&kept, Used::sorted, Content::All);
            prop_assert_eq!(&sorted, &batch.slice_by(&kept, Used::marked, Content::All));
            prop_assert_eq!(&sorted, &batch.slice_of(&kept));
            if let Some(slice) = sorted {
                let slice = slice.to_batch();
                prop_assert!(Batch::check_stored(slice.bytes().clone()).is_ok());
                for (record, place) in slice.iter().zip(kept) {
                    let name = format!("topic/{}", topics[usize::from(place)]);
                    prop_assert_eq!(record.topic_name, name);
                    prop_assert_eq!(record.index, place);
                }
            }
        }
    }
}
