//! `airmail-lab overload`: a tenth to ten times a node's capacity, with flow control and without;
//! and subscribers that take a tenth of their deliveries, beside others that take all.
//!
//! The node's capacity is held down by a storage that takes a fixed time for each batch, so that a
//! generator on the same machine can offer many times that. It does not wait and does not retry:
//! every latency counts from when a batch was due. Each case has a node of its own, and afterwards
//! its stored messages are read back and compared with the acknowledged ones. A node that is there
//! already is measured with its own storage and flow control.

mod arrivals;
mod case;
mod deliveries;
mod encoder;
mod figures;
mod generator;
mod kept;
mod offering;
mod promise;
mod publishes;
mod reckoning;
mod report;
mod source;
mod stream;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::flow_control::FlowControl;
use crate::hosts::Hosts;
use crate::measured_node::TargetArgs;
use crate::narration::say;
use airmail_bench::family::Stop;
use airmail_bench::family::own_node::OwnNodeArgs;
use case::{Bench, Storage};
use deliveries::Deliveries;
use generator::Plan;
pub(crate) use offering::offer;
use promise::Kept;
use publishes::{Case, Publishes};
use std::process::ExitCode;
use std::time::Duration;

/// Offered loads, as shares of the capacity.
const RATIOS: [f64; 12] = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.5, 2.0, 4.0, 7.0, 10.0];
/// Those of a sample.
const RATIOS_QUICK: [f64; 4] = [0.4, 0.8, 2.0, 10.0];
/// Unanswered batches of each stream while capacity is measured: the storage never has to wait.
const CLOSED_BATCHES: u32 = 32;
/// Longest wait for answers after a load, in a sample and else.
const PATIENCE_QUICK: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);
/// Attempts at measuring the capacity until there is one.
const CAPACITY_ATTEMPTS: u32 = 20;

/// Arguments of `airmail-lab overload`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OverloadArgs {
    /// Offered loads, as shares of the capacity, as 0.5,1,10 [default: 0.1 to 10 in twelve steps]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) ratios: Vec<f64>,
    /// Duration of each load, in seconds, warm-up included [default: 10, with --quick 4]
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<f64>,
    /// Time at the beginning of each load that does not count, in seconds [default: a quarter]
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<f64>,
    /// Number of repetitions of everything [default: 3, with --quick 1]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u32>,
    /// Time that the node takes for each batch, in microseconds: its capacity is 1,000,000 batches
    /// a second divided by this
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "target", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) service_us: u32,
    /// Bytes a second that the node may write to its disk, where it stores then with all guarantees, in
    /// place of a storage that takes the same time for each batch; needs control groups
    #[arg(long, value_name = "N", conflicts_with_all = ["target", "service_us"], value_parser = clap::value_parser!(u64).range(1_000_000..))]
    pub(crate) disk_bytes_per_s: Option<u64>,
    /// Messages in a batch
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) batch: u32,
    /// Payload of each message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(24..=1_000_000))]
    pub(crate) size: u32,
    /// Streams of the load, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) streams: u32,
    /// Seed of the random times at which batches are due
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Messages a second to subscribers of which some take a tenth; 0: leave that part out
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) delivery_rate: u64,
    /// Subscribers that take all that is delivered to them
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) quick_subscribers: u32,
    /// Subscribers beside them that take a tenth
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) slow_subscribers: u32,
    /// End with 1 if what flow control promises by default is not kept; needs loads of 0.8 and of more than
    /// the capacity, and deliveries
    #[arg(long)]
    pub(crate) judge: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) node: OwnNodeArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl OverloadArgs {
    fn ratios(&self) -> Vec<f64> {
        match (self.ratios.is_empty(), self.common.quick) {
            (false, _) => self.ratios.clone(),
            (true, false) => RATIOS.into(),
            (true, true) => RATIOS_QUICK.into(),
        }
    }

    fn seconds(&self) -> f64 {
        let usual = if self.common.quick { 4.0 } else { 10.0 };
        self.seconds.unwrap_or(usual)
    }

    fn warmup(&self) -> f64 {
        self.warmup.unwrap_or(self.seconds() / 4.0)
    }

    fn rounds(&self) -> u32 {
        let usual = if self.common.quick { 1 } else { 3 };
        self.rounds.unwrap_or(usual)
    }

    fn check(&self) -> Result<(), UsageError> {
        let wrong = |what: &str| Err(UsageError(what.to_owned()));
        if !self
            .ratios()
            .iter()
            .all(|ratio| *ratio > 0.0 && *ratio <= 1000.0)
        {
            return wrong("--ratios: above 0, and at most 1000");
        }
        if !(self.warmup() >= 0.0 && self.warmup() < self.seconds() && self.seconds() <= 86_400.0) {
            return wrong("--seconds: more than --warmup, and at most 86400");
        }
        Ok(())
    }

    /// Flow controls to compare, in the order of a round's number.
    fn in_turn(&self, round: u32) -> Vec<FlowControl> {
        if self.target.target.is_some() {
            return vec![FlowControl::AsItIs];
        }
        let mut both = FlowControl::BOTH;
        // Each comes first in every other round.
        if round.is_multiple_of(2) {
            both.reverse();
        }
        both.into()
    }

    fn bench<'a>(&'a self, hosts: &'a Hosts) -> Bench<'a> {
        Bench {
            hosts,
            target: &self.target,
            node: &self.node,
            storage: match self.disk_bytes_per_s {
                Some(write_bytes_per_s) => Storage::Disk { write_bytes_per_s },
                None => Storage::Served {
                    service_us: self.service_us,
                },
            },
            streams: self.streams,
            batch: self.batch,
            size: self.size as usize,
            duration_us: (self.seconds() * 1e6) as u64,
            warmup_us: (self.warmup() * 1e6) as u64,
            patience: if self.common.quick {
                PATIENCE_QUICK
            } else {
                PATIENCE
            },
        }
    }
}

