//! The journal's own commands: changes to logs and segments, in the order of their count.
//!
//! Each is a record in a segment of the class [`META_CLASS`](super::format::META_CLASS): an
//! envelope, then `crc u32 | kind u8 | fields`, little endian. The crc covers kind and fields.
//!
//! A kind is never changed. Earlier versions wrote openings and deletions without a place in log 0: their
//! kind 1 is only read, and kind 4 is written again only where it was found. Commands of kind 9 and above
//! stand in segments with the feature [`PLACES`](super::format::PLACES).

use super::codec::{Reader, Writer};
use super::id::{FileOffset, SegmentId, Slot};
use super::tombstones::Tombstone;
use crate::contract::LogSpec;
use airmail_model::{AppendTime, Incarnation, LogId, MapEpoch, Sequence};
use bytes::Bytes;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meta {
    /// A log begins, or takes over another spec.
    Open {
        /// Its slot.
        slot: Slot,
        /// Its name.
        log: LogId,
        /// The settings that the log is opened with.
        spec: LogSpec,
        /// Its life.
        incarnation: Incarnation,
    },
    /// Everything before a number is given up.
    Trim {
        /// The log's slot.
        slot: Slot,
        /// The first number kept.
        first: Sequence,
    },
    /// A log takes nothing more.
    Seal {
        /// The log's slot.
        slot: Slot,
        /// The map that names its successors.
        next: MapEpoch,
    },
    /// A log is gone. Its slot is not used again.
    Delete {
        /// The log's slot.
        slot: Slot,
        /// The mark that stays. `None`: written by a version that left none.
        tombstone: Option<Tombstone>,
    },
    /// A log that was not there is not made by any spec of an earlier place.
    Bury {
        /// The mark that stays.
        tombstone: Tombstone,
    },
    /// Numbers up to this one, exclusive, may be given without being durable.
    Reserve {
        /// The log's slot.
        slot: Slot,
        /// The end of the reservation.
        until: Sequence,
    },
    /// A segment takes nothing more, and bytes behind its end are not data.
    SegmentSealed {
        /// Its number.
        segment: SegmentId,
        /// Its end, in bytes.
        end: FileOffset,
    },
    /// A batch of log 0 whole, before it is written to a segment.
    Copy {
        /// Log 0's slot.
        slot: Slot,
        /// Its first number.
        first: Sequence,
        /// Number of sequence numbers that the batch owns.
        numbers: u32,
        /// When it was appended.
        time: AppendTime,
        /// The batch.
        bytes: Bytes,
    },
    /// Batches of log 0 that were copied, and then refused: their numbers are given again.
    TakenBack {
        /// Log 0's slot.
        slot: Slot,
        /// The first of the numbers.
        from: Sequence,
    },
}

