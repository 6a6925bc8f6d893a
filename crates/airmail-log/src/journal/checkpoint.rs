//! A checkpoint: everything that a journal must know to open without reading the segments before
//! it.
//!
//! `magic u32 | version u16 | 0 u16 | length u64 | crc u32 | body`, little endian; the crc covers
//! all else: in versions 1 and 2 the body alone. The last two are kept: if the newer is damaged, the older one and the commands and
//! segments behind it give the same, a little later.

use super::codec::{Reader, Writer};
use super::entry::Recent;
use super::format::{u16_at, u32_at, u64_at};
use super::id::{ClassId, FileOffset, SegmentId, Slot};
use super::places::Place;
use super::producers::{Key, Producer};
use super::results::Results;
use super::tombstones::Tombstones;
use crate::contract::LogSpec;
use airmail_model::{
    AppendTime, Batch, Incarnation, LogId, MapEpoch, ProducerEpoch, ProducerId, ProducerSequence,
    Sequence,
};
use bytes::Bytes;

const MAGIC: u32 = u32::from_le_bytes(*b"AmCp");
/// Version that is written. The earlier ones are read: in 1 each result of a producer was whole, and log 0
/// was not copied; in 2 nothing had a place in log 0, and the checksum did not cover the version. One that is
/// taken for another by a flipped bit is found: its checksum begins elsewhere.
const VERSION: u16 = 3;
/// No segment is longer, so an end beyond it is damage.
const SEGMENT_END_MAX: FileOffset = FileOffset(1 << 62);
/// Bytes before the checksum.
const HEAD_BYTES: usize = 16;

/// Contents of a checkpoint. See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Commands with a lower count are in it.
    pub meta_count: u64,
    /// Slots below this one, and not in it, are of deleted logs.
    pub next_slot: Slot,
    /// The number of the next segment.
    pub next_segment: SegmentId,
    /// The logs.
    pub(super) logs: Vec<LogPart>,
    /// The segments.
    pub(super) segments: Vec<SegmentPart>,
    /// The producers, from the one not heard of for longest on.
    pub(super) producers: Vec<(Key, Producer)>,
    /// The marks of deleted logs.
    pub(super) tombstones: Tombstones,
}

/// A log, as it was durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPart {
    pub(super) slot: Slot,
    pub(super) id: LogId,
    pub(super) spec: LogSpec,
    pub(super) incarnation: Incarnation,
    pub(super) first: Sequence,
    pub(super) next: Sequence,
    pub(super) reserved: Sequence,
    pub(super) sealed: Option<MapEpoch>,
    pub(super) last_time: AppendTime,
    /// Places of the log's batches in indexed blocks.
    pub(super) places: Vec<Place>,
    /// The batches of log 0, once more.
    pub(super) copies: Vec<CopyPart>,
}

/// A batch whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyPart {
    pub(super) first: Sequence,
    pub(super) numbers: u32,
    pub(super) time: AppendTime,
    pub(super) bytes: Bytes,
}

/// A segment, as it was durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentPart {
    pub(super) id: SegmentId,
    pub(super) class: ClassId,
    pub(super) salt: u32,
    pub(super) sealed: bool,
    pub(super) durable: FileOffset,
    /// Those that are indexed, up to the first that is not.
    pub(super) blocks: Vec<BlockPart>,
}

/// An indexed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockPart {
    pub(super) start: FileOffset,
    pub(super) end: FileOffset,
    pub(super) entries: u32,
    pub(super) topics: u32,
}

