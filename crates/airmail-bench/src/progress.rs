//! Progress of a run, for its display and for its course over time.

use crate::latency::Latencies;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Histograms that subscribers enter times in, so that they seldom wait for one another.
const LANES: usize = 4;

/// Counts that only rise while a run is under way, and the latest times.
#[derive(Debug, Default)]
pub struct Progress {
    acknowledged: AtomicU64,
    delivered: AtomicU64,
    latencies: [Mutex<Latencies>; LANES],
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

    /// Counts more acks.
    pub fn acknowledge(&self, count: u64) {
        self.acknowledged.fetch_add(count, Ordering::Relaxed);
    }

    /// Enters what arrived at once: times, each with its count, and how many messages they are.
    pub(crate) fn deliver(&self, lane: usize, times: &[(u64, u64)], messages: u64) {
        self.delivered.fetch_add(messages, Ordering::Relaxed);
        let mut latencies = self.latencies[lane % LANES].lock();
        for (latency_us, count) in times {
            latencies.record_many(*latency_us, *count);
        }
    }

    /// The times entered since this was last called.
    pub fn take_latencies(&self) -> Latencies {
        let mut taken = Latencies::new();
        for lane in &self.latencies {
            let mut latencies = lane.lock();
            taken.add(&latencies);
            latencies.clear();
        }
        taken
    }
}
