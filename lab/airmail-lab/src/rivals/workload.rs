//! What is compared.

use airmail_bench::{Report, Settings, Workload as Way};

use super::WARMUP_PART;
use super::subject::Subject;

/// Subscribers of the fan-out.
const FAN_OUT: u32 = 20;
/// Messages a second of the latency.
const RATE: u64 = 10_000;

/// One comparison.
#[derive(Debug)]
pub(super) struct Workload {
    /// As in rows and for `--only`.
    pub(super) name: &'static str,
    /// In words.
    pub(super) title: &'static str,
    /// What counts, from left to right.
    pub(super) quantities: &'static [Quantity],
    way: Way,
    size: usize,
}

/// Something that a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Messages delivered to all subscribers together in a second: more is better.
    Delivered,
    /// Messages acknowledged in a second: more is better.
    Published,
    /// From when a message was due to its delivery, half of the messages: less is better.
    Median,
    /// The same, 99 of 100.
    P99,
}

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "e2e",
        title: "One publisher, one topic, one subscriber, 100 bytes",
        quantities: &[Quantity::Delivered],
        way: Way::E2e,
        size: 100,
    },
    Workload {
        name: "fanout",
        title: "One publisher, 20 subscribers on connections of their own, 100 bytes",
        quantities: &[Quantity::Delivered],
        way: Way::Fanout,
        size: 100,
    },
    Workload {
        name: "latency",
        title: "10,000 messages a second by timetable, 100 bytes, from due to delivered",
        quantities: &[Quantity::Median, Quantity::P99],
        way: Way::Latency,
        size: 100,
    },
    Workload {
        name: "publish",
        title: "One publisher, no subscriber, 1 KiB, to the ack",
        quantities: &[Quantity::Published],
        way: Way::Pub,
        size: 1024,
    },
];

impl Workload {
    /// Whether it means anything for a system: what acknowledges nothing has no rate of acks.
    pub(super) fn has(&self, subject: Subject) -> bool {
        self.way != Way::Pub || subject != Subject::Nats
    }

    /// A run that publishes for so long.
    pub(super) fn settings(&self, duration_ms: u64) -> Settings {
        Settings {
            workload: self.way,
            messages: None,
            duration_ms: Some(duration_ms),
            warmup_ms: duration_ms / WARMUP_PART,
            size: self.size,
            subscribers: match self.way {
                Way::Fanout => FAN_OUT,
                _ => 1,
            },
            rate: (self.way == Way::Latency).then_some(RATE),
            ..Settings::default()
        }
    }

    /// What a run gave, in a line.
    pub(super) fn line(&self, report: &Report) -> String {
        let quantities = self.quantities.iter();
        let values = quantities.map(|quantity| {
            let scaled = quantity.of(report) / quantity.scale();
            format!("{} {scaled:.*}", quantity.label(), quantity.digits())
        });
        let values = values.collect::<Vec<_>>().join("; ");
        let wrong = [report.missing, report.duplicates, report.reordered];
        match (&report.first_error, wrong) {
            (None, [0, 0, 0]) => values,
            (error, [missing, doubled, reordered]) => format!(
                "{values}; {missing} missing, {doubled} doubled, {reordered} out of order{}",
                error.as_ref().map_or(String::new(), |e| format!(": {e}"))
            ),
        }
    }
}

impl Quantity {
    /// Its name in rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Quantity::Delivered => "delivered_per_s",
            Quantity::Published => "published_per_s",
            Quantity::Median => "p50_us",
            Quantity::P99 => "p99_us",
        }
    }

    /// Its name and unit in tables and figures.
    pub(super) fn label(self) -> &'static str {
        match self {
            Quantity::Delivered => "delivered, thousand messages/s",
            Quantity::Published => "acknowledged, thousand messages/s",
            Quantity::Median => "p50, µs",
            Quantity::P99 => "p99, µs",
        }
    }

    /// Digits behind the point in tables and figures.
    pub(super) fn digits(self) -> usize {
        usize::from(self.scale() > 1.0)
    }

    /// What a value is divided by in tables and figures.
    pub(super) fn scale(self) -> f64 {
        match self {
            Quantity::Delivered | Quantity::Published => 1_000.0,
            Quantity::Median | Quantity::P99 => 1.0,
        }
    }

    /// What a run gave.
    pub(super) fn of(self, report: &Report) -> f64 {
        match self {
            Quantity::Delivered => report.delivered_per_s,
            Quantity::Published => report.published_per_s,
            Quantity::Median => report.latency_us.p50 as f64,
            Quantity::P99 => report.latency_us.p99 as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_can_be_run() {
        for workload in WORKLOADS {
            for duration_ms in [WARMUP_PART, 700, 5000] {
                let settings = workload.settings(duration_ms);
                assert_eq!(settings.check(), Ok(()), "{}", workload.name);
            }
        }
    }
}
