//! Emptying of sealed segments of which little is still kept: the rest is written once more,
//! elsewhere, so that they can go.
//!
//! Logs of a class share segments. A log that is rarely written to would keep every segment in
//! which it has a batch, with all the other logs' batches there that retention has given up. So
//! where the sealed segments of a class hold more than one segment's worth of waste, and nothing
//! else is to be done, the kept batches of the segment that holds the fewest are appended again,
//! like after an unclean stop: with the same numbers and times, in the class's open segment,
//! synced. When that is durable a log's place moves there; the old segment goes when no log keeps
//! anything in it and a checkpoint knows the new places.
//!
//! A block of a segment is moved at a time. A block that is not sound stays where it is, and so
//! does its segment, until the next start: damage is reported, not copied.

use super::block::Block;
use super::calls::Calls;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::{Effects, Purpose};
use super::entry::Entry;
use super::faults::Faults;
use super::format::{DATA_START, Envelope, Kind, META_CLASS};
use super::id::{BlockId, ClassId, FileOffset, SegmentId, Slot};
use super::indexing::Indexer;
use super::logs::Logs;
use super::places::Place;
use super::scan::{Body, Found, Loaded, Scanner};
use super::segment::Segment;
use super::segment_set::SegmentSet;
use super::table::Location;
use super::upkeep::{Move, Upkeep};
use super::{Journal, JournalConfig};
use crate::files::FileOp;
use airmail_model::{Batch, Checked, Mono, Sequence, bug};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;

/// A batch as it was read.
type Record = (Envelope, Checked<Batch>);

/// All batches of a block, or `None` if not everything of it is sound.
fn records_of(bytes: Bytes, start: FileOffset, end: FileOffset, salt: u32) -> Option<Vec<Record>> {
    let mut loaded = Loaded { at: start, bytes };
    let mut scanner = Scanner::new(&mut loaded, "".into(), end, salt, start);
    let mut all = Vec::new();
    while scanner.at() < end {
        // The bytes are in memory: reading them cannot fail.
        match scanner.next().ok()? {
            Found::Record {
                envelope,
                body: Body::Batch(batch, damaged),
                ..
            } if envelope.kind == Kind::Batch && damaged.is_empty() => all.push((envelope, batch)),
            _ => return None,
        }
    }
    Some(all)
}

/// The parts of the journal that moving reads or changes.
struct Moving<'j> {
    config: &'j JournalConfig,
    calls: &'j Calls,
    faults: &'j Faults,
    logs: &'j Logs,
    commands: &'j Commands,
    commits: &'j mut Commits,
    segments: &'j mut SegmentSet,
    indexer: &'j mut Indexer,
    upkeep: &'j mut Upkeep,
    effects: &'j mut Effects,
}

impl Journal {
    fn moving(&mut self) -> Moving<'_> {
        Moving {
            config: &self.config,
            calls: &self.calls,
            faults: &self.faults,
            logs: &self.logs,
            commands: &self.commands,
            commits: &mut self.commits,
            segments: &mut self.segments,
            indexer: &mut self.indexer,
            upkeep: &mut self.upkeep,
            effects: &mut self.effects,
        }
    }

    /// Begins to move the kept batches of a segment, if there is one that is worth it.
    pub(super) fn begin_move(&mut self) {
        self.moving().begin();
    }

    /// A block that is to be moved was read: its batches are written like those found at a start.
    pub(super) fn block_to_move(&mut self, block: BlockId, result: io::Result<Bytes>) {
        self.moving().block_read(block, result);
    }

    /// Goes on to the next block when all of one has been moved.
    pub(super) fn go_on_moving(&mut self) {
        let now = self.time.mono();
        self.moving().go_on(now);
    }
}

/// A sealed segment of which something is wanted.
struct Contents<'s> {
    segment: &'s Segment,
    /// Size of the batches that logs keep in it, in bytes.
    wanted: u64,
    /// Size of all else in it, in bytes.
    waste: u64,
}

/// Total sizes of a class's sealed segments, in bytes: batches that logs keep, and waste.
#[derive(Debug, Default)]
struct Balance {
    waste: u64,
    /// Size of the batches that logs keep in the segments that can be moved.
    movable_wanted: u64,
    movable_waste: u64,
}

