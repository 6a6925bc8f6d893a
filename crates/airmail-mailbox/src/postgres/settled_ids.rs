//! The ids of messages that are *settled*: every sender that could still store a message under one of them
//! has ended.
//!
//! Senders hold the epoch in which they began. Maintenance raises the epoch again and again
//! (`airmail.settle`), and each time learns the highest id that was given out before, and the oldest epoch
//! that a sender still holds. Ids given out before an epoch are settled when no older epoch is held.
//!
//! Invariant: the settled id never falls, since epochs and ids only rise.

use std::collections::VecDeque;

/// Epochs that are remembered until their senders have ended. A sender whose transaction does not end
/// makes them pile up; the oldest and the newest are enough to go on when it ends.
const EPOCHS_MAX: usize = 1000;

/// A new epoch, and what was known when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EpochRaised {
    /// The new epoch.
    pub(super) epoch: i64,
    /// Highest id that was given out before it.
    pub(super) last_id: i64,
    /// Oldest epoch with a sender under way, if there is one.
    pub(super) held: Option<i64>,
}

/// The settled ids, and the epochs that are waited for.
#[derive(Debug, Default)]
pub(super) struct SettledIds {
    /// Epochs in their order, each with the highest id that was given out before it.
    epochs: VecDeque<(i64, i64)>,
    settled: i64,
}

impl SettledIds {
    /// Notes a new epoch.
    pub(super) fn note(&mut self, raised: EpochRaised) {
        self.epochs.push_back((raised.epoch, raised.last_id));
        while let Some(&(epoch, last_id)) = self.epochs.front()
            && raised.held.is_none_or(|held| held >= epoch)
        {
            self.settled = last_id;
            self.epochs.pop_front();
        }
        if self.epochs.len() > EPOCHS_MAX {
            self.epochs.remove(1);
        }
    }

    /// Returns the highest id up to which all are settled.
    pub(super) fn last(&self) -> i64 {
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(ids: &mut SettledIds, epoch: i64, last_id: i64, held: Option<i64>) -> i64 {
        ids.note(EpochRaised {
            epoch,
            last_id,
            held,
        });
        ids.last()
    }

    #[test]
    fn ids_are_settled_when_no_sender_of_an_earlier_epoch_is_under_way() {
        let mut ids = SettledIds::default();
        assert_eq!(note(&mut ids, 1, 10, None), 10);
        assert_eq!(note(&mut ids, 2, 20, Some(1)), 10);
        assert_eq!(note(&mut ids, 3, 30, Some(2)), 20);
        assert_eq!(note(&mut ids, 4, 40, None), 40);
    }

    #[test]
    fn a_sender_that_does_not_end_for_long_holds_back_no_more_than_while_it_goes_on() {
        let mut ids = SettledIds::default();
        let last = 3 * i64::try_from(EPOCHS_MAX).unwrap();
        for epoch in 1..=last {
            assert_eq!(note(&mut ids, epoch, epoch * 10, Some(0)), 0);
            assert!(ids.epochs.len() <= EPOCHS_MAX);
        }
        assert_eq!(note(&mut ids, last + 1, last * 10, Some(last)), last * 10);
    }
}
