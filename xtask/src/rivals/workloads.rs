//! What is compared, and among whom.

/// A system, as it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Airmail as it comes: fsync before the ack and before delivery.
    Airmail,
    /// Airmail with `--durability memory`.
    AirmailMemory,
    /// NATS core: nothing is stored, nothing acknowledged.
    Nats,
    /// NATS JetStream as it comes: a file, synced every two minutes.
    JetStream,
    /// JetStream with `sync_interval: always`.
    JetStreamSynced,
    /// No system: write and fdatasync of a file written before.
    Disk,
}

impl Subject {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Subject::Airmail => "Airmail, fsync",
            Subject::AirmailMemory => "Airmail, memory",
            Subject::Nats => "NATS core",
            Subject::JetStream => "JetStream, file, synced every 2 min",
            Subject::JetStreamSynced => "JetStream, sync always",
            Subject::Disk => "the disk alone",
        }
    }
}

/// What counts in a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Messages delivered in a second: more is better.
    Delivered,
    /// Messages published, and acknowledged where there are acks, in a second.
    Published,
    /// From the time in the timetable to delivery: less is better.
    Latency,
}

/// One comparison.
#[derive(Debug)]
pub(super) struct Workload {
    /// For `--only`.
    pub(super) name: &'static str,
    /// In words.
    pub(super) title: &'static str,
    /// Of `airmail bench`, but for target and duration.
    pub(super) arguments: &'static [&'static str],
    /// Who takes part; the last is what the others are compared with.
    pub(super) subjects: &'static [Subject],
    pub(super) figure: Figure,
}

use Subject::{Airmail, AirmailMemory, Disk, JetStream, JetStreamSynced, Nats};

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "e2e",
        title: "one publisher, one topic, one subscriber, 100 bytes",
        arguments: &["e2e", "--size", "100"],
        subjects: &[Airmail, AirmailMemory, JetStream, Nats],
        figure: Figure::Delivered,
    },
    Workload {
        name: "fanout",
        title: "one publisher, 100 subscribers on connections of their own, 100 bytes",
        arguments: &["fanout", "--size", "100", "--subscribers", "100"],
        subjects: &[Airmail, Nats],
        figure: Figure::Delivered,
    },
    Workload {
        name: "latency",
        title: "10,000 messages a second by timetable, 100 bytes, from due to delivered",
        arguments: &["latency", "--size", "100", "--rate", "10000"],
        subjects: &[Airmail, AirmailMemory, Disk, Nats],
        figure: Figure::Latency,
    },
    Workload {
        name: "unbatched",
        title: "each message a batch of its own, 100 bytes",
        arguments: &["e2e", "--size", "100", "--unbatched"],
        subjects: &[Airmail, AirmailMemory, JetStream, Nats],
        figure: Figure::Delivered,
    },
    Workload {
        name: "1kib",
        title: "one publisher, one subscriber, 1 KiB",
        arguments: &["e2e", "--size", "1024"],
        subjects: &[Airmail, JetStream, Nats],
        figure: Figure::Delivered,
    },
    Workload {
        name: "64kib",
        title: "one publisher, one subscriber, 64 KiB",
        arguments: &["e2e", "--size", "65536"],
        subjects: &[Airmail, JetStream, Nats],
        figure: Figure::Delivered,
    },
    Workload {
        name: "topics",
        title: "1,000 topics in turn, one subscriber of all (of NATS by a wildcard), 100 bytes",
        arguments: &["e2e", "--size", "100", "--topics", "1000"],
        subjects: &[Airmail, JetStream, Nats],
        figure: Figure::Delivered,
    },
    Workload {
        name: "each-ack",
        title: "one publisher that waits for each ack, 100 bytes",
        arguments: &["pub", "--size", "100", "--in-flight", "1"],
        subjects: &[Airmail, AirmailMemory, JetStreamSynced, JetStream],
        figure: Figure::Published,
    },
];
