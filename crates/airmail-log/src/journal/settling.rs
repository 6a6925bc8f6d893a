//! Settling of failed batches: a batch is refused when no crash can bring it back, and then it is
//! known where its log ends.
//!
//! The refusal waits until a durable command says where the failed segment ends, or that a copy is
//! taken back; where that command cannot be written either, the answer is that the outcome is not
//! known ([`failure`](super::failure)).

use super::Journal;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::Effects;
use super::faults::Faults;
use super::id::{SegmentId, Slot};
use super::logs::Logs;
use super::meta::Meta;
use super::readers::Readers;
use std::collections::BTreeSet;

/// The commands that are not yet durable.
fn not_durable<'j>(commands: &'j Commands, commits: &'j Commits) -> impl Iterator<Item = &'j Meta> {
    let written = commits.parts().flat_map(|part| &part.metas);
    commands.iter().chain(written.map(|(meta, _)| meta))
}

/// The segments whose end is not yet durable.
pub(super) fn sealing<'j>(
    commands: &'j Commands,
    commits: &'j Commits,
) -> impl Iterator<Item = SegmentId> + 'j {
    not_durable(commands, commits).filter_map(|meta| match meta {
        Meta::SegmentSealed { segment, .. } => Some(*segment),
        _ => None,
    })
}

/// Whether a crash could bring back batches that are to be refused.
pub(super) fn may_come_back(commands: &Commands, commits: &Commits) -> bool {
    let mut waiting = not_durable(commands, commits);
    waiting.any(|meta| matches!(meta, Meta::SegmentSealed { .. } | Meta::TakenBack { .. }))
}

/// Refuses the batches that failed.
pub(super) fn refuse_failed(faults: &Faults, logs: &mut Logs, effects: &mut Effects) {
    let why = faults.reason();
    for slot in faults.failed() {
        if let Some(log) = logs.get_mut(*slot) {
            log.settle_failed(&why);
            log.answer(effects.completions());
        }
    }
}

/// The parts of the journal that settling reads or changes.
struct Settling<'j> {
    commits: &'j Commits,
    commands: &'j Commands,
    faults: &'j mut Faults,
    logs: &'j mut Logs,
    readers: &'j mut Readers,
    effects: &'j mut Effects,
}

impl Journal {
    fn settling(&mut self) -> Settling<'_> {
        Settling {
            commits: &self.commits,
            commands: &self.commands,
            faults: &mut self.faults,
            logs: &mut self.logs,
            readers: &mut self.readers,
            effects: &mut self.effects,
        }
    }

    /// Refuses failed batches, once no crash can bring them back.
    pub(super) fn settle(&mut self) {
        let settled = self.settling().settle();
        self.logs_moved(settled);
    }
}

impl Settling<'_> {
    /// Refuses failed batches, once no crash can bring them back. The logs whose ends are known then.
    fn settle(&mut self) -> BTreeSet<Slot> {
        if self.faults.failed().is_empty() || may_come_back(self.commands, self.commits) {
            return BTreeSet::new();
        }
        refuse_failed(self.faults, self.logs, self.effects);
        let settled = self.faults.take_failed();
        for slot in &settled {
            if let Some(log) = self.logs.get_mut(*slot) {
                log.life.unsettled = false;
                self.readers.wake_all(log.at_tail.drain(..));
            }
        }
        settled
    }
}
