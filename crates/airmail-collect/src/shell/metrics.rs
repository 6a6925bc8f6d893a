//! Metrics of the collector: as Prometheus text, and as a line for each second.

use crate::collector::Outstanding;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram as Buckets, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Latencies that are told apart, in microseconds; three digits of each.
const LATENCY_US_MAX: u64 = 600_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSource {
    topic: String,
    partition: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfNode {
    node: i32,
}

/// The collector's counters. They go on over beginnings anew.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(super) taken: Counter,
    pub(super) collected: Counter,
    pub(super) collected_bytes: Counter,
    pub(super) lost: Counter,
    pub(super) rebalances: Counter,
    pub(super) beginnings: Counter,
    pub(super) commit_failures: Counter,
    outstanding: Gauge,
    outstanding_bytes: Gauge,
    sources: Gauge,
    lag: Family<OfSource, Gauge>,
    nodes: Family<OfNode, Counter>,
    latency: Buckets,
    second: Mutex<Measured>,
}

#[derive(Debug)]
struct Measured {
    latency_us: Histogram<u64>,
    records: u64,
    bytes: u64,
    lag: u64,
}

/// One second, or whatever time has passed since the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// Records that the main cluster has acknowledged.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Median time from taking a record to its ack.
    pub p50: Duration,
    /// And of the slowest hundredth the quickest.
    pub p99: Duration,
    /// Records that are stored at the origin and not collected, in the sources of this instance.
    pub lag: u64,
    /// Records under way.
    pub outstanding: u64,
    /// Sources of this instance.
    pub sources: u64,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// All at nought.
    #[must_use]
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("airmail_collect");
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let taken = counter("taken", "Records taken from the origin, repeats included");
        let collected = counter("collected", "Records that the main cluster acknowledged");
        let collected_bytes = counter("collected_bytes", "Bytes of their keys and values");
        let lost = counter(
            "lost",
            "Numbers gone at the origin before they were collected",
        );
        let rebalances = counter("rebalances", "Times that sources came or went");
        let beginnings = counter("beginnings", "Times that it began anew with fresh clients");
        let commit_failures = counter("commit_failures", "Commits refused or not answered");
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let outstanding = gauge("outstanding", "Records taken and not yet acknowledged");
        let outstanding_bytes = gauge("outstanding_bytes", "Bytes of them");
        let sources = gauge("sources", "Sources that are this instance's");
        let lag = Family::default();
        registry.register(
            "lag",
            "Records stored at the origin and not collected",
            lag.clone(),
        );
        let nodes = Family::default();
        let help = "Records acknowledged, by the node that led their partition when they were sent";
        registry.register("node_records", help, nodes.clone());
        let latency = Buckets::new(exponential_buckets(0.000_25, 2.0, 20));
        let help = "From taking a record to its ack";
        registry.register("latency_seconds", help, latency.clone());
        Metrics {
            registry,
            taken,
            collected,
            collected_bytes,
            lost,
            rebalances,
            beginnings,
            commit_failures,
            outstanding,
            outstanding_bytes,
            sources,
            lag,
            nodes,
            latency,
            second: Mutex::new(Measured::new()),
        }
    }

    /// The page that Prometheus reads (OpenMetrics); empty if it cannot be written.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            text.clear();
        }
        text
    }

    /// Takes the measurements since the last call.
    pub fn second(&self) -> Second {
        let mut measured = self.second.lock();
        let at = |quantile| Duration::from_micros(measured.latency_us.value_at_quantile(quantile));
        let second = Second {
            records: measured.records,
            bytes: measured.bytes,
            p50: at(0.5),
            p99: at(0.99),
            lag: measured.lag,
            outstanding: self.outstanding.get().unsigned_abs(),
            sources: self.sources.get().unsigned_abs(),
        };
        measured.latency_us.reset();
        (measured.records, measured.bytes) = (0, 0);
        second
    }

    /// The main cluster has a record.
    pub(super) fn acknowledged(&self, node: Option<i32>, bytes: u32, latency: Duration) {
        self.collected.inc();
        self.collected_bytes.inc_by(u64::from(bytes));
        self.latency.observe(latency.as_secs_f64());
        if let Some(node) = node {
            self.nodes.get_or_create(&OfNode { node }).inc();
        }
        let mut measured = self.second.lock();
        measured.records += 1;
        measured.bytes += u64::from(bytes);
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(LATENCY_US_MAX);
        measured.latency_us.saturating_record(latency_us);
    }

    /// Sets the gauges of records under way and of sources.
    pub(super) fn standing(&self, outstanding: Outstanding, sources: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.outstanding.set(number(outstanding.records));
        let bytes = i64::try_from(outstanding.bytes).unwrap_or(i64::MAX);
        self.outstanding_bytes.set(bytes);
        self.sources.set(number(sources));
    }

    /// The lag of each source that is ours now; of others it is not known here.
    pub(super) fn lags(&self, lags: impl IntoIterator<Item = (String, i32, u64)>) {
        self.lag.clear();
        let mut all = 0;
        for (topic, partition, lag) in lags {
            all += lag;
            let of = OfSource { topic, partition };
            let lag = i64::try_from(lag).unwrap_or(i64::MAX);
            self.lag.get_or_create(&of).set(lag);
        }
        let mut measured = self.second.lock();
        measured.lag = all;
    }
}

impl Measured {
    fn new() -> Measured {
        #[expect(
            clippy::expect_used,
            reason = "bounds and digits are constants that the histogram takes"
        )]
        let latency_us = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("constants");
        Measured {
            latency_us,
            records: 0,
            bytes: 0,
            lag: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_what_came_in_it_and_the_page_has_all() {
        let metrics = Metrics::new();
        metrics.acknowledged(Some(2), 100, Duration::from_millis(4));
        metrics.acknowledged(Some(2), 50, Duration::from_millis(4));
        metrics.lags([("A".to_owned(), 0, 7), ("A".to_owned(), 1, 5)]);
        let second = metrics.second();
        assert_eq!((second.records, second.bytes, second.lag), (2, 150, 12));
        assert!(second.p50.abs_diff(Duration::from_millis(4)) < Duration::from_micros(10));
        assert_eq!(metrics.second().records, 0);
        let page = metrics.text();
        for line in [
            "airmail_collect_collected_total 2\n",
            "airmail_collect_node_records_total{node=\"2\"} 2\n",
            "airmail_collect_lag{topic=\"A\",partition=\"1\"} 5\n",
        ] {
            assert!(page.contains(line), "{line} is not in {page}");
        }
    }
}
