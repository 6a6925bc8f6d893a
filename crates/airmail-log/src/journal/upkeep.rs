//! Upkeep of the disk: the next time that retention is applied, the blocks of deleted logs, and the
//! segment that is being moved.
//!
//! Invariant, held by [`Upkeep::check`]: a log that has something to be let go is deleted.

use super::id::{BlockId, Slot};
use super::logs::Logs;
use airmail_model::Mono;

/// A move under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) block: BlockId,
    /// The block is being read; else its batches are being written.
    pub(super) reading: bool,
}

/// Data to be given up. See the module's documentation.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// When retention is applied next.
    retain_at: Mono,
    /// Blocks that deleted logs had something in, until the deletion is durable.
    deleted: Vec<(BlockId, Slot)>,
    moving: Option<Move>,
}

impl Upkeep {
    /// Nothing yet, and retention at a time.
    pub(super) fn new(retain_at: Mono) -> Upkeep {
        Upkeep {
            retain_at,
            deleted: Vec::new(),
            moving: None,
        }
    }

    /// When retention is applied next.
    pub(super) fn retain_at(&self) -> Mono {
        self.retain_at
    }

    /// Retention is applied at a time.
    pub(super) fn set_retain_at(&mut self, at: Mono) {
        self.retain_at = at;
    }

    /// A log is deleted that had something in these blocks.
    pub(super) fn deleted(&mut self, slot: Slot, blocks: impl Iterator<Item = BlockId>) {
        self.deleted.extend(blocks.map(|block| (block, slot)));
    }

    /// A log's deletion is durable: the blocks that it had something in.
    pub(super) fn take_deleted(&mut self, slot: Slot) -> Vec<BlockId> {
        let gone = self.deleted.extract_if(.., |(_, of)| *of == slot);
        gone.map(|(block, _)| block).collect()
    }

    /// The blocks that deleted logs had something in, each as often as one had.
    pub(super) fn deleted_blocks(&self) -> impl Iterator<Item = BlockId> {
        self.deleted.iter().map(|(block, _)| *block)
    }

    /// The move under way.
    pub(super) fn moving(&self) -> Option<Move> {
        self.moving
    }

    /// A block that is to be moved is read.
    pub(super) fn move_begun(&mut self, block: BlockId) {
        self.moving = Some(Move {
            block,
            reading: true,
        });
    }

    /// Notes that the block was read, and its kept batches are written.
    pub(super) fn move_read(&mut self) {
        if let Some(moving) = &mut self.moving {
            moving.reading = false;
        }
    }

    /// The move is over: which it was.
    pub(super) fn move_ended(&mut self) -> Option<Move> {
        self.moving.take()
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self, logs: &Logs) {
        for (block, slot) in &self.deleted {
            assert!(
                logs.get(*slot).is_none(),
                "slot {slot} has its part of {block} let go, and is there"
            );
        }
    }
}
