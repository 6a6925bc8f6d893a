//! The log alone: the journal, driven through its contract over the simulated disk.
//!
//! Producers append and try again, readers come and go, the disk and the process fail. Smaller than
//! [`crate::world`] and so quicker to find faults below the shard.

mod answers;
mod clock;
mod directory;
mod heal;
mod line;
mod process;
mod reader;
mod upheaval;

use crate::Report;
use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::files::SimFiles;
use crate::invariants::{Checked, Violation};
use crate::plant::Plant;
use crate::swarm::Swarm;
use crate::tuning;
use crate::weather::{Pace, Weather};
use airmail_log::journal::JournalStorage;
use airmail_log::{Call, Completion, LogSpec, LogStorage, ReaderId, Soundness, Tag};
use airmail_model::{
    AppendTime, Durability, Incarnation, Lane, LogId, LogIndex, MapEpoch, Mono, NamespaceId, Now,
    Provisions, Retention, Sequence, StorageName, Synced, Wall,
};
use line::Line;
use reader::Reader;
use std::collections::{BTreeMap, BTreeSet};

const PACE: Pace = Pace {
    usual_micros: 800,
    slow_micros: 100_000,
};

/// One log under test.
#[derive(Clone, Debug)]
struct LogState {
    log: LogId,
    spec: LogSpec,
    opened: bool,
    incarnation: Incarnation,
    /// Its earlier lives, which are over for good.
    dead: BTreeSet<Incarnation>,
    /// It has been deleted, and is not yet wanted again.
    absent: bool,
    /// Its life may be over: it has been asked to be deleted, or does not outlive the process.
    may_be_new: bool,
    /// Number up to which a trim has been asked for.
    trimmed: Sequence,
    /// A seal has been asked for, so it may be sealed; the call.
    seal: Option<Tag>,
    /// A seal has been answered: it is sealed.
    sealed: bool,
    /// Its durability was below `fsync` at some time.
    weak: bool,
    /// Its retention has changed: what has gone cannot be told from the one in force.
    changed: bool,
    /// Above every number that anyone was told of.
    told: Sequence,
}

impl LogState {
    /// Somebody was told, in answer to a call, that it is sealed: no later one is stored.
    fn be_sealed(&mut self, call: Tag) {
        self.seal = self.seal.filter(|_| self.sealed).or(Some(call));
        self.sealed = true;
    }

    fn may_shrink(&self) -> bool {
        self.trimmed > Sequence(0) || self.changed || self.spec.retention != Retention::default()
    }
}

/// A call that waits for its answer.
#[derive(Clone, Debug)]
enum Asked {
    Open(usize),
    /// An opening by a spec of an earlier place in log 0, as of one who has slept.
    OpenLate(usize),
    Append {
        line: usize,
    },
    /// An append that is to be refused.
    Doomed {
        line: usize,
    },
    Bounds(usize),
    FindTime {
        log: usize,
        at: AppendTime,
        by: Option<Sequence>,
    },
    Topics {
        log: usize,
    },
    Trim(usize),
    Seal(usize),
    Delete(usize),
}

/// A run of the log alone.
#[derive(Debug)]
pub struct StorageRun {
    chance: Entropy,
    weather: Weather,
    evidence: Evidence,
    storage: Option<JournalStorage<SimFiles>>,
    directory: directory::Directory,
    wake: Option<Mono>,
    down_until: Mono,
    logs: Vec<LogState>,
    lines: Vec<Line>,
    readers: BTreeMap<ReaderId, Reader>,
    /// Those of an earlier process, that go on when their log is open again.
    waiting: Vec<Reader>,
    /// Names of a listing under way.
    listed: Vec<String>,
    calls: BTreeMap<Tag, Asked>,
    /// Calls to logs that have been deleted meanwhile: any answer will do.
    orphans: BTreeSet<Tag>,
    /// Nothing outlives the process.
    volatile: bool,
    /// Highest time that the wall clock has shown while it was right, going on by the monotone clock: while
    /// the process takes it for astray, it goes on so, too, though the clock is set back.
    latest: Now,
    /// Error of the wall clock that the process sees, in microseconds, and the time of its end.
    astray: (i64, Mono),
    /// When the first process was started.
    started: Mono,
    last_tag: u64,
    last_reader: u64,
    plant: Option<Plant>,
    boots: u64,
}

