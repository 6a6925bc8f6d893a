//! Handling of failed files: unanswered batches are refused, answered ones are written elsewhere,
//! and a full or failing disk is left alone for a while.
//!
//! A segment whose write or sync failed is sealed at its last durable end. That end is a durable
//! command before any refusal is told, and before its numbers are given again: so no crash can
//! bring back a refused batch. Where the command cannot be written either, the answer is
//! [`Refusal::OutcomeUnknown`].

use super::commands::{Command, Commands};
use super::commits::Commits;
use super::copies::take_back_copies;
use super::effects::Effects;
use super::entry::Entry;
use super::faults::{Faults, is_full};
use super::id::{SegmentId, Slot};
use super::indexing::Indexer;
use super::log::Answer;
use super::logs::Logs;
use super::producers::Producers;
use super::segment_set::SegmentSet;
use super::segments::seal;
use super::settling::{may_come_back, refuse_failed};
use super::time::Time;
use super::{Journal, JournalConfig};
use crate::contract::{Completion, Refusal};
use airmail_model::{LogId, Sequence, bug};
use std::collections::BTreeMap;
use std::io;

/// The parts of the journal that handling a failure reads or changes.
pub(super) struct Failing<'j> {
    pub(super) config: &'j JournalConfig,
    pub(super) time: &'j Time,
    pub(super) faults: &'j mut Faults,
    logs: &'j mut Logs,
    producers: &'j mut Producers,
    commits: &'j mut Commits,
    commands: &'j mut Commands,
    segments: &'j mut SegmentSet,
    indexer: &'j mut Indexer,
    effects: &'j mut Effects,
}

impl Journal {
    pub(super) fn failing(&mut self) -> Failing<'_> {
        Failing {
            config: &self.config,
            time: &self.time,
            faults: &mut self.faults,
            logs: &mut self.logs,
            producers: &mut self.producers,
            commits: &mut self.commits,
            commands: &mut self.commands,
            segments: &mut self.segments,
            indexer: &mut self.indexer,
            effects: &mut self.effects,
        }
    }

    /// Whether the disk may be tried.
    pub(super) fn may_try(&self) -> bool {
        self.faults.may_try(self.time.mono())
    }

    /// Begins an attempt whether the disk works again, if it is time.
    pub(super) fn probe(&mut self) {
        let now = self.time.mono();
        if self.faults.is_withheld() {
            return self.failing().refuse_withheld();
        }
        if self.faults.is_due(now) != Some(true) {
            return;
        }
        if self.faults.is_full() {
            // Whatever class is made next shows whether there is room.
            match self.segments.idle_class() {
                Some(class) => drop(self.making().open(class)),
                None => self.faults.over(),
            }
            let again = now.plus(self.config.probe_interval);
            self.faults.retry_at(again);
        } else {
            self.faults.over();
        }
    }
}