impl Checkpoint {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.meta_count)
            .slot(self.next_slot)
            .segment(self.next_segment);
        out.count(self.logs.len());
        for log in &self.logs {
            log.encode(&mut out);
        }
        out.count(self.segments.len());
        for segment in &self.segments {
            out.segment(segment.id)
                .u16(segment.class.0)
                .u32(segment.salt);
            out.u8(u8::from(segment.sealed))
                .offset(segment.durable)
                .count(segment.blocks.len());
            for block in &segment.blocks {
                out.offset(block.start)
                    .offset(block.end)
                    .u32(block.entries)
                    .u32(block.topics);
            }
        }
        out.count(self.producers.len());
        for ((id, slot), producer) in &self.producers {
            out.u64(id.0)
                .slot(*slot)
                .u32(producer.epoch.0)
                .u64(producer.next.0)
                .time(producer.heard);
            producer.results.encode(&mut out);
        }
        self.tombstones.encode(&mut out);
        let mut all = Vec::with_capacity(HEAD_BYTES + out.length());
        all.extend_from_slice(&MAGIC.to_le_bytes());
        all.extend_from_slice(&u32::from(VERSION).to_le_bytes());
        all.extend_from_slice(&(out.length() as u64).to_le_bytes());
        let body = out.with_crc_of(&all);
        all.extend_from_slice(&body);
        all
    }

    /// Decodes a file's bytes; `None` if they are damaged, or of another version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Checkpoint> {
        let length = usize::try_from(u64_at(bytes, 8)).ok()?;
        let version = u16_at(bytes, 4);
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let sound = u32_at(head, 0) == MAGIC && (1..=VERSION).contains(&version);
        let body = rest.get(..length).filter(|_| sound)?;
        let mut input = match version {
            1 | 2 => Reader::checked(body)?,
            _ => Reader::checked_with(head, body)?,
        };
        let mut out = Checkpoint {
            meta_count: input.u64()?,
            next_slot: input.slot()?,
            next_segment: input.segment()?,
            ..Checkpoint::default()
        };
        for _ in 0..input.count(LogPart::BYTES_MIN)? {
            out.logs.push(LogPart::decode(&mut input, version)?);
        }
        for _ in 0..input.count(27)? {
            out.segments.push(SegmentPart::decode(&mut input)?);
        }
        for _ in 0..input.count(33)? {
            let key = (ProducerId(input.u64()?), input.slot()?);
            let epoch = ProducerEpoch(input.u32()?);
            let next = ProducerSequence(input.u64()?);
            let heard = input.time()?;
            let results = match version {
                1 => Results::decode_whole(&mut input)?,
                _ => Results::decode(&mut input)?,
            };
            out.producers
                .push((key, Producer::new(epoch, next, heard, results)));
        }
        if version > 2 {
            out.tombstones = Tombstones::decode(&mut input)?;
        }
        input.is_empty().then_some(out)
    }
}

impl CopyPart {
    /// The batch, if it is sound.
    pub(super) fn sound(self) -> Option<Recent> {
        let (batch, damaged) = Batch::check_stored(self.bytes).ok()?;
        let last = self.first.0.checked_add(self.numbers.into());
        let sound = damaged.is_empty() && batch.numbers() == self.numbers && last.is_some();
        sound.then_some(Recent {
            first: self.first,
            numbers: self.numbers,
            time: self.time,
            batch,
        })
    }
}

impl LogPart {
    const BYTES_MIN: usize = 60;

    fn encode(&self, out: &mut Writer) {
        out.slot(self.slot)
            .log(self.id)
            .spec_as_of(&self.spec)
            .incarnation(self.incarnation);
        out.sequence(self.first)
            .sequence(self.next)
            .sequence(self.reserved)
            .time(self.last_time);
        out.u8(u8::from(self.sealed.is_some()))
            .epoch(self.sealed.unwrap_or_default());
        out.count(self.places.len());
        for place in &self.places {
            out.sequence(place.first)
                .sequence(place.last)
                .block(place.block);
            out.u64(place.bytes)
                .time(place.time_min)
                .time(place.time_max);
            out.u32(place.entries_at).u32(place.entries);
        }
        out.count(self.copies.len());
        for copy in &self.copies {
            out.sequence(copy.first).u32(copy.numbers).time(copy.time);
            out.count(copy.bytes.len()).bytes(&copy.bytes);
        }
    }

    fn decode(input: &mut Reader<'_>, version: u16) -> Option<LogPart> {
        let mut log = LogPart {
            slot: input.slot()?,
            id: input.log()?,
            spec: match version {
                1 | 2 => input.spec()?,
                _ => input.spec_as_of()?,
            },
            incarnation: input.incarnation()?,
            first: input.sequence()?,
            next: input.sequence()?,
            reserved: input.sequence()?,
            last_time: input.time()?,
            sealed: None,
            places: Vec::new(),
            copies: Vec::new(),
        };
        let sealed = input.u8()? != 0;
        let next = input.epoch()?;
        log.sealed = sealed.then_some(next);
        for _ in 0..input.count(60)? {
            let place = Place {
                first: input.sequence()?,
                last: input.sequence()?,
                block: input.block()?,
                bytes: input.u64()?,
                time_min: input.time()?,
                time_max: input.time()?,
                entries_at: input.u32()?,
                entries: input.u32()?,
            };
            log.places.push(Some(place).filter(Place::is_possible)?);
        }
        let copies = match version {
            1 => 0,
            _ => input.count(24)?,
        };
        for _ in 0..copies {
            log.copies.push(CopyPart {
                first: input.sequence()?,
                numbers: input.u32()?,
                time: input.time()?,
                bytes: input.bytes()?,
            });
        }
        Some(log)
    }
}

