//! The newest batches in memory: their order, from the oldest on, and their size.
//!
//! The batches themselves are with their logs ([`LogState::recent`](super::log::LogState)); this
//! list has the order in which they came, so that the oldest is dropped first.
//!
//! Invariant, held by [`Cache::check`]: `bytes` is the total size of its entries.

use super::id::Slot;
use airmail_model::Sequence;
use std::collections::VecDeque;

/// A batch that is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cached {
    /// Its log.
    pub(super) slot: Slot,
    /// The first number that it owns.
    pub(super) first: Sequence,
    /// Size in the cache, in bytes.
    pub(super) bytes: u64,
}

/// The order of the batches in memory. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Cache {
    order: VecDeque<Cached>,
    bytes: u64,
}

impl Cache {
    /// Takes up the newest batch.
    pub(super) fn add(&mut self, batch: Cached) {
        self.bytes += batch.bytes;
        self.order.push_back(batch);
    }

    /// The oldest batch, if they take more than `max` bytes together.
    pub(super) fn oldest_beyond(&self, max: u64) -> Option<Cached> {
        let oldest = self.order.front().copied();
        oldest.filter(|_| self.bytes > max)
    }

    /// Forgets the oldest batch.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(oldest) = self.order.pop_front() {
            self.bytes -= oldest.bytes;
        }
    }

    /// Forgets a log's batches from number `from` on.
    pub(super) fn forget(&mut self, slot: Slot, from: Sequence) {
        let bytes = &mut self.bytes;
        self.order.retain(|batch| {
            let stays = batch.slot != slot || batch.first < from;
            if !stays {
                *bytes -= batch.bytes;
            }
            stays
        });
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self) {
        let sum: u64 = self.order.iter().map(|batch| batch.bytes).sum();
        assert_eq!(
            self.bytes,
            sum,
            "the bytes of {} batches in memory",
            self.order.len()
        );
    }
}