impl Meta {
    /// Its bytes: a record's body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Meta::Open {
                slot,
                log,
                spec,
                incarnation,
            } => {
                out.u8(9)
                    .slot(*slot)
                    .log(*log)
                    .spec_as_of(spec)
                    .incarnation(*incarnation);
            }
            Meta::Trim { slot, first } => {
                out.u8(2).slot(*slot).sequence(*first);
            }
            Meta::Seal { slot, next } => {
                out.u8(3).slot(*slot).epoch(*next);
            }
            Meta::Delete {
                slot,
                tombstone: None,
            } => {
                out.u8(4).slot(*slot);
            }
            Meta::Delete {
                slot,
                tombstone: Some(tombstone),
            } => {
                out.u8(10).slot(*slot).tombstone(*tombstone);
            }
            Meta::Bury { tombstone } => {
                out.u8(11).tombstone(*tombstone);
            }
            Meta::Reserve { slot, until } => {
                out.u8(5).slot(*slot).sequence(*until);
            }
            Meta::SegmentSealed { segment, end } => {
                out.u8(6).segment(*segment).offset(*end);
            }
            Meta::Copy {
                slot,
                first,
                numbers,
                time,
                bytes,
            } => {
                out.u8(7)
                    .slot(*slot)
                    .sequence(*first)
                    .u32(*numbers)
                    .time(*time);
                out.count(bytes.len()).bytes(bytes);
            }
            Meta::TakenBack { slot, from } => {
                out.u8(8).slot(*slot).sequence(*from);
            }
        }
        out.with_crc()
    }

    /// The command of a record's body; `None` if it is damaged or unknown.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Meta> {
        let mut input = Reader::checked(bytes)?;
        let meta = match input.u8()? {
            1 => Meta::Open {
                slot: input.slot()?,
                log: input.log()?,
                spec: input.spec()?,
                incarnation: input.incarnation()?,
            },
            2 => Meta::Trim {
                slot: input.slot()?,
                first: input.sequence()?,
            },
            3 => Meta::Seal {
                slot: input.slot()?,
                next: input.epoch()?,
            },
            4 => Meta::Delete {
                slot: input.slot()?,
                tombstone: None,
            },
            5 => Meta::Reserve {
                slot: input.slot()?,
                until: input.sequence()?,
            },
            6 => Meta::SegmentSealed {
                segment: input.segment()?,
                end: input.offset()?,
            },
            7 => Meta::Copy {
                slot: input.slot()?,
                first: input.sequence()?,
                numbers: input.u32()?,
                time: input.time()?,
                bytes: input.bytes()?,
            },
            8 => Meta::TakenBack {
                slot: input.slot()?,
                from: input.sequence()?,
            },
            9 => Meta::Open {
                slot: input.slot()?,
                log: input.log()?,
                spec: input.spec_as_of()?,
                incarnation: input.incarnation()?,
            },
            10 => Meta::Delete {
                slot: input.slot()?,
                tombstone: Some(input.tombstone()?),
            },
            11 => Meta::Bury {
                tombstone: input.tombstone()?,
            },
            _ => return None,
        };
        input.is_empty().then_some(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::Retention;

    #[test]
    fn an_opening_without_a_place_in_log_0_is_of_before_every_command() {
        let spec = LogSpec {
            epoch: MapEpoch(4),
            ..LogSpec::default()
        };
        let (slot, log, incarnation) = (Slot(1), LogId::SYSTEM, Incarnation(9));
        let mut out = Writer::default();
        out.u8(1).slot(slot).log(log).u8(2).epoch(spec.epoch);
        out.u8(0).u64(0).u8(0).u64(0).incarnation(incarnation);
        let open = Meta::Open {
            slot,
            log,
            spec,
            incarnation,
        };
        assert_eq!(spec.as_of, Sequence(0));
        assert_eq!(Meta::decode(&out.with_crc()), Some(open));
    }

    #[test]
    fn every_command_comes_back_and_damage_is_found() {
        let spec = LogSpec {
            retention: Retention {
                time_ms: Some(5),
                bytes: None,
            },
            as_of: Sequence(77),
            ..LogSpec::default()
        };
        let tombstone = Tombstone {
            log: LogId::SYSTEM,
            as_of: Sequence(99),
        };
        let all = [
            Meta::Open {
                slot: Slot(1),
                log: LogId::SYSTEM,
                spec,
                incarnation: Incarnation(9),
            },
            Meta::Trim {
                slot: Slot(1),
                first: Sequence(2),
            },
            Meta::Seal {
                slot: Slot(1),
                next: MapEpoch(3),
            },
            Meta::Delete {
                slot: Slot(1),
                tombstone: None,
            },
            Meta::Delete {
                slot: Slot(1),
                tombstone: Some(tombstone),
            },
            Meta::Bury { tombstone },
            Meta::Reserve {
                slot: Slot(1),
                until: Sequence(1 << 40),
            },
            Meta::SegmentSealed {
                segment: SegmentId(4),
                end: FileOffset(4096),
            },
            Meta::Copy {
                slot: Slot(1),
                first: Sequence(7),
                numbers: 2,
                time: AppendTime(-3),
                bytes: Bytes::from_static(b"a batch"),
            },
            Meta::TakenBack {
                slot: Slot(1),
                from: Sequence(7),
            },
        ];
        for meta in all {
            let bytes = meta.encode();
            assert_eq!(Meta::decode(&bytes), Some(meta));
            for bit in 0..bytes.len() * 8 {
                let mut hit = bytes.clone();
                hit[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Meta::decode(&hit), None);
            }
            for length in 0..bytes.len() {
                assert_eq!(Meta::decode(&bytes[..length]), None);
            }
        }
    }
}
