//! A checkpoint: all that a journal must know to open without reading what lies before it.
//!
//! `magic u32 | version u16 | 0 u16 | length u64 | crc u32 | body`, little endian; the crc covers
//! the body. The last two are kept: if the newer is damaged, the older one and the commands and
//! segments behind it give the same, a little later.

use super::codec::{Reader, Writer};
use super::format::{u16_at, u32_at, u64_at};
use super::log::{Place, Recent};
use super::producers::{Key, Producer};
use super::results::Results;
use crate::contract::LogSpec;
use airmail_model::{Batch, LogId, MapEpoch};
use bytes::Bytes;

const MAGIC: u32 = u32::from_le_bytes(*b"AmCp");
/// What is written. Version 1, where each result of a producer was whole and log 0 was not copied,
/// is read.
const VERSION: u16 = 2;
/// No segment is longer, so an end beyond it is damage.
const SEGMENT_BYTES_MAX: u64 = 1 << 62;
/// Bytes before the checksum.
const HEAD_BYTES: usize = 16;

/// What a checkpoint says. See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Commands with a lower count are in it.
    pub meta_count: u64,
    /// Slots below this one, and not in it, are of deleted logs.
    pub next_slot: u32,
    /// The number of the next segment.
    pub next_segment: u64,
    /// The logs.
    pub(super) logs: Vec<LogPart>,
    /// The segments.
    pub(super) segments: Vec<SegmentPart>,
    /// The producers, from the one not heard of for longest on.
    pub(super) producers: Vec<(Key, Producer)>,
}

/// A log, as it was durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPart {
    pub(super) slot: u32,
    pub(super) id: LogId,
    pub(super) spec: LogSpec,
    pub(super) incarnation: u64,
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) reserved: u64,
    pub(super) sealed: Option<MapEpoch>,
    pub(super) last_time: i64,
    /// In blocks that are indexed.
    pub(super) places: Vec<Place>,
    /// Of log 0: its batches, once more.
    pub(super) copies: Vec<CopyPart>,
}

/// A batch whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyPart {
    pub(super) first: u64,
    pub(super) numbers: u32,
    pub(super) time: i64,
    pub(super) bytes: Bytes,
}

/// A segment, as it was durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentPart {
    pub(super) id: u64,
    pub(super) class: u16,
    pub(super) salt: u32,
    pub(super) sealed: bool,
    pub(super) durable: u64,
    /// Those that are indexed, up to the first that is not.
    pub(super) blocks: Vec<BlockPart>,
}

/// An indexed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockPart {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) entries: u32,
    pub(super) topics: u32,
}

impl Checkpoint {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.meta_count)
            .u32(self.next_slot)
            .u64(self.next_segment);
        out.count(self.logs.len());
        for log in &self.logs {
            log.encode(&mut out);
        }
        out.count(self.segments.len());
        for segment in &self.segments {
            out.u64(segment.id).u16(segment.class).u32(segment.salt);
            out.u8(u8::from(segment.sealed))
                .u64(segment.durable)
                .count(segment.blocks.len());
            for block in &segment.blocks {
                out.u64(block.start)
                    .u64(block.end)
                    .u32(block.entries)
                    .u32(block.topics);
            }
        }
        out.count(self.producers.len());
        for ((id, slot), producer) in &self.producers {
            out.u64(*id)
                .u32(*slot)
                .u32(producer.epoch)
                .u64(producer.next)
                .i64(producer.heard);
            producer.results.encode(&mut out);
        }
        let body = out.with_crc();
        let mut all = Vec::with_capacity(HEAD_BYTES + body.len());
        all.extend_from_slice(&MAGIC.to_le_bytes());
        all.extend_from_slice(&u32::from(VERSION).to_le_bytes());
        all.extend_from_slice(&(body.len() as u64).to_le_bytes());
        all.extend_from_slice(&body);
        all
    }

    /// From a file's bytes; `None` if it is damaged, or of another version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Checkpoint> {
        let length = usize::try_from(u64_at(bytes, 8)).ok()?;
        let version = u16_at(bytes, 4);
        let sound = u32_at(bytes, 0) == MAGIC && (1..=VERSION).contains(&version);
        let body = bytes
            .get(HEAD_BYTES..HEAD_BYTES.checked_add(length)?)
            .filter(|_| sound)?;
        let mut input = Reader::checked(body)?;
        let mut out = Checkpoint {
            meta_count: input.u64()?,
            next_slot: input.u32()?,
            next_segment: input.u64()?,
            ..Checkpoint::default()
        };
        for _ in 0..input.count(LogPart::BYTES_MIN)? {
            out.logs.push(LogPart::decode(&mut input, version)?);
        }
        for _ in 0..input.count(27)? {
            out.segments.push(SegmentPart::decode(&mut input)?);
        }
        for _ in 0..input.count(33)? {
            let key = (input.u64()?, input.u32()?);
            let (epoch, next, heard) = (input.u32()?, input.u64()?, input.i64()?);
            let results = match version {
                1 => Results::decode_whole(&mut input)?,
                _ => Results::decode(&mut input)?,
            };
            out.producers
                .push((key, Producer::new(epoch, next, heard, results)));
        }
        input.is_empty().then_some(out)
    }
}

