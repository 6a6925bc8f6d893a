//! Group commit: waiting batches go to the disk together, one write and one sync for each segment.
//!
//! The next commit starts when the last has ended, or, while commits are small, behind it
//! ([`follow`](super::follow)). A commit holds commands or batches, not both; commands go first.
//! All of a log's batches in a commit go to one segment, and a log changes its segment only when
//! all of its contents are durable; so a log's numbers become durable in order (`Commits::check`,
//! `Storing::take_in`).
//!
//! This is the way down: [`choosing`](super::choosing) says where each batch goes, and here they are taken out of
//! the queue and written. Nothing is written to a segment that does not take batches
//! (`Segment::written_to`): one that failed is left behind for ever. What becomes of the writes is taken up
//! in [`ended`](super::ended).

use super::Journal;
use super::append::cost;
use super::choosing::Destination;
use super::commits::{Commits, Part};
use super::effects::Purpose;
use super::entry::Entry;
use super::gather::Gather;
use super::id::SegmentId;
use super::logs::Logs;
use super::segments::Making;
use crate::files::{FileOp, Note};
use airmail_model::{Mono, Synced, bug};
use std::collections::BTreeMap;
use std::io;

impl Journal {
    /// Starts the next commit, if there is something to be written and nothing in the way.
    pub(super) fn start_commit(&mut self) {
        self.settle();
        if self.faults.is_withheld() {
            return;
        }
        // What is nearly due goes along with what has brought the turn about: the owner is never
        // asked for a deadline too near for its timer.
        let nearly = self.time.mono().plus(self.config.gather_time / 4);
        if self.gathers_until().is_some_and(|at| nearly < at) {
            return;
        }
        if !self.commits.are_idle() {
            if let Some(segment) = self.segment_to_follow() {
                let entries = self.commits.take_waiting();
                let part = self.write_batches(segment, entries, true);
                self.begun(part.into_iter().collect());
            }
            return;
        }
        // Batches that were already acknowledged but whose segment failed are written again before
        // that segment is sealed, if there is room.
        let copies = self.commits.waiting().begins_with_a_copy();
        let commands = !self.commands.are_held_back() && !self.commands.is_empty();
        if commands && !copies {
            return self.commit_commands();
        }
        let batches = self.take_batches();
        if commands && batches.is_empty() {
            return self.commit_commands();
        }
        let alone = batches.len() == 1;
        let mut parts = Vec::new();
        for (segment, entries) in batches {
            parts.extend(self.write_batches(segment, entries, alone));
        }
        self.begun(parts);
    }

    /// Takes the next commit's batches: by segment, the lanes by turns, each in order. A segment without any is to be
    /// synced.
    fn take_batches(&mut self) -> BTreeMap<SegmentId, Vec<Entry>> {
        let (mut choosing, commits) = self.choosing();
        let mut parts: BTreeMap<SegmentId, Vec<Entry>> = BTreeMap::new();
        let mut kept = Vec::new();
        let mut open = [true; 2];
        while let Some(entry) = commits.next(open) {
            match choosing.destination(&entry) {
                Destination::Segment(segment) => {
                    commits.took(&entry, open);
                    parts.entry(segment).or_default().push(entry);
                }
                Destination::Later => kept.push(entry),
                Destination::BehindCommands => {
                    open[entry.lane() as usize] = false;
                    kept.push(entry);
                }
                Destination::Full => {
                    kept.push(entry);
                    break;
                }
                Destination::Nowhere => {}
            }
        }
        commits.put_back(kept);
        for segment in choosing.due_syncs() {
            parts.entry(segment).or_default();
        }
        parts
    }

    /// Writes to one segment; `alone` if the commit has no other.
    pub(super) fn write_batches(
        &mut self,
        segment: SegmentId,
        entries: Vec<Entry>,
        alone: bool,
    ) -> Option<Part> {
        if self.is_checked() {
            self.check_commands_first(&entries);
        }
        let (gather, part) = self.writing().gather(segment, entries)?;
        // A write behind one that failed may go well, and would tell of an end that is none.
        let note = if alone && part.sync && self.commits.are_idle() {
            self.note_ends(segment, gather.at, &part.entries)
        } else {
            None
        };
        Some(self.writing().write(gather, part, note))
    }

    fn commit_commands(&mut self) {
        let chosen = self.choosing().0.commands();
        if let Some((gather, part)) = chosen {
            let part = self.writing().write(gather, part, None);
            self.commits.begun(vec![part]);
            self.take_up_ended();
        }
    }

    /// A commit of these parts is under way, with all that was gathered.
    fn begun(&mut self, parts: Vec<Part>) {
        self.commits.gathered();
        self.commits.begun(parts);
        self.take_up_ended();
    }

    /// Time until which waiting batches may gather, if nobody waits for them.
    pub(super) fn gathers_until(&self) -> Option<Mono> {
        let hurry = self.calls.is_closing()
            || self.commands.are_held_back()
            || self.faults.trouble().is_some()
            || !self.commands.is_empty()
            || self.commits.bytes() >= self.config.gather_bytes.min(self.config.pending_bytes / 2);
        let since = self.commits.gathers_since().filter(|_| !hurry)?;
        Some(since.plus(self.config.gather_time))
    }
}

/// The parts of the journal that writing reads or changes, those for filling ahead among them.
struct Writing<'j> {
    making: Making<'j>,
    logs: &'j Logs,
    commits: &'j mut Commits,
}

impl Journal {
    fn writing(&mut self) -> Writing<'_> {
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
    fn gather(&mut self, segment: SegmentId, mut entries: Vec<Entry>) -> Option<(Gather, Part)> {
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
            entry.copy || log.is_none_or(|log| log.life.spec.durability.synced == Synced::Fsync)
        });
        let new: u64 = entries.iter().map(|entry| cost(&entry.batch)).sum();
        let unsynced = segment.written() - segment.durable() + new;
        strong || entries.is_empty() || unsynced >= self.making.config.unsynced_bytes
    }

    /// Has a part of a commit written, with the next contents of the file of durable ends.
    fn write(&mut self, gather: Gather, mut part: Part, note: Option<Note>) -> Part {
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
