//! The file of durable ends: after each sync, the place where each open segment's durable data
//! ends.
//!
//! It is written without a sync, after the sync that it records, so its contents are true; but they
//! may be old, and list batches that were given up since. A commit to one segment brings the ends
//! along as a note; else they are written when it has ended. When a journal opens, data missing
//! before such an end was there once: it is damage or a cut, and reported. Data behind it may be
//! torn, and is nobody's loss. If a power cut has lost the record of an end, and damage has hit the
//! data before that end, the data are taken for torn as well, with all that follows in the segment:
//! the bytes do not tell the two apart.
//!
//! Two places are written in turn: `length u32 | crc u32 | count u64 | segments u32 x {segment u64,
//! end u64} | logs u32 x {slot u32, next u64}`, little endian, at byte 0 and at byte 4,096.

use super::codec::{Reader, Writer};
use super::format::u32_at;
use super::id::{FileOffset, SegmentId, Slot};
use airmail_model::Sequence;
use std::collections::BTreeMap;

/// Bytes of each of the two places.
pub(super) const PLACE_BYTES: usize = 4096;
/// Logs in one, at most.
pub(super) const LOGS_MAX: usize = 256;
/// Segments in one, at most.
const SEGMENTS_MAX: usize = 48;

/// Contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Number of times that the file was written, this time included.
    pub count: u64,
    /// Where the durable data of each segment ends.
    pub segments: BTreeMap<SegmentId, FileOffset>,
    /// Number after the last durable one of each log, by slot.
    pub logs: BTreeMap<Slot, Sequence>,
}

impl Ends {
    /// Its bytes: at most a place's.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.count);
        let segments = self.segments.len().min(SEGMENTS_MAX);
        out.count(segments);
        for (segment, end) in self.segments.iter().rev().take(segments) {
            out.segment(*segment).offset(*end);
        }
        let logs = self.logs.len().min(LOGS_MAX);
        out.count(logs);
        for (slot, next) in self.logs.iter().take(logs) {
            out.slot(*slot).sequence(*next);
        }
        let body = out.with_crc();
        let mut all = (body.len() as u32).to_le_bytes().to_vec();
        all.extend_from_slice(&body);
        all
    }

    /// Decodes a place's bytes; `None` if they are damaged or were never written.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Ends> {
        let length = usize::try_from(u32_at(bytes, 0)).ok()?;
        let mut input = Reader::checked(bytes.get(4..4usize.checked_add(length)?)?)?;
        let mut ends = Ends {
            count: input.u64()?,
            ..Ends::default()
        };
        for _ in 0..input.count(16)? {
            ends.segments.insert(input.segment()?, input.offset()?);
        }
        for _ in 0..input.count(12)? {
            ends.logs.insert(input.slot()?, input.sequence()?);
        }
        input.is_empty().then_some(ends)
    }

    /// The newer of a file's two places.
    #[must_use]
    pub fn newest(file: &[u8]) -> Option<Ends> {
        let second = file.get(PLACE_BYTES..).and_then(Ends::decode);
        let first = Ends::decode(file);
        first
            .into_iter()
            .chain(second)
            .max_by_key(|ends| ends.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_of_two_places_counts_and_damage_is_found() {
        let older = Ends {
            count: 1,
            segments: [(SegmentId(1), FileOffset(100))].into(),
            logs: [(Slot(2), Sequence(5))].into(),
        };
        let newer = Ends {
            count: 2,
            ..older.clone()
        };
        let mut file = newer.encode();
        file.resize(PLACE_BYTES, 0);
        file.extend(older.encode());
        assert_eq!(Ends::newest(&file), Some(newer));
        file[9] ^= 1;
        assert_eq!(Ends::newest(&file), Some(older));
        assert_eq!(Ends::newest(&[]), None);
    }
}
