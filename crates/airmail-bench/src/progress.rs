//! How far a run is, for whoever watches it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that only rise while a run is under way.
#[derive(Debug, Default)]
pub struct Progress {
    acknowledged: AtomicU64,
    delivered: AtomicU64,
}

impl Progress {
    /// Messages acknowledged so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Messages delivered so far, at all subscribers together.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub(crate) fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn deliver(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }
}
