//! Bounds of a log: the numbers up to which it is given, written, durable, visible and reserved.
//!
//! Each is the first number that is not included, but for `first`, the first that is kept.
//!
//! Invariants, held by [`Numbers::check`]:
//! - `visible ≤ next`, and `visible` never goes back ([`Numbers::advance`] alone changes it once
//!   the journal has opened).
//! - `first ≤ next`, `first_durable ≤ first`, `reserved ≤ reserving`, `went_on_at ≤ next`.
//! - When the journal has opened, `first ≤ visible` and `durable ≤ written ≤ next`.
//! - What is durable is visible as soon as [`Numbers::advance`] is called, whatever the durability: a reader by
//!   topic is told of the durable contents of a block, to its end.

use super::id::Slot;
use airmail_model::{Sequence, Synced};

/// The bounds of one log. See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The first number kept.
    pub(super) first: Sequence,
    /// The first number kept, as a durable command says.
    pub(super) first_durable: Sequence,
    /// The number of the next append.
    pub(super) next: Sequence,
    /// Number after the last one in the operating system's hands.
    pub(super) written: Sequence,
    /// Number after the last one on the disk.
    pub(super) durable: Sequence,
    /// Number after the last one that readers may see. Never goes back.
    pub(super) visible: Sequence,
    /// The end of the durable reservation.
    pub(super) reserved: Sequence,
    /// The end of the reservation asked for.
    pub(super) reserving: Sequence,
    /// End of the reserved numbers that the last checkpoint knew of.
    pub(super) reserved_surely: Sequence,
    /// Where it went on when the journal opened, above every number that it may have used. Readers
    /// see that far when the reservation is durable.
    pub(super) went_on_at: Sequence,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers {
            first: Sequence::FIRST,
            first_durable: Sequence::FIRST,
            next: Sequence::FIRST,
            written: Sequence::FIRST,
            durable: Sequence::FIRST,
            visible: Sequence::FIRST,
            reserved: Sequence::FIRST,
            reserving: Sequence::FIRST,
            reserved_surely: Sequence::FIRST,
            went_on_at: Sequence::FIRST,
        }
    }
}

impl Numbers {
    /// Moves `visible` as far as the log's durability allows; says whether it moved. With a
    /// `backlog`, a log without durability waits for the disk too, so that no more comes than it
    /// can take.
    pub(super) fn advance(&mut self, synced: Synced, backlog: bool) -> bool {
        let reached = match synced {
            Synced::Fsync => self.durable,
            Synced::Os => self.written,
            Synced::Memory if self.next <= self.reserved && !backlog => self.next,
            // What is durable needs no reservation: the log was of `fsync` when it was written.
            Synced::Memory => self.written.min(self.reserved).max(self.durable),
        };
        let before = self.visible;
        self.visible = before.max(reached);
        debug_assert!(before <= self.visible, "what was seen is seen no more");
        before < self.visible
    }

    /// A reservation is durable. So is where the log went on when the journal opened, if that is
    /// within it.
    pub(super) fn reserve(&mut self, until: Sequence) {
        self.reserved = self.reserved.max(until);
        if self.went_on_at <= self.reserved {
            self.durable = self.durable.max(self.went_on_at);
            self.written = self.written.max(self.went_on_at);
        }
    }

    /// Asserts those invariants that hold before the journal has opened, too.
    pub(super) fn check(&self, slot: Slot) {
        assert!(self.visible <= self.next, "slot {slot}: {self:?}");
        assert!(self.first <= self.next, "slot {slot}: {self:?}");
        assert!(self.first_durable <= self.first, "slot {slot}: {self:?}");
        assert!(self.reserved <= self.reserving, "slot {slot}: {self:?}");
        assert!(self.went_on_at <= self.next, "slot {slot}: {self:?}");
    }

    /// Asserts those that hold when it has opened.
    pub(super) fn check_opened(&self, slot: Slot) {
        assert!(self.first <= self.visible, "slot {slot}: {self:?}");
        assert!(self.durable <= self.written, "slot {slot}: {self:?}");
        assert!(self.written <= self.next, "slot {slot}: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_durable_is_visible_after_a_change_of_durability() {
        for synced in Synced::ALL {
            for backlog in [false, true] {
                let mut numbers = Numbers {
                    next: Sequence(300),
                    written: Sequence(264),
                    durable: Sequence(264),
                    visible: Sequence(217),
                    reserved: Sequence(217),
                    ..Numbers::default()
                };
                assert!(numbers.advance(synced, backlog));
                assert_eq!(numbers.visible, Sequence(264), "{synced}");
            }
        }
    }
}
