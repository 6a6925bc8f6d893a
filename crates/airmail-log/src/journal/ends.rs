//! The file of durable ends: after each sync, where each open segment's durable data ends.
//!
//! It is written without a sync, after the sync that it tells of, so what it says is true; but it
//! may be behind, and tell of what was given up since. A commit to one segment
//! brings them along as a note; else they are written when it has ended. When a journal opens, what is
//! missing before such an end was there once: it is damage or a cut, and told. What lies behind it may
//! be torn, and is nobody's loss. Where a power cut has lost what told of an end, and damage has hit what
//! it told of, that is taken for torn as well, with all that follows it in its segment: the bytes do not
//! tell the two apart.
//!
//! Two places are written in turn: `length u32 | crc u32 | count u64 | segments u32 x {segment u64,
//! end u64} | logs u32 x {slot u32, next u64}`, little endian, at byte 0 and at byte 4,096.

use super::codec::{Reader, Writer};
use super::format::{META_CLASS, u32_at};
use super::log::Entry;
use super::segment::{ENDS_NAME, State};
use super::{Journal, Purpose};
use crate::files::{FileName, FileOp, Note};
use std::collections::BTreeMap;
use std::io;

/// Bytes of each of the two places.
pub(super) const PLACE_BYTES: usize = 4096;
/// Logs in one, at most.
const LOGS_MAX: usize = 256;
/// Segments in one, at most.
const SEGMENTS_MAX: usize = 48;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Which of all that were written.
    pub count: u64,
    /// Durable end of segments, in bytes.
    pub segments: BTreeMap<u64, u64>,
    /// By slot, the number after the last durable one.
    pub logs: BTreeMap<u32, u64>,
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
            out.u64(*segment).u64(*end);
        }
        let logs = self.logs.len().min(LOGS_MAX);
        out.count(logs);
        for (slot, next) in self.logs.iter().take(logs) {
            out.u32(*slot).u64(*next);
        }
        let body = out.with_crc();
        let mut all = (body.len() as u32).to_le_bytes().to_vec();
        all.extend_from_slice(&body);
        all
    }

    /// From a place's bytes; `None` if it is damaged or was never written.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Ends> {
        let length = usize::try_from(u32_at(bytes, 0)).ok()?;
        let mut input = Reader::checked(bytes.get(4..4usize.checked_add(length)?)?)?;
        let mut ends = Ends {
            count: input.u64()?,
            ..Ends::default()
        };
        for _ in 0..input.count(16)? {
            ends.segments.insert(input.u64()?, input.u64()?);
        }
        for _ in 0..input.count(12)? {
            ends.logs.insert(input.u32()?, input.u64()?);
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

impl Journal {
    /// Writes the durable ends, if they have changed and no write of them is under way. Whether it
    /// does.
    pub(super) fn tell_ends(&mut self) -> bool {
        // While the journal opens, the last run's ends are still needed, should this one end early.
        if !self.ends_changed || self.ends_busy || self.recovering.is_some() {
            return false;
        }
        self.ends_changed = false;
        self.ends_busy = true;
        let name: FileName = ENDS_NAME.into();
        if !self.ends_made {
            self.ends_changed = true;
            self.submit(Purpose::Ends, FileOp::Create { name });
            return true;
        }
        let note = self.ends(BTreeMap::new(), BTreeMap::new());
        let op = FileOp::Write {
            name: note.name,
            at: note.at,
            parts: vec![note.bytes],
            sync: false,
            note: None,
        };
        self.submit(Purpose::Ends, op);
        true
    }

    /// The ends as they will be when a segment is durable to `end` with `entries` last; to be
    /// written with that sync. `None`: they can't be told so.
    pub(super) fn note_ends(&mut self, segment: u64, end: u64, entries: &[Entry]) -> Option<Note> {
        if !self.ends_made || self.recovering.is_some() {
            return None;
        }
        self.ends_changed = false;
        let earlier = self.segments.get(&segment);
        let earlier = earlier.map_or(&[][..], |of| &of.unsynced);
        let mut logs = BTreeMap::new();
        for entry in earlier.iter().chain(entries) {
            if let Some(log) = self.logs.get(&entry.slot) {
                let next = logs.entry(entry.slot).or_insert(log.durable);
                *next = entry.next().max(*next);
            }
        }
        Some(self.ends([(segment, end)].into(), logs))
    }

    /// What the file is to say, but for what is known better of some segments and logs.
    fn ends(&mut self, mut segments: BTreeMap<u64, u64>, mut logs: BTreeMap<u32, u64>) -> Note {
        self.ends_count += 1;
        let open = self.classes.values().filter_map(|class| class.active);
        for id in open.chain(self.sealing()) {
            if let Some(segment) = self.segments.get(&id)
                && segment.header.class != META_CLASS
                && segment.state != State::Making
            {
                segments.entry(id).or_insert(segment.durable);
            }
        }
        let touched = self.touched.iter().rev().chain(&self.touched_before);
        for log in touched.filter_map(|slot| self.logs.get(slot)) {
            if logs.len() >= LOGS_MAX {
                break;
            }
            logs.entry(log.slot).or_insert(log.durable);
        }
        let ends = Ends {
            count: self.ends_count,
            segments,
            logs,
        };
        Note {
            name: ENDS_NAME.into(),
            at: (self.ends_count % 2) * PLACE_BYTES as u64,
            bytes: ends.encode().into(),
        }
    }

    pub(super) fn ends_done(&mut self, result: io::Result<()>) {
        self.ends_busy = false;
        let made = match &result {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
        };
        self.ends_made |= made;
        // It is only ever a help: a failure is not worth more than trying again with the next.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_of_two_places_counts_and_damage_is_found() {
        let older = Ends {
            count: 1,
            segments: [(1, 100)].into(),
            logs: [(2, 5)].into(),
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
