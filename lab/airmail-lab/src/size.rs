//! `airmail-lab size`: payloads of 16 bytes to 1 MiB against throughput and latency.
//!
//! Each storage, size and round has a node of its own, or the one that is there already: first as fast as
//! there is room, then at half of that rate by timetable, each message from publish to delivery. A run
//! publishes a bounded number of bytes, so that large payloads do not fill memory or disk.

mod report;

use crate::cli::UsageError;
use crate::experiment::CommonArgs;
use crate::hosts::Hosts;
use crate::measured_node::{MeasuredNode, TargetArgs};
use crate::narration::say;
use airmail_bench::family::Stop;
use airmail_bench::family::kafka_logs::KafkaLogs;
use airmail_bench::family::own_node::OwnNodeArgs;
use airmail_bench::run::Job;
use airmail_bench::{Report, Settings, Workload};
use report::Case;
use std::process::ExitCode;

/// Payloads, in bytes; and those of a sample.
const SIZES: [u32; 9] = [
    16,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
];
const SIZES_QUICK: [u32; 4] = [16, 1 << 10, 64 << 10, 1 << 20];
/// Payload that a run publishes at most, in bytes.
const RUN_BYTES: u64 = 1 << 30;

/// Arguments of `airmail-lab size`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SizeArgs {
    /// Payloads, in bytes, as 16,1024 [default: 16 to 1048576 in nine steps]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) sizes: Vec<u32>,
    /// Storages [default: memory,disk, and with --log kafka]
    #[arg(
        long,
        value_name = "STORAGE,...",
        value_delimiter = ',',
        value_enum,
        conflicts_with = "target"
    )]
    pub(crate) storages: Vec<Storage>,
    /// The Kafka of the storage that is there, as kafka://HOST:PORT?replicas=1&min_insync=1, without a prefix: each node
    /// has topics of its own, which end with it
    #[arg(long, value_name = "URL", conflicts_with = "target")]
    pub(crate) log: Option<KafkaLogs>,
    /// Duration of each run, in milliseconds; less where it would publish more than 1 GiB
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    pub(crate) run_ms: u64,
    /// Number of repetitions of everything [default: 5, with --quick 1]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u32>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) node: OwnNodeArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Where a node stores.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In memory
    Memory,
    /// On a disk, synced
    Disk,
    /// On Kafka
    Kafka,
    /// Wherever a node stores that was there before
    #[value(skip)]
    Target,
}

impl Storage {
    /// Name in rows and tables.
    fn name(self) -> &'static str {
        match self {
            Storage::Memory => "memory",
            Storage::Disk => "disk",
            Storage::Kafka => "kafka",
            Storage::Target => "target",
        }
    }

    /// The option of a node that has it; on Kafka, at this place.
    fn option(self, logs: Option<&KafkaLogs>) -> Option<String> {
        match self {
            Storage::Kafka => logs.map(KafkaLogs::next_option),
            Storage::Memory => Some("--log=memory:".to_owned()),
            Storage::Disk => Some("--log=disk:".to_owned()),
            Storage::Target => None,
        }
    }
}

impl SizeArgs {
    fn sizes(&self) -> Vec<u32> {
        match (self.sizes.is_empty(), self.common.quick) {
            (false, _) => self.sizes.clone(),
            (true, false) => SIZES.into(),
            (true, true) => SIZES_QUICK.into(),
        }
    }

    fn storages(&self) -> Vec<Storage> {
        match (&self.target.target, &self.log) {
            (Some(_), _) => vec![Storage::Target],
            _ if !self.storages.is_empty() => self.storages.clone(),
            (None, Some(_)) => vec![Storage::Kafka],
            (None, None) => vec![Storage::Memory, Storage::Disk],
        }
    }

    fn rounds(&self) -> u32 {
        let usual = if self.common.quick { 1 } else { 5 };
        self.rounds.unwrap_or(usual)
    }
}

pub(super) fn run(args: &SizeArgs, stop: &Stop) -> anyhow::Result<ExitCode> {
    if args.log.is_none() && args.storages().contains(&Storage::Kafka) {
        let asks = "--storages: with one on Kafka, --log says where that is";
        return Err(UsageError(asks.to_owned()).into());
    }
    let target = args.target.target.as_deref();
    let hosts = args.common.hosts.read(target, stop)?;
    let mut cases = Vec::new();
    match measure(args, &hosts, &mut cases) {
        Err(error) if !stop.is_set() => return Err(error),
        _ => {}
    }
    crate::experiment::finish(&report::findings(args, &cases, &hosts), &args.common)?;
    let sound = cases.iter().all(Case::is_sound);
    if !sound {
        say("not every message arrived once and in order");
    }
    Ok(ExitCode::from(u8::from(!sound)))
}

fn measure(args: &SizeArgs, hosts: &Hosts, cases: &mut Vec<Case>) -> anyhow::Result<()> {
    for round in 1..=args.rounds() {
        for storage in args.storages() {
            for size in args.sizes() {
                if hosts.stop().is_set() {
                    return Ok(());
                }
                let case = case(args, hosts, round, storage, size)?;
                say(&case.to_string());
                cases.push(case);
            }
        }
    }
    Ok(())
}

fn case(
    args: &SizeArgs,
    hosts: &Hosts,
    round: u32,
    storage: Storage,
    size: u32,
) -> anyhow::Result<Case> {
    let option = storage.option(args.log.as_ref());
    let node = args.target.node(hosts, &args.node, option, &[])?;
    let messages_max = RUN_BYTES / u64::from(size);
    let settings = Settings {
        workload: Workload::E2e,
        messages: Some(messages_max),
        duration_ms: Some(args.run_ms),
        warmup_ms: args.run_ms / 10,
        size: size as usize,
        ..Settings::default()
    };
    let fast = lead(hosts, &node, settings.clone())?;
    let rate = ((fast.delivered_per_s / 2.0) as u64).max(1);
    let half = Settings {
        workload: Workload::Latency,
        messages: Some((rate * args.run_ms / 1000).clamp(1, messages_max)),
        rate: Some(rate),
        ..settings
    };
    let calm = lead(hosts, &node, half)?;
    Ok(Case {
        round,
        storage,
        size,
        fast,
        calm,
        rss_bytes: node.usage()?.rss_bytes,
    })
}

fn lead(hosts: &Hosts, node: &MeasuredNode, settings: Settings) -> anyhow::Result<Report> {
    let id = hosts.next_run();
    let job = Job {
        target: node.url(),
        settings: settings.clone(),
        id,
        prefix: format!("bench/size/{id:08x}"),
        ..Job::default()
    };
    let part = hosts.run(&job)?;
    Ok(Report::new("airmail", settings, part, None))
}
