//! The journal's segments: making them, filling ahead, moving on to the next, letting go. What is
//! let go where nothing happens is in [`giving_back`](super::giving_back).

use super::format::{HEADER_BYTES, META_CLASS, SYSTEM_CLASS, SegmentHeader};
use super::meta::Meta;
use super::segment::{Segment, State, free_name, index_name};
use super::table::Location;
use super::{Journal, Purpose};
use crate::files::FileOp;
use airmail_model::Batch;
use airmail_model::random::nth;
use std::io;

/// What is filled to see whether a full disk has room again, in bytes.
const PROBE_BYTES: u64 = 64 << 10;
/// Fills begin and end at multiples of this, as commits end: no page is ever filled while a commit
/// writes another part of it, which could undo one of the two.
pub(super) const FILL_ALIGNED_BYTES: u64 = 4096;

/// The salt of a new segment. Half of it is the segment's own, so that what a recycled file held
/// before is told from data even where the header is lost.
fn salt_of(seed: u64, segment: u64) -> u32 {
    (nth(seed, segment) as u32) << 16 | own_salt(segment)
}

fn own_salt(segment: u64) -> u32 {
    nth(0, segment) as u32 & 0xffff
}

/// Whether a salt found in a segment can be its own.
pub(super) fn is_own_salt(salt: u32, segment: u64) -> bool {
    salt & 0xffff == own_salt(segment)
}

impl Journal {
    /// How large a segment of this class gets.
    pub(super) fn segment_limit(&self, class: u16) -> u64 {
        match class {
            META_CLASS | SYSTEM_CLASS => self.config.meta_segment_bytes,
            _ => self.config.segment_bytes,
        }
    }

    /// The class's segment that takes batches; begins to make one if there is none.
    pub(super) fn open_segment(&mut self, class: u16) -> Option<u64> {
        let state = self.classes.entry(class).or_default();
        if state.active.is_none() {
            state.active = state.prepared.take();
        }
        match state.active {
            Some(id) => self
                .segments
                .get(&id)
                .filter(|s| s.state == State::Open)
                .map(|s| s.id),
            None => {
                if self.may_try() {
                    let id = self.make_segment(class);
                    self.classes.entry(class).or_default().active = Some(id);
                }
                None
            }
        }
    }

    fn make_segment(&mut self, class: u16) -> u64 {
        let id = self.next_segment;
        self.next_segment += 1;
        let header = SegmentHeader {
            class,
            incompatible: 0,
            compatible: 0,
            shard: self.config.shard,
            cluster: self.config.cluster,
            node: self.config.node,
            segment: id,
            salt: salt_of(self.config.seed, id),
        };
        let mut segment = Segment::new(header);
        let name = segment.name.clone();
        let recycled = match class {
            META_CLASS | SYSTEM_CLASS => None,
            _ => self.free.pop(),
        };
        self.made_at = self.now.mono;
        let op = match recycled {
            Some((free, length)) => {
                segment.filled = length - length % FILL_ALIGNED_BYTES;
                FileOp::Rename {
                    from: free_name(free),
                    to: name,
                }
            }
            None => FileOp::Create { name },
        };
        self.segments.insert(id, segment);
        self.submit(Purpose::Made(id), op);
        id
    }

    pub(super) fn segment_made(&mut self, id: u64, result: io::Result<()>) {
        if let Err(error) = result {
            return self.making_failed(id, &error);
        }
        let probing = self.trouble.as_ref().is_some_and(|trouble| trouble.full);
        let limit = self
            .segments
            .get(&id)
            .map_or(0, |s| self.segment_limit(s.header.class));
        let Some(segment) = self.segments.get_mut(&id) else {
            return;
        };
        let ahead = if segment.header.class == META_CLASS && self.config.fill_bytes > 0 {
            limit
        } else {
            self.config.fill_bytes.min(limit)
        };
        let to = if probing {
            ahead.max(PROBE_BYTES)
        } else {
            ahead
        };
        let to = to.next_multiple_of(FILL_ALIGNED_BYTES);
        if segment.filled >= to {
            return self.segment_ready(id);
        }
        segment.filling = Some(to);
        let (name, from) = (segment.name.clone(), segment.filled);
        self.submit(Purpose::Filled(id, to), FileOp::Fill { name, from, to });
    }

