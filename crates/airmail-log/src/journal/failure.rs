//! When files fail: what was not answered is refused, what was answered is written elsewhere, and
//! a full or failing disk is left alone for a while.
//!
//! A segment whose write or sync failed is sealed at its last durable end. Before anything refused
//! is said to be so, and before its numbers are given again, that end is a durable command: so no
//! crash can bring back what was refused. Where the command cannot be written either, the answer
//! is [`Refusal::OutcomeUnknown`].

use super::log::{Answer, Entry};
use super::meta::Meta;
use super::{Journal, Trouble};
use crate::contract::{Completion, Refusal, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

impl Trouble {
    /// What appends are told.
    pub(super) fn refusal(&self, retry_after: Duration) -> Refusal {
        match self.full {
            true => Refusal::Full { retry_after },
            false => Refusal::Io(self.error.clone()),
        }
    }
}

/// Whether an error says that there is no room.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

impl Journal {
    /// Whether the disk may be tried.
    pub(super) fn may_try(&self) -> bool {
        let trouble = self.trouble.as_ref();
        !self.withheld && trouble.is_none_or(|trouble| trouble.retry_at <= self.now.mono)
    }

    /// Begins an attempt whether the disk works again, if it is time.
    pub(super) fn probe(&mut self) {
        let due = self
            .trouble
            .as_ref()
            .is_some_and(|t| t.retry_at <= self.now.mono);
        if self.withheld {
            return self.refuse_withheld();
        }
        if !due {
            return;
        }
        let full = self.trouble.as_ref().is_some_and(|trouble| trouble.full);
        if full {
            // Whatever class is made next shows whether there is room.
            let class = self.classes.keys().copied().find(|class| {
                self.classes
                    .get(class)
                    .is_some_and(|class| class.active.is_none())
            });
            match class {
                Some(class) => drop(self.open_segment(class)),
                None => self.trouble = None,
            }
            let again = self.now.mono.plus(self.config.probe_interval);
            if let Some(trouble) = &mut self.trouble {
                trouble.retry_at = again;
            }
        } else {
            self.trouble = None;
        }
    }

    /// A file was made and filled: there is room.
    pub(super) fn healed(&mut self) {
        if self.trouble.as_ref().is_some_and(|trouble| trouble.full) {
            self.trouble = None;
        }
    }

    /// Counts a failure; a full disk, or failures in a row, make trouble.
    pub(super) fn note_failure(&mut self, error: &io::Error) {
        self.failures += 1;
        if self.withheld {
            return;
        }
        let full = is_full(error);
        if full || self.failures > 1 {
            self.trouble = Some(Trouble {
                full,
                error: error.to_string(),
                retry_at: self.now.mono.plus(self.config.probe_interval),
            });
        }
    }

    /// A segment could not be made.
    pub(super) fn making_failed(&mut self, id: u64, error: &io::Error) {
        self.segments.remove(&id);
        for class in self.classes.values_mut() {
            if class.active == Some(id) {
                class.active = None;
            }
            if class.prepared == Some(id) {
                class.prepared = None;
            }
        }
        self.failures += 1;
        self.note_failure(error);
        self.refuse_waiting();
        self.metas_failed();
    }

    /// A fill of a segment failed: it is left, when no write of it is under way. If there was no
    /// room for it, what was written is synced first: it was answered, perhaps, and there is no room
    /// to write it elsewhere.
    pub(super) fn abandon_unfilled(&mut self) {
        if !self.commits.is_empty() {
            return;
        }
        let active = self.classes.values().filter_map(|class| class.active);
        for id in active.collect::<Vec<u64>>() {
            let Some(segment) = self.segments.get_mut(&id) else {
                continue;
            };
            let Some(error) = segment.fill_failed.take() else {
                continue;
            };
            if is_full(&error) && !segment.unsynced.is_empty() {
                segment.fill_failed = Some(error);
            } else {
                self.abandon(id, Vec::new(), Vec::new(), &error);
            }
        }
    }

    /// A write or sync of a segment failed: it is never written again.
    pub(super) fn abandon(
        &mut self,
        segment: u64,
        entries: Vec<Entry>,
        metas: Vec<(Meta, Option<Tag>)>,
        error: &io::Error,
    ) {
        self.note_failure(error);
        let reason = self.failure_reason(error);
        self.failure = Some(reason);
        let mut failed = entries;
        if let Some(segment) = self.segments.get_mut(&segment) {
            segment.failed = true;
            let mut unsynced = std::mem::take(&mut segment.unsynced);
            segment.unsynced_since = None;
            unsynced.append(&mut failed);
            failed = unsynced;
        }
        for meta in metas.into_iter().rev() {
            self.metas.push_front(meta);
        }
        for class in self.classes.values_mut() {
            if class.active == Some(segment) {
                class.active = class.prepared.take();
            }
        }
        self.seal_segment(segment);
        // It goes first: what follows may rely on it.
        if let Some(seal) = self.metas.pop_back() {
            self.metas.push_front(seal);
        }
        self.take_back(failed);
        if self.failures > 1 || self.withheld {
            self.metas_failed();
        }
        if self.trouble.is_some() {
            self.refuse_waiting();
        }
    }

    fn failure_reason(&self, error: &io::Error) -> Refusal {
        let retry_after = self.config.probe_interval;
        match is_full(error) {
            true => Refusal::Full { retry_after },
            false => Refusal::Io(error.to_string()),
        }
    }

    /// What readers may see already is written once more; the rest, and all that follows it in its
    /// log, is refused.
    fn take_back(&mut self, failed: Vec<Entry>) {
        let mut again = Vec::new();
        let mut lost: BTreeMap<u32, u64> = BTreeMap::new();
        let mut dropped = Vec::new();
        for mut entry in failed {
            let Some(log) = self.logs.get(&entry.slot) else {
                continue;
            };
            if entry.copy || entry.next() <= log.visible {
                entry.copy = true;
                again.push(entry);
            } else {
                let from = lost.entry(entry.slot).or_insert(entry.first);
                *from = entry.first.min(*from);
                dropped.push(entry);
            }
        }
        let pending = std::mem::take(&mut self.pending);
        for entry in pending {
            match lost.get(&entry.slot) {
                Some(&from) if entry.first >= from => {
                    self.pending_bytes -= super::append::cost(&entry.batch);
                    dropped.push(entry);
                }
                _ => self.pending.push_back(entry),
            }
        }
        for entry in again.into_iter().rev() {
            self.pending_bytes += super::append::cost(&entry.batch);
            self.pending.push_front(entry);
        }
        for entry in dropped.into_iter().rev() {
            if let Some((stamp, undo)) = entry.undo {
                self.producers.undo(entry.slot, stamp, undo);
            }
        }
        for (slot, from) in lost {
            self.roll_back(slot, from);
        }
    }

    /// A log's numbers from `from` on were never told to anyone: they are given again.
    fn roll_back(&mut self, slot: u32, from: u64) {
        self.forget_recent(slot, from);
        self.take_back_copies(slot, from);
        let Some(log) = self.logs.get_mut(&slot) else {
            return;
        };
        log.next = from;
        log.unsettled = true;
        log.written = log.written.min(from);
        for answer in &mut log.answers {
            if let Answer::Waiting { t, extent, .. } = *answer
                && extent.last.0 >= from
            {
                *answer = Answer::Failed { t };
            }
        }
        self.failed.insert(slot);
    }

    /// While the disk is in trouble, nothing that is not answered waits for it.
    pub(super) fn refuse_waiting(&mut self) {
        let Some(trouble) = &self.trouble else { return };
        let retry_after = self.config.probe_interval;
        self.failure = Some(trouble.refusal(retry_after));
        let waiting = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        self.take_back(waiting.into());
    }

    /// The disk takes no commands: whoever waits for one is told, and it is tried again later.
    pub(super) fn metas_failed(&mut self) {
        let Some(trouble) = &self.trouble else { return };
        let why = trouble.refusal(self.config.probe_interval);
        for (_, t) in &mut self.metas {
            if let Some(t) = t.take() {
                self.out.push(Completion::Refused {
                    t,
                    why: why.clone(),
                });
            }
        }
        for log in self.logs.values_mut().filter(|log| log.sealed.is_some()) {
            log.seal_failed(&why);
            log.answer(&mut self.out);
        }
        if self.may_come_back() {
            self.failure = Some(Refusal::OutcomeUnknown);
            self.refuse_failed();
        }
    }

    /// The commands that are not yet durable.
    fn waiting_metas(&self) -> impl Iterator<Item = &Meta> {
        let written = self.commits.iter().flat_map(|commit| &commit.parts);
        let written = written.flat_map(|part| &part.metas);
        self.metas.iter().chain(written).map(|(meta, _)| meta)
    }

    /// The segments whose end is not yet durable.
    pub(super) fn sealing(&self) -> impl Iterator<Item = u64> {
        self.waiting_metas().filter_map(|meta| match meta {
            Meta::SegmentSealed { segment, .. } => Some(*segment),
            _ => None,
        })
    }

    /// Whether a crash could bring back what is to be refused.
    fn may_come_back(&self) -> bool {
        let mut waiting = self.waiting_metas();
        waiting.any(|meta| matches!(meta, Meta::SegmentSealed { .. } | Meta::TakenBack { .. }))
    }

    /// Refuses what failed, once no crash can bring it back; where the logs end is known then.
    pub(super) fn settle(&mut self) {
        if self.failed.is_empty() || self.may_come_back() {
            return;
        }
        self.refuse_failed();
        for slot in std::mem::take(&mut self.failed) {
            if let Some(log) = self.logs.get_mut(&slot) {
                log.unsettled = false;
                log.answer(&mut self.out);
                self.runnable.extend(log.at_tail.drain(..));
            }
        }
    }

    fn refuse_failed(&mut self) {
        let why = self.failure.clone().unwrap_or(Refusal::OutcomeUnknown);
        for slot in &self.failed {
            if let Some(log) = self.logs.get_mut(slot) {
                log.settle_failed(&why);
                log.answer(&mut self.out);
            }
        }
    }

    /// Wakes whoever a change of these logs concerns.
    pub(super) fn logs_moved(&mut self, moved: BTreeSet<u32>) {
        for slot in moved {
            self.log_moved(slot);
        }
    }
}