impl CopyPart {
    /// The batch, if it is what was written.
    pub(super) fn sound(self) -> Option<Recent> {
        let (batch, damaged) = Batch::check_stored(self.bytes).ok()?;
        let last = self.first.checked_add(self.numbers.into());
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
        out.u32(self.slot)
            .log(self.id)
            .spec(&self.spec)
            .u64(self.incarnation);
        out.u64(self.first)
            .u64(self.next)
            .u64(self.reserved)
            .i64(self.last_time);
        out.u8(u8::from(self.sealed.is_some()))
            .u32(self.sealed.unwrap_or_default().0);
        out.count(self.places.len());
        for place in &self.places {
            out.u64(place.first)
                .u64(place.last)
                .u64(place.segment)
                .u32(place.block);
            out.u64(place.bytes).i64(place.time_min).i64(place.time_max);
            out.u32(place.entries_at).u32(place.entries);
        }
        out.count(self.copies.len());
        for copy in &self.copies {
            out.u64(copy.first).u32(copy.numbers).i64(copy.time);
            out.count(copy.bytes.len()).bytes(&copy.bytes);
        }
    }

    fn decode(input: &mut Reader<'_>, version: u16) -> Option<LogPart> {
        let mut log = LogPart {
            slot: input.u32()?,
            id: input.log()?,
            spec: input.spec()?,
            incarnation: input.u64()?,
            first: input.u64()?,
            next: input.u64()?,
            reserved: input.u64()?,
            last_time: input.i64()?,
            sealed: None,
            places: Vec::new(),
            copies: Vec::new(),
        };
        let sealed = input.u8()? != 0;
        let next = MapEpoch(input.u32()?);
        log.sealed = sealed.then_some(next);
        for _ in 0..input.count(60)? {
            let place = Place {
                first: input.u64()?,
                last: input.u64()?,
                segment: input.u64()?,
                block: input.u32()?,
                bytes: input.u64()?,
                time_min: input.i64()?,
                time_max: input.i64()?,
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
                first: input.u64()?,
                numbers: input.u32()?,
                time: input.i64()?,
                bytes: input.bytes()?,
            });
        }
        Some(log)
    }
}

impl SegmentPart {
    fn decode(input: &mut Reader<'_>) -> Option<SegmentPart> {
        let mut segment = SegmentPart {
            id: input.u64()?,
            class: input.u16()?,
            salt: input.u32()?,
            sealed: input.u8()? != 0,
            durable: input.u64()?,
            blocks: Vec::new(),
        };
        for _ in 0..input.count(24)? {
            let block = BlockPart {
                start: input.u64()?,
                end: input.u64()?,
                entries: input.u32()?,
                topics: input.u32()?,
            };
            let possible = block.start <= block.end && block.end <= SEGMENT_BYTES_MAX;
            segment.blocks.push(Some(block).filter(|_| possible)?);
        }
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::results::Outcome;

    fn example() -> Checkpoint {
        let place = Place {
            first: 1,
            last: 9,
            segment: 3,
            block: 0,
            bytes: 100,
            time_min: -5,
            time_max: 5,
            entries_at: 0,
            entries: 2,
        };
        let log = LogPart {
            slot: 1,
            id: LogId::SYSTEM,
            spec: LogSpec::default(),
            incarnation: 7,
            first: 1,
            next: 10,
            reserved: 10,
            sealed: Some(MapEpoch(2)),
            last_time: 5,
            places: vec![place],
            copies: vec![CopyPart {
                first: 1,
                numbers: 9,
                time: 5,
                bytes: Bytes::from_static(b"a batch"),
            }],
        };
        let segment = SegmentPart {
            id: 3,
            class: 0,
            salt: 9,
            sealed: false,
            durable: 4096,
            blocks: vec![BlockPart {
                start: 64,
                end: 164,
                entries: 2,
                topics: 3,
            }],
        };
        let mut results = Results::default();
        for n in 0..3 {
            let outcome = Outcome {
                sequence: n * 3,
                records: 3,
                first: 1 + n * 4,
                time: 5,
            };
            results.push(outcome, 64);
        }
        Checkpoint {
            meta_count: 4,
            next_slot: 2,
            next_segment: 4,
            logs: vec![log],
            segments: vec![segment],
            producers: vec![((8, 1), Producer::new(1, 9, 5, results))],
        }
    }

    #[test]
    fn a_place_that_cannot_be_is_damage_whatever_the_checksum_says() {
        let changes: [fn(&mut Place); 4] = [
            |place| place.first = 0,
            |place| place.last = 0,
            |place| place.last = u64::MAX,
            |place| place.entries_at = u32::MAX,
        ];
        for change in changes {
            let mut forged = example();
            change(&mut forged.logs[0].places[0]);
            assert_eq!(Checkpoint::decode(&forged.encode()), None);
        }
        let mut forged = example();
        forged.segments[0].blocks[0].start = 165;
        assert_eq!(Checkpoint::decode(&forged.encode()), None);
    }

    #[test]
    fn a_checkpoint_comes_back_and_every_flipped_bit_and_cut_is_found() {
        let bytes = example().encode();
        assert_eq!(Checkpoint::decode(&bytes), Some(example()));
        for bit in (0..bytes.len() * 8).filter(|bit| !(48..64).contains(bit)) {
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