    fn segment_ready(&mut self, id: u64) {
        if let Some(segment) = self.segments.get_mut(&id)
            && segment.state == State::Making
        {
            segment.state = State::Open;
            self.healed();
        }
    }

    pub(super) fn segment_filled(&mut self, id: u64, to: u64, result: io::Result<()>) {
        let Some(segment) = self.segments.get_mut(&id) else {
            return;
        };
        segment.filling = None;
        match result {
            Ok(()) => {
                segment.filled = segment.filled.max(to);
                self.segment_ready(id);
            }
            Err(error) if segment.state == State::Making => self.making_failed(id, &error),
            Err(error) => {
                segment.fill_failed = Some(error);
                self.abandon_unfilled();
            }
        }
    }

    /// Fills on, if the writing end has come near to the end of what is filled; and has the next
    /// segment made, if this one is nearly full.
    pub(super) fn fill_ahead(&mut self, id: u64) {
        let step = self.config.fill_bytes;
        let Some(segment) = self.segments.get(&id) else {
            return;
        };
        let class = segment.header.class;
        let limit = self.segment_limit(class);
        let (written, filled) = (segment.written, segment.filled);
        let fill = step > 0
            && segment.filling.is_none()
            && filled < limit
            && segment.fill_failed.is_none();
        if fill && written + step / 2 > filled {
            // A write ends with the page that it ends in.
            let from = filled.max(written.next_multiple_of(FILL_ALIGNED_BYTES));
            let to = (from + step).min(limit);
            let to = to.next_multiple_of(FILL_ALIGNED_BYTES);
            if from < to
                && let Some(segment) = self.segments.get_mut(&id)
            {
                segment.filled = from;
                segment.filling = Some(to);
                let name = segment.name.clone();
                self.submit(Purpose::Filled(id, to), FileOp::Fill { name, from, to });
            }
        }
        let nearly_full = written > limit / 4 * 3;
        let unprepared = self
            .classes
            .get(&class)
            .is_some_and(|class| class.prepared.is_none() && class.spared != Some(id));
        if nearly_full && unprepared && self.trouble.is_none() && !self.closing {
            let prepared = self.make_segment(class);
            self.classes.entry(class).or_default().prepared = Some(prepared);
        }
    }

    /// Leaves the class's segment for the next one. All that it holds is durable.
    pub(super) fn roll(&mut self, class: u16) {
        let state = self.classes.entry(class).or_default();
        let Some(id) = state.active.take() else {
            return;
        };
        state.active = state.prepared.take();
        self.seal_segment(id);
    }

    /// A segment takes nothing more; what lies behind its durable end is not data.
    pub(super) fn seal_segment(&mut self, id: u64) {
        let Some(segment) = self.segments.get_mut(&id) else {
            return;
        };
        segment.state = State::Sealed;
        self.sweep_due = true;
        segment.written = segment.durable;
        let end = segment.durable;
        let blocks = segment.blocks.len();
        if blocks > 0 {
            self.block_complete(id, blocks - 1);
        }
        self.metas
            .push_back((Meta::SegmentSealed { segment: id, end }, None));
    }

    /// A batch is durable: where it is.
    ///
    /// In a block, each log's numbers follow one another without a hole; where they would not, a
    /// new block begins.
    pub(super) fn index_batch(
        &mut self,
        segment: u64,
        slot: u32,
        location: Location,
        batch: &Batch,
    ) {
        let block_bytes = self.config.block_bytes;
        let Some(open) = self.segments.get_mut(&segment) else {
            return;
        };
        let blocks = open.blocks.len();
        let block = open.block_for(slot, &location, block_bytes);
        if block == blocks && block > 0 {
            self.block_complete(segment, block - 1);
        }
        let Some(open) = self.segments.get_mut(&segment) else {
            return;
        };
        open.covered_by = self.checkpoints.next;
        let place = &mut open.blocks[block];
        place.end = location.end();
        if let Some(table) = &mut place.table {
            table.add(slot, location, batch.topics().map(|topic| topic.hash));
        }
        let Some(log) = self.logs.get_mut(&slot) else {
            return;
        };
        let left = log.leave_place(&location);
        if location.last() >= log.first && log.take_place(segment, block as u32, &location) {
            place.kept_by += 1;
        }
        if let Some((of, block)) = left {
            self.let_go(of, block);
            // Not before a checkpoint knows the new place.
            let next = self.checkpoints.next;
            if let Some(old) = self.segments.get_mut(&of) {
                old.covered_by = next;
            }
        }
    }

