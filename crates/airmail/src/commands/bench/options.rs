//! The options of the workloads that move messages; all have the same, with other defaults.

use super::measured::MeasuredArgs;
use crate::cli::UsageError;
use airmail_bench::settings::milliseconds;
use airmail_bench::{Settings, Workload};
use std::path::PathBuf;

/// Messages of a run that nobody said an end for, where it is not bounded by time.
const MESSAGES: u64 = 100_000;
/// Duration of a run without an end of its own, where it is bounded by time.
const DURATION_MS: u64 = 10_000;
/// Messages a second of a latency that nobody said a rate for.
const RATE: u64 = 10_000;
/// Subscribers of a fan-out that nobody said how many.
const FAN_OUT: u32 = 100;

/// Options of `airmail bench pub|sub|e2e|latency|fanout`.
#[derive(clap::Args, Clone, Debug)]
pub struct LoadArgs {
    /// The system to measure, as airmail://HOST:PORT, or null: for the bench itself; built with the
    /// feature `rivals` also nats://, jetstream://, redis:// and kafka://HOST:PORT. Without one, a
    /// node is started for the run
    #[arg(long, alias = "url", value_name = "URL")]
    pub target: Option<String>,
    /// Messages to publish, by all publishers together [default: 100000 where no time is given]
    #[arg(long, value_name = "N")]
    pub messages: Option<u64>,
    /// Time for which to publish, as 10s [default for latency and fanout, where no number is given:
    /// 10s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub duration: Option<u64>,
    /// Time at the beginning that is left out of rates and times, as 1s
    #[arg(long, value_name = "TIME", value_parser = milliseconds, default_value = "0s")]
    pub warmup: u64,
    /// Payload of each message, in bytes, at least 16
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub size: usize,
    /// Publishers, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub publishers: u32,
    /// Subscribers, each with a connection of its own and a subscription to every topic [default: 1,
    /// for fanout 100]
    #[arg(long, value_name = "N")]
    pub subscribers: Option<u32>,
    /// Topics, used in turn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub topics: u32,
    /// Messages a second, whether or not the node keeps up [default: as fast as there is room, for
    /// latency 10000]
    #[arg(long, value_name = "N")]
    pub rate: Option<u64>,
    /// Messages of each publisher that may wait for their acks; 1: each waits for the one before
    #[arg(long, value_name = "N")]
    pub in_flight: Option<u32>,
    /// Hand over each message, and await its ack, by itself, in a batch of its own
    #[arg(long)]
    pub unbatched: bool,
    /// Processes that publishers and subscribers are spread over
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub processes: u32,
    /// Beginning of the topics' names, for pub and sub that belong together; a new one for each run
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Subscribe from the oldest stored message, not from now
    #[arg(long)]
    pub from_earliest: bool,
    /// Durability that an ack promises: the run has a namespace of its own then [default: as the
    /// node has it]
    #[arg(long, value_name = "DURABILITY", value_parser = ["fsync", "os", "memory"])]
    pub durability: Option<String>,
    /// The target's process, whose processor time and memory are reported
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    #[command(flatten)]
    pub node: MeasuredArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Where a report goes.
#[derive(clap::Args, Clone, Debug)]
pub struct ReportArgs {
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the run over time as a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the report as a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl ReportArgs {
    /// Writes the files that are asked for.
    pub(super) fn write(
        &self,
        table: impl FnOnce() -> String,
        page: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        if let Some(path) = &self.csv {
            super::write(path, &table())?;
        }
        if let Some(path) = &self.html {
            super::write(path, &page())?;
        }
        Ok(())
    }
}

impl LoadArgs {
    /// Settings for the workload.
    pub(super) fn settings(&self, workload: Workload) -> Result<Settings, UsageError> {
        let timed = matches!(workload, Workload::Latency | Workload::Fanout);
        let unended = self.messages.is_none() && self.duration.is_none();
        let (messages, duration_ms) = match workload {
            _ if !unended => (self.messages, self.duration),
            Workload::Sub => (None, None),
            _ if timed => (None, Some(DURATION_MS)),
            _ => (Some(MESSAGES), None),
        };
        let (rate, subscribers) = match workload {
            Workload::Latency => (Some(RATE), 1),
            Workload::Fanout => (None, FAN_OUT),
            _ => (None, 1),
        };
        let settings = Settings {
            workload,
            messages,
            duration_ms,
            warmup_ms: self.warmup,
            size: self.size,
            publishers: self.publishers,
            subscribers: self.subscribers.unwrap_or(subscribers),
            topics: self.topics,
            rate: self.rate.or(rate),
            in_flight: self.in_flight,
            unbatched: self.unbatched,
            from_earliest: self.from_earliest,
            processes: self.processes,
            durability: self.durability.clone(),
            ..Settings::default()
        };
        let checked = settings.check();
        checked.map_err(|wrong| UsageError(format!("--{wrong}")))?;
        Ok(settings)
    }
}
