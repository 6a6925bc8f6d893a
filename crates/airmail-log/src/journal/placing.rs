//! Placing of durable batches: each gets into the table of its block, and its log has a place
//! there.
//!
//! A batch comes here when its commit is synced, or when it is found as the journal opens. A block
//! gets its index when the batch that follows begins another.

use super::JournalConfig;
use super::id::{BlockId, CheckpointId, SegmentId, Slot};
use super::indexing::Indexer;
use super::logs::Logs;
use super::segment_set::SegmentSet;
use super::table::Location;
use airmail_model::{Batch, bug};

/// The parts of the journal that placing a batch reads or changes.
pub(super) struct Placing<'j> {
    pub(super) config: &'j JournalConfig,
    /// The first checkpoint that will know of it.
    pub(super) checkpoint: CheckpointId,
    pub(super) logs: &'j mut Logs,
    pub(super) segments: &'j mut SegmentSet,
    pub(super) indexer: &'j mut Indexer,
}

impl Placing<'_> {
    /// A batch is durable: where it is.
    ///
    /// In a block, each log's numbers follow one another without a hole; where they would not, a
    /// new block begins.
    pub(super) fn place(
        &mut self,
        segment: SegmentId,
        slot: Slot,
        location: Location,
        batch: &Batch,
    ) {
        let block_bytes = self.config.block_bytes;
        let Some(open) = self.segments.get_mut(segment) else {
            bug!("segment {segment} has a batch of slot {slot} and is gone");
            return;
        };
        let before = open.last_block();
        let block = open.block_for(slot, &location, block_bytes);
        let id = BlockId { segment, block };
        if let Some(before) = before.filter(|before| *before != id) {
            self.indexer.complete(before, self.segments);
        }
        let Some(open) = self.segments.get_mut(segment) else {
            bug!("segment {segment} has a batch of slot {slot} and is gone");
            return;
        };
        open.cover_by(self.checkpoint);
        let Some(place) = open.block_mut(block) else {
            bug!("block {id} has a batch of slot {slot} and is gone");
            return;
        };
        place.add(slot, location, batch);
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} has a batch in segment {segment} and no log");
            return;
        };
        let left = log.kept.leave(&location);
        if location.last() >= log.numbers.first && log.kept.take(id, &location) {
            place.keep();
        }
        if let Some(left) = left {
            self.segments.let_go(left);
            // Not before a checkpoint knows the new place.
            if let Some(old) = self.segments.get_mut(left.segment) {
                old.cover_by(self.checkpoint);
            }
        }
    }
}
