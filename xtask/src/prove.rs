//! `cargo xtask prove`: hurts the real binary, or watches it for long, as often as one asks.
//!
//! `kill`, `cluster`, `branches`, `isolation`, `expiry`, `flip`, `hostile`, `full`, `sync`, `mailbox` and `collect` are tests of
//! `crates/airmail/tests/end_to_end/proof`, here in a release build with a count and a seed; continuous
//! integration runs a little of each with all other tests. `soak` is a measurement, and is only here.

mod soak;

use crate::kafka;
use crate::process::{self, cargo};
use crate::test::TEST_SWITCHES;
use crate::workspace;
use std::process::Command;

/// The proof to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Kill the node under load, and lose, reorder and repeat nothing [rounds: 200].
    Kill(Rounds),
    /// Flip a bit or cut a file, and lose no more than was hit, and tell it [rounds: 1000].
    Flip(Rounds),
    /// Restore older copies, remove and exchange files and locks, fill the node with strangers, in random
    /// combinations: nothing is lost in silence [rounds: 300].
    Hostile(Rounds),
    /// Fill the disk under load: refused, served, healed [rounds: 10]. Mounts a small file system.
    Full(Rounds),
    /// Let fdatasync fail: no ack of an unsynced message [rounds: 20]. Needs strace.
    Sync(Rounds),
    /// Kill nodes and database under 64 readers and 16 writers of a queue: all that was acknowledged
    /// is handed out, none twice [seconds: 60]. Needs PostgreSQL.
    Mailbox(Kills),
    /// Kill, stop, cut off, drain and join nodes of a cluster under load, and lose, reorder and repeat nothing
    /// [rounds: 120]. Needs root for cuts.
    Cluster(Faults),
    /// Move namespaces from the disk to another storage under load, kill the node and brokers meanwhile, and lose, reorder
    /// and repeat nothing [rounds: 20].
    Move(Moves),
    /// Stop a subscriber, stop and cut off a gateway, let 10,000 subscribers catch up, and leave others at half load
    /// as they are [rounds: 15]. Needs root for cuts.
    Isolation(Beside),
    /// Publish 10 million messages that live for 200 ms, with as many that live for ever, at one node and at gateways whose
    /// clocks are wrong: none is handed over too old, nor withheld without need [rounds: 1].
    Expiry(Judged),
    /// Put the regions of a tree far from its root: what is published uses the way, and nothing goes down it twice.
    Distance(Judged),
    /// Kill a branch of a tree of 81 nodes every 10 s, start it again 15 s later, and lose, reorder and repeat nothing
    /// [rounds: 60].
    Branches(Judged),
    /// Kill brokers and collectors while records are collected, and lose and reorder nothing [minutes: 10].
    Collect(Minutes),
    /// Run at a part of the highest load: memory must stay flat, and latency is reported.
    Soak(soak::Options),
}

#[derive(Debug, clap::Args)]
struct Rounds {
    /// Number of rounds.
    #[arg(long)]
    rounds: Option<u64>,
    /// Seed of all choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first round's number: to repeat one that failed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Shards of every node.
    #[arg(long, default_value_t = 1)]
    shards: u16,
}

#[derive(Debug, clap::Args)]
struct Kills {
    /// Time in seconds, in place of a number of rounds; the last one is finished.
    #[arg(long, conflicts_with = "rounds")]
    seconds: Option<u64>,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Debug, clap::Args)]
struct Faults {
    /// Kinds of nodes: `roles` are two pilots, two copilots and a tower; `tree` is a root, two nodes below it and four
    /// below those; `kafka` are two pilots, two copilots and two towers on three brokers.
    #[arg(long, default_value = "roles", value_parser = ["roles", "tree", "kafka"])]
    mode: String,
    /// Fail if clients wait for longer than they may, too.
    #[arg(long)]
    judge_times: bool,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Debug, clap::Args)]
struct Moves {
    /// Storage that namespaces are moved to.
    #[arg(long, default_value = "disk", value_parser = ["disk", "kafka"])]
    to: String,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Debug, clap::Args)]
struct Beside {
    /// Storage of the logs: `disk`, of one tower; `kafka`, three brokers with two towers, where a partition that
    /// acknowledges nothing is beside the others, too.
    #[arg(long, default_value = "disk", value_parser = ["disk", "kafka"])]
    mode: String,
    #[command(flatten)]
    judged: Judged,
}

#[derive(Debug, clap::Args)]
struct Judged {
    /// Fail if the others are slower than they may be, too.
    #[arg(long)]
    judge_times: bool,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Debug, clap::Args)]
