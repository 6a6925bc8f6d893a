//! Choice of the next commit's contents: which batches, to which segments, or commands.
//!
//! A commit takes waiting batches, those of a lane in order, as long as the segments of their classes have room; if
//! there is none, making room begins on the way. After a log has changed its class, its batches go
//! to the new class's segments only once all those in the old one's are durable.

use super::Journal;
use super::append::cost;
use super::commands::Commands;
use super::commits::{Commits, Part};
use super::entry::Entry;
use super::format::{DATA_START, Envelope, InWrite, META_CLASS, SYSTEM_CLASS};
use super::gather::Gather;
use super::id::{ClassId, FileOffset, SegmentId};
use super::indexing::Indexer;
use super::log::LogState;
use super::logs::Logs;
use super::segment::Segment;
use super::segments::{Making, seal};
use airmail_model::{LogId, Retention, Synced, bug};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Number of times that a command is written. Its facts are nowhere else before the next
/// checkpoint, so damage to a single copy would cost a log its life; recovery applies a command
/// once, by its count.
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

/// Destination of a waiting batch in the next commit.
pub(super) enum Destination {
    /// It goes to this segment.
    Segment(SegmentId),
    /// It waits for a later commit.
    Later,
    /// It waits, and all of its lane behind it, for commands that go first.
    BehindCommands,
    /// It waits, and all behind it: the commit has enough.
    Full,
    /// It goes nowhere: its log is gone.
    Nowhere,
}

/// The parts of the journal that choosing reads or changes, those for making a segment among them; and what
/// was chosen for this commit so far.
pub(super) struct Choosing<'j> {
    making: Making<'j>,
    logs: &'j mut Logs,
    commands: &'j mut Commands,
    indexer: &'j mut Indexer,
    /// Only batches that are written once more go before the commands that wait.
    only_copies: bool,
    /// Ends of the segments, with what goes to them.
    ends: BTreeMap<SegmentId, FileOffset>,
    /// Bytes of the batches that go.
    taken: u64,
    /// Classes of which nothing more goes.
    blocked: BTreeSet<ClassId>,
    /// Classes whose segments are to be synced, so that a log can leave them.
    forced: BTreeSet<ClassId>,
}

impl Journal {
    /// Begins to choose, with the batches to choose among.
    pub(super) fn choosing(&mut self) -> (Choosing<'_>, &mut Commits) {
        let choosing = Choosing {
            only_copies: !self.commands.is_empty(),
            making: Making {
                config: &self.config,
                time: &self.time,
                calls: &self.calls,
                faults: &mut self.faults,
                segments: &mut self.segments,
                effects: &mut self.effects,
            },
            logs: &mut self.logs,
            commands: &mut self.commands,
            indexer: &mut self.indexer,
            ends: BTreeMap::new(),
            taken: 0,
            blocked: BTreeSet::new(),
            forced: BTreeSet::new(),
        };
        (choosing, &mut self.commits)
    }
}

