//! `cargo xtask test`: brings the tests' tools, then runs all tests: cargo's, then Maven's.
//!
//! The counts that a test runs at are small by default, for continuous integration; the options
//! here ask for more. They reach the tests as `AIRMAIL_TEST_*`. Without `--shards`, `--apart`, `--tree` and `--kafka`
//! nodes are whole, have one shard and their logs themselves, and samples of the tests are run once more: with several
//! shards, with every node in two, with every node as a leaf of a tree, and with all logs on Kafka.

use crate::maven;
use crate::overseen;
use crate::parts::Parts;
use crate::process::{self, cargo};
use crate::tools::{Tools, Without};
use std::process::Command;

/// Feature with which `airmail` is built for tests, for options that only tests want. It is the
/// same everywhere, so that nothing is compiled a second time.
pub(crate) const TEST_SWITCHES: &str = "--features=airmail/test-switches";
/// The same for the whole workspace, with the shell on Kafka's client, which has tests of its own.
pub(crate) const WORKSPACE_SWITCHES: &str =
    "--features=airmail/test-switches,airmail-log-kafka/kafka";

/// The amount of testing.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Number of seeds of the simulator to run after the tests.
    #[arg(long)]
    seeds: Option<u64>,
    /// Lines of a log file to publish, read back and compare.
    #[arg(long)]
    lines: Option<u64>,
    /// Times to kill the server with publisher and subscriber left running.
    #[arg(long)]
    kills: Option<u64>,
    /// Size of the backlog that a late subscriber reads, in MiB.
    #[arg(long)]
    backlog_mib: Option<u64>,
    /// Leave out the tests that want this: they say so, loudly, and nothing is shown by them. A tool
    /// that is not there and not left out is a failure.
    #[arg(long, value_enum, value_delimiter = ',')]
    without: Vec<Without>,
    /// Shards of every node: only tests that start one are run then.
    #[arg(long)]
    shards: Option<u16>,
    /// Make every node two, a gateway and the node that has its logs: only tests that start one are run then.
    #[arg(long, conflicts_with = "tree")]
    apart: bool,
    /// Make every node a leaf of a tree, so many links below the root that has its logs: only tests that start one are
    /// run then.
    #[arg(long, value_name = "LINKS")]
    tree: Option<u64>,
    /// Have the logs of every node on a Kafka of so many brokers: only tests that start one are run then.
    #[arg(long, value_name = "BROKERS")]
    kafka: Option<u64>,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

/// The tests that start nodes, by their binaries.
const WITH_NODES: [&str; 5] = [
    "--test=sdk",
    "--test=raw_grpc",
    "--test=line_protocol",
    "--test=end_to_end",
    "--no-fail-fast",
];

/// Shards of the sample.
const SAMPLE_SHARDS: u16 = 4;

/// Links between a leaf and the root, in the sample of trees.
const SAMPLE_TREE: u64 = 2;

/// Tests of nodes with several shards alone.
const OF_SHARDS: &str = "shards::";

/// The tests of the samples with several shards, apart, and in trees, which are run after all others: names that contain one
/// of these. What they do goes over links; nothing is built again for them.
const SAMPLE: [&str; 13] = [
    "connections::",
    "history::",
    "many_topics::",
    "publishing::",
    "reading::",
    "refusals::",
    "retries::",
    "subscribe::",
    "subscription_ready::",
    "proof::kill::",
    "lines::",
    "restore::",
    "slow::",
];

/// Tests that are of a node's own directory, shards, doors or mailboxes, none of which a gateway or a leaf has: left out where
/// every node is one. Names that contain one of these.
const OF_WHOLE_NODES: [&str; 9] = [
    // Some of the book's commands are about mailboxes.
    "book::every_command",
    "clock::a_",
    "directory::",
    "mailbox",
    "shards::",
    "loopback::where_anyone_may_come",
    "starting::a_command_begun_while",
    "words::a_node_may_be_named",
    "words::what_cannot_be_printed",
];

/// Tests that are of what a disk does, or the node with it: left out where logs are on Kafka.
const OF_A_DISK: [&str; 6] = [
    "giving_back::",
    "proof::",
    "restore::",
    "small_disk::",
    "storages::",
    "usage::whoever_reads_no_further",
];

/// The tests of the sample on Kafka, a dozen or so.
const KAFKA_SAMPLE: [&str; 4] = ["ended::", "lines::", "slow::", "words::a_place_"];

