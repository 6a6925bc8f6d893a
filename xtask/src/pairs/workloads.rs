//! Workloads by which two versions are compared.

use serde::Serialize;

/// A workload of `airmail bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// One publisher, one topic, one subscriber, as fast as it goes.
    E2e,
    /// The same, with a batch of its own for each message.
    Unbatched,
    /// 10,000 messages a second by timetable.
    Latency,
    /// One publisher, 100 subscribers on connections of their own.
    Fanout,
    /// 1,000 topics in turn, one subscriber of all.
    Topics,
    /// The node's memory with a million topics, 100,000 subscriptions and 1,000 producers.
    Memory,
}

impl Workload {
    pub(super) fn name(self) -> &'static str {
        match self {
            Workload::E2e => "e2e",
            Workload::Unbatched => "unbatched",
            Workload::Latency => "latency",
            Workload::Fanout => "fanout",
            Workload::Topics => "topics",
            Workload::Memory => "memory",
        }
    }

    /// Arguments of `airmail bench`, except those that every workload has. All figures depend on
    /// them, so none is left to a version's own defaults.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Workload::E2e => &["e2e", "--size", "100"],
            Workload::Unbatched => &["e2e", "--size", "100", "--unbatched"],
            Workload::Latency => &["latency", "--size", "100", "--rate", "10000"],
            Workload::Fanout => &["fanout", "--size", "100", "--subscribers", "100"],
            Workload::Topics => &["e2e", "--size", "100", "--topics", "1000"],
            Workload::Memory => &[
                "topics",
                "--topics",
                "1000000",
                "--subscriptions",
                "100000",
                "--producers",
                "1000",
            ],
        }
    }

    /// Whether it takes as long as one says.
    pub(super) fn is_timed(self) -> bool {
        self != Workload::Memory
    }
}