/// The sealed segments of batches of which something is wanted. Those of which nothing is go by themselves.
fn contents<'s>(logs: &Logs, segments: &'s SegmentSet) -> Vec<Contents<'s>> {
    let mut kept: BTreeMap<SegmentId, u64> = BTreeMap::new();
    for place in logs.iter().flat_map(|log| log.kept.iter()) {
        *kept.entry(place.block.segment).or_default() += place.bytes;
    }
    let sealed = segments.iter().filter(|segment| {
        segment.is_sealed() && segment.header.class != META_CLASS && !segment.is_leaving()
    });
    let all = sealed.filter_map(|segment| {
        let wanted = kept.get(&segment.id).copied().filter(|bytes| *bytes > 0)?;
        let waste = segment.durable().since(DATA_START).saturating_sub(wanted);
        Some(Contents {
            segment,
            wanted,
            waste,
        })
    });
    all.collect()
}

impl Journal {
    /// Asserts that, while nothing is to be done and no move is worth it, the sealed segments of a
    /// class hold at most one segment's worth of waste; or no more than the batches kept in them,
    /// but for those that cannot be moved.
    pub(super) fn check_settled(&self) {
        let idle = self.commits.are_done() && self.commands.is_empty();
        if !idle || self.upkeep.moving().is_some() || self.segments.is_move_due() {
            return;
        }
        let mut classes: BTreeMap<ClassId, Balance> = BTreeMap::new();
        for of in contents(&self.logs, &self.segments) {
            let class = classes.entry(of.segment.header.class).or_default();
            class.waste += of.waste;
            if of.segment.is_movable() {
                class.movable_wanted += of.wanted;
                class.movable_waste += of.waste;
            }
        }
        for (class, balance) in classes {
            let limit = self.config.segment_limit(class).0;
            assert!(
                balance.waste <= limit || balance.movable_waste <= balance.movable_wanted,
                "{class:?} holds more bytes that nobody wants than a segment of {limit}: {balance:?}"
            );
        }
    }
}

/// Whether a batch of a segment has been moved from there.
pub(super) fn is_elsewhere(
    logs: &Logs,
    segment: SegmentId,
    slot: Slot,
    location: &Location,
) -> bool {
    let log = logs.get(slot);
    let place = log.and_then(|log| log.kept.from(location.last()));
    place.is_some_and(|place| place.first <= location.last() && place.block.segment != segment)
}

