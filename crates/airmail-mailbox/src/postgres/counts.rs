//! What the clerks are doing, counted as they do it, and where the time of requests goes.

use crate::store::Load;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The counts of one store. Nothing depends on them, so they need no order among themselves.
#[derive(Debug, Default)]
pub(super) struct Counts {
    connections: AtomicUsize,
    busy: AtomicUsize,
    requests: AtomicU64,
    round_trips: AtomicU64,
    waited_us: AtomicU64,
    round_trips_us: AtomicU64,
}

/// Counts a connection for as long as it is held.
#[derive(Debug)]
pub(super) struct Connected<'a>(&'a Counts);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a statement for as long as it is held, and its time.
#[derive(Debug)]
pub(super) struct AtWork<'a> {
    counts: &'a Counts,
    since: Instant,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.counts.busy.fetch_sub(1, Ordering::Relaxed);
        add(&self.counts.round_trips_us, self.since.elapsed());
    }
}

impl Counts {
    /// A clerk has a connection.
    pub(super) fn connected(&self) -> Connected<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(self)
    }

    /// A clerk has a statement under way, for so many requests, which waited so long together.
    pub(super) fn at_work(&self, requests: usize, waited: Duration) -> AtWork<'_> {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        add(&self.waited_us, waited);
        self.busy.fetch_add(1, Ordering::Relaxed);
        AtWork {
            counts: self,
            since: Instant::now(),
        }
    }

    /// All of them, beside the bounds that the store was given.
    pub(super) fn load(&self, bounds: Load) -> Load {
        Load {
            connections: self.connections.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            round_trips: self.round_trips.load(Ordering::Relaxed),
            waited_us: self.waited_us.load(Ordering::Relaxed),
            round_trips_us: self.round_trips_us.load(Ordering::Relaxed),
            ..bounds
        }
    }
}

fn add(sum_us: &AtomicU64, time: Duration) {
    let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    sum_us.fetch_add(us, Ordering::Relaxed);
}
