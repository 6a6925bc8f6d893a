//! A block: a part of a segment, with a table of its own.
//!
//! The table is in memory while the block is written, and until its index is on disk; then it is
//! dropped, unless retention needs it exactly.
//!
//! Invariant, held by [`Block::check`]: a block ends where it begins, or behind that.

use super::id::{BlockId, FileOffset, Slot};
use super::index::Layout;
use super::table::{Location, Table};
use airmail_model::{Batch, bug};

/// A part of a segment. See the module's documentation.
#[derive(Debug)]
pub(super) struct Block {
    /// Its first byte in the segment.
    start: FileOffset,
    /// Place behind its last byte.
    end: FileOffset,
    /// Its table: in memory while the block is written, and until its index is on disk.
    table: Option<Table>,
    /// The layout of its index file. `None` until that is on disk.
    layout: Option<Layout>,
    /// It takes nothing more, though it is not full: its index is made.
    closed: bool,
    /// Number of logs that keep something in it.
    kept_by: u32,
}

impl Block {
    /// One that begins with a batch at this place.
    pub(super) fn new(start: FileOffset) -> Block {
        Block {
            start,
            end: start,
            table: Some(Table::default()),
            layout: None,
            closed: false,
            kept_by: 0,
        }
    }

    /// One that a checkpoint knows, with its index.
    pub(super) fn indexed_before(end: FileOffset, layout: Layout) -> Block {
        Block {
            start: layout.start,
            end,
            table: None,
            layout: Some(layout),
            closed: true,
            kept_by: 0,
        }
    }

    /// Its first byte in the segment.
    pub(super) fn start(&self) -> FileOffset {
        self.start
    }

    /// Place behind its last byte.
    pub(super) fn end(&self) -> FileOffset {
        self.end
    }

    /// Its table, if that is in memory.
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// The layout of its index file, if that is on disk.
    pub(super) fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// Whether its index is still to be written.
    pub(super) fn needs_index(&self) -> bool {
        self.table.is_some() && self.layout.is_none()
    }

    /// Whether it takes a batch of a log: it is not full, and its batches of the log end right
    /// before that.
    pub(super) fn takes(&self, slot: Slot, batch: &Location, block_bytes: u64) -> bool {
        let follows = self.table.as_ref().is_some_and(|table| {
            let run = table.logs.get(&slot).and_then(|list| list.last());
            run.is_none_or(|before| before.extent().next() == batch.first)
        });
        let open = self.layout.is_none() && !self.closed;
        follows && open && self.end - self.start < block_bytes
    }

    /// Has it take nothing more. Whether it still took something.
    pub(super) fn close(&mut self) -> bool {
        let open = !self.closed && self.layout.is_none();
        self.closed = true;
        open
    }

    /// A batch lies in it, behind all others.
    pub(super) fn add(&mut self, slot: Slot, location: Location, batch: &Batch) {
        if location.offset < self.end {
            bug!(
                "a batch at {} is added to a block that ends at {}",
                location.offset,
                self.end
            );
        }
        self.end = location.end();
        if let Some(table) = &mut self.table {
            table.add(slot, location, batch.topic_hashes());
        }
    }

    /// Its index is on disk: the table is let go, and given.
    pub(super) fn index_written(&mut self, layout: Layout) -> Option<Table> {
        let table = self.table.take()?;
        self.layout = Some(layout);
        Some(table)
    }

    /// Its index cannot be trusted.
    pub(super) fn index_lost(&mut self) {
        self.layout = None;
    }

    /// Its table was made again.
    pub(super) fn table_made(&mut self, table: Table) {
        self.table = Some(table);
    }

    /// Its table is let go, if its index is on disk.
    pub(super) fn let_go_of_table(&mut self) {
        if self.layout.is_some() {
            self.table = None;
        }
    }

    /// One more log has something kept in it.
    pub(super) fn keep(&mut self) {
        self.kept_by += 1;
    }

    /// A log keeps nothing more in it.
    pub(super) fn let_go(&mut self, id: BlockId) {
        match self.kept_by.checked_sub(1) {
            Some(kept_by) => self.kept_by = kept_by,
            None => bug!("a log lets go of block {id}, and none has kept anything in it"),
        }
    }

    /// Number of logs that keep something in it.
    pub(super) fn kept_by(&self) -> u32 {
        self.kept_by
    }

    /// Whether a log has something kept in it.
    pub(super) fn is_kept(&self) -> bool {
        self.kept_by > 0
    }

    /// Asserts the invariant of the module's documentation, and that it ends before `written`.
    pub(super) fn check(&self, id: BlockId, written: FileOffset) {
        assert!(
            self.start <= self.end && self.end <= written,
            "block {id} is from {} to {} of {written}",
            self.start,
            self.end
        );
    }
}
