//! Counters of the workers' activity, and of the time that requests and round trips take.

use crate::store::StoreLoad;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The counters of one store. Nothing depends on them, so their updates need no order.
#[derive(Debug, Default)]
pub(super) struct LoadCounters {
    connections: AtomicUsize,
    busy: AtomicUsize,
    requests: AtomicU64,
    round_trips: AtomicU64,
    waited_us: AtomicU64,
    round_trips_us: AtomicU64,
}

/// Guard that counts a connection for as long as it is held.
#[derive(Debug)]
pub(super) struct Connected<'a>(&'a LoadCounters);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Guard that counts a round trip, and its time, for as long as it is held.
#[derive(Debug)]
pub(super) struct RoundTripUnderWay<'a> {
    counters: &'a LoadCounters,
    since: Instant,
}

impl Drop for RoundTripUnderWay<'_> {
    fn drop(&mut self) {
        self.counters.busy.fetch_sub(1, Ordering::Relaxed);
        add(&self.counters.round_trips_us, self.since.elapsed());
    }
}

impl LoadCounters {
    /// Counts a worker's connection.
    pub(super) fn count_connection(&self) -> Connected<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(self)
    }

    /// Counts a round trip for a number of requests, which together have waited for `waited`.
    pub(super) fn count_round_trip(
        &self,
        requests: usize,
        waited: Duration,
    ) -> RoundTripUnderWay<'_> {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        add(&self.waited_us, waited);
        self.busy.fetch_add(1, Ordering::Relaxed);
        RoundTripUnderWay {
            counters: self,
            since: Instant::now(),
        }
    }

    /// Returns the load: the counters, and the rest from `bounds`.
    pub(super) fn load(&self, bounds: StoreLoad) -> StoreLoad {
        StoreLoad {
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
