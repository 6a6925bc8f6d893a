//! Gauges of the node's publish gate while a run is under way, read from `/metrics`.
//!
//! A node has one for each shard. Counts are added up; the latency is the mean of theirs, each by
//! its rate.

use airmail_bench::clock::now_us;
use airmail_bench::counters::metrics;
use airmail_bench::system::Failure;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// The pilot's gate, as its gauges are labelled.
const GATE: &str = "gate=\"publish\"";

/// The pilot at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PilotWindow {
    /// When, in seconds since the run began.
    pub seconds: f64,
    /// Messages that it lets be in flight.
    pub bound: f64,
    /// L, in messages: λW of its last decision.
    pub in_flight: f64,
    /// W, in seconds, from admission to ack.
    pub latency_s: f64,
    /// λ, in messages a second.
    pub rate_per_s: f64,
}

impl PilotWindow {
    /// λ/W.
    #[must_use]
    pub fn power(&self) -> f64 {
        self.rate_per_s / self.latency_s
    }

    /// Reads a node's metrics; `None` if it has no publish gate, or that has measured nothing yet.
    #[must_use]
    pub fn read(text: &str, seconds: f64) -> Option<PilotWindow> {
        let rates = gauges(text, "airmail_flow_rate_per_second");
        let latencies = gauges(text, "airmail_flow_latency_seconds");
        let rate_per_s: f64 = rates.iter().sum();
        let weighted = rates.iter().zip(&latencies);
        let spent: f64 = weighted.map(|(rate, latency_s)| rate * latency_s).sum();
        let bound: f64 = gauges(text, "airmail_flow_bound").iter().sum();
        (bound > 0.0 && rate_per_s > 0.0).then(|| PilotWindow {
            seconds,
            bound,
            in_flight: spent,
            latency_s: spent / rate_per_s,
            rate_per_s,
        })
    }
}

/// The values of a gauge of the pilot's gate, one for each shard.
fn gauges(text: &str, name: &str) -> Vec<f64> {
    let value = |line: &str| {
        let labels = line.strip_prefix(name)?.strip_prefix('{')?;
        let (labels, value) = labels.split_once('}')?;
        let of_gate = labels.split(',').any(|label| label == GATE);
        of_gate.then(|| value.trim().parse().ok()).flatten()
    };
    text.lines().filter_map(value).collect()
}

/// Looks at a node's pilot until it is stopped or dropped.
#[derive(Debug)]
pub(super) struct PilotWatch {
    stop: Arc<AtomicBool>,
    looking: Option<JoinHandle<Vec<PilotWindow>>>,
}

impl PilotWatch {
    /// Watches the node whose HTTP server is at `HOST:PORT`, in a run that began at `start_us`. A
    /// look that fails is left out.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(address: &str, start_us: u64) -> Result<PilotWatch, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let address = address.to_owned();
        let look = move || {
            let mut seen = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(INTERVAL);
                let seconds = now_us().saturating_sub(start_us) as f64 / 1e6;
                let text = metrics(&address).unwrap_or_default();
                seen.extend(PilotWindow::read(&text, seconds));
            }
            seen
        };
        let thread = std::thread::Builder::new().name("gauges".into());
        Ok(PilotWatch {
            stop,
            looking: Some(thread.spawn(look).map_err(Failure::new)?),
        })
    }

    /// All that it saw.
    pub(super) fn stop(mut self) -> Vec<PilotWindow> {
        self.stop.store(true, Ordering::Relaxed);
        let looking = self.looking.take();
        looking
            .and_then(|looking| looking.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for PilotWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pilots_of_all_shards_are_taken_together() {
        let text = "# TYPE airmail_flow_bound gauge\n\
                    airmail_flow_bound{gate=\"publish\",shard=\"0\"} 200\n\
                    airmail_flow_bound{shard=\"1\",gate=\"publish\"} 100\n\
                    airmail_flow_bound{gate=\"deliver\",shard=\"0\"} 7\n\
                    airmail_flow_latency_seconds{gate=\"publish\",shard=\"0\"} 0.001\n\
                    airmail_flow_latency_seconds{gate=\"publish\",shard=\"1\"} 0.005\n\
                    airmail_flow_rate_per_second{gate=\"publish\",shard=\"0\"} 3e4\n\
                    airmail_flow_rate_per_second{gate=\"publish\",shard=\"1\"} 10000.0\n";
        let seen = PilotWindow::read(text, 1.5).unwrap();
        assert_eq!((seen.seconds, seen.bound), (1.5, 300.0));
        assert!((seen.in_flight - 80.0).abs() < 1e-9);
        assert!((seen.rate_per_s - 40_000.0).abs() < 1e-9);
        assert!((seen.latency_s - 0.002).abs() < 1e-12);
    }

    #[test]
    fn a_node_without_a_pilot_says_nothing() {
        assert_eq!(PilotWindow::read("airmail_detached_total 7\n", 0.0), None);
        let other = "airmail_flow_bound{gate=\"deliver\"} 7\n";
        assert_eq!(PilotWindow::read(other, 0.0), None);
        let new = "airmail_flow_bound{gate=\"publish\"} 200\n\
                   airmail_flow_rate_per_second{gate=\"publish\"} 0\n";
        assert_eq!(PilotWindow::read(new, 0.0), None);
    }
}