struct Minutes {
    /// Time in minutes.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Seed of all choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Default time for which nodes and database are killed.
const KILLS_SECONDS: u64 = 60;

/// Runs it; fails if the proof fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    match &options.what {
        What::Cluster(faults) => {
            let judge = faults.judge_times.then_some(("JUDGE", 1));
            let mode = match &*faults.mode {
                "tree" => Some(("TREE", 1)),
                "kafka" => Some(("KAFKA", 1)),
                _ => None,
            };
            let more = judge.into_iter().chain(mode);
            if faults.mode == "kafka" {
                kafka::bring(&workspace::root().join("target/tools/servers"))?;
            }
            harness_with("cluster", Extent::Rounds(120), &faults.rounds, more)
        }
        What::Move(moves) => {
            let kafka = (moves.to == "kafka").then_some(("KAFKA", 1));
            if kafka.is_some() {
                kafka::bring(&workspace::root().join("target/tools/servers"))?;
            }
            harness_with("moving", Extent::Rounds(20), &moves.rounds, kafka)
        }
        What::Distance(judged) => {
            let judge = judged.judge_times.then_some(("JUDGE", 1));
            harness_with("distance", Extent::Rounds(1), &judged.rounds, judge)
        }
        What::Expiry(judged) => {
            let judge = judged.judge_times.then_some(("JUDGE", 1));
            harness_with("expiry", Extent::Rounds(1), &judged.rounds, judge)
        }
        What::Branches(judged) => {
            let judge = judged.judge_times.then_some(("JUDGE", 1));
            harness_with("branches", Extent::Rounds(60), &judged.rounds, judge)
        }
        What::Isolation(Beside { mode, judged }) => {
            let judge = judged.judge_times.then_some(("JUDGE", 1));
            let on_kafka = (mode == "kafka").then_some(("KAFKA", 1));
            if on_kafka.is_some() {
                kafka::bring(&workspace::root().join("target/tools/servers"))?;
            }
            let more = judge.into_iter().chain(on_kafka);
            harness_with("isolation", Extent::Rounds(15), &judged.rounds, more)
        }
        What::Kill(rounds) => harness("kill", Extent::Rounds(200), rounds),
        What::Flip(rounds) => harness("flip", Extent::Rounds(1000), rounds),
        What::Hostile(rounds) => harness("hostile", Extent::Rounds(300), rounds),
        What::Full(rounds) => harness("full", Extent::Rounds(10), rounds),
        What::Sync(rounds) => harness("sync", Extent::Rounds(20), rounds),
        What::Mailbox(kills) => {
            let seconds = kills.seconds.unwrap_or(KILLS_SECONDS);
            harness("mailbox", Extent::Seconds(seconds), &kills.rounds)
        }
        What::Collect(minutes) => collect(minutes),
        What::Soak(options) => soak::run(options),
    }
}

/// Length of a proof.
#[derive(Clone, Copy, Debug)]
enum Extent {
    Rounds(u64),
    Seconds(u64),
}

/// Runs one test of the proof, as many rounds as asked for.
fn harness(name: &str, usual: Extent, rounds: &Rounds) -> anyhow::Result<()> {
    harness_with(name, usual, rounds, [])
}

/// The same, with one more setting.
fn harness_with(
    name: &str,
    usual: Extent,
    rounds: &Rounds,
    more: impl IntoIterator<Item = (&'static str, u64)>,
) -> anyhow::Result<()> {
    let mut command = test(name);
    let extent = match rounds.rounds.map_or(usual, Extent::Rounds) {
        Extent::Rounds(rounds) => ("ROUNDS", rounds),
        Extent::Seconds(seconds) => ("SECONDS", seconds),
    };
    let settings = [extent, ("SEED", rounds.seed), ("FIRST", rounds.first)];
    for (setting, value) in settings.into_iter().chain(more) {
        command.env(format!("AIRMAIL_PROVE_{setting}"), value.to_string());
    }
    command.env("AIRMAIL_TEST_SHARDS", rounds.shards.to_string());
    process::run(&mut command)
}

/// Runs the proof of the collector, for as long as asked for, with brokers that are brought first.
fn collect(minutes: &Minutes) -> anyhow::Result<()> {
    kafka::bring(&workspace::root().join("target/tools/servers"))?;
    let mut command = test("collect");
    command.env("AIRMAIL_PROVE_MINUTES", minutes.minutes.to_string());
    command.env("AIRMAIL_PROVE_SEED", minutes.seed.to_string());
    process::run(&mut command)
}

fn test(name: &str) -> Command {
    let test = format!("proof::{name}::");
    let mut command = cargo(&["test", "--release", "--locked", "-p", "airmail"]);
    command.env("AIRMAIL_TEST_TOOLS", workspace::root().join("target/tools"));
    command.arg(TEST_SWITCHES);
    command.args(["--test", "end_to_end", &test, "--", "--nocapture"]);
    command
}
