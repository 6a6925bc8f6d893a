//! The encoded batch as a view over its bytes.
//!
//! Nothing is unpacked: every accessor reads at a place that follows from the header, so a batch is
//! as cheap to clone, keep and hand on as its `Bytes`. Only a checked batch has accessors that can
//! be called from outside this crate, which is why none of them can fail.

use super::attributes::Attributes;
use super::body::Body;
use super::layout::{
    AT_EXTENSIONS, AT_FLAGS, AT_LANE, AT_LOG, AT_MAP_EPOCH, AT_NAMESPACE, AT_PRODUCER_EPOCH,
    AT_PRODUCER_ID, AT_PRODUCER_SEQUENCE, AT_PRODUCER_TIME, AT_RECORDS, AT_TOPICS, FLAG_CONTROL,
    FLAG_HEADERS, FLAG_SLICED, HEADER_BYTES, Layout, RECORD_ATTRIBUTES, RECORD_FLAGS, RECORD_INDEX,
    RECORD_TIME_DELTA, RECORD_TOPIC, i64_at, u16_at, u32_at, u64_at, u128_at,
};
use super::marks::Marks;
use super::record::Record;
use super::records::Records;
use crate::id::{
    Lane, LogId, LogIndex, MapEpoch, NamespaceId, ProducerEpoch, ProducerId, ProducerSequence,
    TopicHash,
};
use bytes::Bytes;

/// The producer that published a batch, and the batch's place in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStamp {
    /// The producer's id; never 0.
    pub id: ProducerId,
    /// The producer's epoch.
    pub epoch: ProducerEpoch,
    /// Their count, in this log, of the record with index 0.
    pub sequence: ProducerSequence,
}

/// One distinct topic of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicEntry<'a> {
    /// Its hash, found to be that of the name.
    pub hash: TopicHash,
    /// Its name.
    pub name: &'a str,
}

/// An encoded batch, 1 to 4,096 records: a view over its bytes. Only exists as `Checked<Batch>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub(super) bytes: Bytes,
    pub(super) marks: Marks,
}

impl Batch {
    /// The batch as it is stored and sent.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Number of records in it: 1 to 4,096.
    #[must_use]
    pub fn records(&self) -> u16 {
        u16_at(&self.bytes, AT_RECORDS)
    }

    /// The last index and one: for a whole batch, how many sequence numbers it owns. A sliced
    /// batch does not know its original's end, which is why extents are carried beside it.
    #[must_use]
    pub fn numbers(&self) -> u32 {
        let layout = self.layout();
        u32::from(u16_at(
            &self.bytes,
            layout.record(layout.records - 1) + RECORD_INDEX,
        )) + 1
    }

