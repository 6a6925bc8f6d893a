//! The proof: harnesses that hurt the real binary, each by one command with a count and a seed.
//!
//! `cargo xtask prove kill --rounds 200 --seed 7` runs one of these tests in a release build, as
//! `AIRMAIL_PROVE_*` says. Without these variables a test is the sample that continuous integration
//! runs: the same code, a few rounds.
//!
//! - `kill`: `kill -9` under load, at random moments, with publishers and subscribers left running.
//! - `cluster`: nodes of a cluster killed, stopped, cut off, drained, under publishers and subscribers.
//! - `branches`: the inner nodes of a wide tree killed one after the other, and started again.
//! - `expiry`: messages that live for 200 ms, for subscribers that are live, stand still and come late.
//! - `isolation`: what goes on at half load while a subscriber, a gateway or a link stands still, or many catch up.
//! - `flip`: one bit flipped, or one file cut short, anywhere in a data directory.
//! - `full`: a disk that fills up under load, and has room again.
//! - `moving`: namespaces moved to another storage under load, and kills of either side meanwhile.
//! - `collect`: brokers and collectors killed while records go from one Kafka cluster to another.
//! - `sync`: an fdatasync that fails under a running node.
//! - `hostile`: restored copies, missing and exchanged files, locks removed, strangers, in combinations.
//! - `mailbox`: `kill -9` of nodes and database under the readers and writers of a queue.
//!
//! A seed gives the same choices again, not the same schedule: processes and threads are real. So a
//! failure keeps the data directory too, and says where.

mod branches;
mod brokers;
mod cluster;
#[cfg(feature = "kafka")]
mod collect;
mod damage;
mod distance;
#[cfg(feature = "test-switches")]
mod expiry;
mod flip;
mod full;
mod hostile;
mod isolation;
mod kill;
mod load;
mod mailbox;
mod moving;
mod nodes;
mod original;
mod reading;
mod stamp;
mod sync;
mod times;
mod victim;

use airmail_testkit::scale;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::ops::Range;
use std::path::Path;
use std::thread;

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    name: &'static str,
    seed: u64,
    first: u64,
    rounds: u64,
}

impl Plan {
    /// Takes the run's settings from the environment; otherwise there are `rounds` rounds.
    pub(crate) fn new(name: &'static str, rounds: u64) -> Plan {
        Plan {
            name,
            seed: scale::prove("SEED").unwrap_or(1),
            first: scale::prove("FIRST").unwrap_or(0),
            rounds: scale::prove("ROUNDS").unwrap_or(rounds),
        }
    }

    /// The numbers of the rounds.
    pub(crate) fn rounds(&self) -> Range<u64> {
        self.first..self.first + self.rounds
    }

    /// The choices of one round: the same whichever rounds went before.
    pub(crate) fn choices(&self, round: u64) -> SmallRng {
        SmallRng::seed_from_u64(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round)
    }

    /// Shows how far it is, where somebody is watching.
    pub(crate) fn tell(&self, round: u64, what: &str) {
        if scale::prove("SEED").is_some() {
            let (name, last) = (self.name, self.rounds().end);
            scale::say(&format!("prove {name}: round {round} of {last}: {what}\n"));
        }
    }

    /// Watches a round: prints its settings and keeps its directory if it fails.
    pub(crate) fn watch<'a>(&self, round: u64, directory: &'a Path) -> Watch<'a> {
        Watch {
            plan: *self,
            round,
            directory,
        }
    }
}

/// Says how to run a round again, if it fails, and keeps what it was run on.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    plan: Plan,
    round: u64,
    directory: &'a Path,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let Plan { name, seed, .. } = self.plan;
        let (round, shards) = (self.round, scale::shards());
        let kept = std::env::temp_dir().join(format!("airmail-failed-{name}-{seed}-{round}"));
        // Of an earlier run of the same round.
        std::fs::remove_dir_all(&kept).ok();
        let kept = match std::fs::rename(self.directory, &kept) {
            Ok(()) => kept,
            Err(_) => self.directory.to_owned(),
        };
        scale::say(&format!(
            "prove {name}: FAILED in round {round} of seed {seed}\n\
             again: cargo xtask prove {name} --seed {seed} --first {round} --rounds 1 --shards {shards}\n\
             data:  {}\n",
            kept.display()
        ));
    }
}
