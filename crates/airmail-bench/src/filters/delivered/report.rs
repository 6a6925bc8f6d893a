//! Report on filters through a node.

use crate::latency::Percentiles;
use serde::Serialize;
use std::fmt;

/// Bars: the share of the timetable's rate that is kept, and the 99th percentile of the time from when a message was due until
/// it came, in microseconds.
const KEPT_MIN: f64 = 0.99;
const P99_US_MAX: u64 = 250_000;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct DeliveredRun {
    /// Filters, all together.
    pub filters: u32,
    /// Streams that share them.
    pub streams: u32,
    /// Messages that were published.
    pub messages: u64,
    /// Time until the last of them was stored, in microseconds.
    pub publish_us: u64,
    /// Messages that came, each once for each stream.
    pub named: u64,
    /// Messages that came, each once for each filter.
    pub delivered: u64,
    /// Time from when a message was due until it came to a stream.
    pub latency_us: Percentiles,
    /// Changes of filters that were asked for.
    pub changes_asked: u64,
    /// Changes that were made.
    pub changes_made: u64,
    /// Messages of a filter that came behind later ones, or again.
    pub out_of_order: u64,
    /// Gaps that members were told.
    pub gaps: u64,
    /// Messages and filters in force that match, and were not delivered.
    pub missing: u64,
    /// Deliveries of what does not match a filter in force, or again.
    pub extra: u64,
    /// Messages that were held against all filters by a loop.
    pub looped: u64,
    /// The loop has found what the index has found.
    pub index_agrees: bool,
    /// Processor time of publisher and readers, in microseconds.
    pub cpu_us: u64,
    /// Processor time of the node, in microseconds.
    pub node_cpu_us: u64,
    /// Memory of the node at the end.
    pub node_rss_bytes: u64,
}

impl DeliveredRun {
    /// Whether everything came that matches, and nothing else, once and in order.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let wrong = self.missing + self.extra + self.out_of_order + self.gaps;
        wrong == 0 && self.index_agrees && self.changes_asked == self.changes_made
    }

    /// Messages a second.
    #[must_use]
    pub fn messages_per_s(&self) -> f64 {
        self.messages as f64 * 1e6 / self.publish_us.max(1) as f64
    }

    /// The bars that it misses, each as a sentence; `rate`: messages a second by the timetable.
    #[must_use]
    pub fn missed(&self, rate: u64) -> Vec<String> {
        let mut missed = Vec::new();
        if self.messages_per_s() < rate as f64 * KEPT_MIN {
            missed.push(format!("{rate} messages/s"));
        }
        if self.latency_us.p99 > P99_US_MAX {
            missed.push(format!("p99 of {} ms", P99_US_MAX / 1_000));
        }
        missed
    }
}

impl fmt::Display for DeliveredRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.publish_us.max(1) as f64 / 1e6;
        let messages = self.messages.max(1) as f64;
        let ms = |us: u64| us as f64 / 1e3;
        writeln!(
            f,
            "{} filters on {} streams: {} messages in {seconds:.1} s, {:.0}/s\n\
             each matches {:.2} filters, of {:.2} streams: {:.0} deliveries/s\n\
             from due until it comes: p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms, longest {:.1} ms\n\
             processor time of a message: node {:.2} us, clients {:.2} us; node's memory {:.0} MiB",
            self.filters,
            self.streams,
            self.messages,
            self.messages_per_s(),
            self.delivered as f64 / messages,
            self.named as f64 / messages,
            self.named as f64 / seconds,
            ms(self.latency_us.p50),
            ms(self.latency_us.p99),
            ms(self.latency_us.p999),
            ms(self.latency_us.max),
            self.node_cpu_us as f64 / messages,
            self.cpu_us as f64 / messages,
            self.node_rss_bytes as f64 / f64::from(1 << 20),
        )?;
        writeln!(
            f,
            "{} changes of filters, {} made; {} messages by a loop, too; missing {}, too much {}, out of order {}, gaps {}",
            self.changes_asked,
            self.changes_made,
            self.looped,
            self.missing,
            self.extra,
            self.out_of_order,
            self.gaps,
        )?;
        if self.index_agrees {
            Ok(())
        } else {
            writeln!(f, "NOT WHAT THE LOOP FINDS")
        }
    }
}
