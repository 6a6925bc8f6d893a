//! Writing a part of a commit to its segment.
//!
//! Nothing is written to a segment that does not take batches (`Segment::written_to`): one that failed is left
//! behind for ever.

use super::Journal;
use super::append::cost;
use super::commits::{Commits, Part};
use super::effects::Purpose;
use super::entry::Entry;
use super::gather::Gather;
use super::id::SegmentId;
use super::logs::Logs;
use super::segments::Making;
use crate::files::{FileOp, Note};
use airmail_model::{Durability, bug};
use std::io;

/// The parts of the journal that writing reads or changes, those for filling ahead among them.
pub(super) struct Writing<'j> {
    making: Making<'j>,
    logs: &'j Logs,
    commits: &'j mut Commits,
}

impl Journal {
    pub(super) fn writing(&mut self) -> Writing<'_> {
        Writing {
            making: Making {
                config: &self.config,
                time: &self.time,
                calls: &self.calls,
                faults: &mut self.faults,
                segments: &mut self.segments,
                effects: &mut self.effects,
            },
            logs: &self.logs,
            commits: &mut self.commits,
        }
    }
}

impl Writing<'_> {
    /// Gathers batches that are to be written to a segment.
    pub(super) fn gather(
        &mut self,
        segment: SegmentId,
        mut entries: Vec<Entry>,
    ) -> Option<(Gather, Part)> {
        let Some(open) = self.making.segments.get(segment) else {
            bug!("segment {segment} of {} batches is gone", entries.len());
            self.commits.put_back(entries);
            return None;
        };
        let lengths = entries.iter().map(|entry| entry.batch.bytes().len());
        let mut gather = Gather::new(open, lengths);
        for entry in &mut entries {
            entry.offset = gather.at;
            gather.record(entry.envelope(), entry.batch.bytes().clone());
        }
        let sync = self.wants_sync(segment, &entries);
        Some((gather, Part::new(segment, sync, entries)))
    }

    fn wants_sync(&self, segment: SegmentId, entries: &[Entry]) -> bool {
        let Some(segment) = self.making.segments.get(segment) else {
            bug!("segment {segment} of a commit is gone");
            return true;
        };
        let strong = entries.iter().any(|entry| {
            let log = self.logs.get(entry.slot);
            entry.copy || log.is_none_or(|log| log.life.spec.durability == Durability::Fsync)
        });
        let new: u64 = entries.iter().map(|entry| cost(&entry.batch)).sum();
        let unsynced = segment.written() - segment.durable() + new;
        strong || entries.is_empty() || unsynced >= self.making.config.unsynced_bytes
    }

    /// Has a part of a commit written, with the next contents of the file of durable ends.
    pub(super) fn write(&mut self, gather: Gather, mut part: Part, note: Option<Note>) -> Part {
        let (at, parts, end) = gather.finish(self.making.config.fill_bytes > 0);
        (part.end, part.noted) = (end, note.is_some());
        let place = self.commits.place();
        let Some(open) = self.making.segments.get_mut(part.segment) else {
            bug!("segment {} of a commit is gone", part.segment);
            part.result = Some(Err(io::Error::other("its segment is gone")));
            return part;
        };
        open.written_to(end);
        let op = FileOp::Write {
            name: open.name.clone(),
            at: at.0,
            parts,
            sync: part.sync,
            note,
        };
        self.making.effects.submit(Purpose::Commit(place), op);
        self.making.fill_ahead(part.segment);
        part
    }
}