impl StorageRun {
    /// The run of a seed.
    #[must_use]
    pub fn new(seed: u64, plant: Option<Plant>, show: bool) -> StorageRun {
        let mut chance = Entropy::new(seed ^ 0x57_0a6e);
        let mut swarm = Swarm::of(&mut chance);
        let volatile = chance.chance(100_000);
        if volatile {
            // Files that are memory do not rot.
            (swarm.damage, swarm.corrupt) = (0, 0);
        }
        let weather = Weather::new(swarm, 1, &mut chance, plant);
        let mut lanes = Entropy::new(seed ^ 0x6c61_6e65);
        let mut logs: Vec<LogState> = (0..chance.between(1, 4))
            .map(|number| log_state(number, lane(&mut lanes), volatile, &mut chance))
            .collect();
        pair_lanes(&mut logs, &mut lanes);
        let most = if chance.chance(100_000) { 40 } else { 6 };
        let lines = (0..chance.between(1, most))
            .map(|number| Line::new(number, chance.index(logs.len())))
            .collect();
        let start = weather.now;
        StorageRun {
            chance,
            weather,
            evidence: Evidence::new(show),
            storage: None,
            directory: directory::Directory::default(),
            wake: None,
            down_until: Mono(0),
            logs,
            lines,
            readers: BTreeMap::new(),
            waiting: Vec::new(),
            listed: Vec::new(),
            calls: BTreeMap::new(),
            orphans: BTreeSet::new(),
            volatile,
            latest: start,
            astray: (0, Mono(0)),
            started: start.mono,
            last_tag: 0,
            last_reader: 0,
            plant,
            boots: 0,
        }
    }

    /// Runs `steps` steps of faults, then heals.
    ///
    /// # Errors
    /// The first violation.
    pub fn run(mut self, steps: u64) -> Result<Report, Violation> {
        self.evidence
            .note(format_args!("{:?} {:?}", self.weather.swarm, self.logs));
        for _ in 0..steps {
            self.step()?;
        }
        self.heal()?;
        Ok(self.evidence.report(&self.weather.machine))
    }

    fn step(&mut self) -> Checked {
        self.weather
            .pass_time(PACE, &mut self.chance, &mut self.evidence);
        self.lead_astray();
        self.faults()?;
        self.watch_directory();
        if self.storage.is_none() {
            if self.weather.now.mono < self.down_until {
                return Ok(());
            }
            self.boot()?;
        }
        self.work();
        self.turn()
    }

    /// Lets the disk and the journal go on until neither has anything to do now.
    fn turn(&mut self) -> Checked {
        let mut answers = Vec::new();
        let shown = self.shown();
        let (now, before) = (self.weather.now, self.latest);
        let passed = now.mono.since(before.mono).as_micros();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let wall = now.wall.max(Wall(before.wall.0.saturating_add(passed)));
        self.latest = Now { wall, ..now };
        for _ in 0..1_000 {
            self.weather.machine.disk().advance(self.weather.now.mono);
            let Some(storage) = &mut self.storage else {
                return Ok(());
            };
            self.wake = storage.poll(shown, &mut answers);
            let violation = self.weather.machine.disk().take_violation();
            if let Some(violation) = violation {
                return Err(violation);
            }
            let idle = answers.is_empty() && !self.weather.machine.disk().has_done();
            for answer in answers.drain(..) {
                self.note(&answer);
                self.answer(answer)?;
            }
            if idle {
                return Ok(());
            }
        }
        Err(Violation::new(
            "liveness",
            "the journal is never done in one moment",
        ))
    }

    fn note(&mut self, answer: &Completion) {
        match answer {
            Completion::Batch { r, stored } => self.evidence.note(format_args!(
                "{} batch {} base {} numbers {} to {} appended {}",
                self.weather.now.mono.0,
                r.0,
                stored.base,
                stored.extent.first,
                stored.extent.last,
                stored.appended
            )),
            other => self
                .evidence
                .note(format_args!("{} {other:?}", self.weather.now.mono.0)),
        }
    }

