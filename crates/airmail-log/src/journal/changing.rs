//! Calls that change a log otherwise than by a batch: open, renew, trim, seal, delete.
//!
//! The change goes into a command; the caller is answered when that is durable. Deleting alone
//! touches what other parts have of the log, and has a handler of its own.

use super::append::reserve;
use super::commands::Commands;
use super::commits::Commits;
use super::effects::Effects;
use super::faults::Faults;
use super::id::Slot;
use super::log::{Answer, LogState};
use super::logs::Logs;
use super::meta::Meta;
use super::producers::Producers;
use super::readers::Readers;
use super::retention::trim;
use super::segment_set::SegmentSet;
use super::tombstones::Tombstone;
use super::upkeep::Upkeep;
use super::{Journal, JournalConfig};
use crate::contract::{Completion, LogSpec, Refusal, Tag};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::random::nth;
use airmail_model::{Durability, Holder, Incarnation, LogId, MapEpoch, Sequence, StorageName, bug};

/// Has a log's spec made durable, and the waiting caller answered then.
fn tell_spec(config: &JournalConfig, log: &mut LogState, commands: &mut Commands, t: Tag) {
    let open = Meta::Open {
        slot: log.slot,
        log: log.id,
        spec: log.life.spec,
        incarnation: log.life.incarnation_asked,
    };
    commands.give(open, Some(t));
    reserve(config, log, commands, 0);
}

/// The parts of the journal that changing a log reads or changes.
struct Changing<'j> {
    config: &'j JournalConfig,
    segments: &'j SegmentSet,
    logs: &'j mut Logs,
    commands: &'j mut Commands,
    effects: &'j mut Effects,
}

/// The parts of the journal that deleting a log changes.
struct Deleting<'j> {
    logs: &'j mut Logs,
    producers: &'j mut Producers,
    commits: &'j mut Commits,
    commands: &'j mut Commands,
    readers: &'j mut Readers,
    upkeep: &'j mut Upkeep,
    faults: &'j mut Faults,
    effects: &'j mut Effects,
}

impl Journal {
    fn changing(&mut self) -> Changing<'_> {
        Changing {
            config: &self.config,
            segments: &self.segments,
            logs: &mut self.logs,
            commands: &mut self.commands,
            effects: &mut self.effects,
        }
    }

    fn deleting(&mut self) -> Deleting<'_> {
        Deleting {
            logs: &mut self.logs,
            producers: &mut self.producers,
            commits: &mut self.commits,
            commands: &mut self.commands,
            readers: &mut self.readers,
            upkeep: &mut self.upkeep,
            faults: &mut self.faults,
            effects: &mut self.effects,
        }
    }

    pub(super) fn open_log(&mut self, t: Tag, id: LogId, spec: LogSpec) {
        if let Some(slot) = self.changing().open(t, id, spec) {
            self.log_moved(slot);
        }
    }

    pub(super) fn renew_log(&mut self, t: Tag, id: LogId) {
        self.changing().renew(t, id);
    }

    pub(super) fn trim_log(&mut self, t: Tag, id: LogId, before: Sequence) {
        if let Some(slot) = self.changing().trim(t, id, before) {
            self.log_moved(slot);
        }
    }

    pub(super) fn seal_log(&mut self, t: Tag, id: LogId, next: MapEpoch) {
        self.changing().seal(t, id, next);
    }

    pub(super) fn delete_log(&mut self, t: Tag, id: LogId, as_of: Sequence, storage: StorageName) {
        if !storage.is_first() {
            // Input: the log is in another storage, which nobody beside this one has.
            let why = Refusal::Elsewhere(Holder::default());
            return self.effects.tell(Completion::Refused { t, why });
        }
        self.deleting().delete(t, Tombstone { log: id, as_of });
    }
}

