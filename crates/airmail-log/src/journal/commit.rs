//! Group commit: what waits goes to the disk together, one write and one sync for each segment.
//!
//! The next commit starts when the last has ended, or, while commits are small, behind it
//! ([`follow`](super::follow)). A commit holds commands or batches, not both; commands go first. All
//! of a log's batches in a commit go to one segment, and a segment is left only when all that it holds
//! is durable; so a log's numbers become durable in order (`Commits::check`, `take_in`).

use super::Journal;
use super::append::cost;
use super::commits::{Commit, Part};
use super::effects::Purpose;
use super::entry::{Entry, Recent};
use super::format::{DATA_START, Envelope, Kind, META_CLASS, SYSTEM_CLASS};
use super::gather::Gather;
use super::id::{ClassId, FileOffset, SegmentId, Slot};
use super::segment::State;
use super::table::Location;
use crate::files::{FileOp, Note};
use airmail_model::{Durability, LogId, Mono, Retention, bug};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// How often a command is written. What it says is nowhere else before the next checkpoint, so that
/// damage to one of them would cost a log its life; reading goes by a command's count.
const COPIES: u64 = 2;
/// Commands in one commit, at most.
const COMMANDS_MAX: usize = 1024;

/// The class of segments for a log that keeps its records so long. Log 0 keeps a little for ever: in
/// segments with others' it would keep all of these.
pub(super) fn class_of(log: LogId, retention: Retention) -> ClassId {
    match (retention.time_ms, retention.bytes) {
        _ if log == LogId::SYSTEM => SYSTEM_CLASS,
        (Some(ms), _) => ClassId(1 + (u64::BITS - ms.leading_zeros()) as u16),
        (None, Some(_)) => ClassId(128),
        (None, None) => ClassId(0),
    }
}

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
        // What was answered, and lost its place, is elsewhere before its old place is given up, if
        // there is a place for it.
        let copies = self.commits.waiting().front();
        let copies = copies.is_some_and(|entry| entry.copy);
        let commands = !self.commands.are_held_back() && !self.commands.is_empty();
        if commands && !copies {
            return self.commit_metas();
        }
        let batches = self.gather();
        if commands && batches.is_empty() {
            return self.commit_metas();
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
        mut entries: Vec<Entry>,
        alone: bool,
    ) -> Option<Part> {
        let Some(open) = self.segments.get(segment) else {
            bug!("segment {segment} of {} batches is gone", entries.len());
            self.commits.put_back(entries);
            return None;
        };
        let lengths = entries.iter().map(|entry| entry.batch.bytes().len());
        let mut gather = Gather::new(open, lengths);
        for entry in &mut entries {
            entry.offset = gather.at;
            gather.record(envelope_of(entry), entry.batch.bytes().clone());
        }
        let sync = self.wants_sync(segment, &entries);
        let part = Part::new(segment, sync, entries);
        // A write behind one that failed may go well, and would tell of an end that is none.
        let note = if alone && sync && self.commits.are_idle() {
            self.note_ends(segment, gather.at, &part.entries)
        } else {
            None
        };
        Some(self.write_part(gather, part, note))
    }

    /// A commit of these parts is under way, with all that was gathered.
    pub(super) fn begun(&mut self, parts: Vec<Part>) {
        self.commits.gathered();
        self.commits.begun(parts);
        self.take_up_ended();
    }

    /// Until when what waits may gather, if nobody waits for it.
    pub(super) fn gathers_until(&self) -> Option<Mono> {
        let hurry = self.calls.is_closing()
            || self.commands.are_held_back()
            || self.faults.trouble().is_some()
            || !self.commands.is_empty()
            || self.commits.bytes() >= self.config.gather_bytes.min(self.config.pending_bytes / 2);
        let since = self.commits.gathers_since().filter(|_| !hurry)?;
        Some(since.plus(self.config.gather_time))
    }

    /// What the next commit takes: by segment, in order. A segment without entries is to be synced.
    fn gather(&mut self) -> BTreeMap<SegmentId, Vec<Entry>> {
        let mut parts: BTreeMap<SegmentId, Vec<Entry>> = BTreeMap::new();
        let mut ends: BTreeMap<SegmentId, FileOffset> = BTreeMap::new();
        let mut blocked = BTreeSet::new();
        let mut forced = BTreeSet::new();
        let mut kept = Vec::new();
        let mut taken = 0;
        let only_copies = !self.commands.is_empty();
        while let Some(entry) = self.commits.next() {
            let bytes = cost(&entry.batch);
            if only_copies && !entry.copy {
                kept.push(entry);
                break;
            }
            if taken > 0 && taken + bytes > self.config.commit_bytes {
                kept.push(entry);
                break;
            }
            let Some(log) = self.logs.get(entry.slot) else {
                bug!("slot {} has a batch that waits and no log", entry.slot);
                continue;
            };
            let class = class_of(log.id, log.life.spec.retention);
            // In another class's segments it goes on only behind what is durable in the old one's.
            let moves = log.class.is_some_and(|old| old != class);
            if moves && log.numbers.durable < entry.first && !entry.copy {
                forced.extend(log.class);
                blocked.insert(class);
                kept.push(entry);
                continue;
            }
            let reserved = log.life.spec.durability == Durability::Fsync
                || entry.copy
                || entry.next() <= log.numbers.reserved;
            let room = reserved && !blocked.contains(&class);
            let segment = if room {
                self.room(class, bytes, &mut ends)
            } else {
                None
            };
            let Some(segment) = segment else {
                // Input: load: a segment is full, or made, or filled first.
                blocked.insert(class);
                kept.push(entry);
                continue;
            };
            if let Some(log) = self.logs.get_mut(entry.slot) {
                log.class = Some(class);
            }
            taken += bytes;
            parts.entry(segment).or_default().push(entry);
        }
        self.commits.put_back(kept);
        self.add_due_syncs(&mut parts, &forced);
        parts
    }

    /// The class's open segment, if it has room for so much more. If not, what would make room is
    /// begun.
    fn room(
        &mut self,
        class: ClassId,
        bytes: u64,
        ends: &mut BTreeMap<SegmentId, FileOffset>,
    ) -> Option<SegmentId> {
        let id = self.open_segment(class)?;
        let segment = self.segments.get(id)?;
        let at = *ends.get(&id).unwrap_or(&segment.written);
        let limit = self.config.segment_limit(class);
        if at > DATA_START && at + bytes > limit {
            if segment.unsynced.entries.is_empty() && !ends.contains_key(&id) {
                self.roll(class);
                return self.room(class, bytes, ends);
            }
            return None;
        }
        // A fill and a write of the same bytes must not overtake one another; and what will be left
        // takes nothing more.
        let left = segment.fill.failed.is_some();
        if left
            || segment
                .fill
                .going_to
                .is_some_and(|to| segment.fill.end < at + bytes && at < to)
        {
            return None;
        }
        ends.insert(id, at + bytes);
        Some(id)
    }

    /// Segments that wait to be synced, because of their age, or because they are full or left.
    fn add_due_syncs(
        &self,
        parts: &mut BTreeMap<SegmentId, Vec<Entry>>,
        forced: &BTreeSet<ClassId>,
    ) {
        let due = self.time.mono();
        for (number, class) in self.segments.classes() {
            let Some(segment) = class.active.and_then(|id| self.segments.get(id)) else {
                // Input: a class that writes to no segment at the moment.
                continue;
            };
            let Some(since) = segment.unsynced.since else {
                // Input: a segment of which all is synced.
                continue;
            };
            let full =
                segment.written + self.config.commit_bytes > FileOffset(self.config.segment_bytes);
            let old = since.plus(self.config.unsynced_time) <= due;
            let left = segment.fill.failed.is_some();
            if old || full || left || self.calls.is_closing() || forced.contains(&number) {
                parts.entry(segment.id).or_default();
            }
        }
    }

    fn wants_sync(&self, segment: SegmentId, entries: &[Entry]) -> bool {
        let Some(segment) = self.segments.get(segment) else {
            bug!("segment {segment} of a commit is gone");
            return true;
        };
        let strong = entries.iter().any(|entry| {
            let log = self.logs.get(entry.slot);
            entry.copy || log.is_none_or(|log| log.life.spec.durability == Durability::Fsync)
        });
        let new: u64 = entries.iter().map(|entry| cost(&entry.batch)).sum();
        let unsynced = segment.written - segment.durable + new;
        strong || entries.is_empty() || unsynced >= self.config.unsynced_bytes
    }

    fn write_part(&mut self, gather: Gather, mut part: Part, note: Option<Note>) -> Part {
        let (at, parts, end) = gather.finish(self.config.fill_bytes > 0);
        (part.end, part.noted) = (end, note.is_some());
        let place = self.commits.place();
        let Some(open) = self.segments.get_mut(part.segment) else {
            bug!("segment {} of a commit is gone", part.segment);
            part.result = Some(Err(io::Error::other("its segment is gone")));
            return part;
        };
        if open.state != State::Open || open.flaws.failed {
            bug!(
                "segment {} is written again: it is {:?}, {:?}",
                open.id,
                open.state,
                open.flaws
            );
        }
        open.header_written = true;
        open.written = end;
        let op = FileOp::Write {
            name: open.name.clone(),
            at: at.0,
            parts,
            sync: part.sync,
            note,
        };
        self.effects.submit(Purpose::Commit(place), op);
        self.fill_ahead(part.segment);
        part
    }

    fn commit_metas(&mut self) {
        let now = self.time.wall();
        let mut ends = BTreeMap::new();
        let mut taken = Vec::new();
        let mut records = Vec::new();
        let mut segment = None;
        while taken.len() < COMMANDS_MAX {
            let Some((meta, t)) = self.commands.next() else {
                break;
            };
            let body = Bytes::from(meta.encode());
            let envelope = Envelope {
                kind: Kind::Meta,
                length: body.len() as u32,
                salt: 0,
                first: self.commands.count(),
                numbers: 0,
                slot: Slot(0),
                append_time: now,
            };
            let Some(id) = self.room(META_CLASS, COPIES * envelope.stored_bytes(), &mut ends)
            else {
                self.commands.give_first((meta, t));
                break;
            };
            segment = Some(id);
            self.commands.counted();
            records.push((envelope, body));
            taken.push((meta, t));
        }
        let Some(id) = segment else {
            // Input: a disk that is full or slow: no segment takes commands yet.
            return;
        };
        let Some(open) = self.segments.get(id) else {
            bug!("segment {id} of {} commands is gone", taken.len());
            for command in taken.into_iter().rev() {
                self.commands.give_first(command);
            }
            return;
        };
        let lengths = records.iter().map(|(_, body)| body.len());
        let mut gather = Gather::new(open, lengths);
        for _ in 0..COPIES {
            for (envelope, body) in &records {
                gather.record(*envelope, body.clone());
            }
        }
        let mut part = Part::new(id, true, Vec::new());
        part.metas = taken;
        let part = self.write_part(gather, part, None);
        self.commits.begun(vec![part]);
        self.take_up_ended();
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
                _ => self.part_stored(part, &mut moved),
            }
        }
        self.failing().abandon_unfilled();
        self.logs_moved(moved);
        self.logs.trim_cache(self.config.cache_bytes);
    }

    /// What follows a failed commit goes the way of it: it is in the same segment.
    fn give_up_following(&mut self, moved: &mut BTreeSet<Slot>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for part in self.commits.give_up() {
            self.ends.changed_if(part.noted);
            entries.extend(part.entries);
        }
        moved.extend(entries.iter().map(|entry| entry.slot));
        entries
    }

    fn part_stored(&mut self, part: Part, moved: &mut BTreeSet<Slot>) {
        self.faults.stored();
        let now = self.time.mono();
        for entry in &part.entries {
            if let Some(log) = self.logs.get_mut(entry.slot) {
                log.numbers.written = log.numbers.written.max(entry.next());
            }
        }
        let Some(segment) = self.segments.get_mut(part.segment) else {
            bug!("segment {} of a commit is gone", part.segment);
            let error = io::Error::other("its segment is gone");
            return self
                .failing()
                .abandon(part.segment, part.entries, part.metas, &error);
        };
        segment.unsynced.entries.extend(part.entries);
        if part.sync {
            segment.durable = part.end;
            segment.unsynced.since = None;
            let entries = std::mem::take(&mut segment.unsynced.entries);
            for entry in entries {
                moved.insert(entry.slot);
                self.take_in(part.segment, &entry);
            }
            self.ends.changed_if(!part.noted);
        } else {
            segment.unsynced.since.get_or_insert(now);
        }
        let counted = self.commands.count();
        if let Some(segment) = self.segments.get_mut(part.segment)
            && !part.metas.is_empty()
        {
            segment.covered.meta_next = counted;
        }
        for (meta, t) in part.metas {
            self.carrying_out().carry_out(&meta, t, moved);
        }
    }

    /// A batch is durable: its place goes into the tables.
    fn take_in(&mut self, segment: SegmentId, entry: &Entry) {
        let Some(log) = self.logs.get_mut(entry.slot) else {
            // Input: a log that was deleted while its batches were on their way.
            return;
        };
        if !entry.copy && entry.first < log.numbers.durable {
            bug!(
                "slot {}: {} becomes durable behind {}",
                entry.slot,
                entry.first,
                log.numbers.durable
            );
        }
        log.numbers.durable = log.numbers.durable.max(entry.next());
        let copied = log.take_copy(|| Recent {
            first: entry.first,
            numbers: entry.numbers,
            time: entry.time,
            batch: entry.batch.clone(),
        });
        if copied {
            self.checkpointer.want();
        }
        self.checkpointer.appended(entry.slot, cost(&entry.batch));
        let length = entry.batch.bytes().len() as u32;
        let location = Location {
            first: entry.first,
            numbers: entry.numbers,
            offset: entry.offset,
            length,
            time: entry.time,
        };
        self.placing()
            .place(segment, entry.slot, location, &entry.batch);
    }
}

/// The envelope of a batch, but for the salt.
fn envelope_of(entry: &Entry) -> Envelope {
    Envelope {
        kind: Kind::Batch,
        length: entry.batch.bytes().len() as u32,
        salt: 0,
        first: entry.first.0,
        numbers: entry.numbers,
        slot: entry.slot,
        append_time: entry.time,
    }
}
