//! Removal of segments in which no log keeps anything: their files are removed, or kept for new
//! ones.
//!
//! A segment goes when its end is known for ever and a checkpoint has its other facts. Segments
//! that keep little while nothing happens are emptied by [`giving_back`](super::giving_back).

use super::checkpointer::Checkpointer;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::{Effects, Purpose};
use super::faults::Faults;
use super::format::{DATA_START, META_CLASS};
use super::id::{FileOffset, SegmentId};
use super::known::Known;
use super::names::{free_name, index_name, index_of};
use super::segment::Segment;
use super::segment_set::SegmentSet;
use super::settling::sealing;
use super::time::Time;
use super::{Journal, JournalConfig};
use crate::files::{FileName, FileOp};
use airmail_model::bug;
use std::io;

/// The parts of the journal that letting segments go reads or changes.
struct Sweeping<'j> {
    config: &'j JournalConfig,
    time: &'j Time,
    commits: &'j Commits,
    commands: &'j Commands,
    segments: &'j mut SegmentSet,
    checkpointer: &'j mut Checkpointer,
    faults: &'j mut Faults,
    effects: &'j mut Effects,
}

impl Journal {
    fn sweeping(&mut self) -> Sweeping<'_> {
        Sweeping {
            config: &self.config,
            time: &self.time,
            commits: &self.commits,
            commands: &self.commands,
            segments: &mut self.segments,
            checkpointer: &mut self.checkpointer,
            faults: &mut self.faults,
            effects: &mut self.effects,
        }
    }

    /// Lets go of segments in which nothing is kept.
    pub(super) fn sweep(&mut self) {
        self.sweeping().sweep();
    }

    /// A segment's file was renamed or removed, or could not be.
    pub(super) fn segment_left(&mut self, id: SegmentId, result: io::Result<()>) {
        self.sweeping().left(id, result);
    }

    /// Has files removed that nothing knows of: a removal need not have outlived a crash.
    pub(super) fn drop_strays(&mut self, list: &[(FileName, u64)], known: &Known) {
        self.sweeping().drop_strays(list, known);
    }
}

impl Sweeping<'_> {
    /// Lets go of all that can go now.
    fn sweep(&mut self) {
        let unused = |segment: &&Segment| {
            segment.is_sealed()
                && segment.header.class != META_CLASS
                && segment.is_unused()
                && segment.reads() == 0
                && !segment.fill.is_under_way()
                && !segment.is_leaving()
        };
        if !self.segments.is_sweep_due()
            || self.commands.are_held_back()
            || !self.faults.may_try(self.time.mono())
        {
            return;
        }
        self.segments.swept();
        // Its end must be known for ever before the name can go, or its number be missed.
        let sealing: Vec<SegmentId> = sealing(self.commands, self.commits).collect();
        let unused = self
            .segments
            .iter()
            .filter(unused)
            .map(|segment| segment.id);
        let unused: Vec<SegmentId> = unused.filter(|id| !sealing.contains(id)).collect();
        for id in unused {
            if !self.is_covered(id) {
                // Swept when the checkpoint is there.
                self.checkpointer.want();
                self.segments.want_sweep();
                continue;
            }
            let idle = self
                .segments
                .is_idle(self.config.spare_time, self.time.mono());
            let room = self.segments.free_count() < self.config.recycled_max && !idle;
            let Some(segment) = self.segments.get_mut(id) else {
                bug!("segment {id} is to be let go and is gone");
                continue;
            };
            segment.leave();
            let name = segment.name.clone();
            let recycled = room && !segment.has_failed() && segment.fill.end() > DATA_START;
            let blocks = segment.named_blocks();
            let indexed = blocks.filter(|(_, block)| block.layout().is_some());
            let indexes: Vec<_> = indexed.map(|(block, _)| index_name(block)).collect();
            for name in indexes {
                self.effects.submit(Purpose::Minor, FileOp::Remove { name });
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
                self.segments.recycle(id);
            }
            self.effects.submit(Purpose::Left(id), op);
        }
    }

    /// Whether a segment can go without a producer's place in its sequence going with it. A full
    /// disk has no room for the checkpoint, and gets its space back first.
    fn is_covered(&self, segment: SegmentId) -> bool {
        let full = self.faults.is_full();
        let newest = self.checkpointer.newest();
        let needed = self.segments.get(segment).map(Segment::covered_by);
        full || self.config.new_incarnations || newest >= Some(needed.unwrap_or_default())
    }

    fn left(&mut self, id: SegmentId, result: io::Result<()>) {
        let recycled = self.segments.was_recycled(id);
        match result {
            Ok(()) => {
                let length = self
                    .segments
                    .remove(id)
                    .map_or(FileOffset::START, |segment| segment.fill.end());
                if recycled {
                    self.segments.add_free(id, length);
                }
                // A full disk may have room again.
                if !self.faults.is_withheld() {
                    self.faults.retry_at(self.time.mono());
                }
            }
            Err(error) => {
                if let Some(segment) = self.segments.get_mut(id) {
                    segment.leaving_failed(&error);
                }
                let again = self.time.mono().plus(self.config.probe_interval);
                self.faults.note(&error, again);
            }
        }
    }

    fn drop_strays(&mut self, list: &[(FileName, u64)], known: &Known) {
        let strays = self.segments.ids();
        for id in strays.into_iter().filter(|id| known.is_stray(*id)) {
            if let Some(segment) = self.segments.get_mut(id) {
                segment.found_to(DATA_START);
                segment.leave();
                let name = segment.name.clone();
                self.effects
                    .submit(Purpose::Left(id), FileOp::Remove { name });
            }
        }
        for (name, _) in list {
            let Some(id) = index_of(name) else {
                // Input: the files of other kinds.
                continue;
            };
            let of = self.segments.get(id.segment).filter(|of| !of.is_leaving());
            let block = of.and_then(|of| of.block(id.block));
            if block.is_none_or(|block| block.layout().is_none()) {
                self.effects
                    .submit(Purpose::Minor, FileOp::Remove { name: name.clone() });
            }
        }
    }
}
