//! The process and its faults: starting, stopping, being killed, losing the power, a full disk.

use super::directory::Directory;
use super::{Asked, LogState, StorageRun};
use crate::census::Kind;
use crate::invariants::{Checked, Violation};
use airmail_log::journal::{Reason, check};
use airmail_log::{Call, LogStorage};
use airmail_model::{Durability, LogId};
use std::time::Duration;

/// One of so many starts is preceded by a check of all files.
const CHECKED_STARTS: u64 = 3;

impl StorageRun {
    /// Lets what the seed has in store happen.
    pub(super) fn faults(&mut self) -> Checked {
        if self.chance.chance(self.swarm.power_cut) {
            self.crash(true);
        } else if self.chance.chance(self.swarm.killed) {
            self.crash(false);
        } else if self.chance.chance(self.swarm.stopped) {
            self.stop()?;
        }
        if self.chance.chance(self.swarm.damage) {
            let mut chance = self.chance.fork();
            let hit = self.machine.disk().damage(&mut chance);
            if let Some(id) = hit {
                self.trace.note(format_args!("damaged message {}", id.0));
                self.ledger.damaged.insert(id);
            }
        }
        if self.chance.chance(self.swarm.corrupt) {
            self.corrupt();
        }
        self.spells.pass(
            self.now.mono,
            &self.swarm,
            &mut self.chance,
            &self.machine,
            &mut self.trace,
            &mut self.census,
        );
        Ok(())
    }

    /// A file is hit, once in a run.
    fn corrupt(&mut self) {
        let mut chance = self.chance.fork();
        let Some(hit) = self.machine.disk().corrupt(&mut chance) else {
            return;
        };
        self.trace.note(format_args!("corrupted: {hit:?}"));
        self.ledger.damaged.extend(hit.hit);
        if matches!(hit.kind, Kind::CheckpointFlipped | Kind::CheckpointCut) {
            // Where logs stood after a clean stop is in the last one alone; by the one before they
            // go on above their reservations.
            let weak = self.logs.iter().filter(|state| state.weak);
            self.ledger.bereft.extend(weak.map(|state| state.log));
        }
        self.swarm.corrupt = 0;
        self.corrupted = true;
    }

    /// Whether the power stays on: where a file is hit, the ends of the others must be known.
    pub(super) fn keeps_power(&self) -> bool {
        self.corrupted || self.swarm.corrupt > 0
    }

    /// The process ends without warning; with `power`, the machine too.
    pub(super) fn crash(&mut self, power: bool) {
        self.end(power, false);
    }

    /// The process is no more. After a clean end everything that it took is held.
    fn end(&mut self, power: bool, clean: bool) {
        self.trace
            .note(format_args!("ended, power cut: {power}, clean: {clean}"));
        self.census.count(match (power, clean) {
            (true, _) => Kind::PowerCut,
            (false, true) => Kind::StoppedClean,
            (false, false) => Kind::Killed,
        });
        if !clean && (self.storage.is_some() || power) {
            let weak = self.logs.iter().filter(|state| state.weak);
            let weak: Vec<LogId> = weak.map(|state| state.log).collect();
            // What a failing file had only in the cache is written once more, elsewhere; a kill in
            // between takes it: two faults at once are beyond `os`.
            let failed = self.machine.disk().failures() > 0 || self.directory.withheld_once;
            let hazard = power || failed;
            self.ledger.crash(hazard, &weak);
        }
        if power {
            self.machine.disk().cut_power();
        } else {
            self.machine.disk().kill();
        }
        if self.volatile {
            self.machine.disk().wipe();
            (0..self.logs.len()).for_each(|log| self.forget(log));
        }
        self.down();
    }

    fn down(&mut self) {
        self.storage = None;
        self.directory = Directory::default();
        self.calls.clear();
        self.orphans.clear();
        self.listed.clear();
        for state in &mut self.logs {
            (state.opened, state.absent) = (false, false);
        }
        for line in &mut self.lines {
            line.forget_answers();
        }
        let readers = std::mem::take(&mut self.readers);
        self.waiting
            .extend(readers.into_values().filter(|reader| !reader.stopping));
        if self.volatile {
            self.waiting.clear();
        }
        let pause = Duration::from_micros(self.chance.below(5_000));
        self.down_until = self.now.mono.plus(pause);
    }

