//! G2: the end of a log is the one at the time of the question, whichever shard is asked.
//!
//! What was acknowledged before a subscription from the latest was asked for does not come to it; what is
//! published after it was told where it begins, does. A history until now has what was acknowledged before it
//! was asked for.

use super::{Checked, Violation};
use crate::ledger::Ledger;
use crate::message::MessageId;
use airmail_model::{LogId, Sequence};

/// A question for the end of a log, and the answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    log: LogId,
    /// The highest number that had been acknowledged when it was asked.
    floor: Sequence,
    /// The answer, and the last message that there was when it came.
    answer: Option<(Sequence, MessageId)>,
}

impl Asked {
    /// The end of a log is asked for now.
    #[must_use]
    pub fn now(ledger: &Ledger, log: LogId) -> Asked {
        Asked {
            log,
            floor: ledger.last_acked(log),
            answer: None,
        }
    }

    /// The highest number that had been acknowledged.
    #[must_use]
    pub const fn floor(&self) -> Sequence {
        self.floor
    }

    /// The end was told: the next number after it.
    ///
    /// # Errors
    /// It is below what had been acknowledged before, and may not be missing.
    pub fn answered(&mut self, ledger: &Ledger, next: Sequence, who: &str) -> Checked {
        self.answer = Some((next, ledger.newest()));
        if ledger.restored || !ledger.damaged.is_empty() || ledger.old_ends {
            return Ok(());
        }
        // What a crash may have taken says nothing of the end: a log below `fsync` goes on where its durable
        // reservation is known to end, and tells the rest as a gap (G4).
        let mut stored = ledger.acked(self.log, next, self.floor.plus(1));
        match stored.find(|(_, id, _)| !ledger.may_be_missing(*id)) {
            None => Ok(()),
            Some((number, _, _)) => Err(Violation::new(
                "G2 the end is asked",
                format!(
                    "{who} was told that {} ends before {next}; number {number} had been acknowledged",
                    self.log
                ),
            )),
        }
    }

    /// Checks what was published after the answer.
    ///
    /// # Errors
    /// It is stored before the end that was told.
    pub fn check(&self, ledger: &Ledger, who: &str) -> Checked {
        let Some((next, newest)) = self.answer else {
            return Ok(());
        };
        let mut before = ledger.acked(self.log, self.floor, next);
        match before.find(|(_, id, _)| *id > newest && !ledger.restored) {
            None => Ok(()),
            Some((number, id, _)) => Err(Violation::new(
                "G2 the end is asked",
                format!(
                    "{who} begins at {next} of {}; message {}, published later, is number {number}",
                    self.log, id.0
                ),
            )),
        }
    }
}
