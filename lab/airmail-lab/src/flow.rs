//! `airmail-lab flow`: the limiters on a real node, after chapter 5 of RocketSpeed's paper.
//!
//! A plan gives setups; in each the limiters run beside a fixed bound at the knee, every run on a node of
//! its own, in rounds, so that a slow minute of the machine meets all of them. A sweep over fixed bounds
//! finds the knee first. Their results become rows, curves and figures, the paper's under its numbers.

mod case;
mod changes;
mod figures;
mod flying;
mod neighbours;
mod outcome;
mod paper;
mod pilot;
mod plan;
mod points;
mod report;
mod run_node;
mod runs;
mod summary;
mod sweeps;
mod written;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use airmail_bench::family::Stop;
use airmail_bench::family::kafka_logs::KafkaLogs;
use airmail_bench::family::own_node::OwnNodeArgs;
use airmail_bench::settings::milliseconds;
use airmail_experiments::flow::Distribution;
use airmail_flow::LimiterKind;
pub(crate) use case::{Case, Place, Setup, Storage};
pub(crate) use flying::take_flight;
use plan::{Plan, Preset};
use std::process::ExitCode;
pub(crate) use written::{BesideFixed, Written};

/// Arguments of `airmail-lab flow`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct FlowArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Parameters to begin with; the options below change them. `memory` and `kafka` are the paper's
    #[arg(long, value_enum, default_value_t = Preset::Node)]
    pub(crate) preset: Preset,
    /// Where limiters are: both by default
    #[arg(long, value_enum, value_name = "PLACE,…", value_delimiter = ',')]
    pub(crate) side: Vec<Place>,
    /// Numbers of publishers, the first two with a subscriber beside them [default: 1,2,8]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) publishers: Vec<u32>,
    /// Numbers of topics [default: 1,16,256]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) topics: Vec<u32>,
    /// Distributions of messages over topics [default: uniform,normal,poisson]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) distributions: Vec<Distribution>,
    /// Limiters, each beside a fixed bound at the knee [default: gradient,ladder in the pilot, latency-target
    /// in publishers]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) limiters: Vec<LimiterKind>,
    /// Storages of the node that is started; kafka-apart: pilot, copilot and tower are a process each [default:
    /// memory,disk, and with --log kafka,kafka-apart]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) storages: Vec<Storage>,
    /// The Kafka of the storages that are there, as kafka://HOST:PORT?replicas=1&min_insync=1, without a prefix: each
    /// node has topics of its own, which end with it
    #[arg(long, value_name = "URL", conflicts_with = "target")]
    pub(crate) log: Option<KafkaLogs>,
    /// Messages of each publisher, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) messages: Option<u64>,
    /// The paper's N: acknowledged messages of one window of a limiter [default: as the node has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// The smallest change of the bound that the paper's limiters make, in messages [default: as the node
    /// has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) delta: Option<u64>,
    /// The bound to begin with, in messages [default: as the node has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) initial: Option<u64>,
    /// Latency for which no throughput is given up, as 10ms [default: as the node has it]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) floor: Option<u64>,
    /// Rounds: curves and tables have the median, and from the least to the greatest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) repeat: Option<u32>,
    /// Payload of each message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(24..=1_048_576))]
    pub(crate) size: u32,
    /// Time of each run, as 30s, if it has not sent its messages before [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) duration: Option<u64>,
    /// Time of each run of the sweep over fixed bounds, as 1s; 0s leaves it out [default: 1500ms]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) sweep: Option<u64>,
    /// Runs of each bound of the sweep [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) sweep_runs: Option<u32>,
    /// Time of each capacity in runs in which it is halved and doubled, as 5s; 0s leaves them out
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) change: Option<u64>,
    /// Time that a batch takes in those runs at full capacity, in microseconds
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=500_000))]
    pub(crate) service_us: u32,
    /// Neighbours that write to the disk and sync while its capacity changes, where that is among the
    /// storages; 0 leaves these runs out
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) neighbours: u32,
    /// A running node to measure, as airmail://HOST:PORT, instead of one that is started for each run
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) node: OwnNodeArgs,
}

/// Runs it: 0 if every message arrived once and in order, else 1.
pub(super) fn run(args: &FlowArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    let hosts = args.common.hosts.read(args.target.as_deref(), stop)?;
    let plan = Plan::new(args);
    let settings = plan.throttling(LimiterKind::default()).gate().validate();
    settings.map_err(|wrong| UsageError(wrong.to_string()))?;
    if plan.shares_the_disk() && !hosts.node().is_here() {
        let asks = "--neighbours: 0 where the node is on another machine, whose disk is not theirs";
        return Err(UsageError(asks.to_owned()).into());
    }
    if args.log.is_none() && plan.storages.iter().any(|storage| storage.is_on_kafka()) {
        let asks = "--storages: with one on Kafka, --log says where that is";
        return Err(UsageError(asks.to_owned()).into());
    }
    if plan.messages.is_none() && plan.duration_ms == Some(0) {
        return Err(UsageError("--duration: more than 0s".to_owned()).into());
    }
    let measured = runs::measure(&plan, args, &hosts)?;
    let findings = report::findings(&plan, &measured, &hosts);
    crate::experiment::finish(&findings, &args.common)?;
    Ok(ExitCode::from(u8::from(!measured.is_sound())))
}
