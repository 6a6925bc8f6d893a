//! Group commit: what waits goes to the disk together, one write and one sync for each segment.
//!
//! The next commit starts when the last has ended, or, while commits are small, behind it
//! ([`follow`](super::follow)). A commit holds commands or batches, not both; commands go first. All
//! of a log's batches in a commit go to one segment, and a segment is left only when all that it holds
//! is durable; so a log's numbers become durable in order.

use super::append::cost;
use super::format::{Envelope, HEADER_BYTES, Kind, META_CLASS, SYSTEM_CLASS};
use super::gather::Gather;
use super::log::{Entry, Recent};
use super::meta::Meta;
use super::table::Location;
use super::{Journal, Purpose};
use crate::contract::Tag;
use crate::files::{FileOp, Note};
use airmail_model::{Durability, LogId, Mono, Retention};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// How often a command is written. What it says is nowhere else before the next checkpoint, so that
/// damage to one of them would cost a log its life; reading goes by a command's count.
const COPIES: u64 = 2;
/// Commands in one commit, at most.
const COMMANDS_MAX: usize = 1024;

/// Writes under way.
#[derive(Debug)]
pub(super) struct Commit {
    /// Of its first part, among those of all commits.
    place: usize,
    pub(super) parts: Vec<Part>,
    /// Parts whose write has not ended.
    left: usize,
}

impl Commit {
    fn part_at(&mut self, place: usize) -> Option<&mut Part> {
        let at = place.checked_sub(self.place)?;
        self.parts.get_mut(at)
    }
}

/// What goes to one segment.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) segment: u64,
    pub(super) entries: Vec<Entry>,
    pub(super) metas: Vec<(Meta, Option<Tag>)>,
    pub(super) end: u64,
    pub(super) sync: bool,
    /// The ends are written with it, if its sync goes well.
    noted: bool,
    pub(super) result: Option<io::Result<()>>,
}

impl Part {
    fn new(segment: u64, sync: bool, entries: Vec<Entry>) -> Part {
        Part {
            segment,
            entries,
            metas: Vec::new(),
            end: 0,
            sync,
            noted: false,
            result: None,
        }
    }
}

/// What waits for a commit: since when, and whether somebody waits for it.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    since: Option<Mono>,
    awaited: bool,
}

impl Gathering {
    /// A batch waits now.
    pub(super) fn add(&mut self, awaited: bool, now: Mono) {
        self.since.get_or_insert(now);
        self.awaited |= awaited;
    }
}

/// The class of segments for a log that keeps its records so long. Log 0 keeps a little for ever: in
/// segments with others' it would keep all of these.
pub(super) fn class_of(log: LogId, retention: Retention) -> u16 {
    match (retention.time_ms, retention.bytes) {
        _ if log == LogId::SYSTEM => SYSTEM_CLASS,
        (Some(ms), _) => 1 + (u64::BITS - ms.leading_zeros()) as u16,
        (None, Some(_)) => 128,
        (None, None) => 0,
    }
}

impl Journal {
    /// Starts the next commit, if there is something to be written and nothing in the way.
    pub(super) fn start_commit(&mut self) {
        self.settle();
        if self.withheld {
            return;
        }
        // What is nearly due goes along with what has brought the turn about: the owner is never
        // asked for a deadline too near for its timer.
        let nearly = self.now.mono.plus(self.config.gather_time / 4);
        if self.gathers_until().is_some_and(|at| nearly < at) {
            return;
        }
        if !self.commits.is_empty() {
            return self.follow();
        }
        // What was answered, and lost its place, is elsewhere before its old place is given up, if
        // there is a place for it.
        let copies = self.pending.front().is_some_and(|entry| entry.copy);
        let commands = self.recovering.is_none() && !self.metas.is_empty();
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
        segment: u64,
        mut entries: Vec<Entry>,
        alone: bool,
    ) -> Option<Part> {
        let open = self.segments.get(&segment)?;
        let lengths = entries.iter().map(|entry| entry.batch.bytes().len());
        let mut gather = Gather::new(open, lengths);
        for entry in &mut entries {
            entry.offset = gather.at;
            gather.record(envelope_of(entry), entry.batch.bytes().clone());
        }
        let sync = self.wants_sync(segment, &entries);
        let part = Part::new(segment, sync, entries);
        // A write behind one that failed may go well, and would tell of an end that is none.
        let note = if alone && sync && self.commits.is_empty() {
            self.note_ends(segment, gather.at, &part.entries)
        } else {
            None
        };
        Some(self.write_part(gather, part, note))
    }

    /// A commit of these parts is under way.
    pub(super) fn begun(&mut self, parts: Vec<Part>) {
        self.gathering = Gathering {
            since: None,
            awaited: !self.pending.is_empty(),
        };
        if !parts.is_empty() {
            self.commits.push_back(Commit {
                place: self.commit_places - parts.len(),
                left: parts.len(),
                parts,
            });
        }
    }

