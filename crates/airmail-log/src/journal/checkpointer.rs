//! The checkpoints of a journal: those that are there, the one that is being written, and the
//! changes since then.
//!
//! Invariants, held by [`Checkpointer::check`]:
//! - Checkpoints are in order of number, and never reach that of the next.
//! - The one that is being written has a number above all that are there.

use super::id::{CheckpointId, Slot};
use airmail_model::Mono;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Checkpoints kept.
const KEPT: usize = 2;

/// A checkpoint on its way.
#[derive(Debug)]
pub(super) struct CheckpointFile {
    pub(super) number: CheckpointId,
    /// Commands with a lower count are in it.
    pub(super) meta_count: u64,
    pub(super) bytes: Bytes,
    /// Its file is made.
    pub(super) made: bool,
    /// It is that of a clean stop.
    pub(super) last: bool,
}

/// A checkpoint that is there.
#[derive(Clone, Copy, Debug)]
struct Kept {
    number: CheckpointId,
    /// Commands with a lower count are in it; 0 if it is damaged.
    meta_count: u64,
}

/// State of the checkpoints. See the module's documentation.
#[derive(Debug)]
pub(super) struct Checkpointer {
    next: CheckpointId,
    /// Checkpoints on the disk, from old to new.
    kept: Vec<Kept>,
    under_way: Option<CheckpointFile>,
    /// Bytes appended since the last.
    appended: u64,
    /// Logs appended to since the last.
    touched: BTreeSet<Slot>,
    /// Those appended to before the one under way, and after the last.
    touched_before: BTreeSet<Slot>,
    /// One is wanted whatever was appended.
    wanted: bool,
    /// Time before which no checkpoint is begun, after a failure.
    not_before: Mono,
    /// Size of the last one, in bytes.
    bytes: u64,
    /// Number of commands that the last of a clean stop has, once it is written. As many as there can be: it
    /// could not be written, and the stop ends without.
    closed_with: Option<u64>,
}

impl Default for Checkpointer {
    fn default() -> Checkpointer {
        Checkpointer {
            next: CheckpointId::FIRST,
            kept: Vec::new(),
            under_way: None,
            appended: 0,
            touched: BTreeSet::new(),
            touched_before: BTreeSet::new(),
            wanted: false,
            not_before: Mono(0),
            bytes: 0,
            closed_with: None,
        }
    }
}

impl Checkpointer {
    /// The number of the checkpoint that is written next.
    pub(super) fn next(&self) -> CheckpointId {
        self.next
    }

    /// The newest checkpoint that is there.
    pub(super) fn newest(&self) -> Option<CheckpointId> {
        self.kept.last().map(|kept| kept.number)
    }

    /// Count below which all checkpoints include the commands, if as many checkpoints are there as
    /// are kept.
    pub(super) fn covered(&self) -> Option<u64> {
        let oldest = self.kept.first().filter(|_| self.kept.len() >= KEPT);
        oldest.map(|kept| kept.meta_count)
    }

    /// A checkpoint was found when the journal opened, older than those found before; with the count of
    /// commands that it ends at, or 0 if that is not known.
    pub(super) fn found(&mut self, number: CheckpointId, meta_count: u64) {
        self.next = self.next.max(number.next());
        self.kept.insert(0, Kept { number, meta_count });
    }

    /// One is wanted, whatever was appended.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// Notes that a batch of a log, of this size, became durable.
    pub(super) fn appended(&mut self, slot: Slot, bytes: u64) {
        self.appended += bytes;
        self.touched.insert(slot);
    }

    /// Logs of which this run's checkpoints do not know yet where they go on.
    pub(super) fn touch(&mut self, slots: impl IntoIterator<Item = Slot>) {
        self.touched.extend(slots);
    }

    /// Logs appended to since the last checkpoint that is there: the newest slots first, but for those
    /// that the one under way has.
    pub(super) fn touched(&self) -> impl Iterator<Item = Slot> {
        let touched = self.touched.iter().rev().chain(&self.touched_before);
        touched.copied()
    }

    /// Whether one may begin.
    pub(super) fn may_begin(&self, now: Mono) -> bool {
        self.under_way.is_none() && self.not_before <= now
    }

    /// Whether one is wanted, because something asked for it, or because at least `bytes` were appended. A
    /// large table of producers is not written again for every few batches.
    pub(super) fn is_wanted(&self, bytes: u64) -> bool {
        self.wanted || self.appended >= bytes.max(4 * self.bytes)
    }

    /// Whether the last of a clean stop is written, with all of so many commands.
    pub(super) fn is_closed(&self, commands: u64) -> bool {
        self.closed_with.is_some_and(|with| commands <= with)
    }

    /// Begins one that says this, `last` if it is that of a clean stop. Its number.
    pub(super) fn begin(&mut self, meta_count: u64, bytes: Bytes, last: bool) -> CheckpointId {
        let number = self.next;
        self.next = number.next();
        self.wanted = false;
        self.appended = 0;
        self.touched_before.append(&mut self.touched);
        self.under_way = Some(CheckpointFile {
            number,
            meta_count,
            bytes,
            made: false,
            last,
        });
        number
    }

    /// The one under way, for its next step.
    pub(super) fn take(&mut self) -> Option<CheckpointFile> {
        self.under_way.take()
    }

    /// The one under way has another step to go.
    pub(super) fn put_back(&mut self, step: CheckpointFile) {
        self.under_way = Some(step);
    }

    /// The one under way could not be written: it is tried again at a time. A clean stop ends without.
    pub(super) fn failed(&mut self, again: Mono, closing: bool) {
        self.not_before = again;
        self.wanted = true;
        self.closed_with = closing.then_some(u64::MAX);
        self.touched.append(&mut self.touched_before);
    }

    /// The one that was under way is there; `current` if nothing has come behind it. Those that go by it.
    pub(super) fn written(&mut self, step: &CheckpointFile, current: bool) -> Vec<CheckpointId> {
        self.bytes = step.bytes.len() as u64;
        self.closed_with = (step.last && current).then_some(step.meta_count);
        self.touched_before.clear();
        self.kept.push(Kept {
            number: step.number,
            meta_count: step.meta_count,
        });
        let old = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..old).map(|kept| kept.number).collect()
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let numbers = self.kept.iter().map(|kept| kept.number);
        assert!(
            numbers.clone().is_sorted() && numbers.clone().all(|number| number < self.next),
            "{:?} are there, and the next is {:?}",
            self.kept,
            self.next
        );
        if let Some(step) = &self.under_way {
            assert!(
                step.number < self.next && numbers.max() < Some(step.number),
                "{:?} is being written, and {:?} are there",
                step.number,
                self.kept
            );
        }
    }

    /// Whether one is being written.
    #[cfg(test)]
    pub(super) fn is_writing(&self) -> bool {
        self.under_way.is_some()
    }

    /// The count that the commands of the newest one end at.
    #[cfg(test)]
    pub(super) fn newest_count(&self) -> Option<u64> {
        self.kept.last().map(|kept| kept.meta_count)
    }
}
