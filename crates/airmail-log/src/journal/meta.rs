//! The journal's own commands: what changes about logs and segments, in the order of their count.
//!
//! Each is a record in a segment of the class [`META_CLASS`](super::format::META_CLASS): an
//! envelope, then `crc u32 | kind u8 | fields`, little endian. The crc covers kind and fields.

use super::codec::{Reader, Writer};
use crate::contract::LogSpec;
use airmail_model::{LogId, MapEpoch};
use bytes::Bytes;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meta {
    /// A log begins, or takes over another spec.
    Open {
        /// Its slot.
        slot: u32,
        /// Its name.
        log: LogId,
        /// What is asked of it.
        spec: LogSpec,
        /// Its life.
        incarnation: u64,
    },
    /// Everything before a number is given up.
    Trim {
        /// Of which log.
        slot: u32,
        /// The first number kept.
        first: u64,
    },
    /// A log takes nothing more.
    Seal {
        /// Which.
        slot: u32,
        /// The map that names its successors.
        next: MapEpoch,
    },
    /// A log is gone. Its slot is not used again.
    Delete {
        /// Which.
        slot: u32,
    },
    /// Numbers up to this one, exclusive, may be given without being durable.
    Reserve {
        /// Of which log.
        slot: u32,
        /// The end of the reservation.
        until: u64,
    },
    /// A segment takes nothing more, and what lies behind its end is not data.
    SegmentSealed {
        /// Which.
        segment: u64,
        /// Its end, in bytes.
        end: u64,
    },
    /// A batch of log 0 whole, before it is written to a segment.
    Copy {
        /// Log 0's slot.
        slot: u32,
        /// Its first number.
        first: u64,
        /// How many it has.
        numbers: u32,
        /// When it was appended.
        time: i64,
        /// The batch.
        bytes: Bytes,
    },
    /// Batches of log 0 that were copied, and then refused: their numbers are given again.
    TakenBack {
        /// Log 0's slot.
        slot: u32,
        /// The first of the numbers.
        from: u64,
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
                out.u8(1).u32(*slot).log(*log).spec(spec).u64(*incarnation);
            }
            Meta::Trim { slot, first } => {
                out.u8(2).u32(*slot).u64(*first);
            }
            Meta::Seal { slot, next } => {
                out.u8(3).u32(*slot).u32(next.0);
            }
            Meta::Delete { slot } => {
                out.u8(4).u32(*slot);
            }
            Meta::Reserve { slot, until } => {
                out.u8(5).u32(*slot).u64(*until);
            }
            Meta::SegmentSealed { segment, end } => {
                out.u8(6).u64(*segment).u64(*end);
            }
            Meta::Copy {
                slot,
                first,
                numbers,
                time,
                bytes,
            } => {
                out.u8(7).u32(*slot).u64(*first).u32(*numbers).i64(*time);
                out.count(bytes.len()).bytes(bytes);
            }
            Meta::TakenBack { slot, from } => {
                out.u8(8).u32(*slot).u64(*from);
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
                slot: input.u32()?,
                log: input.log()?,
                spec: input.spec()?,
                incarnation: input.u64()?,
            },
            2 => Meta::Trim {
                slot: input.u32()?,
                first: input.u64()?,
            },
            3 => Meta::Seal {
                slot: input.u32()?,
                next: MapEpoch(input.u32()?),
            },
            4 => Meta::Delete { slot: input.u32()? },
            5 => Meta::Reserve {
                slot: input.u32()?,
                until: input.u64()?,
            },
            6 => Meta::SegmentSealed {
                segment: input.u64()?,
                end: input.u64()?,
            },
            7 => Meta::Copy {
                slot: input.u32()?,
                first: input.u64()?,
                numbers: input.u32()?,
                time: input.i64()?,
                bytes: input.bytes()?,
            },
            8 => Meta::TakenBack {
                slot: input.u32()?,
                from: input.u64()?,
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
    fn every_command_comes_back_and_damage_is_found() {
        let spec = LogSpec {
            retention: Retention {
                time_ms: Some(5),
                bytes: None,
            },
            ..LogSpec::default()
        };
        let all = [
            Meta::Open {
                slot: 1,
                log: LogId::SYSTEM,
                spec,
                incarnation: 9,
            },
            Meta::Trim { slot: 1, first: 2 },
            Meta::Seal {
                slot: 1,
                next: MapEpoch(3),
            },
            Meta::Delete { slot: 1 },
            Meta::Reserve {
                slot: 1,
                until: 1 << 40,
            },
            Meta::SegmentSealed {
                segment: 4,
                end: 4096,
            },
            Meta::Copy {
                slot: 1,
                first: 7,
                numbers: 2,
                time: -3,
                bytes: Bytes::from_static(b"a batch"),
            },
            Meta::TakenBack { slot: 1, from: 7 },
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
