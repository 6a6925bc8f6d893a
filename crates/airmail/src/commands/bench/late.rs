//! `airmail bench late`: many subscribers that begin behind, each of a topic of its own and elsewhere in one
//! log; how often the log is read for them, and how long they take.
//!
//! Each number of readers gets a node of its own in each round, in an order that turns. Several crowds one after another,
//! of the same subscribers at the same node, show what a cache of the node's spares its storage.

use super::measured::{Measured, MeasuredArgs};
use super::options::ReportArgs;
use super::print;
use crate::cli::UsageError;
use airmail_bench::counters;
use airmail_bench::family::kafka_logs::KafkaLogs;
use airmail_bench::family::own_node::OwnNode;
use airmail_bench::late::{Backlog, Crowd, LateReport, LateRun, Wanted};
use airmail_bench::process::{Usage, raise_open_files};
use airmail_bench::{html, settings};
use anyhow::Context as _;
use std::num::NonZeroU32;
use std::process::ExitCode;

/// Metrics of what is read: for late subscribers, by the node whose clients they are; and from the disk, or from Kafka.
const READ_METRICS: [&str; 2] = [
    "airmail_caravan_bytes_total",
    "airmail_storage_read_bytes_total",
];
/// Setting of the readers that a node has for those who are behind.
const READERS: &str = "AIRMAIL_DELIVERY_READERS";
/// Setting of the memory in which a gateway keeps what was read of its tower.
const CACHE: &str = "AIRMAIL_CACHE_BYTES";

/// Arguments of `airmail bench late`.
#[derive(clap::Args, Clone, Debug)]
pub struct LateArgs {
    /// Payload to store before, as 1GiB
    #[arg(long, value_name = "BYTES", value_parser = settings::bytes, default_value = "1GiB")]
    pub backlog: u64,
    /// Subscribers, each of a topic of its own from a place of its own
    #[arg(long, value_name = "N", default_value = "10000")]
    pub subscribers: NonZeroU32,
    /// Connections that they share
    #[arg(long, value_name = "N", default_value = "16")]
    pub connections: NonZeroU32,
    /// Payload of each message, in bytes, at least 8
    #[arg(long, value_name = "BYTES", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(8..))]
    pub size: u32,
    /// Numbers of readers (delivery.readers) to try in turn, as 1,2,4,8 [default: as the node has it]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub readers: Vec<u32>,
    /// Rounds, each with a node and a backlog of its own for each number of readers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rounds: u32,
    /// Times that the subscribers come, all of them, one after another at the same node
    #[arg(long, value_name = "N", default_value = "1")]
    pub crowds: NonZeroU32,
    /// Memory of the gateway for what was read of its tower (cache.bytes), as 64MiB
    #[arg(long, value_name = "BYTES", value_parser = settings::bytes, requires = "apart")]
    pub cache: Option<u64>,
    /// Kafka to store on, as kafka://HOST:PORT?replicas=1&min_insync=1, without a prefix: each node has topics of its
    /// own, which end with it [default: the disk]
    #[arg(long, value_name = "URL")]
    pub log: Option<KafkaLogs>,
    #[command(flatten)]
    pub node: MeasuredArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Runs it: 0 if everybody got everything once and in order, else 1.
///
/// # Errors
/// A node cannot be started or reached, or the backlog cannot be stored.
pub(super) async fn late(args: &LateArgs) -> anyhow::Result<ExitCode> {
    if args.readers.contains(&0) {
        return Err(UsageError("--readers: 0, and there has to be one at least".to_owned()).into());
    }
    raise_open_files();
    let mut tries: Vec<Option<u32>> = args.readers.iter().copied().map(Some).collect();
    if tries.is_empty() {
        tries.push(None);
    }
    let mut report = LateReport {
        subscribers: args.subscribers.get(),
        connections: args.connections.get(),
        size: args.size as usize,
        runs: Vec::new(),
    };
    for round in 1..=args.rounds {
        for readers in &tries {
            report.runs.extend(run(args, round, *readers).await?);
        }
        tries.rotate_left(1);
    }
    let is_sound = report.is_sound();
    let html = || html::late_page(&report);
    args.report.write(|| report.table(), html)?;
    print(&report, is_sound, args.report.json)?;
    Ok(ExitCode::from(u8::from(!is_sound)))
}

/// The runs of all crowds at one node.
async fn run(args: &LateArgs, round: u32, readers: Option<u32>) -> anyhow::Result<Vec<LateRun>> {
    let readers_set = readers.map(|readers| (READERS, readers.to_string()));
    let cache_set = args.cache.map(|bytes| (CACHE, bytes.to_string()));
    let environment: Vec<_> = readers_set.into_iter().chain(cache_set).collect();
    let log = args.log.as_ref().map(KafkaLogs::next_option);
    let node = args.node.start(log, &environment)?;
    let wanted = Wanted {
        namespace: "bench-late".to_owned(),
        topics: args.subscribers,
        bytes: args.backlog,
        size: args.size as usize,
    };
    let backlog = Backlog::store(&node.url(), &wanted).await?;
    let crowd = Crowd {
        target: node.url(),
        host: None,
        connections: args.connections,
        backlog,
    };
    let mut runs = Vec::new();
    for number in 1..=args.crowds.get() {
        let before = Used::of(&node)?;
        let caught_up = crowd.catch_up().await?;
        let after = Used::of(&node)?;
        let stored_bytes = crowd.backlog.messages() * u64::from(args.size);
        let times = |read: [f64; 2]| (read[1] - read[0]) / stored_bytes.max(1) as f64;
        let tower = after.tower.zip(before.tower);
        runs.push(LateRun {
            round,
            readers,
            crowd: number,
            stored_bytes,
            read_times: times([before.read, after.read]),
            storage_read_times: times([before.storage_read, after.storage_read]),
            node_cpu_us: after.node.since(&before.node).cpu_us,
            tower_cpu_us: tower.map(|(after, before)| after.since(&before).cpu_us),
            sound: caught_up.is_whole(&crowd.backlog),
            caught_up,
        });
    }
    Ok(runs)
}

/// Use and reads of a node so far.
struct Used {
    node: Usage,
    tower: Option<Usage>,
    read: f64,
    storage_read: f64,
}

impl Used {
    fn of(node: &Measured) -> anyhow::Result<Used> {
        let [for_clients, from_storage] = READ_METRICS;
        let sum = |node: &OwnNode, metric| {
            let sums = counters::sums(node.http(), &[metric]).context("the node's metrics")?;
            anyhow::Ok(sums.iter().sum())
        };
        Ok(Used {
            node: node.front().usage()?,
            tower: node.tower().map(OwnNode::usage).transpose()?,
            read: sum(node.front(), for_clients)?,
            storage_read: sum(node.storage(), from_storage)?,
        })
    }
}
