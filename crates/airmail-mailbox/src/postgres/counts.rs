//! What the lanes are doing, counted as they do it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::store::Load;

/// The counts of one store. Nothing depends on them, so they need no order among themselves.
#[derive(Debug, Default)]
pub(super) struct Counts {
    connections: AtomicUsize,
    busy: AtomicUsize,
    requests: AtomicU64,
    round_trips: AtomicU64,
}

/// Counts for as long as it is held.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a AtomicUsize);

impl<'a> Held<'a> {
    fn new(count: &'a AtomicUsize) -> Held<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Held(count)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counts {
    /// A lane has a connection.
    pub(super) fn connected(&self) -> Held<'_> {
        Held::new(&self.connections)
    }

    /// A lane has a statement under way, for so many requests.
    pub(super) fn at_work(&self, requests: usize) -> Held<'_> {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        Held::new(&self.busy)
    }

    /// All of them, beside the bounds that the store was given.
    pub(super) fn load(&self, bounds: Load) -> Load {
        Load {
            connections: self.connections.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            round_trips: self.round_trips.load(Ordering::Relaxed),
            ..bounds
        }
    }
}