    /// Starts the process on what the disk has.
    pub(super) fn boot(&mut self) -> Checked {
        self.boots += 1;
        self.check_sound()?;
        let files = self.machine.boot();
        let mut config = crate::tuning::journal(&mut self.chance.fork(), self.plant);
        if self.volatile {
            config.new_incarnations = true;
            config.strongest = Durability::Memory;
            // In memory nothing is known of the time before: the clock is right at a start.
            self.astray.0 = 0;
        }
        self.census.count(Kind::Started);
        match airmail_log::journal::JournalStorage::open(files, config, self.shown()) {
            Ok(storage) => self.storage = Some(storage),
            Err(error) => {
                let detail = format!("start {} failed: {error}", self.boots);
                return Err(Violation::new("G1 what was written can be opened", detail));
            }
        }
        self.trace.note(format_args!("start {}", self.boots));
        for log in 0..self.logs.len() {
            self.open_log(log);
        }
        Ok(())
    }

    /// Where no file was hit, `airmail check` finds nothing, whatever crashes there were; but for a
    /// checkpoint that a power cut tore, and, where reads have failed, an index that could not be read
    /// and was being made anew. What a log has skipped counts as a loss where it is of `fsync`: a run in
    /// which it was weaker before is left out. At some starts only, because it reads all files.
    fn check_sound(&self) -> Checked {
        let firm = |state: &LogState| state.weak && state.spec.durability == Durability::Fsync;
        let hit = self.logs.iter().any(firm)
            || self.keeps_power()
            || self.swarm.damage > 0
            || !self.ledger.damaged.is_empty();
        if hit || !self.boots.is_multiple_of(CHECKED_STARTS) {
            return Ok(());
        }
        let violation = |detail| Err(Violation::new("G7 what is not damaged is sound", detail));
        let unread = self.machine.disk().census().get(Kind::ReadFailed) > 0;
        let allowed = |reason| match reason {
            Reason::Checkpoint => true,
            Reason::Index | Reason::IndexMissing => unread,
            _ => false,
        };
        match check(&mut self.machine.boot()) {
            Ok(report) => {
                let mut problems = report.problems.iter();
                let found = problems.find(|one| !allowed(one.reason));
                found.map_or(Ok(()), |found| {
                    violation(format!("before start {}: {found:?}", self.boots))
                })
            }
            Err(error) => violation(format!("before start {}: {error}", self.boots)),
        }
    }

    pub(super) fn open_log(&mut self, log: usize) {
        let tag = self.tag(Asked::Open(log));
        let state = &self.logs[log];
        if let Some(storage) = &mut self.storage {
            storage.submit(Call::Open {
                t: tag,
                log: state.log,
                spec: state.spec,
            });
        }
    }

    /// The process ends in good order, or is killed if it does not get there.
    pub(super) fn stop(&mut self) -> Checked {
        let shown = self.shown();
        let Some(storage) = &mut self.storage else {
            return Ok(());
        };
        self.trace.note(format_args!("stop"));
        storage.close(shown);
        for _ in 0..2_000 {
            self.turn()?;
            if self
                .storage
                .as_ref()
                .is_some_and(|storage| storage.is_closed())
            {
                self.trace.note(format_args!("stopped"));
                // A journal whose files fail gives up in the end; that is no clean stop.
                let failed = self.machine.disk().failures() > 0 || self.directory.withheld_once;
                let clean = !failed;
                if !clean {
                    self.census.count(Kind::StoppedDirty);
                }
                self.end(false, clean);
                return Ok(());
            }
            self.now.mono = self.now.mono.plus(Duration::from_micros(500));
            self.now.wall.0 += 500;
        }
        self.crash(false);
        Ok(())
    }
}
