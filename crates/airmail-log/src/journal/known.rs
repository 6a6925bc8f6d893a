//! Facts known when a journal opens, before its segments are read: from the newest sound checkpoint
//! and the file of durable ends.

use super::block::Block;
use super::checkpoint::{Checkpoint, CopyPart};
use super::damage::{Problem, Reason};
use super::ends::{Ends, PLACE_BYTES};
use super::format::DATA_START;
use super::id::{BlockId, BlockIndex, CheckpointId, FileOffset, SegmentId, Slot};
use super::index::Layout;
use super::log::LogState;
use super::logs::Logs;
use super::names::{ENDS_NAME, number_of};
use super::places::Place;
use super::recover::{OpenError, Opening, failed};
use super::scan::salt_by_end;
use super::segment::Segment;
use crate::files::{FileName, Files};
use airmail_model::Sequence;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) checkpoint: Checkpoint,
    /// Segments' ends, behind which nothing is data.
    pub(super) sealed: BTreeMap<SegmentId, FileOffset>,
    /// Segments' ends that were durable.
    pub(super) durable: BTreeMap<SegmentId, FileOffset>,
    /// Number after the last one that is known to have been durable, by slot.
    pub(super) next: BTreeMap<Slot, Sequence>,
    /// The same number by the checkpoint alone, by slot.
    pub(super) checkpoint_next: BTreeMap<Slot, Sequence>,
    pub(super) deleted: BTreeSet<Slot>,
    /// Places that the checkpoint has in blocks that are not there, by slot.
    pub(super) missed_places: Vec<(Slot, Place)>,
    /// The counts of the commands that were found.
    pub(super) counts: BTreeSet<u64>,
    /// The oldest segment of commands that is there.
    pub(super) first_meta: Option<SegmentId>,
    /// The newest checkpoint is damaged: segments may have been let go by it.
    pub(super) fell_back: bool,
    /// Segments whose headers are damaged, or were never written.
    pub(super) headless: Vec<SegmentId>,
}

impl Known {
    /// Where a segment's durable data ends, as far as that is known.
    pub(super) fn end_of(&self, id: SegmentId) -> FileOffset {
        let sealed = self.sealed.get(&id);
        let end = sealed.or_else(|| self.durable.get(&id));
        end.copied().unwrap_or(DATA_START)
    }

    /// Where neither the header of a segment nor its first record knows the salt, looks for it elsewhere.
    pub(super) fn find_salt<F: Files>(
        &self,
        files: &mut F,
        segment: &mut Segment,
    ) -> Result<(), OpenError> {
        let end = self.end_of(segment.id);
        let unknown = segment.header.salt == 0 && self.headless.contains(&segment.id);
        if unknown && end > DATA_START {
            let found = salt_by_end(files, segment, end).map_err(failed(&segment.name))?;
            segment.header.salt = found.unwrap_or(0);
        }
        Ok(())
    }

    /// Whether some of the commands behind the checkpoint were not found.
    pub(super) fn misses_commands(&self) -> bool {
        let from = self.checkpoint.meta_count.max(1);
        let found = self.counts.range(from..).count() as u64;
        let last = self.counts.last().copied().unwrap_or(0);
        found < (last + 1).saturating_sub(from)
    }

    /// Whether a slot's log was deleted.
    pub(super) fn is_deleted(&self, logs: &Logs, slot: Slot) -> bool {
        let before = slot < self.checkpoint.next_slot && logs.get(slot).is_none();
        before || self.deleted.contains(&slot)
    }

    /// Whether a segment was let go before the checkpoint.
    pub(super) fn is_stray(&self, id: SegmentId) -> bool {
        id < self.checkpoint.next_segment
            && !self
                .checkpoint
                .segments
                .iter()
                .any(|segment| segment.id == id)
    }
}

