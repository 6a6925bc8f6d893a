//! Metrics of a run: the nine lines of the paper's tables.

/// A line of a table, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    /// Payload sent.
    Throughput,
    /// Mean latency.
    Mean,
    /// Latency of 50 records out of 100 at most.
    P50,
    /// 95.
    P95,
    /// 99.
    P99,
    /// Latency of 999 records out of 1,000 at most.
    P999,
    /// All.
    Max,
    /// The producer's metric `io-time-ns-avg`: its network thread at work after each `select`.
    Io,
    /// Time from the first record that counts to the last ack.
    Ttc,
}

impl Metric {
    /// All of them.
    pub(super) const ALL: [Metric; 9] = [
        Metric::Throughput,
        Metric::Mean,
        Metric::P50,
        Metric::P95,
        Metric::P99,
        Metric::P999,
        Metric::Max,
        Metric::Io,
        Metric::Ttc,
    ];

    /// Name in rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput_mb_per_s",
            Metric::Mean => "mean_ms",
            Metric::P50 => "p50_ms",
            Metric::P95 => "p95_ms",
            Metric::P99 => "p99_ms",
            Metric::P999 => "p999_ms",
            Metric::Max => "max_ms",
            Metric::Io => "io_time_ns",
            Metric::Ttc => "ttc_s",
        }
    }

    /// Title in tables, as the paper has it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Metric::Throughput => "Throughput, MB/s",
            Metric::Mean => "Average latency, ms",
            Metric::P50 => "50th percentile, ms",
            Metric::P95 => "95th percentile, ms",
            Metric::P99 => "99th percentile, ms",
            Metric::P999 => "99.9th percentile, ms",
            Metric::Max => "Greatest latency, ms",
            Metric::Io => "Average I/O time, ns",
            Metric::Ttc => "Time to completion, s",
        }
    }

    /// Whether more of it is better.
    pub(super) fn is_more_better(self) -> bool {
        self == Metric::Throughput
    }
}
