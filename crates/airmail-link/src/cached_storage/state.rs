//! The state of a cache, as others see it, from whichever thread.

use airmail_model::Mono;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// See the module's documentation. It is of the last poll.
#[derive(Debug, Default)]
pub struct CacheState {
    bytes: AtomicU64,
    fetched_bytes: AtomicU64,
    /// Time since which something that is followed has not been at its end. 0: everything is.
    behind_since: AtomicU64,
}

impl CacheState {
    /// Bytes that are in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of batches that the storage has given so far.
    #[must_use]
    pub fn fetched_bytes(&self) -> u64 {
        self.fetched_bytes.load(Ordering::Relaxed)
    }

    /// Time for which something that had been read to its end has not been.
    #[must_use]
    pub fn behind(&self, now: Mono) -> Duration {
        match self.behind_since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => now.since(Mono(since)),
        }
    }

    /// The storage has given so many bytes of batches more.
    pub(super) fn fetched(&self, bytes: u64) {
        self.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn set(&self, bytes: u64, behind_since: Option<Mono>) {
        self.bytes.store(bytes, Ordering::Relaxed);
        let since = behind_since.map_or(0, |since| since.0.max(1));
        self.behind_since.store(since, Ordering::Relaxed);
    }
}
