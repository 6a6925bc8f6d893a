//! What the thread has to do and has done.

use crate::store::Load;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The counts of one store. Nothing depends on them, so they need no order among themselves.
#[derive(Debug, Default)]
pub(super) struct Counts {
    open: AtomicBool,
    waiting: AtomicUsize,
    busy: AtomicBool,
    requests: AtomicU64,
    transactions: AtomicU64,
}

impl Counts {
    /// There is a file to work on.
    pub(super) fn open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    /// A request waits.
    pub(super) fn put(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// It does not after all.
    pub(super) fn refuse(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// So many that waited are in a transaction.
    pub(super) fn take(&self, requests: usize) {
        self.waiting.fetch_sub(requests, Ordering::Relaxed);
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        if requests > 0 {
            self.transactions.fetch_add(1, Ordering::Relaxed);
            self.busy.store(true, Ordering::Relaxed);
        }
    }

    /// The transaction has ended.
    pub(super) fn rest(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// All of them. The thread and its file are the one connection.
    pub(super) fn load(&self, waiting_max: usize) -> Load {
        Load {
            connections_max: 1,
            connections: self.open.load(Ordering::Relaxed).into(),
            busy: self.busy.load(Ordering::Relaxed).into(),
            waiting: self.waiting.load(Ordering::Relaxed),
            waiting_max,
            requests: self.requests.load(Ordering::Relaxed),
            round_trips: self.transactions.load(Ordering::Relaxed),
            ..Load::default()
        }
    }
}
