//! A segment: a file of one retention class, written from its beginning to its end, once.
//!
//! It is never written again after any failure: it is sealed at its last durable end, and a command
//! says so before any batch that could be mistaken for its contents is written elsewhere.
//!
//! Invariants, held by [`Segment::check`]:
//! - `durable ≤ written`; in a sealed segment they are the same, and nothing is unsynced.
//! - While anything is unsynced, the time since when is known.
//! - Only a sealed segment is leaving.
//! - Blocks are in order, never overlap, and end before `written`.
//! - The invariants of its parts: [`fill`](super::fill), [`block`](super::block).

use super::block::Block;
use super::entry::Entry;
use super::fill::Fill;
use super::format::{DATA_START, SegmentHeader};
use super::id::{BlockId, BlockIndex, CheckpointId, FileOffset, SegmentId, Slot};
use super::names::segment_name;
use super::table::Location;
use crate::files::FileName;
use airmail_model::{Mono, bug};
use std::io;

/// States of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its file is being made.
    Making,
    /// Takes batches.
    Open,
    /// Takes nothing more.
    Sealed,
}

/// Flaws of a segment.
#[derive(Clone, Copy, Debug, Default)]
struct Flaws {
    /// A write or sync of it failed: its file is not recycled.
    failed: bool,
    /// The batches that logs keep in it cannot be written elsewhere.
    unmovable: bool,
}

/// Batches written to a segment and not durable yet.
#[derive(Debug, Default)]
struct Unsynced {
    entries: Vec<Entry>,
    /// Time since when there is something.
    since: Option<Mono>,
}

/// The checkpoints that make a segment unnecessary.
#[derive(Clone, Copy, Debug, Default)]
struct Covered {
    /// The first checkpoint that knows of all that is in it: numbers, and where producers stand.
    by: CheckpointId,
    /// The count after the last command of a segment of commands.
    meta_next: u64,
}

/// One segment. See the module's documentation.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: SegmentId,
    pub(super) name: FileName,
    pub(super) header: SegmentHeader,
    state: State,
    /// The header is in the file, or at least on its way.
    header_written: bool,
    /// Place behind the last byte written.
    written: FileOffset,
    /// Place behind the last durable byte.
    durable: FileOffset,
    pub(super) fill: Fill,
    flaws: Flaws,
    unsynced: Unsynced,
    /// Blocks in order; the last is the one that is written.
    blocks: Vec<Block>,
    covered: Covered,
    /// Reads under way: it is not removed before they have ended.
    reads: u32,
    /// Nothing in it is kept; its removal is under way or waits.
    leaving: bool,
}

impl Segment {
    /// One whose file is being made.
    pub(super) fn new(header: SegmentHeader) -> Segment {
        Segment {
            id: header.segment,
            name: segment_name(header.segment),
            header,
            state: State::Making,
            header_written: false,
            written: DATA_START,
            durable: DATA_START,
            fill: Fill::default(),
            flaws: Flaws::default(),
            unsynced: Unsynced::default(),
            blocks: Vec::new(),
            covered: Covered::default(),
            reads: 0,
            leaving: false,
        }
    }

    /// One whose file of this length was found when the journal opened: it is never written again.
    pub(super) fn found(header: SegmentHeader, length: FileOffset) -> Segment {
        let mut segment = Segment::new(header);
        segment.state = State::Sealed;
        segment.header_written = true;
        segment.fill = Fill::found(length);
        segment
    }

    /// State of the segment.
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Whether it takes batches.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether it takes nothing more.
    pub(super) fn is_sealed(&self) -> bool {
        self.state == State::Sealed
    }

    /// Whether it was made and nothing was written to it.
    pub(super) fn is_spare(&self) -> bool {
        self.is_open() && self.written == DATA_START
    }

    /// Whether nothing in it is kept by any log.
    pub(super) fn is_unused(&self) -> bool {
        self.unsynced.entries.is_empty() && self.blocks.iter().all(|block| !block.is_kept())
    }

    /// Its file is made and filled: it takes batches. Whether it did not before.
    pub(super) fn opened(&mut self) -> bool {
        let opens = self.state == State::Making;
        if opens {
            self.state = State::Open;
        }
        opens
    }

