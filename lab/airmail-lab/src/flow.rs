//! `airmail-lab flow`: the limiters on a real node, after chapter 5 of RocketSpeed's paper.
//!
//! A plan gives cases; each runs on a node of its own, in rounds, so that a slow minute of the
//! machine meets all of them. Their results become rows, curves and figures under the paper's
//! numbers.

mod case;
mod figures;
mod flying;
mod paper;
mod pilot;
mod plan;
mod points;
mod report;
mod runs;
mod summary;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use airmail_bench::family::Stop;
use airmail_bench::family::own_node::OwnNodeArgs;
use airmail_bench::settings::milliseconds;
use airmail_experiments::flow::Distribution;
use airmail_flow::LimiterKind;
use case::Storage;
pub(crate) use flying::take_flight;
use plan::{Plan, Preset};
use std::process::ExitCode;

/// Arguments of `airmail-lab flow`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct FlowArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Parameters to begin with; the options below change them. `memory` and `kafka` are the paper's
    #[arg(long, value_enum, default_value_t = Preset::Short)]
    pub(crate) preset: Preset,
    /// Numbers of topics [default: 1,16,256]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) topics: Vec<u32>,
    /// Distributions of messages over topics [default: uniform,normal,poisson]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) distributions: Vec<Distribution>,
    /// Limiters [default: fixed,last-three-points,adaptive,gradient]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) limiters: Vec<LimiterKind>,
    /// Storages of the node that is started [default: memory,disk]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) storages: Vec<Storage>,
    /// Messages of each of the two publishers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) messages: Option<u64>,
    /// The paper's N: acknowledged messages that give one point of the curves, and one decision
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// The smallest change of the bound that the paper's limiters make, in messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) delta: Option<u64>,
    /// The bound to begin with, in messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) initial: Option<u64>,
    /// Rounds: curves and tables have the median, and from the least to the greatest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) repeat: Option<u32>,
    /// Payload of each message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(24..=1_048_576))]
    pub(crate) size: u32,
    /// Ends each run after this time, as 30s, if it is not done before
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) duration: Option<u64>,
    /// Time for which each fixed bound of the sweep is tried, as 1s; 0s leaves the sweep out
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub(crate) sweep: Option<u64>,
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
    let measured = runs::measure(&plan, args, &hosts)?;
    let findings = report::findings(&plan, &measured, &hosts);
    crate::experiment::finish(&findings, &args.common)?;
    Ok(ExitCode::from(u8::from(!measured.is_sound())))
}
