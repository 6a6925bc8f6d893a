//! Faults of the files: whether they take anything at the moment, the failures that are not
//! answered yet, and the damage found.
//!
//! A single failure costs only the segment, which is left behind. A full disk, or failures in a
//! row, make *trouble*: nothing is stored until it is time to try again. Files that may not be this
//! node's any more are *withheld*, which is trouble too, and lasts until the node's watch releases
//! them.
//!
//! Invariants, held by [`Faults::check`]:
//! - While the files are withheld there is trouble, and it is not for want of room.
//! - While any log has failed batches, the reason for their refusals is known.

use super::damage::{Damage, Problem};
use super::id::Slot;
use crate::contract::Refusal;
use airmail_model::Mono;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// The reason why nothing is stored at the moment.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) full: bool,
    pub(super) error: String,
    pub(super) retry_at: Mono,
}

impl Trouble {
    /// Refusal that appends get.
    pub(super) fn refusal(&self, retry_after: Duration) -> Refusal {
        if self.full {
            Refusal::Full { retry_after }
        } else {
            Refusal::Io(self.error.clone())
        }
    }
}

/// Whether an error says that there is no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Faults of the files. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Faults {
    trouble: Option<Trouble>,
    /// The files may not be this node's: nothing is written or answered as stored.
    withheld: bool,
    /// Failures since a write last went well.
    in_a_row: u32,
    /// Logs with batches that failed and are not yet refused.
    failed: BTreeSet<Slot>,
    /// Reason that the refusals of their appends will give.
    reason: Option<Refusal>,
    damage: Damage,
}

impl Faults {
    /// The reason why nothing is stored at the moment, if so.
    pub(super) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Whether nothing is stored for want of room.
    pub(super) fn is_full(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.full)
    }

    /// Whether the files may not be this node's.
    pub(super) fn is_withheld(&self) -> bool {
        self.withheld
    }

    /// Whether the files may be tried.
    pub(super) fn may_try(&self, now: Mono) -> bool {
        !self.withheld && self.is_due(now).unwrap_or(true)
    }

    /// Whether it is time to try again; `None` without trouble.
    pub(super) fn is_due(&self, now: Mono) -> Option<bool> {
        let trouble = self.trouble.as_ref()?;
        Some(trouble.retry_at <= now)
    }

    /// Tries again at a time, if there is trouble.
    pub(super) fn retry_at(&mut self, at: Mono) {
        if let Some(trouble) = &mut self.trouble {
            trouble.retry_at = at;
        }
    }

    /// Counts a failure. A full disk, or failures in a row, make trouble until `retry_at`.
    pub(super) fn note(&mut self, error: &io::Error, retry_at: Mono) {
        self.count();
        if self.withheld {
            return;
        }
        let full = is_full(error);
        if full || self.in_a_row > 1 {
            self.trouble = Some(Trouble {
                full,
                error: error.to_string(),
                retry_at,
            });
        }
    }

    /// Counts a failure.
    pub(super) fn count(&mut self) {
        self.in_a_row += 1;
    }

    /// Whether more than one write has failed since the last that went well.
    pub(super) fn are_repeated(&self) -> bool {
        self.in_a_row > 1
    }

    /// A write went well.
    pub(super) fn stored(&mut self) {
        self.in_a_row = 0;
    }

    /// The trouble is over, as far as is known.
    pub(super) fn over(&mut self) {
        self.trouble = None;
    }

    /// A file was made and filled: there is room.
    pub(super) fn has_room(&mut self) {
        if self.is_full() {
            self.over();
        }
    }

    /// Nothing is stored from here on, for this reason.
    pub(super) fn withhold(&mut self, why: &str, retry_at: Mono) {
        self.withheld = true;
        self.trouble = Some(Trouble {
            full: false,
            error: why.to_owned(),
            retry_at,
        });
    }

    /// The files are this node's again. Whether they were withheld.
    pub(super) fn release(&mut self) -> bool {
        std::mem::take(&mut self.withheld)
    }

    /// Result that a write counts with: one that ends while nothing is stored has failed.
    pub(super) fn unless_withheld(&self, result: io::Result<()>) -> io::Result<()> {
        match &self.trouble {
            Some(trouble) if self.withheld => Err(io::Error::other(trouble.error.clone())),
            _ => result,
        }
    }

    /// A log has batches that failed.
    pub(super) fn fail(&mut self, slot: Slot) {
        self.failed.insert(slot);
    }

    /// Forgets the failed batches of a log that is gone.
    pub(super) fn forget_log(&mut self, slot: Slot) {
        self.failed.remove(&slot);
    }

    /// Logs with batches that failed and are not yet refused.
    pub(super) fn failed(&self) -> &BTreeSet<Slot> {
        &self.failed
    }

    /// The same, and from here on they have none.
    pub(super) fn take_failed(&mut self) -> BTreeSet<Slot> {
        std::mem::take(&mut self.failed)
    }

    /// Sets the reason that the refusals of failed appends will give.
    pub(super) fn will_say(&mut self, reason: Refusal) {
        self.reason = Some(reason);
    }

    /// The reason that the refusals of failed appends give.
    pub(super) fn reason(&self) -> Refusal {
        self.reason.clone().unwrap_or(Refusal::OutcomeUnknown)
    }

    /// The damage found.
    pub(super) fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Takes up something damaged.
    pub(super) fn found(&mut self, problem: Problem) {
        self.damage.found(problem);
    }

    /// Takes the damage found since the last time.
    pub(super) fn take_damage(&mut self) -> Vec<Problem> {
        self.damage.take_news()
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let kept = self.trouble.as_ref().is_some_and(|trouble| !trouble.full);
        assert!(
            !self.withheld || kept,
            "the files are withheld, and the trouble is {:?}",
            self.trouble
        );
        assert!(
            self.failed.is_empty() || self.reason.is_some(),
            "logs {:?} have failed for no reason",
            self.failed
        );
    }
}
