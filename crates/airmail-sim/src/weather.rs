//! The weather of a run: the clocks, the machine with its disk, and the faults that the seed has in store
//! for them, until [`Weather::clear_up`] ends them.
//!
//! Every stage runs in one, so that a fault means the same in all. The cost that a fault may have
//! is defined by the stage, which knows the logs and their durability; its time is drawn here, from
//! the stage's own [`Entropy`], in one order.
//!
//! A file is hit once in a run at most ([`Weather::corrupt`]), and the power never fails in a run in which one
//! is hit ([`Weather::keeps_power`]).

use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::files::{Disk, Machine};
use crate::plant::Plant;
use crate::spells::Spells;
use crate::swarm::Swarm;
use airmail_model::{LogId, Mono, Now, Wall};
use std::time::Duration;

/// Times of both clocks when a run begins.
pub(crate) const START: Now = Now {
    mono: Mono(1_000_000_000),
    wall: Wall(1_800_000_000_000_000),
};
/// Rate of steps that take longer than usual, in parts of a million.
const SLOW_STEPS: u32 = 20_000;
/// Farthest that the clocks leap ahead, in microseconds: an hour.
const LEAP_MICROS_MAX: u64 = 3_600_000_000;
/// Distance by which the wall clock is set back, in microseconds.
const BACK_MICROS: i64 = 5_000_000;

/// Longest durations of a stage's steps.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Longest duration nearly always, in microseconds.
    pub usual_micros: u64,
    /// Longest duration now and then, in microseconds.
    pub slow_micros: u64,
}

/// Ways in which a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Ends with its machine: unsynced writes are at hazard.
    PowerCut,
    /// Ends without warning; writes that it handed over are kept.
    Killed,
    /// Ends in good order.
    Stopped,
}

impl Ending {
    /// Notes that a process has stopped by itself; gives how that counts. One whose files have `failed` it
    /// gives up in the end, and that is no clean stop.
    pub fn of_stopped(failed: bool, evidence: &mut Evidence) -> Ending {
        evidence.note(format_args!("stopped"));
        if failed {
            evidence.count(Kind::StoppedDirty);
            return Ending::Killed;
        }
        Ending::Stopped
    }
}

/// The process that ends, as its stage knows it.
#[derive(Clone, Debug)]
pub struct Casualty {
    /// It was running.
    pub ran: bool,
    /// Its files have failed it at some time.
    pub failed: bool,
    /// The logs below `fsync`, now or at some time.
    pub weak: Vec<LogId>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Weather {
    /// The faults of the seed, and how often each comes.
    pub swarm: Swarm,
    /// The true time.
    pub now: Now,
    /// The machine on which the process runs.
    pub machine: Machine,
    spells: Spells,
    /// A file has been hit.
    hit: bool,
}

impl Weather {
    /// The weather at the beginning of a run with these faults, on a machine with so many disks.
    #[must_use]
    pub fn new(swarm: Swarm, disks: usize, chance: &mut Entropy, plant: Option<Plant>) -> Weather {
        let lies = plant == Some(Plant::AckBeforeSync);
        let disks = (0..disks).map(|_| Disk::new(chance.fork(), swarm.clone(), lies));
        let machine = Machine::new(disks.collect());
        Weather {
            swarm,
            now: START,
            machine,
            spells: Spells::default(),
            hit: false,
        }
    }

    /// Lets a step's time pass: now and then much of it, or the clocks leap, or the wall clock is set back.
    pub fn pass_time(&mut self, pace: Pace, chance: &mut Entropy, evidence: &mut Evidence) {
        let mut micros = chance.between(1, pace.usual_micros);
        if chance.chance(SLOW_STEPS) {
            micros = chance.between(1, pace.slow_micros);
        }
        if chance.chance(self.swarm.leap) {
            evidence.count(Kind::ClockLeap);
            micros = chance.between(1, LEAP_MICROS_MAX);
        }
        self.later(Duration::from_micros(micros));
        if chance.chance(self.swarm.leap) {
            // The wall clock may be set back; the log's times may not.
            evidence.count(Kind::ClockBack);
            self.now.wall.0 -= BACK_MICROS;
        }
    }

