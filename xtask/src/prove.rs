//! `cargo xtask prove`: hurts the real binary, or watches it for long, as often as one asks.
//!
//! `kill`, `flip`, `full` and `sync` are tests of `crates/airmail/tests/end_to_end/proof`, here in a
//! release build with a count and a seed; continuous integration runs a few rounds of each with all
//! other tests. `soak` is a measurement, and is only here.

mod soak;

use crate::process::{self, cargo};

/// What to prove.
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
    /// Fill the disk under load: refused, served, healed [rounds: 10]. Mounts a small file system.
    Full(Rounds),
    /// Let fdatasync fail: no ack of what was not synced [rounds: 20]. Needs strace.
    Sync(Rounds),
    /// Run at a part of the highest load: memory must stay flat, and latency is reported.
    Soak(soak::Options),
}

#[derive(Debug, clap::Args)]
struct Rounds {
    /// How many rounds.
    #[arg(long)]
    rounds: Option<u64>,
    /// What all choices follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first round's number: to repeat one that failed.
    #[arg(long, default_value_t = 0)]
    first: u64,
}

/// Runs it; fails if what was to be proven does not hold.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    match &options.what {
        What::Kill(rounds) => harness("kill", 200, rounds),
        What::Flip(rounds) => harness("flip", 1000, rounds),
        What::Full(rounds) => harness("full", 10, rounds),
        What::Sync(rounds) => harness("sync", 20, rounds),
        What::Soak(options) => soak::run(options),
    }
}

/// Runs one test of the proof, as many rounds as asked for.
fn harness(name: &str, usual: u64, rounds: &Rounds) -> anyhow::Result<()> {
    let test = format!("proof::{name}::");
    let mut command = cargo(&["test", "--release", "--locked", "-p", "airmail"]);
    command.args(["--test", "end_to_end", &test, "--", "--nocapture"]);
    for (setting, value) in [
        ("ROUNDS", rounds.rounds.unwrap_or(usual)),
        ("SEED", rounds.seed),
        ("FIRST", rounds.first),
    ] {
        command.env(format!("AIRMAIL_PROVE_{setting}"), value.to_string());
    }
    process::run(&mut command)
}