/// Nodes that the tests start. Default: each is one, of one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Nodes {
    shards: Option<u16>,
    is_apart: bool,
    tree: Option<u64>,
    kafka: Option<u64>,
}

/// Brings the tools and runs the tests.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut parts = Parts::of("test");
    let tools = parts.part("tools", || Tools::bring(&options.without))?;
    let all = ["test", "--workspace", WORKSPACE_SWITCHES, "--locked"];
    parts.part("build", || process::run(cargo(&all).arg("--no-run")))?;
    let without: Vec<&str> = options.without.iter().map(|one| one.name()).collect();
    let prepared = |nodes: Nodes| {
        let mut tests = cargo(&all);
        tests.env("AIRMAIL_TEST_TOOLS", tools.directory());
        tests.env("AIRMAIL_TEST_WITHOUT", without.join(","));
        for (name, count) in [
            ("AIRMAIL_TEST_LINES", options.lines),
            ("AIRMAIL_TEST_KILLS", options.kills),
            ("AIRMAIL_TEST_BACKLOG_MIB", options.backlog_mib),
            ("AIRMAIL_TEST_SHARDS", nodes.shards.map(u64::from)),
            ("AIRMAIL_TEST_APART", nodes.is_apart.then_some(1)),
            ("AIRMAIL_TEST_TREE", nodes.tree),
            ("AIRMAIL_TEST_KAFKA", nodes.kafka),
        ] {
            if let Some(count) = count {
                tests.env(name, count.to_string());
            }
        }
        tests
    };
    let nodes = Nodes {
        shards: options.shards,
        is_apart: options.apart,
        tree: options.tree,
        kafka: options.kafka,
    };
    let is_whole = nodes == Nodes::default();
    let mut tests = prepared(nodes);
    if !is_whole {
        tests.args(WITH_NODES);
    } else {
        tests.arg("--no-fail-fast");
    }
    tests.args(&options.filter);
    if nodes.is_apart || nodes.tree.is_some() || nodes.kafka.is_some() {
        let on_kafka = OF_A_DISK.iter().filter(|_| nodes.kafka.is_some());
        let left_out = OF_WHOLE_NODES.iter().chain(on_kafka);
        let left_out = left_out.flat_map(|name| ["--skip", name]);
        tests.arg("--").args(left_out);
    }
    overseen::run(&mut tests, &mut parts)?;
    if is_whole && options.filter.is_none() {
        samples(&prepared, &options.without, &mut parts)?;
    }
    // A filter names tests of cargo's, and Maven's start no node of several shards.
    if options.filter.is_none() && is_whole && !options.without.contains(&Without::Maven) {
        parts.part("Maven", maven::verify)?;
    }
    if let Some(seeds) = options.seeds {
        let simulate = || simulate(seeds);
        parts.part("simulator", simulate)?;
    }
    if !without.is_empty() {
        println!("test: LEFT OUT: whatever wants {}", without.join(", "));
    }
    Ok(())
}

/// Runs the samples with several shards, apart, in trees, and on Kafka.
fn samples(
    prepared: &dyn Fn(Nodes) -> Command,
    without: &[Without],
    parts: &mut Parts,
) -> anyhow::Result<()> {
    let default = Nodes::default();
    let with_shards = Nodes {
        shards: Some(SAMPLE_SHARDS),
        ..default
    };
    let apart = Nodes {
        is_apart: true,
        ..default
    };
    let trees = Nodes {
        tree: Some(SAMPLE_TREE),
        ..default
    };
    let on_kafka = Nodes {
        kafka: Some(1),
        ..default
    };
    let mut all = vec![with_shards, apart, trees];
    if !without.contains(&Without::Kafka) {
        all.push(on_kafka);
    }
    for nodes in all {
        let mut tests = prepared(nodes);
        // All binaries, though few have such tests: with some of them only, cargo would build anew.
        tests.args(["--tests", "--no-fail-fast", "--"]);
        match nodes.kafka {
            Some(_) => tests.args(KAFKA_SAMPLE),
            None => tests.args(SAMPLE),
        };
        if nodes.shards.is_some() {
            tests.arg(OF_SHARDS);
        }
        overseen::run(&mut tests, parts)?;
    }
    Ok(())
}

fn simulate(seeds: u64) -> anyhow::Result<()> {
    let seeds = seeds.to_string();
    let run = [
        "run",
        "--release",
        "--locked",
        "-p",
        "airmail-sim",
        "--",
        "--seeds",
        &seeds,
    ];
    process::run(&mut cargo(&run))
}