    /// Seals it: it takes nothing more, and bytes behind its durable end are not data. Gives that
    /// end.
    pub(super) fn seal(&mut self) -> FileOffset {
        if !self.unsynced.entries.is_empty() {
            let batches = self.unsynced.entries.len();
            bug!(
                "{} is sealed, and {batches} batches are not synced",
                self.id
            );
        }
        self.state = State::Sealed;
        self.written = self.durable;
        self.durable
    }
}

/// Writing to it, and its durable end.
impl Segment {
    /// Place behind the last byte written.
    pub(super) fn written(&self) -> FileOffset {
        self.written
    }

    /// Place behind the last durable byte.
    pub(super) fn durable(&self) -> FileOffset {
        self.durable
    }

    /// Whether its header is in the file, or on its way.
    pub(super) fn has_header(&self) -> bool {
        self.header_written
    }

    /// A write to it is under way, which ends here.
    pub(super) fn written_to(&mut self, end: FileOffset) {
        if self.state != State::Open || self.flaws.failed || end < self.written {
            bug!(
                "segment {} is written again from {} to {end}: it is {:?}, {:?}",
                self.id,
                self.written,
                self.state,
                self.flaws
            );
        }
        self.header_written = true;
        self.written = end;
    }

    /// Sets the end that recovery found: the data is durable up to here, and nothing is behind.
    pub(super) fn found_to(&mut self, end: FileOffset) {
        self.durable = end;
        self.written = end;
    }

    /// Batches are written to it, and not known to be durable.
    pub(super) fn hold(&mut self, entries: Vec<Entry>) {
        self.unsynced.entries.extend(entries);
    }

    /// Makes its contents wait for a sync from now on, if they do not already.
    pub(super) fn wait_for_sync(&mut self, now: Mono) {
        self.unsynced.since.get_or_insert(now);
    }

    /// All that is written before `end` is durable. The batches that have become so.
    pub(super) fn synced(&mut self, end: FileOffset) -> Vec<Entry> {
        if end < self.durable || self.written < end {
            bug!(
                "{} is durable to {end}: it was to {}, and is written to {}",
                self.id,
                self.durable,
                self.written
            );
        }
        self.durable = end;
        self.unsynced.since = None;
        std::mem::take(&mut self.unsynced.entries)
    }

    /// Batches that are written and not known to be durable.
    pub(super) fn unsynced(&self) -> &[Entry] {
        &self.unsynced.entries
    }

    /// Time since when something waits for a sync.
    pub(super) fn unsynced_since(&self) -> Option<Mono> {
        self.unsynced.since
    }

    /// A write or sync of it failed: it is not written again. The batches that are not durable.
    pub(super) fn fail(&mut self) -> Vec<Entry> {
        self.flaws.failed = true;
        self.unsynced.since = None;
        std::mem::take(&mut self.unsynced.entries)
    }

    /// Whether a write or sync of it failed.
    pub(super) fn has_failed(&self) -> bool {
        self.flaws.failed
    }
}

/// Its blocks.
impl Segment {
    /// Blocks in order; the last is the one that is written.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// All of them with their names, in order.
    pub(super) fn named_blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        let segment = self.id;
        let blocks = self.blocks.iter().enumerate();
        blocks.map(move |(n, block)| {
            let id = BlockId {
                segment,
                block: BlockIndex::at(n),
            };
            (id, block)
        })
    }

    /// The same, to be changed.
    pub(super) fn blocks_mut(&mut self) -> impl Iterator<Item = (BlockId, &mut Block)> {
        let segment = self.id;
        let blocks = self.blocks.iter_mut().enumerate();
        blocks.map(move |(n, block)| {
            let id = BlockId {
                segment,
                block: BlockIndex::at(n),
            };
            (id, block)
        })
    }

    /// One of them.
    pub(super) fn block(&self, block: BlockIndex) -> Option<&Block> {
        self.blocks.get(block.place())
    }

    /// One of them, to be changed.
    pub(super) fn block_mut(&mut self, block: BlockIndex) -> Option<&mut Block> {
        self.blocks.get_mut(block.place())
    }

    /// The last, if there is one.
    pub(super) fn last_block(&self) -> Option<BlockId> {
        let last = self.blocks.len().checked_sub(1)?;
        Some(BlockId {
            segment: self.id,
            block: BlockIndex::at(last),
        })
    }

    /// Takes up a block that a checkpoint knows; they come in order.
    pub(super) fn restore(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// The block that a batch falls in, made if need be: a new one where the last is full, or where
    /// its batches of the log do not end before this one. So a block has an unbroken run of each
    /// log, also of one that went to another class of segments and came back.
    pub(super) fn block_for(
        &mut self,
        slot: Slot,
        batch: &Location,
        block_bytes: u64,
    ) -> BlockIndex {
        let last = self.blocks.last();
        if !last.is_some_and(|block| block.takes(slot, batch, block_bytes)) {
            self.blocks.push(Block::new(batch.offset));
        }
        BlockIndex::at(self.blocks.len() - 1)
    }

    /// Has the block that is written take nothing more; which it is.
    pub(super) fn close_block(&mut self) -> Option<BlockId> {
        let last = self.last_block()?;
        let closed = self.blocks.last_mut().is_some_and(Block::close);
        closed.then_some(last)
    }
}

