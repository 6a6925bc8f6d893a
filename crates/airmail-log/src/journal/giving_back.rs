//! Return of disk space that nothing needs any more, also where nothing is published any more.
//!
//! A segment goes when it is sealed and no log keeps anything in it. Without this module it would
//! be sealed only when it is full: so the segment that a class writes to, and the files kept to
//! make new segments quickly, would stay for as long as nothing is published. Each time that
//! retention is applied:
//! - an open segment in which nothing is kept is sealed; when that is durable, it goes;
//! - files emptied or made ahead for new segments go when no segment was made for `spare_time`;
//! - sealed segments of which little is still kept are emptied: the rest is written elsewhere
//!   ([`moving`](super::moving));
//! - a sealed segment is cut behind its last batch, which frees the zeros filled ahead;
//! - where more than one sealed segment of commands is left, checkpoints make them unnecessary.
//!
//! So with nothing going on, the disk holds at most the data that retention asks for and two
//! segments for each class: one segment's worth of waste, and the one that is written to. Where
//! more than half of each segment is kept, moving would write more than it frees: then the waste is
//! at most as large as the data that is kept (`Journal::check_settled`).

use super::checkpointer::Checkpointer;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::{Effects, Purpose};
use super::format::META_CLASS;
use super::id::SegmentId;
use super::indexing::Indexer;
use super::names::free_name;
use super::segment::Segment;
use super::segment_set::SegmentSet;
use super::segments::{FILL_ALIGNED_BYTES, seal};
use super::settling::sealing;
use super::time::Time;
use super::{Journal, JournalConfig};
use crate::files::FileOp;
use std::collections::BTreeSet;

/// The parts of the journal that giving back space reads or changes.
struct GivingBack<'j> {
    config: &'j JournalConfig,
    time: &'j Time,
    commits: &'j Commits,
    commands: &'j mut Commands,
    segments: &'j mut SegmentSet,
    indexer: &'j mut Indexer,
    checkpointer: &'j mut Checkpointer,
    effects: &'j mut Effects,
}

impl Journal {
    fn giving_back(&mut self) -> GivingBack<'_> {
        GivingBack {
            config: &self.config,
            time: &self.time,
            commits: &self.commits,
            commands: &mut self.commands,
            segments: &mut self.segments,
            indexer: &mut self.indexer,
            checkpointer: &mut self.checkpointer,
            effects: &mut self.effects,
        }
    }

    /// Gives back space that nothing needs. See the module's documentation.
    pub(super) fn give_back(&mut self) {
        if self.commands.are_held_back() || self.calls.is_closing() || !self.may_try() {
            return;
        }
        self.giving_back().give_back();
        self.begin_move();
    }
}

impl GivingBack<'_> {
    fn give_back(&mut self) {
        self.leave_unwanted();
        if self
            .segments
            .is_idle(self.config.spare_time, self.time.mono())
        {
            // What is there for new segments is not needed.
            self.drop_spares();
        }
        self.cut_sealed();
        self.shed_commands();
    }

    /// Seals open segments in which nothing is kept.
    fn leave_unwanted(&mut self) {
        let writing = self.commits.parts().map(|part| part.segment);
        let writing: BTreeSet<SegmentId> = writing.collect();
        let unwanted = |segment: &Segment| {
            segment.is_open()
                && segment.header.class != META_CLASS
                && !segment.blocks().is_empty()
                && segment.is_unused()
                && !segment.fill.has_failed()
                && !writing.contains(&segment.id)
        };
        let left = self.segments.take_active(unwanted);
        for id in left {
            seal(self.segments, self.indexer, self.commands, id);
        }
    }

    /// Gives back emptied segments, and those that were made ahead and not written.
    fn drop_spares(&mut self) {
        for (id, _) in self.segments.drop_free() {
            let name = free_name(id);
            self.effects.submit(Purpose::Minor, FileOp::Remove { name });
        }
        let spares = self.segments.take_spares(self.commits.waiting().is_empty());
        for id in spares {
            seal(self.segments, self.indexer, self.commands, id);
        }
    }

    /// Has sealed segments end behind their last batch, once no crash can open them again.
    fn cut_sealed(&mut self) {
        let sealing: BTreeSet<SegmentId> = sealing(self.commands, self.commits).collect();
        let mut cuts = Vec::new();
        for segment in self.segments.iter_mut() {
            let end = segment.durable().next_multiple_of(FILL_ALIGNED_BYTES);
            let stays = segment.is_sealed()
                && segment.header.class != META_CLASS
                && !segment.is_leaving()
                && !segment.is_unused();
            let still = !segment.fill.is_under_way() && !segment.has_failed();
            if stays && still && segment.fill.end() > end && !sealing.contains(&segment.id) {
                segment.fill.cut(end);
                cuts.push((segment.name.clone(), end.0));
            }
        }
        for (name, length) in cuts {
            self.effects
                .submit(Purpose::Minor, FileOp::Cut { name, length });
        }
    }

    /// Wants a checkpoint where commands lie in segments that one would make unnecessary.
    fn shed_commands(&mut self) {
        let commands = self.segments.iter().filter(|segment| {
            segment.header.class == META_CLASS && segment.is_sealed() && !segment.is_leaving()
        });
        if commands.count() > 1 {
            self.checkpointer.want();
        }
    }
}
