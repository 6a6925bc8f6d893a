//! A slice: some of a batch's records, for a subscriber who wants or may have only those.
//!
//! The head is written anew, with the same header fields, only the topics that are still used, and
//! each record's index and checksum as they were. The bodies are the batch's own memory: records
//! that lay side by side stay one part.

use super::Checked;
use super::layout::{
    AT_BODIES_OFFSET, AT_FLAGS, AT_HEADER_CRC, AT_LENGTH, AT_RECORDS, AT_TOPICS, AT_VERSION,
    FLAG_SLICED, Layout, RECORD_BODY_END, RECORD_BYTES, RECORD_TOPIC, TOPIC_NAME_END, u16_at,
};
use super::view::Batch;
use bytes::Bytes;

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

    /// How many records are in it, at least 1.
    #[must_use]
    pub fn records(&self) -> u16 {
        u16_at(&self.head, AT_RECORDS)
    }

    /// Head and bodies, to be written one after the other; together they are one batch.
    pub fn parts(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.head).chain(&self.bodies)
    }

    /// As one checked batch; copies the bodies once.
    #[must_use]
    pub fn to_batch(&self) -> Checked<Batch> {
        let mut bytes = Vec::with_capacity(self.len());
        for part in self.parts() {
            bytes.extend_from_slice(part);
        }
        Checked(Batch {
            bytes: bytes.into(),
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
        if kept.is_empty() {
            return None;
        }
        let layout = self.layout();
        let mut head = self.bytes()[..layout.topic_table].to_vec();
        let (renumbered, topics) = self.write_topics(&layout, kept, &mut head);
        let (bodies, bodies_bytes) = self.write_records(&layout, kept, &renumbered, &mut head);
        let bodies_offset = head.len();
        let flags = u16_at(&head, AT_FLAGS) | FLAG_SLICED;
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
        put(&mut head, AT_TOPICS, &topics.to_le_bytes());
        let crc = crc32c::crc32c(&head[AT_VERSION..]);
        put(&mut head, AT_HEADER_CRC, &crc.to_le_bytes());
        Some(Slice {
            head: head.into(),
            bodies,
        })
    }

    /// Writes the table and names of the topics still used; gives their new places and number.
    fn write_topics(&self, layout: &Layout, kept: &[u16], head: &mut Vec<u8>) -> (Vec<u16>, u16) {
        const UNUSED: u16 = u16::MAX;
        let bytes = self.bytes();
        let mut renumbered = vec![UNUSED; layout.topics];
        for &place in kept {
            let topic = u16_at(bytes, layout.record(place.into()) + RECORD_TOPIC);
            renumbered[usize::from(topic)] = 0;
        }
        let (mut topics, mut name_end) = (0, 0);
        for (n, new) in renumbered
            .iter_mut()
            .enumerate()
            .filter(|(_, new)| **new != UNUSED)
        {
            *new = topics;
            topics += 1;
            let (start, end) = layout.name(bytes, n);
            name_end += end - start;
            let entry = layout.topic(n);
            head.extend_from_slice(&bytes[entry..entry + TOPIC_NAME_END]);
            head.extend_from_slice(&narrow(name_end).to_le_bytes());
        }
        for n in (0..layout.topics).filter(|&n| renumbered[n] != UNUSED) {
            let (start, end) = layout.name(bytes, n);
            head.extend_from_slice(&bytes[layout.names + start..layout.names + end]);
        }
        (renumbered, topics)
    }

    /// Writes the record table; gives the bodies, those side by side in one part, and their size.
    fn write_records(
        &self,
        layout: &Layout,
        kept: &[u16],
        renumbered: &[u16],
        head: &mut Vec<u8>,
    ) -> (Vec<Bytes>, usize) {
        let bytes = self.bytes();
        let mut runs: Vec<(usize, usize)> = Vec::new();
        let mut body_end = 0;
        for &place in kept {
            let entry = layout.record(place.into());
            let topic = u16_at(bytes, entry + RECORD_TOPIC);
            let (start, end) = layout.body(bytes, place.into());
            body_end += end - start;
            let at = head.len();
            head.extend_from_slice(&bytes[entry..entry + RECORD_BYTES]);
            put(head, at + RECORD_BODY_END, &narrow(body_end).to_le_bytes());
            put(
                head,
                at + RECORD_TOPIC,
                &renumbered[usize::from(topic)].to_le_bytes(),
            );
            match runs.last_mut() {
                Some(run) if run.1 == start => run.1 = end,
                _ => runs.push((start, end)),
            }
        }
        let bodies = runs
            .into_iter()
            .filter(|(start, end)| start < end)
            .map(|(start, end)| bytes.slice(layout.bodies + start..layout.bodies + end))
            .collect();
        (bodies, body_end)
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
