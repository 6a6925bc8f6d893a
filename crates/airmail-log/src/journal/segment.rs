//! A segment: a file of one retention class, written from its beginning to its end, once.
//!
//! It is never written again after any failure: it is sealed at its last durable end, and a command
//! says so before anything that could be mistaken for what it held is written elsewhere.
//!
//! Invariants, held by [`Segment::check`]:
//! - `durable ≤ written`; of a sealed segment they are the same, and nothing of it is unsynced.
//! - Where something is unsynced it is known since when.
//! - What is being filled lies behind what is filled.
//! - Only a sealed segment is leaving.
//! - Blocks are in order, never overlap, and end before `written`.

use super::entry::Entry;
use super::format::{DATA_START, SegmentHeader};
use super::id::{BlockIndex, CheckpointId, FileOffset, SegmentId, Slot};
use super::index::Layout;
use super::names::segment_name;
use super::table::{Location, Table};
use crate::files::FileName;
use airmail_model::Mono;

/// What can be done with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its file is being made.
    Making,
    /// Takes batches.
    Open,
    /// Takes nothing more.
    Sealed,
}

/// A part of a segment, with a table of its own.
#[derive(Debug)]
pub(super) struct Block {
    /// Its first byte in the segment.
    pub(super) start: FileOffset,
    /// Behind its last byte.
    pub(super) end: FileOffset,
    /// In memory while it is written, and until its index is on disk.
    pub(super) table: Option<Table>,
    /// The layout of its index file. `None` until that is on disk.
    pub(super) layout: Option<Layout>,
    /// It takes nothing more, though it is not full: its index is made.
    pub(super) closed: bool,
    /// How many logs have something kept in it.
    pub(super) kept_by: u32,
}

/// How far a segment is written with zeros ahead.
#[derive(Debug, Default)]
pub(super) struct Fill {
    /// Behind the last byte that is.
    pub(super) end: FileOffset,
    /// Where the fill under way ends.
    pub(super) going_to: Option<FileOffset>,
    /// A fill failed: the segment is to be left.
    pub(super) failed: Option<std::io::Error>,
}

/// What is wrong with a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flaws {
    /// A write or sync of it failed: its file is not recycled.
    pub(super) failed: bool,
    /// What is wanted of it cannot be written elsewhere.
    pub(super) unmovable: bool,
}

/// What is written to a segment and not yet durable.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    pub(super) entries: Vec<Entry>,
    /// Since when there is something.
    pub(super) since: Option<Mono>,
}

/// The checkpoints that make a segment unnecessary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    /// The first checkpoint that knows of all that is in it: numbers, and where producers stand.
    pub(super) by: CheckpointId,
    /// The count after the last command of a segment of commands.
    pub(super) meta_next: u64,
}

/// One segment. See the module's documentation.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: SegmentId,
    pub(super) name: FileName,
    pub(super) header: SegmentHeader,
    pub(super) state: State,
    /// The header is in the file, or at least on its way.
    pub(super) header_written: bool,
    /// Behind the last byte written.
    pub(super) written: FileOffset,
    /// Behind the last byte that is durable.
    pub(super) durable: FileOffset,
    pub(super) fill: Fill,
    pub(super) flaws: Flaws,
    pub(super) unsynced: Unsynced,
    /// In order; the last is the one that is written.
    pub(super) blocks: Vec<Block>,
    pub(super) covered: Covered,
    /// Reads under way: it is not removed before they have ended.
    pub(super) reads: u32,
    /// Nothing in it is kept; its removal is under way or waits.
    pub(super) leaving: bool,
}

impl Segment {
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

    /// The block that a batch falls in, made if need be: a new one where the last is full, or where
    /// what it has of the log does not end before the batch. So a block has an unbroken run of each
    /// log, also of one that went to another class of segments and came back.
    pub(super) fn block_for(
        &mut self,
        slot: Slot,
        batch: &Location,
        block_bytes: u64,
    ) -> BlockIndex {
        let start = batch.offset;
        let full = self.blocks.last().is_none_or(|block| {
            block.table.as_ref().is_none_or(|table| {
                let run = table.logs.get(&slot).and_then(|list| list.last());
                run.is_some_and(|before| before.extent().next() != batch.first)
            }) || block.layout.is_some()
                || block.closed
                || block.end - block.start >= block_bytes
        });
        if full {
            self.blocks.push(Block {
                start,
                end: start,
                table: Some(Table::default()),
                layout: None,
                closed: false,
                kept_by: 0,
            });
        }
        BlockIndex::at(self.blocks.len() - 1)
    }

    /// One of its blocks.
    pub(super) fn block(&self, block: BlockIndex) -> Option<&Block> {
        self.blocks.get(block.place())
    }

    /// One of its blocks, to be changed.
    pub(super) fn block_mut(&mut self, block: BlockIndex) -> Option<&mut Block> {
        self.blocks.get_mut(block.place())
    }

    /// Has the block that is written take nothing more; which it is.
    pub(super) fn close_block(&mut self) -> Option<BlockIndex> {
        let last = self.blocks.len().checked_sub(1)?;
        let block = &mut self.blocks[last];
        let open = !block.closed && block.layout.is_none();
        block.closed = true;
        open.then_some(BlockIndex::at(last))
    }

    /// Whether it was made and nothing was written to it.
    pub(super) fn is_spare(&self) -> bool {
        self.state == State::Open && self.written == DATA_START
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
        assert!(
            self.fill.going_to.is_none_or(|to| self.fill.end < to),
            "{id}: filled to {}, filling to {:?}",
            self.fill.end,
            self.fill.going_to
        );
        assert!(
            !self.leaving || self.state == State::Sealed,
            "{id} is leaving and takes batches"
        );
        self.check_blocks();
    }

    fn check_blocks(&self) {
        let id = self.id;
        for block in &self.blocks {
            assert!(
                block.start <= block.end && block.end <= self.durable.max(self.written),
                "{id}: a block from {} to {} of {}",
                block.start,
                block.end,
                self.written
            );
        }
        let mut pairs = self.blocks.iter().zip(self.blocks.iter().skip(1));
        assert!(
            pairs.all(|(one, next)| one.end <= next.start),
            "{id}: blocks overlap"
        );
    }

    /// Whether nothing in it is kept by any log.
    pub(super) fn is_unused(&self) -> bool {
        self.unsynced.entries.is_empty() && self.blocks.iter().all(|block| block.kept_by == 0)
    }
}