impl Opening<'_> {
    /// The newest checkpoint that is sound; or an empty one.
    pub(super) fn load_checkpoint<F: Files>(
        &mut self,
        files: &mut F,
        list: &[(FileName, u64)],
    ) -> Result<Known, OpenError> {
        let mut found: Vec<(CheckpointId, &FileName, u64)> = Vec::new();
        for (name, length) in list {
            let number = number_of(name, "checkpoint-").map(CheckpointId);
            found.extend(number.map(|number| (number, name, *length)));
        }
        found.sort();
        let mut known = Known::default();
        let mut sound = false;
        for (number, name, length) in found.into_iter().rev() {
            if !sound {
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                let bytes = files.load(name, 0, length).map_err(failed(name))?;
                let Some(checkpoint) = Checkpoint::decode(&bytes) else {
                    // Input: damage to the newest checkpoint.
                    let damaged = Problem::of(name, 0, Reason::Checkpoint);
                    self.faults.found(damaged);
                    known.fell_back = true;
                    self.checkpointer.found(number, 0);
                    continue;
                };
                sound = true;
                self.checkpointer.found(number, checkpoint.meta_count);
                known.checkpoint = checkpoint;
                continue;
            }
            // Older, or damaged: it goes when newer ones are there.
            self.checkpointer.found(number, 0);
        }
        Ok(known)
    }

    /// Reads the durable ends from their file.
    pub(super) fn load_ends<F: Files>(
        &mut self,
        files: &mut F,
        known: &mut Known,
    ) -> Result<(), OpenError> {
        let name: FileName = ENDS_NAME.into();
        match files.load(&name, 0, 2 * PLACE_BYTES as u32) {
            Ok(bytes) => {
                let ends = Ends::newest(&bytes).unwrap_or_default();
                self.ends.found(ends.count);
                // Until a checkpoint of this run has them, this file alone may know where they go on.
                self.checkpointer.touch(ends.logs.keys().copied());
                known.durable = ends.segments;
                known.next = ends.logs;
                known.drop_older_ends();
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(ENDS_NAME)(error)),
        }
    }

    /// Takes over the checkpoint's contents.
    pub(super) fn take_checkpoint(&mut self, known: &mut Known) {
        let mut checkpoint = std::mem::take(&mut known.checkpoint);
        self.commands.go_on_at(checkpoint.meta_count);
        self.logs.go_on_at(checkpoint.next_slot);
        self.segments.go_on_at(checkpoint.next_segment);
        for part in &checkpoint.segments {
            if part.sealed {
                known.sealed.insert(part.id, part.durable);
            }
            let durable = known.durable.entry(part.id).or_insert(part.durable);
            *durable = part.durable.max(*durable);
            let Some(segment) = self.segments.get_mut(part.id) else {
                // Input: a segment whose file is gone.
                continue;
            };
            for (block, n) in part.blocks.iter().zip(0..) {
                let layout = Layout {
                    block: BlockId {
                        segment: part.id,
                        block: BlockIndex(n),
                    },
                    start: block.start,
                    entries: block.entries,
                    topics: block.topics,
                };
                segment.restore(Block::indexed_before(block.end, layout));
            }
        }
        for part in std::mem::take(&mut checkpoint.logs) {
            let mut log = LogState::new(part.id, part.slot, part.spec, part.incarnation);
            log.numbers.first = part.first;
            log.numbers.first_durable = part.first;
            log.life.spec_told = true;
            log.numbers.reserved = part.reserved;
            log.numbers.reserved_surely = part.reserved;
            log.life.sealed = part.sealed;
            log.life.seal_told = part.sealed.is_some();
            log.clock.found(part.last_time);
            known.checkpoint_next.insert(part.slot, part.next);
            let next = known.next.entry(part.slot).or_insert(part.next);
            *next = part.next.max(*next);
            for place in part.places {
                log.numbers.next = log.numbers.next.max(place.last.plus(1));
                let Some(block) = self.segments.block_mut(place.block) else {
                    // Input: a segment whose file is gone.
                    known.missed_places.push((part.slot, place));
                    continue;
                };
                if place.last >= part.first {
                    block.keep();
                    log.kept.restore(place);
                }
            }
            log.numbers.durable = log.numbers.next;
            for copy in part.copies.into_iter().filter_map(CopyPart::sound) {
                log.copies.take(copy);
            }
            self.logs.insert(log);
        }
        for (key, producer) in std::mem::take(&mut checkpoint.producers) {
            self.producers.insert(key, producer);
        }
        let tombstones = std::mem::take(&mut checkpoint.tombstones);
        self.logs.restore_tombstones(tombstones);
        known.checkpoint = checkpoint;
    }

    /// A log's deletion is found.
    pub(super) fn forget_log(&mut self, slot: Slot) {
        if let Some(log) = self.logs.forget(slot) {
            for place in log.kept.iter() {
                self.segments.let_go(place.block);
            }
        }
        self.producers.forget_log(slot);
    }
}
