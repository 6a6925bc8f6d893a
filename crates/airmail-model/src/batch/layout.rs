//! The batch's layout: where each field lies and what each flag means, as one list of constants.
//!
//! Everything is little endian. The header has fixed offsets; the tables' places follow from four
//! of its fields, so that every accessor finds its field without walking over the rest.
//! `docs/batch-format.md` is the same in prose, for implementers in other languages.

/// The first four bytes of every batch: `AMBT`.
pub(crate) const MAGIC: [u8; 4] = *b"AMBT";
/// The one version that there is.
pub(crate) const VERSION: u8 = 1;

/// Offset of the magic.
pub(crate) const AT_MAGIC: usize = 0;
/// Offset of the CRC-32C of bytes 8 to `bodies_offset`.
pub(crate) const AT_HEADER_CRC: usize = 4;
/// Offset of the version; the header's checksum begins here.
pub(crate) const AT_VERSION: usize = 8;
/// Offset of the codec of the bodies.
pub(crate) const AT_CODEC: usize = 9;
/// Offset of the batch's flags.
pub(crate) const AT_FLAGS: usize = 10;
/// Offset of the length of the whole batch.
pub(crate) const AT_LENGTH: usize = 12;
/// Offset of the place where bodies begin.
pub(crate) const AT_BODIES_OFFSET: usize = 16;
/// Offset of the number of records.
pub(crate) const AT_RECORDS: usize = 20;
/// Offset of the number of distinct topics.
pub(crate) const AT_TOPICS: usize = 22;
/// Offset of the log's index.
pub(crate) const AT_LOG: usize = 24;
/// Offset of the lane.
pub(crate) const AT_LANE: usize = 26;
/// Offset of a byte that is 0.
pub(crate) const AT_RESERVED: usize = 27;
/// Offset of the map epoch.
pub(crate) const AT_MAP_EPOCH: usize = 28;
/// Offset of the namespace's id.
pub(crate) const AT_NAMESPACE: usize = 32;
/// Offset of the producer's epoch.
pub(crate) const AT_PRODUCER_EPOCH: usize = 36;
/// Offset of the producer's id.
pub(crate) const AT_PRODUCER_ID: usize = 40;
/// Offset of the producer's sequence of index 0.
pub(crate) const AT_PRODUCER_SEQUENCE: usize = 48;
/// Offset of the producer's time, in microseconds since 1970.
pub(crate) const AT_PRODUCER_TIME: usize = 56;
/// Offset of the length of the extensions.
pub(crate) const AT_EXTENSIONS: usize = 64;
/// Bytes before the extensions' own: no batch has fewer.
pub(crate) const HEADER_BYTES: usize = 66;

/// Bytes of one entry of the topic table.
pub(crate) const TOPIC_BYTES: usize = 20;
/// Offset of an entry's end of name, after its hash.
pub(crate) const TOPIC_NAME_END: usize = 16;

/// Bytes of one entry of the record table.
pub(crate) const RECORD_BYTES: usize = 20;
/// Offset of the end of the record's body, from `bodies_offset`.
pub(crate) const RECORD_BODY_END: usize = 0;
/// Offset of the CRC-32C of the record's body.
pub(crate) const RECORD_BODY_CRC: usize = 4;
/// Offset of the microseconds after the producer's time.
pub(crate) const RECORD_TIME_DELTA: usize = 8;
/// Offset of the record's place in the topic table.
pub(crate) const RECORD_TOPIC: usize = 12;
/// Offset of the record's index.
pub(crate) const RECORD_INDEX: usize = 14;
/// Offset of the record's flags.
pub(crate) const RECORD_FLAGS: usize = 16;
/// Offset of the length of the record's attributes.
pub(crate) const RECORD_ATTRIBUTES: usize = 18;

/// Batch flag: made by the system, not by a publisher.
pub(crate) const FLAG_CONTROL: u16 = 1;
/// Batch flag: some of the original's records are not here.
pub(crate) const FLAG_SLICED: u16 = 2;
/// Batch flag: the payloads are not here.
pub(crate) const FLAG_HEADERS: u16 = 4;
/// Batch flag: some record has a `ttl_ms`.
pub(crate) const FLAG_EXPIRING: u16 = 1 << 8;
/// Batch flag: some record has an audience.
pub(crate) const FLAG_RESTRICTED: u16 = 1 << 9;
/// The batch flags that a reader must know; the high byte may be ignored.
pub(crate) const FLAGS_MUST_KNOW: u16 = 0x00ff;

