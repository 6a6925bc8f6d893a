//! Format of a segment file: its header, and the envelope before each batch or command.
//!
//! Little endian. Records begin at multiples of 8 and do not cross segments. The envelope's
//! checksum covers the envelope alone: the body has checksums of its own, so that damage is located
//! as narrowly as it is. The salt is the segment file's: data of a recycled file's earlier life can
//! not be taken for data of this one.
//!
//! ```text
//! header:   magic u32 | crc u32 of 8..64 | version u16 | class u16 | incompatible u32
//!           compatible u32 | shard u32 | cluster u64 | node u64 | segment u64 | salt u32 | 0 x 12
//! envelope: magic u32 | crc u32 of 8..40 | length u32 | salt u32 | first u64 | numbers u32
//!           slot u32 | append_time i64
//! ```
//!
//! In the envelope of a command, `first` is its count, and `numbers` and `slot` are its place in its write.

use super::id::{ClassId, FileOffset, SegmentId, Slot};
use airmail_model::{AppendTime, NodeId, Sequence};
use bytes::Bytes;

/// Bytes of a segment's header.
pub const HEADER_BYTES: usize = 64;
/// Where a segment's records begin.
pub const DATA_START: FileOffset = FileOffset(HEADER_BYTES as u64);
/// Bytes of an envelope.
pub const ENVELOPE_BYTES: usize = 40;
/// The version of everything that the journal writes.
pub const VERSION: u16 = 1;
/// Feature of segments of commands, as a bit of `incompatible`: commands have places in log 0 (from kind 9
/// on), and so have checkpoints (version 3). A program that knows neither would take them for damage.
pub const PLACES: u32 = 1;
/// Features that this program knows, of those that a reader must know.
const FEATURES: u32 = PLACES;
/// The class of segments that hold the journal's own commands.
pub const META_CLASS: ClassId = ClassId(u16::MAX);
/// The class of log 0's segments.
pub const SYSTEM_CLASS: ClassId = ClassId(META_CLASS.0 - 1);
/// No record is longer, so a length beyond it is damage.
pub const RECORD_BYTES_MAX: u32 = 64 << 20;

const HEADER_MAGIC: u32 = u32::from_le_bytes(*b"AmSg");
const BATCH_MAGIC: u32 = u32::from_le_bytes(*b"AmBt");
const META_MAGIC: u32 = u32::from_le_bytes(*b"AmMt");

/// Kinds of record that an envelope announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A batch.
    Batch,
    /// A command of the journal.
    Meta,
}

/// Header of each batch and each command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Kind of the body.
    pub kind: Kind,
    /// Length of the body, in bytes.
    pub length: u32,
    /// The segment's salt.
    pub salt: u32,
    /// The first number that the batch owns; of a command, its own count.
    pub first: u64,
    /// Number of sequence numbers that the batch owns; of a command, the number of commands before
    /// it in its write.
    pub numbers: u32,
    /// The log, by its slot; of a command, the bytes of its write before it.
    pub slot: Slot,
    /// When it was appended.
    pub append_time: AppendTime,
}

/// Place of a command in the write that it came with. Where versions before this place was kept have
/// written a command, it seems to be the first of its write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InWrite {
    /// Number of other commands before it.
    pub(super) commands: u32,
    /// Size of all records before it, in bytes.
    pub(super) bytes: u32,
}

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Retention class, or [`META_CLASS`].
    pub class: ClassId,
    /// Features that a reader must know.
    pub incompatible: u32,
    /// Features that a reader may ignore.
    pub compatible: u32,
    /// The shard that it belongs to.
    pub shard: u32,
    /// The cluster that it belongs to.
    pub cluster: u64,
    /// The node that it belongs to.
    pub node: NodeId,
    /// The segment, by its number.
    pub segment: SegmentId,
    /// The salt in each envelope of this segment.
    pub salt: u32,
}

/// The reason why this program cannot take a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Too short, no magic, or a checksum that does not hold.
    Damaged,
    /// Written by a later version, or with features that this one does not know.
    Newer,
}

/// Reads a little-endian number at a fixed place; zero beyond the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// Reads a number as [`u32_at`] does.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

/// Reads a number as [`u32_at`] does.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The next multiple of 8.
pub(super) const fn padded(length: u64) -> u64 {
    length.next_multiple_of(8)
}

impl Envelope {
    /// The envelope of a batch of `length` bytes, but for the salt: that is of the segment it goes to.
    pub(super) fn of_batch(
        slot: Slot,
        first: Sequence,
        numbers: u32,
        append_time: AppendTime,
        length: u32,
    ) -> Envelope {
        Envelope {
            kind: Kind::Batch,
            length,
            salt: 0,
            first: first.0,
            numbers,
            slot,
            append_time,
        }
    }

    /// The same of a command of `length` bytes.
    pub(super) fn of_command(count: u64, append_time: AppendTime, length: u32) -> Envelope {
        Envelope {
            kind: Kind::Meta,
            length,
            salt: 0,
            first: count,
            numbers: 0,
            slot: Slot(0),
            append_time,
        }
    }

    /// The same command at a place of its write.
    pub(super) fn at(self, place: InWrite) -> Envelope {
        Envelope {
            numbers: place.commands,
            slot: Slot(place.bytes),
            ..self
        }
    }

