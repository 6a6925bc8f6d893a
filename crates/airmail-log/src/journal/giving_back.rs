//! What is kept on disk and not wanted is given back, also where nothing is published any more.
//!
//! A segment goes when it is sealed and no log keeps anything in it. Without this module it would
//! be sealed only when it is full: so the segment that a class writes to, and what is kept to make
//! new segments quickly, would stay for as long as nobody publishes. Each time that retention is
//! applied:
//! - an open segment in which nothing is kept is sealed; when that is durable, it goes;
//! - emptied segments and such as were made ahead go when none was made for `spare_time`;
//! - what is wanted of sealed segments of which little is goes elsewhere ([`moving`](super::moving));
//! - a sealed segment is cut behind its last batch: what it was filled with ahead goes;
//! - where more than one sealed segment of commands is left, checkpoints make them unnecessary.
//!
//! So with nothing going on, what is on the disk is at most what retention asks, and two segments
//! for each class: the oldest, of which a part is wanted, and that which is written.

use super::format::{HEADER_BYTES, META_CLASS};
use super::segment::{Segment, State, free_name};
use super::segments::FILL_ALIGNED_BYTES;
use super::{Journal, Purpose};
use crate::files::FileOp;
use std::collections::BTreeSet;

impl Journal {
    /// Gives back what nobody wants. See the module's documentation.
    pub(super) fn give_back(&mut self) {
        if self.recovering.is_some() || self.closing || !self.may_try() {
            return;
        }
        self.leave_unwanted();
        if self.spares_are_idle() {
            self.drop_spares();
        }
        self.cut_sealed();
        self.begin_move();
        self.shed_commands();
    }

    /// Whether no segment was made for so long that what is there for new ones is not needed.
    pub(super) fn spares_are_idle(&self) -> bool {
        self.made_at.plus(self.config.spare_time) <= self.now.mono
    }

    /// Seals open segments in which nothing is kept.
    fn leave_unwanted(&mut self) {
        let writing = self.commits.iter().flat_map(|commit| &commit.parts);
        let writing: BTreeSet<u64> = writing.map(|part| part.segment).collect();
        let unwanted = |segment: &Segment| {
            segment.state == State::Open
                && segment.header.class != META_CLASS
                && !segment.blocks.is_empty()
                && segment.is_unused()
                && segment.fill_failed.is_none()
                && !writing.contains(&segment.id)
        };
        let mut left = Vec::new();
        for class in self.classes.values_mut() {
            let active = class.active.and_then(|id| self.segments.get(&id));
            if active.is_some_and(unwanted) {
                left.extend(class.active.take());
            }
        }
        for id in left {
            self.seal_segment(id);
        }
    }

    /// Gives back emptied segments, and those that were made ahead and not written.
    fn drop_spares(&mut self) {
        for (id, _) in std::mem::take(&mut self.free) {
            let name = free_name(id);
            self.submit(Purpose::Minor, FileOp::Remove { name });
        }
        let is_spare = |id: &u64| {
            let segment = self.segments.get(id);
            segment.is_some_and(|of| of.state == State::Open && of.written == HEADER_BYTES as u64)
        };
        let waits = !self.pending.is_empty();
        let mut spares = Vec::new();
        for (number, class) in &mut self.classes {
            if *number == META_CLASS {
                continue;
            }
            if let Some(prepared) = class.prepared.take_if(|id| is_spare(id)) {
                class.spared = class.active;
                spares.push(prepared);
            }
            if !waits && let Some(active) = class.active.take_if(|id| is_spare(id)) {
                spares.push(active);
            }
        }
        for id in spares {
            self.seal_segment(id);
        }
    }

    /// Has sealed segments end behind their last batch, once no crash can open them again.
    fn cut_sealed(&mut self) {
        let sealing: BTreeSet<u64> = self.sealing().collect();
        let mut cuts = Vec::new();
        for segment in self.segments.values_mut() {
            let length = segment.durable.next_multiple_of(FILL_ALIGNED_BYTES);
            let stays = segment.state == State::Sealed
                && segment.header.class != META_CLASS
                && !segment.leaving
                && !segment.is_unused();
            let still = segment.filling.is_none() && !segment.failed;
            if stays && still && segment.filled > length && !sealing.contains(&segment.id) {
                segment.filled = length;
                cuts.push((segment.name.clone(), length));
            }
        }
        for (name, length) in cuts {
            self.submit(Purpose::Minor, FileOp::Cut { name, length });
        }
    }

    /// Wants a checkpoint where commands lie in segments that one would make unnecessary.
    fn shed_commands(&mut self) {
        let commands = self.segments.values().filter(|segment| {
            segment.header.class == META_CLASS && segment.state == State::Sealed && !segment.leaving
        });
        self.checkpoints.due |= commands.count() > 1;
    }
}