impl Failing<'_> {
    /// Counts a failure; a full disk, or failures in a row, make trouble.
    fn note_failure(&mut self, error: &io::Error) {
        let retry_at = self.time.mono().plus(self.config.probe_interval);
        self.faults.note(error, retry_at);
    }

    /// A segment could not be made.
    pub(super) fn making_failed(&mut self, id: SegmentId, error: &io::Error) {
        self.segments.forget(id);
        self.faults.count();
        self.note_failure(error);
        self.refuse_waiting();
        self.metas_failed();
    }

    /// Leaves a segment whose fill failed, when no write of it is under way. If there was no room
    /// for the fill, the written batches are synced first: they were answered, perhaps, and there
    /// is no room to write them elsewhere.
    pub(super) fn abandon_unfilled(&mut self) {
        if !self.commits.are_idle() {
            return;
        }
        let active = self.segments.active();
        for id in active.collect::<Vec<SegmentId>>() {
            let Some(segment) = self.segments.get_mut(id) else {
                bug!("segment {id} takes batches and is gone");
                continue;
            };
            let Some(error) = segment.fill.take_failure() else {
                // Input: segments whose fills went well.
                continue;
            };
            if is_full(&error) && !segment.unsynced().is_empty() {
                segment.fill.fail(error);
            } else {
                self.abandon(id, Vec::new(), Vec::new(), &error);
            }
        }
    }

    /// A write or sync of a segment failed: it is never written again.
    pub(super) fn abandon(
        &mut self,
        segment: SegmentId,
        entries: Vec<Entry>,
        metas: Vec<Command>,
        error: &io::Error,
    ) {
        self.note_failure(error);
        let reason = self.failure_reason(error);
        self.faults.will_say(reason);
        let mut failed = entries;
        if let Some(segment) = self.segments.get_mut(segment) {
            let mut unsynced = segment.fail();
            unsynced.append(&mut failed);
            failed = unsynced;
        }
        self.commands.put_back(metas);
        self.segments.leave(segment);
        seal(self.segments, self.indexer, self.commands, segment);
        // It goes first: what follows may rely on it.
        if let Some(seal) = self.commands.take_last() {
            self.commands.give_first(seal);
        }
        self.take_back(failed);
        if self.faults.are_repeated() || self.faults.is_withheld() {
            self.metas_failed();
        }
        if self.faults.trouble().is_some() {
            self.refuse_waiting();
        }
    }

    fn failure_reason(&self, error: &io::Error) -> Refusal {
        let retry_after = self.config.probe_interval;
        if is_full(error) {
            Refusal::Full { retry_after }
        } else {
            Refusal::Io(error.to_string())
        }
    }

    /// Queues batches that readers may have seen to be written once more; refuses the others, and
    /// all that follow them in their log.
    fn take_back(&mut self, failed: Vec<Entry>) {
        let mut again = Vec::new();
        let mut lost: BTreeMap<Slot, Sequence> = BTreeMap::new();
        let mut dropped = Vec::new();
        for mut entry in failed {
            let Some(log) = self.logs.get(entry.slot) else {
                // Input: a log that was deleted while its batches were on their way.
                continue;
            };
            if entry.copy || entry.next() <= log.numbers.visible {
                entry.copy = true;
                again.push(entry);
            } else {
                let from = lost.entry(entry.slot).or_insert(entry.first);
                *from = entry.first.min(*from);
                dropped.push(entry);
            }
        }
        for entry in self.commits.take_waiting() {
            match lost.get(&entry.slot) {
                Some(&from) if entry.first >= from => dropped.push(entry),
                _ => self.commits.add(entry),
            }
        }
        self.commits.put_back(again);
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
    fn roll_back(&mut self, slot: Slot, from: Sequence) {
        self.logs.forget_recent(slot, from);
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} is rolled back to {from} and has no log");
            return;
        };
        if log.id == LogId::SYSTEM {
            take_back_copies(log, from, self.commands, self.commits);
        }
        log.numbers.next = from;
        log.life.unsettled = true;
        log.numbers.written = log.numbers.written.min(from);
        for answer in &mut log.answers {
            if let Answer::Waiting { t, extent, .. } = *answer
                && extent.last >= from
            {
                *answer = Answer::Failed { t };
            }
        }
        self.faults.fail(slot);
    }

    /// While the disk is in trouble, nothing that is not answered waits for it.
    pub(super) fn refuse_waiting(&mut self) {
        let Some(trouble) = self.faults.trouble() else {
            bug!("batches are refused without trouble");
            return;
        };
        let reason = trouble.refusal(self.config.probe_interval);
        self.faults.will_say(reason);
        let waiting = self.commits.take_waiting();
        self.take_back(waiting);
    }

    /// Handles a disk that takes no commands: waiting calls are refused, and it is tried again later.
    pub(super) fn metas_failed(&mut self) {
        let Some(trouble) = self.faults.trouble() else {
            bug!("commands have failed without trouble");
            return;
        };
        let why = trouble.refusal(self.config.probe_interval);
        for t in self.commands.take_tags() {
            let why = why.clone();
            self.effects.tell(Completion::Refused { t, why });
        }
        for log in self.logs.iter_mut().filter(|log| log.life.sealed.is_some()) {
            log.seal_failed(&why);
            log.answer(self.effects.completions());
        }
        if may_come_back(self.commands, self.commits) {
            self.faults.will_say(Refusal::OutcomeUnknown);
            refuse_failed(self.faults, self.logs, self.effects);
        }
    }
}