    fn tag(&mut self, call: Asked) -> Tag {
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        self.calls.insert(tag, call);
        tag
    }

    fn work(&mut self) {
        match self.chance.below(20) {
            0..=7 => self.publish(),
            8..=9 => self.open_reader(),
            10..=13 => self.feed_reader(),
            14 => self.stop_reader(),
            15..=16 => self.ask(),
            _ => {}
        }
        self.upheave();
        self.send();
    }

    fn ask(&mut self) {
        let log = self.chance.index(self.logs.len());
        let id = self.logs[log].log;
        if !self.logs[log].opened {
            return;
        }
        let trim = self.chance.chance(30_000);
        let (call, at) = if trim {
            (Asked::Trim(log), AppendTime(0))
        } else if self.chance.coin() {
            (Asked::Bounds(log), AppendTime(0))
        } else {
            let back = i64::try_from(self.chance.below(2_000_000)).unwrap_or(0);
            let at = AppendTime(self.weather.now.wall.0 - back);
            let acked = self.evidence.ledger.acked(id, Sequence(0), Sequence::MAX);
            let by = acked
                .filter(|(_, id, _)| !self.evidence.ledger.may_be_missing(*id))
                .find(|(_, _, entry)| entry.acked.is_some_and(|acked| acked.appended >= at));
            let by = by.map(|(sequence, _, _)| sequence);
            (Asked::FindTime { log, at, by }, at)
        };
        let tag = self.tag(call.clone());
        let Some(storage) = &mut self.storage else {
            return;
        };
        match call {
            Asked::Trim(_) => {
                let told = self.logs[log].told;
                let before = Sequence(self.chance.between(1, told.0));
                self.logs[log].trimmed = before.max(self.logs[log].trimmed);
                self.evidence.count(Kind::Trimmed);
                storage.submit(Call::Trim {
                    t: tag,
                    log: id,
                    before,
                });
            }
            Asked::Bounds(_) => storage.submit(Call::Bounds { t: tag, log: id }),
            _ => storage.submit(Call::FindTime {
                t: tag,
                log: id,
                at,
            }),
        }
    }
}

/// Lane of a log.
fn lane(chance: &mut Entropy) -> Lane {
    if chance.coin() {
        Lane::High
    } else {
        Lane::Normal
    }
}

/// Makes some logs the other lane of the one before.
fn pair_lanes(logs: &mut [LogState], chance: &mut Entropy) {
    for pair in logs.chunks_exact_mut(2) {
        if chance.coin() {
            let one = pair[0].log;
            let lane = one.lane.other();
            pair[1].log = LogId { lane, ..one };
        }
    }
}

fn log_state(number: u64, lane: Lane, volatile: bool, chance: &mut Entropy) -> LogState {
    let mut durability = tuning::durability(chance, 4);
    if volatile {
        durability = Synced::Memory;
    }
    let retention = retention(chance);
    let namespace = u32::try_from(number).unwrap_or(0) / 2 + 1;
    LogState {
        log: LogId {
            namespace: NamespaceId(namespace),
            lane,
            index: LogIndex(u16::try_from(number).unwrap_or(0) % 2),
        },
        spec: LogSpec {
            durability: Durability::single(durability),
            retention,
            epoch: MapEpoch(1),
            as_of: Sequence(1),
            storage: StorageName::FIRST,
            provisions: Provisions::NONE,
            soundness: Soundness::default(),
        },
        opened: false,
        incarnation: Incarnation(0),
        dead: BTreeSet::new(),
        absent: false,
        may_be_new: volatile,
        trimmed: Sequence(0),
        seal: None,
        sealed: false,
        weak: durability < Synced::Fsync,
        changed: false,
        told: Sequence(1),
    }
}

fn retention(chance: &mut Entropy) -> Retention {
    tuning::retention(chance, 5, 50..=5_000, 1_000..=100_000)
}