    /// The place of a command in its write.
    pub(super) fn in_write(&self) -> InWrite {
        InWrite {
            commands: self.numbers,
            bytes: self.slot.0,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; ENVELOPE_BYTES] {
        let magic = match self.kind {
            Kind::Batch => BATCH_MAGIC,
            Kind::Meta => META_MAGIC,
        };
        let mut out = [0; ENVELOPE_BYTES];
        out[0..4].copy_from_slice(&magic.to_le_bytes());
        out[8..12].copy_from_slice(&self.length.to_le_bytes());
        out[12..16].copy_from_slice(&self.salt.to_le_bytes());
        out[16..24].copy_from_slice(&self.first.to_le_bytes());
        out[24..28].copy_from_slice(&self.numbers.to_le_bytes());
        out[28..32].copy_from_slice(&self.slot.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.append_time.0.to_le_bytes());
        let crc = crc32c::crc32c(&out[8..]);
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The envelope at the beginning of `bytes`; `None` if that is not a whole and sound one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Envelope> {
        let bytes = bytes.get(..ENVELOPE_BYTES)?;
        let kind = match u32_at(bytes, 0) {
            BATCH_MAGIC => Kind::Batch,
            META_MAGIC => Kind::Meta,
            _ => return None,
        };
        if u32_at(bytes, 4) != crc32c::crc32c(&bytes[8..]) {
            return None;
        }
        let envelope = Envelope {
            kind,
            length: u32_at(bytes, 8),
            salt: u32_at(bytes, 12),
            first: u64_at(bytes, 16),
            numbers: u32_at(bytes, 24),
            slot: Slot(u32_at(bytes, 28)),
            append_time: AppendTime(u64_at(bytes, 32).cast_signed()),
        };
        let last = envelope.first.checked_add(u64::from(envelope.numbers));
        (envelope.length <= RECORD_BYTES_MAX && last.is_some()).then_some(envelope)
    }

    /// The first number that the batch owns.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        Sequence(self.first)
    }

    /// The number after the batch's last.
    #[must_use]
    pub const fn next(&self) -> Sequence {
        self.sequence().plus(self.numbers as u64)
    }

    /// Size of the record in the file: envelope, body and padding.
    #[must_use]
    pub const fn stored_bytes(&self) -> u64 {
        padded(ENVELOPE_BYTES as u64 + self.length as u64)
    }
}

impl SegmentHeader {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0..4].copy_from_slice(&HEADER_MAGIC.to_le_bytes());
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[10..12].copy_from_slice(&self.class.0.to_le_bytes());
        out[12..16].copy_from_slice(&self.incompatible.to_le_bytes());
        out[16..20].copy_from_slice(&self.compatible.to_le_bytes());
        out[20..24].copy_from_slice(&self.shard.to_le_bytes());
        out[24..32].copy_from_slice(&self.cluster.to_le_bytes());
        out[32..40].copy_from_slice(&self.node.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.segment.0.to_le_bytes());
        out[48..52].copy_from_slice(&self.salt.to_le_bytes());
        let crc = crc32c::crc32c(&out[8..]);
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header at the beginning of `bytes`.
    ///
    /// # Errors
    /// Whether it is damaged, or too new.
    pub fn decode(bytes: &[u8]) -> Result<SegmentHeader, HeaderError> {
        let bytes = bytes.get(..HEADER_BYTES).ok_or(HeaderError::Damaged)?;
        let sound =
            u32_at(bytes, 0) == HEADER_MAGIC && u32_at(bytes, 4) == crc32c::crc32c(&bytes[8..]);
        if !sound {
            return Err(HeaderError::Damaged);
        }
        if u16_at(bytes, 8) != VERSION || u32_at(bytes, 12) & !FEATURES != 0 {
            return Err(HeaderError::Newer);
        }
        Ok(SegmentHeader {
            class: ClassId(u16_at(bytes, 10)),
            incompatible: u32_at(bytes, 12),
            compatible: u32_at(bytes, 16),
            shard: u32_at(bytes, 20),
            cluster: u64_at(bytes, 24),
            node: NodeId(u64_at(bytes, 32)),
            segment: SegmentId(u64_at(bytes, 40)),
            salt: u32_at(bytes, 48),
        })
    }
}

/// Zeros to bring a record of `length` bytes to a multiple of 8.
pub(super) fn padding(length: u64) -> Bytes {
    static ZEROS: [u8; 8] = [0; 8];
    let missing = usize::try_from(padded(length) - length).unwrap_or(0);
    Bytes::from_static(&ZEROS[..missing])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_come_back_and_every_flipped_bit_is_found() {
        let envelope = Envelope {
            kind: Kind::Batch,
            length: 100,
            salt: 7,
            first: 5,
            numbers: 3,
            slot: Slot(2),
            append_time: AppendTime(-9),
        };
        let bytes = envelope.encode();
        assert_eq!(Envelope::decode(&bytes), Some(envelope));
        assert_eq!(envelope.stored_bytes(), 144);
        for bit in 0..bytes.len() * 8 {
            let mut hit = bytes;
            hit[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Envelope::decode(&hit), None, "bit {bit}");
        }
    }

    #[test]
    fn headers_come_back_and_newer_ones_are_told_from_damaged_ones() {
        let header = SegmentHeader {
            class: ClassId(1),
            incompatible: 0,
            compatible: 0,
            shard: 3,
            cluster: 4,
            node: NodeId(5),
            segment: SegmentId(6),
            salt: 7,
        };
        let mut bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        bytes[9] ^= 1;
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::Damaged));
        for known in [FEATURES, PLACES] {
            let featured = SegmentHeader {
                incompatible: known,
                ..header
            };
            assert_eq!(SegmentHeader::decode(&featured.encode()), Ok(featured));
        }
        for unknown in (0..32)
            .map(|bit| 1 << bit)
            .filter(|bit| FEATURES & bit == 0)
        {
            let newer = SegmentHeader {
                incompatible: FEATURES | unknown,
                ..header
            };
            let newer = SegmentHeader::decode(&newer.encode());
            assert_eq!(newer, Err(HeaderError::Newer));
        }
    }
}
