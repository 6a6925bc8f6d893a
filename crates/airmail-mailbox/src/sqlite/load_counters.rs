//! Counters of the thread's queue and activity.

use crate::store::StoreLoad;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The counters of one store. Nothing depends on them, so their updates need no order.
#[derive(Debug, Default)]
pub(super) struct LoadCounters {
    is_open: AtomicBool,
    waiting: AtomicUsize,
    is_busy: AtomicBool,
    requests: AtomicU64,
    transactions: AtomicU64,
}

impl LoadCounters {
    /// Notes that the file is open.
    pub(super) fn note_open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Counts a request into the queue.
    pub(super) fn count_queued(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request out of the queue that did not fit.
    pub(super) fn count_refused(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the beginning of a transaction with requests of the queue.
    pub(super) fn count_transaction(&self, requests: usize) {
        self.waiting.fetch_sub(requests, Ordering::Relaxed);
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        if requests > 0 {
            self.transactions.fetch_add(1, Ordering::Relaxed);
            self.is_busy.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the transaction has ended.
    pub(super) fn note_idle(&self) {
        self.is_busy.store(false, Ordering::Relaxed);
    }

    /// Returns the load. The thread and its file count as one connection.
    pub(super) fn load(&self, waiting_max: usize) -> StoreLoad {
        StoreLoad {
            connections_max: 1,
            connections: self.is_open.load(Ordering::Relaxed).into(),
            busy: self.is_busy.load(Ordering::Relaxed).into(),
            waiting: self.waiting.load(Ordering::Relaxed),
            waiting_max,
            requests: self.requests.load(Ordering::Relaxed),
            round_trips: self.transactions.load(Ordering::Relaxed),
            ..StoreLoad::default()
        }
    }
}