    /// A log keeps nothing more in a block.
    pub(super) fn let_go(&mut self, segment: u64, block: u32) {
        if let Some(segment) = self.segments.get_mut(&segment)
            && let Some(block) = segment.blocks.get_mut(block as usize)
        {
            block.kept_by = block.kept_by.saturating_sub(1);
            self.sweep_due = true;
            self.moves.settled = false;
        }
    }

    /// Lets go of segments in which nothing is kept.
    pub(super) fn sweep(&mut self) {
        let unused = |segment: &&Segment| {
            segment.state == State::Sealed
                && segment.header.class != META_CLASS
                && segment.is_unused()
                && segment.reads == 0
                && segment.filling.is_none()
                && !segment.leaving
        };
        if !self.sweep_due || self.recovering.is_some() || !self.may_try() {
            return;
        }
        self.sweep_due = false;
        // Its end must be known for ever before the name can go, or its number be missed.
        let sealing: Vec<u64> = self.sealing().collect();
        let unused = self
            .segments
            .values()
            .filter(unused)
            .map(|segment| segment.id);
        let unused: Vec<u64> = unused.filter(|id| !sealing.contains(id)).collect();
        for id in unused {
            if !self.is_covered(id) {
                // Swept when the checkpoint is there.
                self.checkpoints.due = true;
                self.sweep_due = true;
                continue;
            }
            let room = self.free.len() < self.config.recycled_max && !self.spares_are_idle();
            let Some(segment) = self.segments.get_mut(&id) else {
                continue;
            };
            segment.leaving = true;
            let name = segment.name.clone();
            let recycled = room && !segment.failed && segment.filled > HEADER_BYTES as u64;
            let blocks = segment.blocks.iter().enumerate();
            let indexed = blocks.filter(|(_, block)| block.layout.is_some());
            let indexes: Vec<_> = indexed.map(|(n, _)| index_name(id, n as u32)).collect();
            for name in indexes {
                self.submit(Purpose::Minor, FileOp::Remove { name });
            }
            let op = if recycled {
                FileOp::Rename {
                    from: name,
                    to: free_name(id),
                }
            } else {
                FileOp::Remove { name }
            };
            if recycled {
                self.recycling.insert(id);
            }
            self.submit(Purpose::Left(id), op);
        }
    }

    /// Whether a segment can go without a producer's place in its sequence going with it. A full
    /// disk has no room for the checkpoint, and gets its space back first.
    fn is_covered(&self, segment: u64) -> bool {
        let full = self.trouble.as_ref().is_some_and(|trouble| trouble.full);
        let newest = self.checkpoints.kept.last().map(|(number, _)| *number);
        let needed = self.segments.get(&segment).map_or(0, |of| of.covered_by);
        full || self.config.new_incarnations || newest >= Some(needed)
    }

    pub(super) fn segment_left(&mut self, id: u64, result: io::Result<()>) {
        let recycled = self.recycling.remove(&id);
        match result {
            Ok(()) => {
                let length = self
                    .segments
                    .remove(&id)
                    .map_or(0, |segment| segment.filled);
                if recycled {
                    self.free.push((id, length));
                }
                // A full disk may have room again.
                if let Some(trouble) = self.trouble.as_mut().filter(|_| !self.withheld) {
                    trouble.retry_at = self.now.mono;
                }
            }
            Err(error) => {
                if let Some(segment) = self.segments.get_mut(&id) {
                    segment.leaving = error.kind() == io::ErrorKind::NotFound;
                }
                self.note_failure(&error);
            }
        }
    }
}