/// When it goes.
impl Segment {
    /// The first checkpoint that knows of all that is in it.
    pub(super) fn covered_by(&self) -> CheckpointId {
        self.covered.by
    }

    /// No checkpoint before this one knows of all that is in it.
    pub(super) fn cover_by(&mut self, checkpoint: CheckpointId) {
        self.covered.by = checkpoint;
    }

    /// Count after the last command of a segment of commands.
    pub(super) fn commands_end(&self) -> u64 {
        self.covered.meta_next
    }

    /// It has commands up to this count, exclusive.
    pub(super) fn has_commands_to(&mut self, count: u64) {
        self.covered.meta_next = count;
    }

    /// Whether the batches kept in it can be written elsewhere, as far as is known.
    pub(super) fn is_movable(&self) -> bool {
        !self.flaws.unmovable
    }

    /// Notes that the batches kept in it cannot be written elsewhere.
    pub(super) fn stays(&mut self) {
        self.flaws.unmovable = true;
    }

    /// Reads under way.
    pub(super) fn reads(&self) -> u32 {
        self.reads
    }

    /// A read of it, or of its index, has begun.
    pub(super) fn read_begun(&mut self) {
        self.reads += 1;
    }

    /// A read has ended. Whether none is under way.
    pub(super) fn read_ended(&mut self) -> bool {
        match self.reads.checked_sub(1) {
            Some(reads) => self.reads = reads,
            None => bug!("a read of {} has ended, and none was under way", self.id),
        }
        self.reads == 0
    }

    /// Whether its removal is under way or waits.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Its file goes.
    pub(super) fn leave(&mut self) {
        if !self.is_sealed() {
            bug!("{} is leaving, and is {:?}", self.id, self.state);
        }
        self.leaving = true;
    }

    /// Its file could not be removed: it is tried again, unless the file is not there.
    pub(super) fn leaving_failed(&mut self, error: &io::Error) {
        self.leaving = error.kind() == io::ErrorKind::NotFound;
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let id = self.id;
        assert_eq!(id, self.header.segment, "the header of {id}");
        assert!(
            self.durable <= self.written,
            "{id}: durable to {}, written to {}",
            self.durable,
            self.written
        );
        assert!(
            self.state != State::Sealed
                || (self.durable == self.written && self.unsynced.entries.is_empty()),
            "{id} is sealed, durable to {} and written to {}",
            self.durable,
            self.written
        );
        assert!(
            self.unsynced.entries.is_empty() || self.unsynced.since.is_some(),
            "{id}: {} batches are not synced, and nobody knows since when",
            self.unsynced.entries.len()
        );
        self.fill.check(id);
        assert!(
            !self.leaving || self.state == State::Sealed,
            "{id} is leaving and takes batches"
        );
        self.check_blocks();
    }

    fn check_blocks(&self) {
        let id = self.id;
        for (block_id, block) in self.named_blocks() {
            block.check(block_id, self.durable.max(self.written));
        }
        let mut pairs = self.blocks.iter().zip(self.blocks.iter().skip(1));
        assert!(
            pairs.all(|(one, next)| one.end() <= next.start()),
            "{id}: blocks overlap"
        );
    }
}