impl Choosing<'_> {
    /// Chooses where the next batch goes. To be asked of one after the other, until the commit is full.
    pub(super) fn destination(&mut self, entry: &Entry) -> Destination {
        let bytes = cost(&entry.batch);
        if self.taken > 0 && self.taken + bytes > self.making.config.commit_bytes {
            return Destination::Full;
        }
        if self.only_copies && !entry.copy {
            return Destination::BehindCommands;
        }
        let Some(log) = self.logs.get(entry.slot) else {
            bug!("slot {} has a batch that waits and no log", entry.slot);
            return Destination::Nowhere;
        };
        let class = class_of(log.id, log.life.spec.retention);
        // In another class's segments it goes on only behind what is durable in the old one's.
        let moves = log.class.is_some_and(|old| old != class);
        if moves && self.is_behind_unsynced(log, entry) {
            self.forced.extend(log.class);
            self.blocked.insert(class);
            return Destination::Later;
        }
        let reserved = log.life.spec.durability.synced == Synced::Fsync
            || entry.copy
            || entry.next() <= log.numbers.reserved;
        let room = reserved && !self.blocked.contains(&class);
        let segment = if room { self.room(class, bytes) } else { None };
        let Some(segment) = segment else {
            // Input: load: a segment is full, or made, or filled first.
            self.blocked.insert(class);
            return Destination::Later;
        };
        // What is written once more says nothing of what its log has in the old class's segments.
        if let Some(log) = self.logs.get_mut(entry.slot)
            && !(moves && entry.copy)
        {
            log.class = Some(class);
        }
        self.taken += bytes;
        Destination::Segment(segment)
    }

    /// Whether batches before this one are in the segments of its log's class, and not durable. One that is written once
    /// more may be of many that were never written: not all before it have to be durable, but those that are written.
    fn is_behind_unsynced(&self, log: &LogState, entry: &Entry) -> bool {
        if !entry.copy {
            return log.numbers.durable < entry.first;
        }
        let segments = &self.making.segments;
        let active = log.class.and_then(|class| segments.class(class).active);
        let active = active.and_then(|id| segments.get(id)).into_iter();
        let mut unsynced = active.flat_map(Segment::unsynced);
        entry.first >= log.numbers.durable && unsynced.any(|before| before.slot == entry.slot)
    }

    /// The class's open segment, if it has room for these bytes. If not, making room is
    /// begun.
    fn room(&mut self, class: ClassId, bytes: u64) -> Option<SegmentId> {
        let id = self.making.open(class)?;
        let segment = self.making.segments.get(id)?;
        let at = *self.ends.get(&id).unwrap_or(&segment.written());
        let limit = self.making.config.segment_limit(class);
        if at > DATA_START && at + bytes > limit {
            if segment.unsynced().is_empty() && !self.ends.contains_key(&id) {
                self.roll(class);
                return self.room(class, bytes);
            }
            return None;
        }
        // A fill and a write of the same bytes must not overtake one another; and what will be left
        // takes nothing more.
        if segment.fill.has_failed() || segment.fill.meets(at, at + bytes) {
            return None;
        }
        self.ends.insert(id, at + bytes);
        Some(id)
    }

    /// Segments that wait to be synced, because of their age, or because they are full or left.
    pub(super) fn due_syncs(&self) -> Vec<SegmentId> {
        let mut due_syncs = Vec::new();
        let due = self.making.time.mono();
        for (number, class) in self.making.segments.classes() {
            let Some(segment) = class.active.and_then(|id| self.making.segments.get(id)) else {
                // Input: a class that writes to no segment at the moment.
                continue;
            };
            let Some(since) = segment.unsynced_since() else {
                // Input: a segment of which all is synced.
                continue;
            };
            let full = segment.written() + self.making.config.commit_bytes
                > FileOffset(self.making.config.segment_bytes);
            let old = since.plus(self.making.config.unsynced_time) <= due;
            let left = segment.fill.has_failed();
            if old
                || full
                || left
                || self.making.calls.is_closing()
                || self.forced.contains(&number)
            {
                due_syncs.push(segment.id);
            }
        }
        due_syncs
    }

    /// Leaves the class's segment for the next one. All that it holds is durable.
    fn roll(&mut self, class: ClassId) {
        let segments = &mut *self.making.segments;
        if let Some(id) = segments.leave_active(class) {
            seal(segments, self.indexer, self.commands, id);
        }
    }

    /// The commands that the next commit takes, gathered to be written to a segment. `None`: there is no
    /// room for any.
    pub(super) fn commands(&mut self) -> Option<(Gather, Part)> {
        let now = self.making.time.wall();
        let mut taken = Vec::new();
        let mut records = Vec::new();
        let mut segment = None;
        while taken.len() < COMMANDS_MAX {
            let Some((meta, t)) = self.commands.next() else {
                break;
            };
            let body = Bytes::from(meta.encode());
            let envelope = Envelope::of_command(self.commands.count(), now, body.len() as u32);
            let Some(id) = self.room(META_CLASS, COPIES * envelope.stored_bytes()) else {
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
            return None;
        };
        let Some(open) = self.making.segments.get(id) else {
            bug!("segment {id} of {} commands is gone", taken.len());
            for command in taken.into_iter().rev() {
                self.commands.give_first(command);
            }
            return None;
        };
        let lengths = records.iter().map(|(_, body)| body.len());
        let mut gather = Gather::new(open, lengths);
        let start = gather.at;
        for _ in 0..COPIES {
            for (commands, (envelope, body)) in (0..).zip(&records) {
                let bytes = gather.at.since(start) as u32;
                gather.record(envelope.at(InWrite { commands, bytes }), body.clone());
            }
        }
        let mut part = Part::new(id, true, Vec::new());
        part.metas = taken;
        Some((gather, part))
    }
}