impl SegmentPart {
    fn decode(input: &mut Reader<'_>) -> Option<SegmentPart> {
        let mut segment = SegmentPart {
            id: input.segment()?,
            class: ClassId(input.u16()?),
            salt: input.u32()?,
            sealed: input.u8()? != 0,
            durable: input.offset()?,
            blocks: Vec::new(),
        };
        for _ in 0..input.count(24)? {
            let block = BlockPart {
                start: input.offset()?,
                end: input.offset()?,
                entries: input.u32()?,
                topics: input.u32()?,
            };
            let possible = block.start <= block.end && block.end <= SEGMENT_END_MAX;
            segment.blocks.push(Some(block).filter(|_| possible)?);
        }
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::id::{BlockId, BlockIndex};
    use crate::journal::results::Outcome;
    use crate::journal::tombstones::Tombstone;

    fn producer() -> Producer {
        let mut results = Results::default();
        for n in 0..3 {
            let outcome = Outcome {
                sequence: ProducerSequence(n * 3),
                records: 3,
                first: Sequence(1 + n * 4),
                time: AppendTime(5),
            };
            results.push(outcome, 64);
        }
        Producer::new(
            ProducerEpoch(1),
            ProducerSequence(9),
            AppendTime(5),
            results,
        )
    }

    fn example() -> Checkpoint {
        let place = Place {
            first: Sequence(1),
            last: Sequence(9),
            block: BlockId {
                segment: SegmentId(3),
                block: BlockIndex(0),
            },
            bytes: 100,
            time_min: AppendTime(-5),
            time_max: AppendTime(5),
            entries_at: 0,
            entries: 2,
        };
        let log = LogPart {
            slot: Slot(1),
            id: LogId::SYSTEM,
            spec: LogSpec {
                as_of: Sequence(5),
                ..LogSpec::default()
            },
            incarnation: Incarnation(7),
            first: Sequence(1),
            next: Sequence(10),
            reserved: Sequence(10),
            sealed: Some(MapEpoch(2)),
            last_time: AppendTime(5),
            places: vec![place],
            copies: vec![CopyPart {
                first: Sequence(1),
                numbers: 9,
                time: AppendTime(5),
                bytes: Bytes::from_static(b"a batch"),
            }],
        };
        let segment = SegmentPart {
            id: SegmentId(3),
            class: ClassId(0),
            salt: 9,
            sealed: false,
            durable: FileOffset(4096),
            blocks: vec![BlockPart {
                start: FileOffset(64),
                end: FileOffset(164),
                entries: 2,
                topics: 3,
            }],
        };
        let mut tombstones = Tombstones::default();
        tombstones.add(Tombstone {
            log: LogId::SYSTEM,
            as_of: Sequence(6),
        });
        Checkpoint {
            meta_count: 4,
            next_slot: Slot(2),
            next_segment: SegmentId(4),
            logs: vec![log],
            segments: vec![segment],
            producers: vec![((ProducerId(8), Slot(1)), producer())],
            tombstones,
        }
    }

    #[test]
    fn a_place_that_cannot_be_is_damage_whatever_the_checksum_says() {
        let changes: [fn(&mut Place); 4] = [
            |place| place.first = Sequence(0),
            |place| place.last = Sequence(0),
            |place| place.last = Sequence::MAX,
            |place| place.entries_at = u32::MAX,
        ];
        for change in changes {
            let mut forged = example();
            change(&mut forged.logs[0].places[0]);
            assert_eq!(Checkpoint::decode(&forged.encode()), None);
        }
        let mut forged = example();
        forged.segments[0].blocks[0].start = FileOffset(165);
        assert_eq!(Checkpoint::decode(&forged.encode()), None);
    }

    #[test]
    fn a_checkpoint_comes_back_and_every_flipped_bit_and_cut_is_found() {
        let bytes = example().encode();
        assert_eq!(Checkpoint::decode(&bytes), Some(example()));
        for bit in 0..bytes.len() * 8 {
            let mut hit = bytes.clone();
            hit[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::decode(&hit), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(
                Checkpoint::decode(&bytes[..length]),
                None,
                "length {length}"
            );
        }
    }
}
