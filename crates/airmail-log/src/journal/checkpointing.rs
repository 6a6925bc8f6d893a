//! Writing of checkpoints, and removal of the files that they make unnecessary.
//!
//! A checkpoint holds the durable state between two commits ([`snapshot`](super::snapshot)). The
//! file is new, written once and synced.

use super::calls::Calls;
use super::checkpoint::Checkpoint;
use super::checkpointer::Checkpointer;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::{Effects, Purpose};
use super::faults::Faults;
use super::format::META_CLASS;
use super::id::SegmentId;
use super::names::checkpoint_name;
use super::segment_set::SegmentSet;
use super::settling::sealing;
use super::time::Time;
use super::{Journal, JournalConfig};
use crate::files::FileOp;
use airmail_model::bug;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::io;

/// Whether all that was accepted is durable.
pub(super) fn is_drained(
    calls: &Calls,
    commands: &Commands,
    commits: &Commits,
    segments: &SegmentSet,
) -> bool {
    calls.is_empty()
        && commands.is_empty()
        && commits.are_done()
        && !commands.are_held_back()
        && segments.iter().all(|segment| segment.unsynced().is_empty())
}

/// The parts of the journal that writing checkpoints reads or changes: in a segment it changes only
/// whether that is leaving.
pub(super) struct Checkpointing<'j> {
    config: &'j JournalConfig,
    time: &'j Time,
    calls: &'j Calls,
    faults: &'j Faults,
    commits: &'j Commits,
    commands: &'j Commands,
    segments: &'j mut SegmentSet,
    checkpointer: &'j mut Checkpointer,
    effects: &'j mut Effects,
}

impl Journal {
    pub(super) fn checkpointing(&mut self) -> Checkpointing<'_> {
        Checkpointing {
            config: &self.config,
            time: &self.time,
            calls: &self.calls,
            faults: &self.faults,
            commits: &self.commits,
            commands: &self.commands,
            segments: &mut self.segments,
            checkpointer: &mut self.checkpointer,
            effects: &mut self.effects,
        }
    }

    /// Begins a checkpoint, if it is time and no commit is under way.
    pub(super) fn start_checkpoint(&mut self) {
        if !self.commits.are_idle() || !self.commands.is_empty() || !self.checkpointing().is_due() {
            return;
        }
        let last = self.checkpointing().is_last();
        let checkpoint = self.snapshot().take(last);
        self.checkpointing().begin(&checkpoint, last);
    }
}

impl Checkpointing<'_> {
    /// Whether it is time for one.
    pub(super) fn is_due(&self) -> bool {
        let now = self.time.mono();
        if self.commands.are_held_back() || !self.checkpointer.may_begin(now) {
            return false;
        }
        let last = self.is_last();
        let wanted = self.checkpointer.is_wanted(self.config.checkpoint_bytes);
        (wanted || last) && self.faults.may_try(now) && (!self.calls.is_closing() || last)
    }

    /// Whether the next is that of a clean stop.
    fn is_last(&self) -> bool {
        let is_closed = self.checkpointer.is_closed(self.commands.count());
        self.calls.is_closing() && self.is_drained() && !is_closed
    }

    fn is_drained(&self) -> bool {
        is_drained(self.calls, self.commands, self.commits, self.segments)
    }

    fn begin(&mut self, checkpoint: &Checkpoint, last: bool) {
        let bytes = Bytes::from(checkpoint.encode());
        let number = self.checkpointer.begin(checkpoint.meta_count, bytes, last);
        let name = checkpoint_name(number);
        self.effects
            .submit(Purpose::Checkpoint, FileOp::Create { name });
    }

    /// A step of the checkpoint under way has ended.
    pub(super) fn step_done(&mut self, result: io::Result<()>) {
        let Some(mut step) = self.checkpointer.take() else {
            bug!("a step of a checkpoint has ended, and none is under way");
            return;
        };
        let name = checkpoint_name(step.number);
        if result.is_err() {
            let again = self.time.mono().plus(self.config.probe_interval);
            self.checkpointer.failed(again, self.calls.is_closing());
            return self.effects.submit(Purpose::Minor, FileOp::Remove { name });
        }
        if !step.made {
            step.made = true;
            let op = FileOp::Write {
                name,
                at: 0,
                parts: vec![step.bytes.clone()],
                sync: true,
                note: None,
            };
            self.effects.submit(Purpose::Checkpoint, op);
            return self.checkpointer.put_back(step);
        }
        // A command may have come behind the snapshot; then another is written.
        let current = self.commands.count() == step.meta_count && self.is_drained();
        for old in self.checkpointer.written(&step, current) {
            let name = checkpoint_name(old);
            self.effects.submit(Purpose::Minor, FileOp::Remove { name });
        }
        self.sweep_metas();
    }

    /// Lets go of segments of commands that the older checkpoint makes unnecessary.
    fn sweep_metas(&mut self) {
        let Some(covered) = self.checkpointer.covered() else {
            // Input: a young journal, which has no older checkpoint yet.
            return;
        };
        // As for all segments, its end must be known for ever before the name can go.
        let sealing: BTreeSet<SegmentId> = sealing(self.commands, self.commits).collect();
        let old = self.segments.iter_mut().filter(|segment| {
            segment.header.class == META_CLASS
                && segment.is_sealed()
                && !segment.fill.is_under_way()
                && !segment.is_leaving()
                && segment.commands_end() <= covered
                && !sealing.contains(&segment.id)
        });
        let mut names = Vec::new();
        for segment in old {
            segment.leave();
            names.push((segment.id, segment.name.clone()));
        }
        for (id, name) in names {
            self.effects
                .submit(Purpose::Left(id), FileOp::Remove { name });
        }
    }
}
