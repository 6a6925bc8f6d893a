//! Group commit: waiting batches go to the disk together, one write and one sync for each segment.
//!
//! The next commit starts when the last has ended, or, while commits are small, behind it
//! ([`follow`](super::follow)). A commit holds commands or batches, not both; commands go first.
//! All of a log's batches in a commit go to one segment, and a log changes its segment only when
//! all of its contents are durable; so a log's numbers become durable in order (`Commits::check`,
//! `Storing::take_in`).
//!
//! This is the conductor: it has almost everything done by handlers, one after the other.
//! [`choosing`](super::choosing) chooses the contents, [`writing`](super::writing) writes them,
//! [`storing`](super::storing) takes up the parts that went well, and [`failure`](super::failure)
//! those that failed. None of the four calls another; one's result is the next one's argument.

use super::Journal;
use super::commits::{Commit, Part};
use super::entry::Entry;
use super::id::{SegmentId, Slot};
use airmail_model::Mono;
use std::collections::BTreeSet;
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
            return self.follow();
        }
        // Batches that were already acknowledged but whose segment failed are written again before
        // that segment is sealed, if there is room.
        let copies = self.commits.waiting().front();
        let copies = copies.is_some_and(|entry| entry.copy);
        let commands = !self.commands.are_held_back() && !self.commands.is_empty();
        if commands && !copies {
            return self.commit_commands();
        }
        let batches = self.choosing().batches();
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
        if let Some((gather, part)) = self.choosing().commands() {
            let part = self.writing().write(gather, part, None);
            self.commits.begun(vec![part]);
            self.take_up_ended();
        }
    }

    /// A commit of these parts is under way, with all that was gathered.
    pub(super) fn begun(&mut self, parts: Vec<Part>) {
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

    /// A write of a commit has ended; those of which all have ended are taken up in order.
    pub(super) fn commit_done(&mut self, place: usize, result: io::Result<()>) {
        self.commits.part_ended(place, result);
        self.take_up_ended();
    }

    fn take_up_ended(&mut self) {
        while let Some(commit) = self.commits.take_ended() {
            self.ended(commit);
        }
    }

    fn ended(&mut self, commit: Commit) {
        let mut moved = BTreeSet::new();
        for part in commit.into_parts() {
            moved.extend(part.entries.iter().map(|entry| entry.slot));
            match part.result {
                Some(Err(error)) => {
                    self.ends.changed_if(part.noted);
                    let mut entries = part.entries;
                    entries.extend(self.give_up_following(&mut moved));
                    self.failing()
                        .abandon(part.segment, entries, part.metas, &error);
                }
                _ => self.stored(part, &mut moved),
            }
        }
        self.failing().abandon_unfilled();
        self.logs_moved(moved);
        self.logs.trim_cache(self.config.cache_bytes);
    }

    /// Takes up a part that was written, and carries out its commands, which are durable.
    fn stored(&mut self, part: Part, moved: &mut BTreeSet<Slot>) {
        match self.storing().stored(part, moved) {
            Ok(metas) => {
                let mut carrying_out = self.carrying_out();
                for (meta, t) in metas {
                    carrying_out.carry_out(&meta, t, moved);
                }
            }
            Err(part) => {
                let error = io::Error::other("its segment is gone");
                let (segment, entries, metas) = (part.segment, part.entries, part.metas);
                self.failing().abandon(segment, entries, metas, &error);
            }
        }
    }

    /// Gives up the commits that followed a failed one: they are in the same segment.
    fn give_up_following(&mut self, moved: &mut BTreeSet<Slot>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for part in self.commits.give_up() {
            self.ends.changed_if(part.noted);
            entries.extend(part.entries);
        }
        moved.extend(entries.iter().map(|entry| entry.slot));
        entries
    }
}
