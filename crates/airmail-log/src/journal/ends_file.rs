//! Keeping of the file of durable ends ([`ends`](super::ends)): the times at which it is written,
//! and its next contents.
//!
//! A commit to one segment brings the ends along as a note; else they are written when it has ended, one
//! write at a time.

use super::Journal;
use super::checkpointer::Checkpointer;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::{Effects, Purpose};
use super::ends::{Ends, LOGS_MAX, PLACE_BYTES};
use super::entry::Entry;
use super::format::META_CLASS;
use super::id::{FileOffset, SegmentId, Slot};
use super::logs::Logs;
use super::names::ENDS_NAME;
use super::segment::{Segment, State};
use super::segment_set::SegmentSet;
use super::settling::sealing;
use crate::files::{FileName, FileOp, Note};
use airmail_model::Sequence;
use std::collections::BTreeMap;
use std::io;

/// The file, and whether its contents are up to date.
///
/// Invariant, held by [`EndsFile::check`]: nothing was written to a file that was not made.
#[derive(Debug, Default)]
pub(super) struct EndsFile {
    /// The durable ends differ from those in the file.
    changed: bool,
    /// It is being made, or written apart from a commit.
    busy: bool,
    made: bool,
    /// Number of times that the file was written.
    count: u64,
}

impl EndsFile {
    /// The file is there, and was written so often.
    pub(super) fn found(&mut self, count: u64) {
        self.made = true;
        self.count = count;
    }

    /// Notes that the durable ends differ from the file, if `changed`.
    pub(super) fn changed_if(&mut self, changed: bool) {
        self.changed |= changed;
    }

    /// The next thing to do, if there is one now.
    fn next_step(&mut self) -> Option<Step> {
        if self.busy || !std::mem::take(&mut self.changed) {
            return None;
        }
        self.busy = true;
        Some(if self.made { Step::Write } else { Step::Make })
    }

    /// It was made or written, or could not be. It is only ever a help: a failure is not worth more than
    /// trying again with the next change. At once would be for ever, where the disk is full.
    pub(super) fn step_done(&mut self, result: &io::Result<()>) {
        self.busy = false;
        let is_there = match result {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
        };
        if is_there && !std::mem::replace(&mut self.made, true) {
            self.changed = true;
        }
    }

    /// Asserts the invariant.
    pub(super) fn check(&self) {
        assert!(
            self.made || self.count == 0,
            "the ends were written {} times to no file",
            self.count
        );
    }
}

/// Steps of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Make,
    Write,
}

/// The parts of the journal that noting the ends reads or changes.
struct Telling<'j> {
    ends: &'j mut EndsFile,
    effects: &'j mut Effects,
    segments: &'j SegmentSet,
    logs: &'j Logs,
    commits: &'j Commits,
    commands: &'j Commands,
    checkpointer: &'j Checkpointer,
}

impl Journal {
    fn telling(&mut self) -> Telling<'_> {
        Telling {
            ends: &mut self.ends,
            effects: &mut self.effects,
            segments: &self.segments,
            logs: &self.logs,
            commits: &self.commits,
            commands: &self.commands,
            checkpointer: &self.checkpointer,
        }
    }

    /// Writes the durable ends, if they have changed and no write of them is under way. Whether it
    /// does.
    pub(super) fn tell_ends(&mut self) -> bool {
        self.telling().tell_ends()
    }

    /// The ends as they will be when a segment is durable to `end` with `entries` last; to be
    /// written with that sync. `None`: they can't be told so.
    pub(super) fn note_ends(
        &mut self,
        segment: SegmentId,
        end: FileOffset,
        entries: &[Entry],
    ) -> Option<Note> {
        self.telling().note_ends(segment, end, entries)
    }
}

impl Telling<'_> {
    /// Writes the durable ends, if they have changed and no write of them is under way. Whether it
    /// does.
    fn tell_ends(&mut self) -> bool {
        // While the journal opens, the last run's ends are still needed, should this one end early.
        if self.commands.are_held_back() {
            return false;
        }
        let Some(step) = self.ends.next_step() else {
            // Input: ends that are in the file, or on their way there.
            return false;
        };
        if step == Step::Make {
            let name: FileName = ENDS_NAME.into();
            self.effects.submit(Purpose::Ends, FileOp::Create { name });
            return true;
        }
        let note = self.ends_now(BTreeMap::new(), BTreeMap::new());
        let op = FileOp::Write {
            name: note.name,
            at: note.at,
            parts: vec![note.bytes],
            sync: false,
            note: None,
        };
        self.effects.submit(Purpose::Ends, op);
        true
    }

    /// The ends as they will be when a segment is durable to `end` with `entries` last; to be
    /// written with that sync. `None`: they can't be told so.
    fn note_ends(
        &mut self,
        segment: SegmentId,
        end: FileOffset,
        entries: &[Entry],
    ) -> Option<Note> {
        if !self.ends.made || self.commands.are_held_back() {
            return None;
        }
        self.ends.changed = false;
        let earlier = self.segments.get(segment);
        let earlier = earlier.map_or(&[][..], Segment::unsynced);
        let mut logs = BTreeMap::new();
        for entry in earlier.iter().chain(entries) {
            if let Some(log) = self.logs.get(entry.slot) {
                let next = logs.entry(entry.slot).or_insert(log.numbers.durable);
                *next = entry.next().max(*next);
            }
        }
        Some(self.ends_now([(segment, end)].into(), logs))
    }

    /// The next contents of the file; `segments` and `logs` are ends of which more is known than
    /// here.
    fn ends_now(
        &mut self,
        mut segments: BTreeMap<SegmentId, FileOffset>,
        mut logs: BTreeMap<Slot, Sequence>,
    ) -> Note {
        self.ends.count += 1;
        let open = self.segments.active();
        for id in open.chain(sealing(self.commands, self.commits)) {
            if let Some(segment) = self.segments.get(id)
                && segment.header.class != META_CLASS
                && segment.state() != State::Making
            {
                segments.entry(id).or_insert(segment.durable());
            }
        }
        let touched = self.checkpointer.touched();
        for log in touched.filter_map(|slot| self.logs.get(slot)) {
            if logs.len() >= LOGS_MAX {
                break;
            }
            logs.entry(log.slot).or_insert(log.numbers.durable);
        }
        let ends = Ends {
            count: self.ends.count,
            segments,
            logs,
        };
        Note {
            name: ENDS_NAME.into(),
            at: (self.ends.count % 2) * PLACE_BYTES as u64,
            bytes: ends.encode().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_made_is_tried_again_with_the_next_change_and_not_at_once() {
        let mut file = EndsFile::default();
        file.changed_if(true);
        assert_eq!(file.next_step(), Some(Step::Make));
        assert_eq!(file.next_step(), None);
        file.step_done(&Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(file.next_step(), None);
        file.changed_if(true);
        assert_eq!(file.next_step(), Some(Step::Make));
        file.step_done(&Ok(()));
        assert_eq!(file.next_step(), Some(Step::Write));
        file.step_done(&Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(file.next_step(), None);
    }
}
