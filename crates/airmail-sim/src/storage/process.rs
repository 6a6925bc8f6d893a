//! The process and its faults: starting, stopping, being killed, losing the power, a full disk.

use super::directory::Directory;
use super::reader::Reader;
use super::{Asked, LogState, StorageRun};
use crate::census::Kind;
use crate::invariants::{Checked, Violation};
use crate::weather::{Casualty, Ending};
use airmail_log::journal::{Reason, check};
use airmail_log::{Call, LogStorage};
use airmail_model::{LogId, Synced};
use std::time::Duration;

/// Number of starts of which one, on average, is preceded by a check of all files.
const CHECKED_STARTS: u64 = 3;

impl StorageRun {
    /// Lets the seed's faults happen.
    pub(super) fn faults(&mut self) -> Checked {
        match self.weather.ending(&mut self.chance) {
            Some(Ending::Stopped) => self.stop()?,
            Some(ending) => self.end(ending),
            None => {}
        }
        let (chance, evidence) = (&mut self.chance, &mut self.evidence);
        self.weather.damage(chance, evidence);
        if self.weather.corrupt(chance, evidence) {
            evidence.ledger.bereft.extend(weak_logs(&self.logs));
        }
        self.weather.pass_spells(chance, evidence);
        Ok(())
    }

    /// The process is no more. After a clean end everything that it took is held.
    pub(super) fn end(&mut self, ending: Ending) {
        let process = Casualty {
            ran: self.storage.is_some(),
            failed: self.has_failed(),
            weak: weak_logs(&self.logs).collect(),
        };
        self.weather.end(ending, &process, &mut self.evidence);
        if ending != Ending::Stopped {
            let readers = self.readers.values_mut().chain(&mut self.waiting);
            let weak = readers.filter(|reader| self.logs[reader.log].weak);
            weak.for_each(Reader::forget_time);
        }
        if self.volatile {
            self.weather.machine.disk().wipe();
            (0..self.logs.len()).for_each(|log| self.forget(log));
        }
        self.down();
    }

    /// Whether the process's files have failed it, or count as failed.
    fn has_failed(&self) -> bool {
        self.weather.machine.disk().failures() > 0 || self.directory.withheld_once
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
        self.down_until = self.weather.now.mono.plus(pause);
    }

    /// Starts the process on the disk's contents.
    pub(super) fn boot(&mut self) -> Checked {
        self.boots += 1;
        self.check_sound()?;
        let files = self.weather.machine.boot(0);
        let mut config = crate::tuning::journal(&mut self.chance.fork(), self.plant);
        if self.volatile {
            config.new_incarnations = true;
            config.strongest = Synced::Memory;
            // In memory nothing is known of the time before: the clock is right at a start.
            self.astray.0 = 0;
        }
        self.evidence.count(Kind::Started);
        match airmail_log::journal::JournalStorage::open(files, config, self.shown()) {
            Ok(storage) => self.storage = Some(storage),
            Err(error) => {
                let detail = format!("start {} failed: {error}", self.boots);
                return Err(Violation::new("G1 what was written can be opened", detail));
            }
        }
        self.evidence.note(format_args!("start {}", self.boots));
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
        let firm = |state: &LogState| state.weak && state.spec.durability.synced == Synced::Fsync;
        let hit = self.logs.iter().any(firm)
            || self.weather.keeps_power()
            || self.weather.swarm.damage > 0
            || !self.evidence.ledger.damaged.is_empty();
        if hit || !self.boots.is_multiple_of(CHECKED_STARTS) {
            return Ok(());
        }
        let violation = |detail| Err(Violation::new("G7 what is not damaged is sound", detail));
        let unread = self.weather.machine.disk().census().get(Kind::ReadFailed) > 0;
        let allowed = |reason| match reason {
            Reason::Checkpoint => true,
            Reason::Index | Reason::IndexMissing => unread,
            _ => false,
        };
        match check(&mut self.weather.machine.boot(0)) {
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
                spec: Box::new(state.spec),
            });
        }
    }

    /// The process ends in good order, or is killed if it does not get there.
    pub(super) fn stop(&mut self) -> Checked {
        let shown = self.shown();
        let Some(storage) = &mut self.storage else {
            return Ok(());
        };
        self.evidence.note(format_args!("stop"));
        storage.close(shown);
        for _ in 0..2_000 {
            self.turn()?;
            if self
                .storage
                .as_ref()
                .is_some_and(|storage| storage.is_closed())
            {
                let ending = Ending::of_stopped(self.has_failed(), &mut self.evidence);
                self.end(ending);
                return Ok(());
            }
            self.weather.later(Duration::from_micros(500));
        }
        self.end(Ending::Killed);
        Ok(())
    }
}

/// The logs whose durability is below `fsync`, or was.
fn weak_logs(logs: &[LogState]) -> impl Iterator<Item = LogId> {
    logs.iter()
        .filter(|state| state.weak)
        .map(|state| state.log)
}