pub(super) fn run(args: &OverloadArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    args.check()?;
    let hosts = &args
        .common
        .hosts
        .read(args.target.target.as_deref(), stop)?;
    let mut publishes = Publishes::default();
    let mut deliveries = Deliveries::new(args, hosts);
    match publish_and_deliver(args, hosts, &mut publishes, &mut deliveries) {
        Err(error) if !stop.is_set() => return Err(error),
        _ => {}
    }
    let findings = report::findings(args, &publishes, &deliveries, hosts);
    crate::experiment::finish(&findings, &args.common)?;
    let sound = publishes.is_sound() && deliveries.is_sound();
    if !sound {
        say("not everything that was acknowledged is there, or a refusal was none");
    }
    let kept = !args.judge || is_kept(args, &publishes, &deliveries);
    Ok(ExitCode::from(u8::from(!sound || !kept)))
}

/// Judges what flow control promises by default.
fn is_kept(args: &OverloadArgs, publishes: &Publishes, deliveries: &Deliveries<'_>) -> bool {
    let flow = match args.target.target {
        Some(_) => FlowControl::AsItIs,
        None => FlowControl::On,
    };
    let Some(kept) = Kept::of(publishes, deliveries, flow) else {
        say("nothing was measured by which to judge");
        return false;
    };
    let word = if kept.is_kept() { "kept" } else { "not kept" };
    say(&format!("the promise is {word}: {kept}"));
    kept.is_kept()
}

fn publish_and_deliver(
    args: &OverloadArgs,
    hosts: &Hosts,
    publishes: &mut Publishes,
    deliveries: &mut Deliveries,
) -> anyhow::Result<()> {
    let bench = args.bench(hosts);
    let unbounded = match args.target.target {
        Some(_) => FlowControl::AsItIs,
        None => FlowControl::Off,
    };
    let capacity_per_s = capacity(&bench, unbounded)?;
    publishes.capacity_per_s = capacity_per_s;
    say(&format!("capacity: {capacity_per_s:.0} messages/s"));
    for round in 1..=args.rounds() {
        for ratio in args.ratios() {
            for flow in args.in_turn(round) {
                if hosts.stop().is_set() {
                    return Ok(());
                }
                let plan = Plan::Open {
                    batches_per_s: ratio * capacity_per_s / f64::from(args.batch),
                    // The same times with flow control and without.
                    seed: args.seed.wrapping_add(u64::from(round) << 32),
                };
                let case = Case {
                    ratio,
                    flow,
                    round,
                    found: bench.run(plan, flow)?,
                };
                say(&case.to_string());
                publishes.cases.push(case);
            }
        }
        deliveries.round(round)?;
    }
    Ok(())
}

/// Measures the capacity: the rate of acks when the load is as much as the node takes. A machine
/// that is busy with other things may not come to anything at first.
fn capacity(bench: &Bench<'_>, flow: FlowControl) -> anyhow::Result<f64> {
    let closed = Plan::Closed {
        batches: CLOSED_BATCHES,
    };
    for _ in 0..CAPACITY_ATTEMPTS {
        let capacity_per_s = bench.run(closed, flow)?.sums.goodput_per_s;
        if capacity_per_s > 0.0 {
            return Ok(capacity_per_s);
        }
        say("nothing was acknowledged in the time that counts; measures the capacity again");
    }
    anyhow::bail!(
        "nothing was acknowledged in {CAPACITY_ATTEMPTS} loads of {} s: no capacity to be a part of (--seconds)",
        bench.duration_us as f64 / 1e6
    )
}