/// Record flag: the body has a `ttl_ms`.
pub(crate) const HAS_TTL: u16 = 1;
/// Record flag: the body has a `deliver_at`.
pub(crate) const HAS_DELIVER_AT: u16 = 2;
/// Record flag: the body has a version.
pub(crate) const HAS_VERSION: u16 = 4;
/// Record flag: the body has a key.
pub(crate) const HAS_KEY: u16 = 8;
/// Record flag: the body has an audience.
pub(crate) const HAS_AUDIENCE: u16 = 16;
/// Every record flag that there is.
pub(crate) const HAS_ANY: u16 = 31;

/// Records in a batch, at most: an index must fit the twelve bits that Kafka's offsets leave.
pub const RECORDS_MAX: u16 = 4096;
/// The largest message that the encoder takes, whatever the limits: lengths and ends are u32.
pub const MESSAGE_BYTES_MAX: u32 = 1 << 30;
/// The largest batch of several messages that the encoder makes, whatever the limits.
pub(crate) const BATCH_BYTES_MAX: u32 = 1 << 31;
/// The longest topic that the encoder takes, whatever the limits.
pub(crate) const TOPIC_BYTES_MAX: u32 = 1 << 16;
/// Extension type of a W3C trace context, as its `traceparent` text.
pub const EXTENSION_TRACE_CONTEXT: u8 = 1;

/// The `N` bytes from `at` on. The caller has checked that they are there.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// The u16 at `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

/// The u32 at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// The u64 at `at`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// The i64 at `at`.
#[inline]
pub(crate) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(array(bytes, at))
}

/// The u128 at `at`.
#[inline]
pub(crate) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(array(bytes, at))
}

/// Where each part of one batch begins, computed from its header.
///
/// Only meaningful when `check` has found the parts to lie inside the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Number of records.
    pub(crate) records: usize,
    /// Number of topics.
    pub(crate) topics: usize,
    /// Where the topic table begins: the end of the extensions.
    pub(crate) topic_table: usize,
    /// Where the names begin.
    pub(crate) names: usize,
    /// Where the record table begins.
    pub(crate) record_table: usize,
    /// Where the bodies begin.
    pub(crate) bodies: usize,
}

impl Layout {
    /// Reads the four fields that say where everything is. `None` if the parts overlap.
    /// `head` must have at least [`HEADER_BYTES`].
    pub(crate) fn read(head: &[u8]) -> Option<Layout> {
        let records = usize::from(u16_at(head, AT_RECORDS));
        let topics = usize::from(u16_at(head, AT_TOPICS));
        let topic_table = HEADER_BYTES + usize::from(u16_at(head, AT_EXTENSIONS));
        let names = topic_table + topics * TOPIC_BYTES;
        let bodies = u32_at(head, AT_BODIES_OFFSET) as usize;
        let record_table = bodies.checked_sub(records * RECORD_BYTES)?;
        (names <= record_table).then_some(Layout {
            records,
            topics,
            topic_table,
            names,
            record_table,
            bodies,
        })
    }

    /// Where a topic's entry begins.
    #[inline]
    pub(crate) fn topic(&self, n: usize) -> usize {
        self.topic_table + n * TOPIC_BYTES
    }

    /// Where a record's entry begins.
    #[inline]
    pub(crate) fn record(&self, n: usize) -> usize {
        self.record_table + n * RECORD_BYTES
    }

    /// Where a topic's name begins and ends, from `names`.
    #[inline]
    pub(crate) fn name(&self, head: &[u8], n: usize) -> (usize, usize) {
        let end_of = |n: usize| u32_at(head, self.topic(n) + TOPIC_NAME_END) as usize;
        (if n == 0 { 0 } else { end_of(n - 1) }, end_of(n))
    }

    /// Where a record's body begins and ends, from `bodies`.
    #[inline]
    pub(crate) fn body(&self, head: &[u8], n: usize) -> (usize, usize) {
        let start = if n == 0 {
            0
        } else {
            self.body_end(head, n - 1)
        };
        (start, self.body_end(head, n))
    }

    /// Where a record's body ends, from `bodies`.
    #[inline]
    pub(crate) fn body_end(&self, head: &[u8], n: usize) -> usize {
        u32_at(head, self.record(n) + RECORD_BODY_END) as usize
    }
}
