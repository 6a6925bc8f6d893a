//! Ends of commits: they are taken up in the order in which the commits began.
//!
//! What was written is taken up ([`storing`](super::storing)), its commands are carried out, and the answers
//! and readers of its logs go on; what failed is left behind ([`failure`](super::failure)), with all that
//! followed it to the same segment.

use super::Journal;
use super::commits::{Commit, Part};
use super::entry::Entry;
use super::id::Slot;
use std::collections::BTreeSet;
use std::io;

impl Journal {
    /// A write of a commit has ended; those of which all have ended are taken up in order.
    pub(super) fn commit_done(&mut self, place: usize, result: io::Result<()>) {
        self.commits.part_ended(place, result);
        self.take_up_ended();
    }

    /// Takes up the oldest commits, as far as all of their writes have ended.
    pub(super) fn take_up_ended(&mut self) {
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
