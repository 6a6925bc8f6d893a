//! Workloads by which the systems are compared.

use super::WARMUP_PART;
use super::subject::Subject::{
    self, AirmailDisk, AirmailMemory, Disk, JetStream, JetStreamSynced, Kafka, Nats, RedisAlways,
    RedisEverySecond,
};
use airmail_bench::{Report, Settings, Workload as Way};

/// Subscribers of the fan-out.
const FAN_OUT: u32 = 100;
/// Messages a second of the latency.
const RATE: u64 = 10_000;
/// Topics of the workload that has many.
const TOPICS: u32 = 1_000;

/// One comparison.
#[derive(Debug)]
pub(super) struct Workload {
    /// Name in rows and for `--only`.
    pub(super) name: &'static str,
    /// Title in words.
    pub(super) title: &'static str,
    /// Quantities that count, from left to right.
    pub(super) quantities: &'static [Quantity],
    way: Way,
    size: usize,
    subscribers: u32,
    topics: u32,
    /// Each message is a batch of its own.
    unbatched: bool,
    /// The publisher waits for each ack.
    each_ack: bool,
    /// Those that take part; empty: all that have a server and are set up as they come.
    among: &'static [Subject],
    /// Whether `--quick` has it.
    is_quick: bool,
}
/// Something that a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Messages delivered to all subscribers together in a second: more is better.
    Delivered,
    /// Messages acknowledged in a second: more is better.
    Published,
    /// Time from when a message was due to its delivery, half of the messages: less is better.
    Median,
    /// The same, 99 of 100.
    P99,
}

/// Settings that most of them have in common.
const E2E: Workload = Workload {
    name: "e2e",
    title: "One publisher, one topic, one subscriber, 100 bytes",
    quantities: &[Quantity::Delivered],
    way: Way::E2e,
    size: 100,
    subscribers: 1,
    topics: 1,
    unbatched: false,
    each_ack: false,
    among: &[],
    is_quick: true,
};

/// Those that send streams of messages, and are what most ask after.
const STREAMS: &[Subject] = &[AirmailDisk, AirmailMemory, JetStream, Nats];

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    E2E,
    Workload {
        name: "fanout",
        title: "One publisher, 100 subscribers on connections of their own, 100 bytes",
        way: Way::Fanout,
        subscribers: FAN_OUT,
        ..E2E
    },
    Workload {
        name: "latency",
        title: "10,000 messages a second by timetable, 100 bytes, from due to delivered",
        quantities: &[Quantity::Median, Quantity::P99],
        way: Way::Latency,
        among: &[
            AirmailDisk,
            AirmailMemory,
            Nats,
            JetStream,
            RedisEverySecond,
            RedisAlways,
            Kafka,
            Disk,
        ],
        ..E2E
    },
    Workload {
        name: "publish",
        title: "One publisher, no subscriber, 1 KiB, to the ack",
        quantities: &[Quantity::Published],
        way: Way::Pub,
        size: 1024,
        ..E2E
    },
    Workload {
        name: "unbatched",
        title: "Each message a batch of its own, 100 bytes",
        unbatched: true,
        among: STREAMS,
        is_quick: false,
        ..E2E
    },
    Workload {
        name: "1kib",
        title: "One publisher, one subscriber, 1 KiB",
        size: 1024,
        among: STREAMS,
        is_quick: false,
        ..E2E
    },
    Workload {
        name: "64kib",
        title: "One publisher, one subscriber, 64 KiB",
        size: 65_536,
        among: STREAMS,
        is_quick: false,
        ..E2E
    },
    Workload {
        name: "topics",
        title: "1,000 topics in turn, one subscriber of all (of NATS by a wildcard), 100 bytes",
        topics: TOPICS,
        among: STREAMS,
        is_quick: false,
        ..E2E
    },
    Workload {
        name: "each-ack",
        title: "One publisher that waits for each ack, 100 bytes",
        quantities: &[Quantity::Published],
        way: Way::Pub,
        each_ack: true,
        among: &[AirmailDisk, AirmailMemory, JetStreamSynced, JetStream],
        is_quick: false,
        ..E2E
    },
];

impl Workload {
    /// Whether a system takes part: what acknowledges nothing has no rate of acks.
    pub(super) fn has(&self, subject: Subject) -> bool {
        if self.among.is_empty() {
            let counts = self.way != Way::Pub || subject != Nats;
            return counts && !matches!(subject, JetStreamSynced | Disk);
        }
        self.among.contains(&subject)
    }

    /// Whether it is run where nobody names it.
    pub(super) fn is_usual(&self, quick: bool) -> bool {
        self.is_quick || !quick
    }

    /// A run that publishes for so long.
    pub(super) fn settings(&self, duration_ms: u64) -> Settings {
        Settings {
            workload: self.way,
            messages: None,
            duration_ms: Some(duration_ms),
            warmup_ms: duration_ms / WARMUP_PART,
            size: self.size,
            subscribers: self.subscribers,
            topics: self.topics,
            unbatched: self.unbatched,
            in_flight: self.each_ack.then_some(1),
            rate: (self.way == Way::Latency).then_some(RATE),
            ..Settings::default()
        }
    }

    /// Results of a run, in a line.
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

    /// Divisor of a value in tables and figures.
    pub(super) fn scale(self) -> f64 {
        match self {
            Quantity::Delivered | Quantity::Published => 1_000.0,
            Quantity::Median | Quantity::P99 => 1.0,
        }
    }

    /// The value of a run.
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