impl Changing<'_> {
    /// Takes up a log, or another spec of one. The slot of one that was there, and has changed.
    fn open(&mut self, t: Tag, id: LogId, spec: LogSpec) -> Option<Slot> {
        if !spec.storage.is_first() {
            // Input: the log is in another storage, which nobody beside this one has.
            let why = Refusal::Elsewhere(Holder::default());
            self.effects.tell(Completion::Refused { t, why });
            return None;
        }
        let given = Durability::single(self.config.strongest);
        if !given.satisfies(spec.durability) {
            let why = Refusal::Unsupported("durability".into());
            self.effects.tell(Completion::Refused { t, why });
            return None;
        }
        if !spec.provisions.is_none() {
            // Input: an owner that has them of another storage.
            let why = Refusal::Unsupported("provisions".into());
            self.effects.tell(Completion::Refused { t, why });
            return None;
        }
        if self.logs.tombstones().is_deleted_after(id, spec.as_of) {
            // Input: an owner that has slept, and does not know that the log was deleted.
            let why = Refusal::NoLog;
            self.effects.tell(Completion::Refused { t, why });
            return None;
        }
        let known = self.logs.slot_of(id);
        let slot = known.unwrap_or(self.logs.next_slot());
        if known.is_none() {
            let incarnation = self.config.incarnation(slot);
            let mut log = LogState::new(id, slot, spec, incarnation);
            if self.config.new_incarnations {
                log.numbers.reserved = Sequence::MAX;
                log.numbers.reserving = Sequence::MAX;
            }
            self.logs.insert(log);
        }
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} of {id} has no log");
            let why = Refusal::OutcomeUnknown;
            self.effects.tell(Completion::Refused { t, why });
            return None;
        };
        if known.is_some() {
            if spec.epoch < log.life.spec.epoch {
                let why = Refusal::StaleMap {
                    current: log.life.spec.epoch,
                };
                self.effects.tell(Completion::Refused { t, why });
                return None;
            }
            let is_older = spec.as_of < log.life.spec.as_of;
            #[cfg(feature = "sabotage")]
            let is_older = is_older && !self.config.has_bug(Bug::OlderSpecObeyed);
            // Input: an owner that has slept. It is answered when the newer spec is durable.
            let spec = if is_older { log.life.spec } else { spec };
            if spec == log.life.spec && log.life.spec_told {
                let bounds = log.bounds();
                self.effects.tell(Completion::Opened { t, bounds });
                return None;
            }
            log.life.spec = spec;
            log.life.spec_told = false;
        }
        tell_spec(self.config, log, self.commands, t);
        known
    }

    /// Begins a new life of a log: numbers and batches stay.
    fn renew(&mut self, t: Tag, id: LogId) {
        let Some(slot) = self.logs.named(id).map(|log| log.slot) else {
            // Input: an owner that names a log which is not open, or was deleted.
            let why = Refusal::NoLog;
            return self.effects.tell(Completion::Refused { t, why });
        };
        let which = nth(self.config.seed ^ 0x6c_6966, self.logs.renewed());
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} of {id} has no log");
            let why = Refusal::OutcomeUnknown;
            return self.effects.tell(Completion::Refused { t, why });
        };
        log.life.incarnation_asked = Incarnation(nth(which, u64::from(slot.0)) >> 1);
        log.life.spec_told = false;
        tell_spec(self.config, log, self.commands, t);
    }

    /// Gives up the beginning of a log. The log, if it is there.
    fn trim(&mut self, t: Tag, id: LogId, before: Sequence) -> Option<Slot> {
        let Some(slot) = self.logs.slot_of(id) else {
            // Input: an owner that names a log which is not open, or was deleted.
            let why = Refusal::NoLog;
            self.effects.tell(Completion::Refused { t, why });
            return None;
        };
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} is trimmed and has no log");
            self.effects.tell(Completion::Done { t });
            return None;
        };
        match trim(log, self.segments, before) {
            Some(trim) => self.commands.give(trim, Some(t)),
            None => self.effects.tell(Completion::Done { t }),
        }
        Some(slot)
    }

    /// Has a log take nothing more.
    fn seal(&mut self, t: Tag, id: LogId, next: MapEpoch) {
        let log = self.logs.named_mut(id);
        let Some(log) = log else {
            // Input: an owner that names a log which is not open, or was deleted.
            return self.effects.tell(Completion::Refused {
                t,
                why: Refusal::NoLog,
            });
        };
        let next = *log.life.sealed.get_or_insert(next);
        let slot = log.slot;
        self.commands.give(Meta::Seal { slot, next }, Some(t));
    }
}

impl Deleting<'_> {
    /// Removes the log at once; it is not known whether its batches under way are stored.
    fn delete(&mut self, t: Tag, tombstone: Tombstone) {
        let held = self.logs.named(tombstone.log);
        if held.is_some_and(|log| tombstone.as_of < log.life.spec.as_of) {
            // Input: an owner that has slept, and does not know that the log was kept or made anew since.
            return self.effects.tell(Completion::Done { t });
        }
        self.logs.bury(tombstone);
        let Some(slot) = self.logs.unname(tombstone.log) else {
            // Input: an owner that names a log which is not open, or was deleted.
            return self.commands.give(Meta::Bury { tombstone }, Some(t));
        };
        if let Some(mut log) = self.logs.remove(slot) {
            for answer in log.answers.drain(..) {
                self.effects.tell(match answer {
                    Answer::Waiting { t, .. } | Answer::Failed { t } => Completion::Refused {
                        t,
                        why: Refusal::OutcomeUnknown,
                    },
                    Answer::Sealed { t, next } => Completion::Refused {
                        t,
                        why: Refusal::Sealed { next },
                    },
                    Answer::Ready(completion) => completion,
                });
            }
            self.readers.wake_all(log.at_tail.drain(..));
            self.upkeep.deleted(slot, log.kept.blocks());
        }
        self.readers.wake_log(slot);
        self.producers.forget_log(slot);
        self.faults.forget_log(slot);
        let tombstone = Some(tombstone);
        self.commands
            .give(Meta::Delete { slot, tombstone }, Some(t));
        self.commits.forget_log(slot);
        self.logs.forget_recent(slot, Sequence(0));
    }
}