    /// Until when what waits may gather, if nobody waits for it.
    pub(super) fn gathers_until(&self) -> Option<Mono> {
        let hurry = self.gathering.awaited
            || self.closing
            || self.recovering.is_some()
            || self.trouble.is_some()
            || !self.metas.is_empty()
            || self.pending_bytes >= self.config.gather_bytes.min(self.config.pending_bytes / 2);
        let since = self.gathering.since.filter(|_| !hurry)?;
        Some(since.plus(self.config.gather_time))
    }

    /// What the next commit takes: by segment, in order. A segment without entries is to be synced.
    fn gather(&mut self) -> BTreeMap<u64, Vec<Entry>> {
        let mut parts: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        let mut blocked = BTreeSet::new();
        let mut forced = BTreeSet::new();
        let mut kept = Vec::new();
        let mut taken = 0;
        let only_copies = !self.metas.is_empty();
        while let Some(entry) = self.pending.pop_front() {
            let bytes = cost(&entry.batch);
            if only_copies && !entry.copy {
                kept.push(entry);
                break;
            }
            if taken > 0 && taken + bytes > self.config.commit_bytes {
                kept.push(entry);
                break;
            }
            let Some(log) = self.logs.get(&entry.slot) else {
                self.pending_bytes -= bytes;
                continue;
            };
            let class = class_of(log.id, log.spec.retention);
            // In another class's segments it goes on only behind what is durable in the old one's.
            let moves = log.class.is_some_and(|old| old != class);
            if moves && log.durable < entry.first && !entry.copy {
                forced.extend(log.class);
                blocked.insert(class);
                kept.push(entry);
                continue;
            }
            let reserved = log.spec.durability == Durability::Fsync
                || entry.copy
                || entry.next() <= log.reserved;
            let room = reserved && !blocked.contains(&class);
            let segment = if room {
                self.room(class, bytes, &mut ends)
            } else {
                None
            };
            let Some(segment) = segment else {
                blocked.insert(class);
                kept.push(entry);
                continue;
            };
            if let Some(log) = self.logs.get_mut(&entry.slot) {
                log.class = Some(class);
            }
            taken += bytes;
            self.pending_bytes -= bytes;
            parts.entry(segment).or_default().push(entry);
        }
        for entry in kept.into_iter().rev() {
            self.pending.push_front(entry);
        }
        self.add_due_syncs(&mut parts, &forced);
        parts
    }

    /// The class's open segment, if it has room for so much more. If not, what would make room is
    /// begun.
    fn room(&mut self, class: u16, bytes: u64, ends: &mut BTreeMap<u64, u64>) -> Option<u64> {
        let id = self.open_segment(class)?;
        let segment = self.segments.get(&id)?;
        let at = *ends.get(&id).unwrap_or(&segment.written);
        let limit = self.segment_limit(class);
        if at > HEADER_BYTES as u64 && at + bytes > limit {
            if segment.unsynced.is_empty() && !ends.contains_key(&id) {
                self.roll(class);
                return self.room(class, bytes, ends);
            }
            return None;
        }
        // A fill and a write of the same bytes must not overtake one another; and what will be left
        // takes nothing more.
        let left = segment.fill_failed.is_some();
        if left
            || segment
                .filling
                .is_some_and(|to| segment.filled < at + bytes && at < to)
        {
            return None;
        }
        ends.insert(id, at + bytes);
        Some(id)
    }

    /// Segments that wait to be synced, because of their age, or because they are full or left.
    fn add_due_syncs(&self, parts: &mut BTreeMap<u64, Vec<Entry>>, forced: &BTreeSet<u16>) {
        let due = self.now.mono;
        for (number, class) in &self.classes {
            let Some(segment) = class.active.and_then(|id| self.segments.get(&id)) else {
                continue;
            };
            let Some(since) = segment.unsynced_since else {
                continue;
            };
            let full = segment.written + self.config.commit_bytes > self.config.segment_bytes;
            let old = since.plus(self.config.unsynced_time) <= due;
            let left = segment.fill_failed.is_some();
            if old || full || left || self.closing || forced.contains(number) {
                parts.entry(segment.id).or_default();
            }
        }
    }

    fn wants_sync(&self, segment: u64, entries: &[Entry]) -> bool {
        let Some(segment) = self.segments.get(&segment) else {
            return true;
        };
        let strong = entries.iter().any(|entry| {
            let log = self.logs.get(&entry.slot);
            entry.copy || log.is_none_or(|log| log.spec.durability == Durability::Fsync)
        });
        let new: u64 = entries.iter().map(|entry| cost(&entry.batch)).sum();
        let unsynced = segment.written - segment.durable + new;
        strong || entries.is_empty() || unsynced >= self.config.unsynced_bytes
    }

    fn write_part(&mut self, gather: Gather, mut part: Part, note: Option<Note>) -> Part {
        let (at, parts, end) = gather.finish(self.config.fill_bytes > 0);
        (part.end, part.noted) = (end, note.is_some());
        let place = self.commit_places;
        self.commit_places += 1;
        if let Some(open) = self.segments.get_mut(&part.segment) {
            open.header_written = true;
            open.written = end;
            let name = open.name.clone();
            let op = FileOp::Write {
                name,
                at,
                parts,
                sync: part.sync,
                note,
            };
            self.submit(Purpose::Commit(place), op);
        }
        self.fill_ahead(part.segment);
        part
    }