    /// Its distinct topics. Each is used by at least one record.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = TopicEntry<'_>> {
        let layout = self.layout();
        (0..u16_at(&self.bytes, AT_TOPICS)).map(move |n| self.topic_at(&layout, n.into()))
    }

    /// The hashes of its distinct topics, in the same order: for who finds topics by hash, because
    /// reading a name costs a check of its letters.
    pub fn topic_hashes(&self) -> impl ExactSizeIterator<Item = TopicHash> {
        let layout = self.layout();
        (0..u16_at(&self.bytes, AT_TOPICS)).map(move |n| self.topic_hash_at(&layout, n.into()))
    }

    /// The topic at place `n` of the topic table, as `Record::topic` and `heads` give it.
    ///
    /// # Panics
    /// If `n` is not less than the number of topics.
    #[must_use]
    pub fn topic(&self, n: u16) -> TopicEntry<'_> {
        let layout = self.layout();
        assert!(
            usize::from(n) < layout.topics,
            "topic {n} of {}",
            layout.topics
        );
        self.topic_at(&layout, n.into())
    }

    /// Its records, in order.
    #[must_use]
    pub fn iter(&self) -> Records<'_> {
        Records::new(self, 0)
    }

    /// Its records from place `n` of the record table on, in order.
    #[must_use]
    pub fn iter_from(&self, n: u16) -> Records<'_> {
        Records::new(self, n)
    }

    /// A part of the batch, such as a record's payload, for longer than the look at it: it shares
    /// the batch's memory.
    ///
    /// # Panics
    /// If it is not a part of this batch's bytes.
    #[must_use]
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.bytes.slice_ref(part)
    }

    /// The record at place `n` of the record table; in a sliced batch that is not its index.
    ///
    /// # Panics
    /// If `n` is not less than [`Batch::records`].
    #[must_use]
    pub fn record(&self, n: u16) -> Record<'_> {
        let layout = self.layout();
        assert!(
            usize::from(n) < layout.records,
            "record {n} of {}",
            layout.records
        );
        self.record_at(&layout, n.into())
    }

    /// Index and topic of each record, in order, without touching the bodies.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = (u16, u16)> {
        let layout = self.layout();
        (0..self.records()).map(move |n| {
            let at = layout.record(n.into());
            (
                u16_at(&self.bytes, at + RECORD_INDEX),
                u16_at(&self.bytes, at + RECORD_TOPIC),
            )
        })
    }

    /// Index and topic of the record at place `n` of the record table.
    ///
    /// # Panics
    /// If `n` is not less than [`Batch::records`].
    #[must_use]
    pub fn head(&self, n: u16) -> (u16, u16) {
        let layout = self.layout();
        assert!(
            usize::from(n) < layout.records,
            "record {n} of {}",
            layout.records
        );
        let at = layout.record(n.into());
        (
            u16_at(&self.bytes, at + RECORD_INDEX),
            u16_at(&self.bytes, at + RECORD_TOPIC),
        )
    }

    /// The namespace of its topics.
    #[must_use]
    pub fn namespace(&self) -> NamespaceId {
        NamespaceId(u32_at(&self.bytes, AT_NAMESPACE))
    }

    /// The log it was made for.
    #[must_use]
    pub fn log(&self) -> LogId {
        LogId {
            namespace: self.namespace(),
            lane: Lane::from_u8(self.bytes[AT_LANE]).unwrap_or_default(),
            index: LogIndex(u16_at(&self.bytes, AT_LOG)),
        }
    }

    /// The map by which its log was chosen.
    #[must_use]
    pub fn map_epoch(&self) -> MapEpoch {
        MapEpoch(u32_at(&self.bytes, AT_MAP_EPOCH))
    }

    /// Stamp of its producer; `None` if it does not ask for de-duplication.
    #[must_use]
    pub fn producer(&self) -> Option<ProducerStamp> {
        let id = u64_at(&self.bytes, AT_PRODUCER_ID);
        (id != 0).then(|| ProducerStamp {
            id: ProducerId(id),
            epoch: ProducerEpoch(u32_at(&self.bytes, AT_PRODUCER_EPOCH)),
            sequence: ProducerSequence(u64_at(&self.bytes, AT_PRODUCER_SEQUENCE)),
        })
    }

    /// When its producer made the earliest of its records, by the producer's clock: microseconds
    /// since 1970.
    #[must_use]
    pub fn producer_time(&self) -> i64 {
        i64_at(&self.bytes, AT_PRODUCER_TIME)
    }

    /// Whether the system made it, rather than a publisher.
    #[must_use]
    pub fn is_control(&self) -> bool {
        u16_at(&self.bytes, AT_FLAGS) & FLAG_CONTROL != 0
    }

    /// Whether records of the original may be missing from it.
    #[must_use]
    pub fn is_sliced(&self) -> bool {
        u16_at(&self.bytes, AT_FLAGS) & FLAG_SLICED != 0
    }

    /// Whether its records' payloads were left out: each is empty, whatever was published.
    #[must_use]
    pub fn is_headers(&self) -> bool {
        u16_at(&self.bytes, AT_FLAGS) & FLAG_HEADERS != 0
    }

    /// Whether everybody may have all of it at any time: no record expires, and none is for some
    /// roles only.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether some record of it expires. The records say so, whatever its header does.
    #[inline]
    #[must_use]
    pub fn is_expiring(&self) -> bool {
        self.marks.is_expiring()
    }

    /// Whether some record of it is for some roles only. The records say so, whatever its header does.
    #[inline]
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.marks.is_restricted()
    }

    /// Its extensions, as (type, bytes), those of unknown type too.
    pub fn extensions(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let bytes = usize::from(u16_at(&self.bytes, AT_EXTENSIONS));
        let mut rest = &self.bytes[HEADER_BYTES..HEADER_BYTES + bytes];
        std::iter::from_fn(move || {
            let (&[kind, length], after) = rest.split_first_chunk()?;
            let (value, after) = after.split_at_checked(length.into())?;
            rest = after;
            Some((kind, value))
        })
    }

    /// Where its parts are. The check has made sure that there is an answer.
    pub(super) fn layout(&self) -> Layout {
        Layout::read(&self.bytes).unwrap_or_else(|| unreachable!("a batch exists only checked"))
    }

    pub(super) fn topic_at(&self, layout: &Layout, n: usize) -> TopicEntry<'_> {
        let (start, end) = layout.name(&self.bytes, n);
        let name = &self.bytes[layout.names + start..layout.names + end];
        TopicEntry {
            hash: self.topic_hash_at(layout, n),
            // Found to be UTF-8 by the check.
            name: std::str::from_utf8(name).unwrap_or_default(),
        }
    }

    fn topic_hash_at(&self, layout: &Layout, n: usize) -> TopicHash {
        TopicHash(u128_at(&self.bytes, layout.topic(n)))
    }

    fn record_at(&self, layout: &Layout, n: usize) -> Record<'_> {
        let at = layout.record(n);
        let topic = u16_at(&self.bytes, at + RECORD_TOPIC);
        let entry = self.topic_at(layout, topic.into());
        let body = layout.body(&self.bytes, n);
        self.record_of(layout, at, body, self.producer_time(), topic, entry)
    }

    /// The record whose entry is at `at`, where all else that it takes is known.
    #[inline]
    pub(super) fn record_of<'a>(
        &'a self,
        layout: &Layout,
        at: usize,
        (start, end): (usize, usize),
        producer_time: i64,
        topic: u16,
        TopicEntry { hash, name }: TopicEntry<'a>,
    ) -> Record<'a> {
        let body = &self.bytes[layout.bodies + start..layout.bodies + end];
        let flags = u16_at(&self.bytes, at + RECORD_FLAGS);
        let attributes_bytes = u16_at(&self.bytes, at + RECORD_ATTRIBUTES);
        // Only a damaged body cannot be read; `check_stored` has told which those are.
        let body = Body::read_or_empty(body, flags, attributes_bytes);
        Record {
            index: u16_at(&self.bytes, at + RECORD_INDEX),
            topic,
            topic_name: name,
            topic_hash: hash,
            time: producer_time.saturating_add(u32_at(&self.bytes, at + RECORD_TIME_DELTA).into()),
            attributes: Attributes::new(body.attributes),
            key: body.key,
            ttl_ms: body.ttl_ms,
            deliver_at: body.deliver_at,
            version: body.version,
            audience: body.audience,
            payload: body.payload,
        }
    }
}
