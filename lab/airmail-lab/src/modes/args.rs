//! The options of `airmail-lab modes`, and what is usual where one is not given.

use super::mode::Mode;
use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::hold::{CpuLimit, Limits};
use airmail_bench::family::own_node::OwnNodeArgs;

/// Period of the nodes' quota, in microseconds: short beside a round that waits for its end.
const PERIOD_US: u64 = 10_000;

/// Arguments of `airmail-lab modes`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ModesArgs {
    /// Ways to make a service of nodes; others are compared with single
    #[arg(long, value_name = "MODE,...", value_delimiter = ',', value_enum, default_values_t = [Mode::Single, Mode::Tree])]
    pub(super) mode: Vec<Mode>,
    /// Series of cases
    #[arg(long, value_name = "SERIES,...", value_delimiter = ',', value_enum, default_values_t = [Series::Clients, Series::Reach, Series::Publish])]
    pub(super) series: Vec<Series>,
    #[command(flatten)]
    pub(super) rounds: RoundsArgs,
    #[command(flatten)]
    pub(super) publish: PublishArgs,
    /// Number of repetitions of everything [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,
    /// Payload of each message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(24..=1_000_000))]
    pub(super) size: u32,
    /// Cores that each node may have, in periods of 10 ms; 0: all there are
    #[arg(long, value_name = "N", default_value_t = 0.15)]
    quota: f64,
    /// End with 1 if a mode does not come to what is asked of it beside a single node
    #[arg(long)]
    pub(super) judge: bool,
    #[command(flatten)]
    pub(super) node: OwnNodeArgs,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// Options of the series with rounds.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct RoundsArgs {
    /// Clients of each step, as 100,500 [default: 100 to 2000 in six steps]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(4..=100_000))]
    steps: Vec<u32>,
    /// Clients of the single node in the series reach, until something times out [default: 2000 to 8000 in
    /// five steps]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(4..=100_000))]
    reach: Vec<u32>,
    /// Clients of each other mode in the series reach, as a multiple of the single node's
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(super) times: u32,
    /// Rounds of 20 messages in each case [default: 12, with --quick 4]
    #[arg(long = "rounds", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: Option<u32>,
    /// Time from the beginning of a round to that of the next, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 1500)]
    pub(super) interval_ms: u64,
    /// A round that takes a client longer than this, in milliseconds, has timed out
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(super) timeout_ms: u32,
}

/// Options of the series with many publishers.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct PublishArgs {
    /// Publishers of the series publish [default: 1,10,100,1000]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    publishers: Vec<u32>,
    /// Subscribers of the series publish
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    pub(super) subscribers: u32,
    /// Duration of each run of the series publish, in seconds [default: 5, with --quick 2]
    #[arg(long, value_name = "N")]
    seconds: Option<f64>,
    /// Messages a second of all publishers together, where the time to delivery is measured
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(super) rate: u64,
}

/// Series of cases.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    /// Rounds with as many clients in each mode, by steps
    Clients,
    /// Rounds with more and more clients, in other modes a multiple of those at a single node
    Reach,
    /// Throughput and latency with many publishers and few subscribers
    Publish,
}

impl Series {
    /// Name in rows and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Series::Clients => "clients",
            Series::Reach => "reach",
            Series::Publish => "publish",
        }
    }
}

impl ModesArgs {
    /// Numbers that were asked for, or else the usual ones, of a sample or of all.
    fn or(&self, asked: &[u32], quick: &[u32], usual: &[u32]) -> Vec<u32> {
        match asked {
            [] if self.common.quick => quick.to_vec(),
            [] => usual.to_vec(),
            asked => asked.to_vec(),
        }
    }

    /// Clients of each step.
    pub(super) fn steps(&self) -> Vec<u32> {
        let usual = [100, 250, 500, 1000, 1500, 2000];
        self.or(&self.rounds.steps, &[100, 2000], &usual)
    }

    /// Clients of the single node, as they are raised.
    pub(super) fn reach(&self) -> Vec<u32> {
        let usual = [2000, 3000, 4000, 6000, 8000];
        self.or(&self.rounds.reach, &[2000], &usual)
    }

    /// Numbers of publishers.
    pub(super) fn publishers(&self) -> Vec<u32> {
        self.or(&self.publish.publishers, &[1, 100], &[1, 10, 100, 1000])
    }

    /// Rounds of each case.
    pub(super) fn rounds(&self) -> u32 {
        let usual = if self.common.quick { 4 } else { 12 };
        self.rounds.count.unwrap_or(usual)
    }

    /// Repetitions of everything.
    pub(super) fn repeat(&self) -> u32 {
        let usual = if self.common.quick { 1 } else { 5 };
        self.repeat.unwrap_or(usual)
    }

    /// Duration of a run of publishers, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        let usual = if self.common.quick { 2.0 } else { 5.0 };
        self.publish.seconds.unwrap_or(usual)
    }

    /// Limits of each node.
    pub(super) fn limits(&self) -> Option<Limits> {
        (self.quota > 0.0).then_some(Limits {
            cpu: Some(CpuLimit::cores(self.quota, PERIOD_US)),
            ..Limits::default()
        })
    }

    /// Whether it can be done.
    ///
    /// # Errors
    /// The first option that it cannot be with.
    pub(super) fn check(&self) -> Result<(), UsageError> {
        // The system takes no quota below a millisecond.
        if self.quota != 0.0 && !(0.1..=1024.0).contains(&self.quota) {
            return Err(UsageError("--quota: 0, or from 0.1 to 1024".to_owned()));
        }
        if !(0.1..=86_400.0).contains(&self.seconds()) {
            return Err(UsageError("--seconds: from 0.1 to 86400".to_owned()));
        }
        Ok(())
    }

    /// The modes in the order of a repetition's number: each comes first as often as last.
    pub(super) fn in_turn(&self, repeat: u32) -> Vec<Mode> {
        let mut modes = self.mode.clone();
        if repeat.is_multiple_of(2) {
            modes.reverse();
        }
        modes
    }
}
