//! Faults of a seed and their rates. Each seed enables some and leaves out others, because a run
//! with every fault at once hides what one alone would show.

use crate::entropy::Entropy;
use std::time::Duration;

/// Rates are in parts of a million, for each operation or each step of the driver.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// A write, sync or fill takes up to this long.
    pub write_delay: Duration,
    /// A read takes up to this long.
    pub read_delay: Duration,
    /// An operation takes a hundred times as long.
    pub stall: u32,
    /// A sync fails.
    pub sync_fails: u32,
    /// A write fails.
    pub write_fails: u32,
    /// A read fails, though the bytes are good.
    pub read_fails: u32,
    /// The disk becomes full, for a while. For each step.
    pub fills_up: u32,
    /// The process is killed; its writes are kept. For each step.
    pub killed: u32,
    /// The power fails; unsynced writes are at hazard. For each step.
    pub power_cut: u32,
    /// The process stops in good order and starts again. For each step.
    pub stopped: u32,
    /// A byte of a stored batch changes. For each step.
    pub damage: u32,
    /// A connection is cut. For each step.
    pub cut: u32,
    /// A message on a connection takes up to this long.
    pub net_delay: Duration,
    /// A subscriber stops consuming for a while. For each step.
    pub sluggish: u32,
    /// A namespace is deleted, once. For each step.
    pub deleted: u32,
    /// Any file at rest is damaged: a bit, or its end. For each step, once in a run.
    pub corrupt: u32,
    /// Every sync fails, for a while. For each step.
    pub ails: u32,
    /// The disk is slow, for a while. For each step.
    pub slows: u32,
    /// A log is sealed. For each step.
    pub sealed: u32,
    /// Durability or retention change. For each step.
    pub updated: u32,
    /// A producer begins anew: with another id, or with a higher epoch. For each step.
    pub restarted: u32,
    /// The clock leaps ahead by up to an hour. For each step.
    pub leap: u32,
    /// A sync is done, and told to be so only after a while.
    pub confirms_late: u32,
    /// A reply of the node takes a while. For each reply.
    pub answers_late: u32,
    /// A copy of all files is made while the process runs. For each step.
    pub copied: u32,
    /// All files are set back to the copy, once. For each step.
    pub restored: u32,
    /// The lock file is removed, or the directory moved away. For each step.
    pub taken: u32,
    /// The wall clock is hours ahead for a while. For each step.
    pub astray: u32,
}

impl Swarm {
    /// The faults of a seed.
    #[must_use]
    pub fn of(chance: &mut Entropy) -> Swarm {
        let mut rate = |high: u64| {
            if chance.coin() {
                u32::try_from(chance.between(high / 20, high)).unwrap_or(0)
            } else {
                0
            }
        };
        let mut swarm = Swarm {
            stall: rate(20_000),
            sync_fails: rate(10_000),
            write_fails: rate(5_000),
            read_fails: rate(10_000),
            fills_up: rate(1_500),
            killed: rate(3_000),
            power_cut: rate(3_000),
            stopped: rate(1_500),
            damage: rate(2_000),
            cut: rate(10_000),
            sluggish: rate(5_000),
            deleted: rate(1_000),
            leap: rate(1_000),
            astray: rate(2_000),
            ails: rate(500),
            slows: rate(500),
            sealed: rate(1_000),
            updated: rate(2_000),
            restarted: rate(3_000),
            taken: rate(2_000),
            ..Swarm::calm()
        };
        swarm.confirms_late = rate(10_000);
        swarm.answers_late = rate(5_000);
        if chance.chance(400_000) {
            (swarm.copied, swarm.restored) = (10_000, 4_000);
        }
        // Damage is allowed to lose what it hits; three seeds of four hold the node to everything.
        if !chance.chance(250_000) {
            swarm.damage = 0;
        }
        if chance.chance(300_000) {
            swarm.one_fault_of_the_medium();
        }
        swarm.write_delay = delay(chance, 3_000);
        swarm.read_delay = delay(chance, 3_000);
        swarm.net_delay = delay(chance, 20_000);
        swarm
    }

    /// Any file may be hit, once; the disk is sound otherwise, so that what may be lost is known.
    fn one_fault_of_the_medium(&mut self) {
        self.corrupt = 6_000;
        self.damage = 0;
        self.power_cut = 0;
        self.sync_fails = 0;
        self.write_fails = 0;
        self.read_fails = 0;
        self.ails = 0;
        self.restored = 0;
    }

    /// The faults that are not of files, nor of the process that has them.
    #[must_use]
    pub const fn without_disks(&self) -> Swarm {
        Swarm {
            cut: self.cut,
            net_delay: self.net_delay,
            sluggish: self.sluggish,
            deleted: self.deleted,
            leap: self.leap,
            updated: self.updated,
            restarted: self.restarted,
            answers_late: self.answers_late,
            ..Swarm::calm()
        }
    }

    /// No faults, no delays: healing.
    #[must_use]
    pub const fn calm() -> Swarm {
        Swarm {
            write_delay: Duration::ZERO,
            read_delay: Duration::ZERO,
            stall: 0,
            sync_fails: 0,
            write_fails: 0,
            read_fails: 0,
            fills_up: 0,
            killed: 0,
            power_cut: 0,
            stopped: 0,
            damage: 0,
            cut: 0,
            net_delay: Duration::ZERO,
            sluggish: 0,
            deleted: 0,
            leap: 0,
            astray: 0,
            corrupt: 0,
            ails: 0,
            slows: 0,
            sealed: 0,
            updated: 0,
            restarted: 0,
            confirms_late: 0,
            answers_late: 0,
            copied: 0,
            restored: 0,
            taken: 0,
        }
    }
}

fn delay(chance: &mut Entropy, micros: u64) -> Duration {
    Duration::from_micros(if chance.chance(200_000) {
        0
    } else {
        chance.between(1, micros)
    })
}
