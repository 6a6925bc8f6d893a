//! Withholding: nothing is stored while the files may not be this node's any more.
//!
//! The journal's owner says so from outside: its directory was moved away, or another process has
//! it. From there on nothing is written, and nothing is answered as stored, whatever becomes of the
//! writes under way: if the directory is not found again, they are gone. It is trouble like any
//! other: unanswered batches are refused, reading goes on. Writes under way are treated like writes
//! to a failed file, so that they are settled in a new segment when the files are this node's
//! again.

use super::Journal;
use super::effects::Effects;
use super::failure::Failing;
use super::faults::Faults;
use crate::contract::{Completion, Refusal};
use crate::files::{FileDone, FileOp};
use bytes::Bytes;

/// The parts of the journal that withholding reads or changes.
pub(super) struct Withholding<'j> {
    faults: &'j Faults,
    effects: &'j mut Effects,
}

impl Journal {
    pub(super) fn withholding(&mut self) -> Withholding<'_> {
        Withholding {
            faults: &self.faults,
            effects: &mut self.effects,
        }
    }

    /// Nothing is stored from here on.
    pub(super) fn withhold(&mut self, why: &str) {
        self.failing().withhold(why);
    }

    /// The files are this node's again.
    pub(super) fn release(&mut self) {
        if self.faults.release() {
            self.faults.retry_at(self.time.mono());
        }
    }
}

impl Failing<'_> {
    fn withhold(&mut self, why: &str) {
        let retry_at = self.time.mono().plus(self.config.probe_interval);
        self.faults.withhold(why, retry_at);
        self.refuse_waiting();
        self.metas_failed();
    }

    /// Refuses each call that waits for a command, as often as a failing disk would be tried.
    pub(super) fn refuse_withheld(&mut self) {
        let (now, again) = (self.time.mono(), self.config.probe_interval);
        if self.faults.is_due(now) == Some(true) {
            self.faults.retry_at(now.plus(again));
            self.metas_failed();
        }
    }
}

impl Withholding<'_> {
    /// Answers nothing as stored while nothing is stored: not even batches that were, and had to
    /// wait for the answers before theirs.
    pub(super) fn answer(&mut self) {
        if !self.faults.is_withheld() {
            return;
        }
        for answer in self.effects.completions() {
            if let Completion::Appended { t, .. } = *answer {
                let why = Refusal::OutcomeUnknown;
                *answer = Completion::Refused { t, why };
            }
        }
    }

    /// Asserts that, while nothing is stored, no file is changed and nothing is answered as stored.
    pub(super) fn check(&mut self) {
        if !self.faults.is_withheld() {
            return;
        }
        for (_, op) in self.effects.waiting() {
            assert!(
                matches!(op, FileOp::Read { .. }),
                "withheld, and to do: {op:?}"
            );
        }
        for told in self.effects.completions() {
            assert!(
                !matches!(told, Completion::Appended { .. }),
                "withheld, and told: {told:?}"
            );
        }
    }

    /// While nothing is stored, what would change a file has failed before it is submitted.
    pub(super) fn fail(&mut self, done: &mut Vec<FileDone>) {
        if !self.faults.is_withheld() {
            return;
        }
        for (token, op) in self.effects.take() {
            match op {
                FileOp::Read { .. } => self.effects.put_back(token, op),
                _ => {
                    let result = self.faults.unless_withheld(Ok(()));
                    done.push(FileDone::new(token, result.map(|()| Bytes::new())));
                }
            }
        }
    }
}