    /// Moves both clocks on.
    pub fn later(&mut self, by: Duration) {
        self.now.mono = self.now.mono.plus(by);
        self.now.wall.0 += i64::try_from(by.as_micros()).unwrap_or(0);
    }

    /// Draws whether the process is to end in this step, and how.
    pub const fn ending(&self, chance: &mut Entropy) -> Option<Ending> {
        if chance.chance(self.swarm.power_cut) {
            Some(Ending::PowerCut)
        } else if chance.chance(self.swarm.killed) {
            Some(Ending::Killed)
        } else if chance.chance(self.swarm.stopped) {
            Some(Ending::Stopped)
        } else {
            None
        }
    }

    /// Ends a process: what its logs may lose by that is excused, and the disk keeps what it would.
    pub fn end(&self, ending: Ending, process: &Casualty, evidence: &mut Evidence) {
        let power = ending == Ending::PowerCut;
        let clean = ending == Ending::Stopped;
        evidence.ledger.expiry.ended();
        evidence.note(format_args!("ended, power cut: {power}, clean: {clean}"));
        evidence.count(match ending {
            Ending::PowerCut => Kind::PowerCut,
            Ending::Killed => Kind::Killed,
            Ending::Stopped => Kind::StoppedClean,
        });
        if !clean && (process.ran || power) {
            // What a failing file had only in the cache is written once more, elsewhere; a kill in
            // between takes it: two faults at once are beyond `os`.
            let hazard = power || process.failed;
            evidence.ledger.crash(hazard, &process.weak);
        }
        for mut disk in self.machine.disks() {
            if power {
                disk.cut_power();
            } else {
                disk.kill();
            }
        }
    }

    /// Damages a byte of a stored batch, if this step is to.
    pub fn damage(&self, chance: &mut Entropy, evidence: &mut Evidence) {
        if !chance.chance(self.swarm.damage) {
            return;
        }
        let mut disk = self.machine.any_disk(chance);
        let hit = disk.damage(&mut chance.fork());
        drop(disk);
        if let Some(id) = hit {
            evidence.note(format_args!("damaged message {}", id.0));
            evidence.ledger.damage([id]);
        }
    }

    /// Hits a file, if this step is to, once in a run. Gives whether it was a checkpoint: where logs stood
    /// after a clean stop is in the last one alone, and by the one before, those below `fsync` go on above
    /// their reservations.
    pub fn corrupt(&mut self, chance: &mut Entropy, evidence: &mut Evidence) -> bool {
        if !chance.chance(self.swarm.corrupt) {
            return false;
        }
        let mut disk = self.machine.any_disk(chance);
        let hit = disk.corrupt(&mut chance.fork());
        drop(disk);
        let Some(hit) = hit else {
            return false;
        };
        evidence.note(format_args!("corrupted: {hit:?}"));
        evidence.ledger.damage(hit.hit);
        self.swarm.corrupt = 0;
        self.hit = true;
        matches!(hit.kind, Kind::CheckpointFlipped | Kind::CheckpointCut)
    }

    /// Whether the power stays on: where a file is hit, the ends of the others must be known.
    #[must_use]
    pub const fn keeps_power(&self) -> bool {
        self.hit || self.swarm.corrupt > 0
    }

    /// Lets bad spells of the disk end, and others begin.
    pub fn pass_spells(&mut self, chance: &mut Entropy, evidence: &mut Evidence) {
        let Weather {
            swarm,
            now,
            machine,
            spells,
            ..
        } = self;
        spells.pass(now.mono, swarm, chance, machine, evidence);
    }

    /// Ends all faults. Gives how the process is to end once more, for the last time.
    pub fn clear_up(&mut self, chance: &mut Entropy) -> Ending {
        let power = chance.coin() && !self.keeps_power();
        self.swarm = Swarm::calm();
        self.spells.break_up(&self.machine);
        if power {
            Ending::PowerCut
        } else {
            Ending::Killed
        }
    }
}