    fn commit_metas(&mut self) {
        let now = self.now.wall.0;
        let mut ends = BTreeMap::new();
        let mut taken = Vec::new();
        let mut records = Vec::new();
        let mut segment = None;
        while taken.len() < COMMANDS_MAX {
            let Some((meta, t)) = self.metas.pop_front() else {
                break;
            };
            let body = Bytes::from(meta.encode());
            let envelope = Envelope {
                kind: Kind::Meta,
                length: body.len() as u32,
                salt: 0,
                first: self.meta_count,
                numbers: 0,
                slot: 0,
                append_time: now,
            };
            let Some(id) = self.room(META_CLASS, COPIES * envelope.stored_bytes(), &mut ends)
            else {
                self.metas.push_front((meta, t));
                break;
            };
            segment = Some(id);
            self.meta_count += 1;
            records.push((envelope, body));
            taken.push((meta, t));
        }
        let Some(id) = segment else { return };
        let Some(open) = self.segments.get(&id) else {
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
        self.commits.push_back(Commit {
            place: self.commit_places - 1,
            left: 1,
            parts: vec![part],
        });
    }

    /// A write of a commit has ended; those of which all have ended are taken up in order.
    pub(super) fn commit_done(&mut self, place: usize, result: io::Result<()>) {
        // Of a commit that followed one that failed, nobody waits for the end.
        for commit in &mut self.commits {
            if let Some(part) = commit.part_at(place) {
                part.result = Some(result);
                commit.left -= 1;
                break;
            }
        }
        while self.commits.front().is_some_and(|commit| commit.left == 0) {
            if let Some(commit) = self.commits.pop_front() {
                self.ended(commit);
            }
        }
    }

    fn ended(&mut self, commit: Commit) {
        let mut moved = BTreeSet::new();
        for part in commit.parts {
            moved.extend(part.entries.iter().map(|entry| entry.slot));
            match part.result {
                Some(Err(error)) => {
                    self.ends_changed |= part.noted;
                    let mut entries = part.entries;
                    entries.extend(self.give_up_following(&mut moved));
                    self.abandon(part.segment, entries, part.metas, &error);
                }
                _ => self.part_stored(part, &mut moved),
            }
        }
        self.abandon_unfilled();
        self.logs_moved(moved);
        self.trim_cache();
    }

    /// What follows a failed commit goes the way of it: it is in the same segment.
    fn give_up_following(&mut self, moved: &mut BTreeSet<u32>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for part in self.commits.drain(..).flat_map(|commit| commit.parts) {
            self.ends_changed |= part.noted;
            entries.extend(part.entries);
        }
        moved.extend(entries.iter().map(|entry| entry.slot));
        entries
    }

    fn part_stored(&mut self, part: Part, moved: &mut BTreeSet<u32>) {
        self.failures = 0;
        let now = self.now.mono;
        for entry in &part.entries {
            if let Some(log) = self.logs.get_mut(&entry.slot) {
                log.written = log.written.max(entry.next());
            }
        }
        let Some(segment) = self.segments.get_mut(&part.segment) else {
            return;
        };
        segment.unsynced.extend(part.entries);
        if part.sync {
            segment.durable = part.end;
            segment.unsynced_since = None;
            let entries = std::mem::take(&mut segment.unsynced);
            for entry in entries {
                moved.insert(entry.slot);
                self.take_in(part.segment, &entry);
            }
            self.ends_changed |= !part.noted;
        } else {
            segment.unsynced_since.get_or_insert(now);
        }
        let counted = self.meta_count;
        if let Some(segment) = self.segments.get_mut(&part.segment)
            && !part.metas.is_empty()
        {
            segment.meta_next = counted;
        }
        for (meta, t) in part.metas {
            self.meta_durable(&meta, t, moved);
        }
    }

    /// A batch is durable: its place goes into the tables.
    fn take_in(&mut self, segment: u64, entry: &Entry) {
        let Some(log) = self.logs.get_mut(&entry.slot) else {
            return;
        };
        log.durable = log.durable.max(entry.next());
        let copied = log.take_copy(|| Recent {
            first: entry.first,
            numbers: entry.numbers,
            time: entry.time,
            batch: entry.batch.clone(),
        });
        self.checkpoints.due |= copied;
        self.checkpoints.appended += cost(&entry.batch);
        self.touched.insert(entry.slot);
        let length = entry.batch.bytes().len() as u32;
        let location = Location {
            first: entry.first,
            numbers: entry.numbers,
            offset: entry.offset,
            length,
            time: entry.time,
        };
        self.index_batch(segment, entry.slot, location, &entry.batch);
    }
}

/// The envelope of a batch, but for the salt.
fn envelope_of(entry: &Entry) -> Envelope {
    Envelope {
        kind: Kind::Batch,
        length: entry.batch.bytes().len() as u32,
        salt: 0,
        first: entry.first,
        numbers: entry.numbers,
        slot: entry.slot,
        append_time: entry.time,
    }
}
