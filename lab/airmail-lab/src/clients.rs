//! `airmail-lab clients`: the time that a round of messages takes for many clients.
//!
//! The experiment is that of the paper on a publisher/subscriber service: every client subscribes
//! to one publisher's topic, gets 20 messages a round, and should have them within a second; the
//! node has half a core and 2 GiB. Each step has a node of its own. If the machine does not let one
//! process have as many sockets, clients are further streams on connections that are there.

mod report;
mod step;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::hold::{CpuLimit, Limits};
use crate::measured_node::TargetArgs;
use crate::narration::say;
use crate::rounds::{OTHER_FILES, Plan};
use airmail_bench::family::Stop;
use airmail_bench::family::own_node::OwnNodeArgs;
use airmail_bench::process::raise_open_files;
use std::process::ExitCode;
use step::Step;

/// Clients of the steps, as in the paper's figures; and of a sample.
const STEPS: [u32; 6] = [100, 250, 500, 1000, 1500, 2000];
const STEPS_QUICK: [u32; 3] = [100, 500, 2000];
/// Period of the node's quota, in microseconds.
const PERIOD_US: u64 = 10_000;

/// Arguments of `airmail-lab clients`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ClientsArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Clients of each step, as 100,500 [default: 100 to 2000 in six steps]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) steps: Vec<u32>,
    /// Clients of a last step, all at once; 0: none [default: 20000, with --quick 0]
    #[arg(long, value_name = "N")]
    pub(crate) clients: Option<u32>,
    /// Connections of the clients at most; further clients are streams that share them [default: as
    /// many as the system lets one process have]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Rounds of 20 messages in each step [default: 20, with --quick 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rounds: Option<u32>,
    /// Time from the beginning of a round to that of the next, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 1500)]
    pub(crate) interval_ms: u64,
    /// A round that takes a client longer than this, in milliseconds, has timed out
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) timeout_ms: u32,
    /// Payload of each message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(24..=1_000_000))]
    pub(crate) size: u32,
    /// Cores that the node may have, in periods of 10 ms; 0: all there are, and all memory
    #[arg(long, value_name = "N", default_value_t = 0.5)]
    pub(crate) cores: f64,
    /// Memory that the node may have, in MiB
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(64..=1_048_576))]
    pub(crate) memory_mib: u64,
    #[command(flatten)]
    pub(crate) node: OwnNodeArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl ClientsArgs {
    /// Clients of all steps, in order.
    fn steps(&self) -> Vec<u32> {
        let (usual, many): (&[u32], u32) = if self.common.quick {
            (&STEPS_QUICK, 0)
        } else {
            (&STEPS, 20_000)
        };
        // Who names steps has named all, unless this one too.
        let (mut steps, many) = if self.steps.is_empty() {
            (usual.to_vec(), self.clients.unwrap_or(many))
        } else {
            (self.steps.clone(), self.clients.unwrap_or(0))
        };
        steps.extend((many > 0).then_some(many));
        steps
    }

    fn rounds(&self) -> u32 {
        let usual = if self.common.quick { 5 } else { 20 };
        self.rounds.unwrap_or(usual)
    }

    fn limits(&self) -> Option<Limits> {
        (self.cores > 0.0).then_some(Limits {
            cpu: Some(CpuLimit::cores(self.cores, PERIOD_US)),
            memory_bytes: Some(self.memory_mib << 20),
            disk: None,
        })
    }
}

pub(super) fn run(args: &ClientsArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    let target = args.target.target.as_deref();
    let hosts = args.common.hosts.read(target, stop)?;
    // The system takes no quota below a millisecond.
    if args.cores != 0.0 && !(0.1..=1024.0).contains(&args.cores) {
        return Err(UsageError("--cores: 0, or from 0.1 to 1024".to_owned()).into());
    }
    let files = raise_open_files();
    let files = u32::try_from(files).unwrap_or(u32::MAX);
    let connections_max = args
        .connections
        .unwrap_or(files.saturating_sub(OTHER_FILES));
    let mut steps = Vec::new();
    for clients in args.steps() {
        let plan = Plan {
            clients,
            connections: clients.min(connections_max).max(1),
            publishers: 1,
            rounds: args.rounds(),
            interval_ms: args.interval_ms,
            timeout_ms: args.timeout_ms,
            size: args.size as usize,
        };
        let step = match Step::run(&plan, args.limits(), args, &hosts) {
            Ok(step) => step,
            Err(_) if stop.is_set() => break,
            Err(error) => return Err(error),
        };
        say(&step.to_string());
        steps.push(step);
        if stop.is_set() {
            break;
        }
    }
    crate::experiment::finish(&report::findings(args, &steps, &hosts), &args.common)?;
    let sound = steps.iter().all(|step| step.outcome.is_sound());
    if !sound {
        say("not every client got every message, once and in order");
    }
    Ok(ExitCode::from(u8::from(!sound)))
}