impl Moving<'_> {
    /// Begins with the segment that is worth it most, if one is.
    fn begin(&mut self) {
        let idle =
            self.commits.are_done() && self.commands.is_empty() && self.faults.trouble().is_none();
        if !idle || self.upkeep.moving().is_some() || !self.segments.is_move_due() {
            return;
        }
        self.segments.settled();
        if let Some(segment) = self.sparse() {
            self.move_block(segment);
        }
    }

    /// The segment with the least that is wanted, of a class that holds too much that is not.
    fn sparse(&self) -> Option<SegmentId> {
        let mut waste: BTreeMap<ClassId, u64> = BTreeMap::new();
        let mut least: BTreeMap<ClassId, (u64, SegmentId)> = BTreeMap::new();
        for of in contents(self.logs, self.segments) {
            let class = of.segment.header.class;
            *waste.entry(class).or_default() += of.waste;
            if of.wanted <= of.waste && of.segment.is_movable() {
                let found = least.entry(class).or_insert((of.wanted, of.segment.id));
                *found = (of.wanted, of.segment.id).min(*found);
            }
        }
        let too_much =
            |class: &ClassId| waste.get(class) > Some(&self.config.segment_limit(*class).0);
        let found = least.iter().find(|(class, _)| too_much(class));
        found.map(|(_, (_, segment))| *segment)
    }

    /// Has the first block of a segment that a log keeps something in read; ends the move if there
    /// is none.
    fn move_block(&mut self, segment: SegmentId) {
        self.upkeep.move_ended();
        // Another may be worth it, then.
        self.segments.want_move();
        let Some(of) = self.segments.get(segment) else {
            // Input: a segment that went when its last batch was moved.
            return;
        };
        let Some((block, place)) = of.named_blocks().find(|(_, block)| block.is_kept()) else {
            // Input: a segment of which all has been moved, or given up.
            return;
        };
        let op = FileOp::Read {
            name: of.name.clone(),
            at: place.start().0,
            length: u32::try_from(place.end() - place.start()).unwrap_or(u32::MAX),
            records: Vec::new(),
        };
        self.upkeep.move_begun(block);
        self.segments.read_begun(segment);
        self.effects.submit(Purpose::Moved(block), op);
    }

    /// Takes a block that was read: its kept batches wait to be written once more.
    fn block_read(&mut self, block: BlockId, result: io::Result<Bytes>) {
        self.segments.read_ended(block.segment);
        let Some(of) = self.segments.get(block.segment) else {
            bug!("the segment of block {block} is gone while it was read");
            self.upkeep.move_ended();
            return;
        };
        if self.calls.is_closing() {
            self.upkeep.move_ended();
            return;
        }
        let bounds = of.block(block.block);
        let bounds = bounds.map(|place| (place.start(), place.end(), of.header.salt));
        let read = result.ok().zip(bounds);
        let records =
            read.and_then(|(bytes, (start, end, salt))| records_of(bytes, start, end, salt));
        let Some(entries) = records.and_then(|records| self.wanted_of(block, records)) else {
            // Input: a file that is damaged, or cannot be read.
            return self.give_move_up();
        };
        self.upkeep.move_read();
        for entry in entries {
            self.commits.add(entry);
        }
    }

    /// Takes the batches of a block that logs keep, to be written once more; `None` if one is
    /// missing.
    fn wanted_of(&self, block: BlockId, records: Vec<Record>) -> Option<Vec<Entry>> {
        let mut next: BTreeMap<Slot, Sequence> = BTreeMap::new();
        let mut entries = Vec::new();
        for (envelope, batch) in records {
            let (slot, first) = (envelope.slot, envelope.sequence());
            let log = self.logs.get(slot).filter(|log| log.id == batch.log());
            let place = log.and_then(|log| log.kept.within(block));
            let behind = envelope.next();
            let Some(place) = place.filter(|of| of.first < behind && first <= of.last) else {
                // Input: batches that nobody wants any more.
                continue;
            };
            let expected = next.entry(slot).or_insert(place.first);
            if first > *expected {
                return None;
            }
            *expected = behind;
            entries.push(Entry::again(&envelope, batch));
        }
        let mut places = self.logs.iter().filter_map(|log| {
            let place = log.kept.within(block)?;
            Some((log.slot, place.last.plus(1)))
        });
        let whole = places.all(|(slot, behind)| next.get(&slot) == Some(&behind));
        whole.then_some(entries)
    }

    /// Goes on to the next block, or ends the move, when the block that was read is durable
    /// elsewhere.
    fn go_on(&mut self, now: Mono) {
        let Some(moving) = self.upkeep.moving().filter(|moving| !moving.reading) else {
            // Input: a disk that has not read the block yet; or nothing is moved.
            return;
        };
        let written = self.commits.are_done();
        if !written {
            return;
        }
        let block = self.segments.block(moving.block);
        if block.is_some_and(Block::is_kept) {
            if !self.is_trimming(&moving) {
                self.give_move_up();
            }
            return;
        }
        self.upkeep.move_ended();
        if self.faults.may_try(now) && !self.calls.is_closing() {
            self.move_block(moving.block.segment);
        }
        if self.upkeep.moving().is_none() {
            self.complete_moved(moving.block.segment);
            self.begin();
        }
    }

    /// Whether a log gives up its part of the block in another way, whose command is on its way.
    fn is_trimming(&self, moving: &Move) -> bool {
        let is_it = |place: &Place| place.block == moving.block;
        let leaving = self.logs.iter().any(|log| log.kept.leaving().any(is_it));
        let mut deleted = self.upkeep.deleted_blocks();
        leaving || deleted.any(|block| block == moving.block)
    }

    /// Has the moved blocks indexed at once: behind a place without an index, a checkpoint can name
    /// none of its log's places.
    fn complete_moved(&mut self, from: SegmentId) {
        let class = self.segments.get(from).map(|of| of.header.class);
        let active = class.and_then(|class| self.segments.class(class).active);
        let Some(id) = active else {
            // Input: a class that writes to no segment at the moment.
            return;
        };
        let last = self.segments.get_mut(id).and_then(Segment::close_block);
        if let Some(block) = last {
            self.indexer.complete(block, self.segments);
        }
    }

    /// A segment stays as it is until the next start.
    fn give_move_up(&mut self) {
        let moving = self.upkeep.move_ended();
        let of = moving.and_then(|moving| self.segments.get_mut(moving.block.segment));
        if let Some(of) = of {
            of.stays();
        }
        if let Some(moving) = moving {
            self.complete_moved(moving.block.segment);
        }
        self.segments.want_move();
    }
}
