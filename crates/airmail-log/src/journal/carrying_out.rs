//! Execution of the journal's own commands: when one is durable, the work that waited for it goes
//! on.
//!
//! Nobody is told of a command before it is durable; so the space that it frees (the blocks of a
//! trimmed or deleted log), the state that it shows (a seal) and the numbers that it allows are
//! handled here.

use super::Journal;
#[cfg(feature = "sabotage")]
use super::JournalConfig;
use super::effects::Effects;
use super::id::Slot;
use super::logs::Logs;
use super::meta::Meta;
use super::readers::Readers;
use super::segment_set::SegmentSet;
use super::upkeep::Upkeep;
use crate::contract::{Completion, Refusal, Tag};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use std::collections::BTreeSet;

/// The parts of the journal that a durable command may change.
pub(super) struct CarryingOut<'j> {
    #[cfg(feature = "sabotage")]
    config: &'j JournalConfig,
    logs: &'j mut Logs,
    segments: &'j mut SegmentSet,
    readers: &'j mut Readers,
    upkeep: &'j mut Upkeep,
    effects: &'j mut Effects,
}

impl Journal {
    pub(super) fn carrying_out(&mut self) -> CarryingOut<'_> {
        CarryingOut {
            #[cfg(feature = "sabotage")]
            config: &self.config,
            logs: &mut self.logs,
            segments: &mut self.segments,
            readers: &mut self.readers,
            upkeep: &mut self.upkeep,
            effects: &mut self.effects,
        }
    }
}

impl CarryingOut<'_> {
    /// A command is durable: what waited for it goes on.
    pub(super) fn carry_out(&mut self, meta: &Meta, t: Option<Tag>, moved: &mut BTreeSet<Slot>) {
        let done = |t: Tag| Completion::Done { t };
        let slot = match *meta {
            Meta::SegmentSealed { .. } => {
                self.segments.want_sweep();
                return;
            }
            Meta::Delete { slot, .. } => {
                for block in self.upkeep.take_deleted(slot) {
                    self.segments.let_go(block);
                }
                return self.effects.completions().extend(t.map(done));
            }
            Meta::Bury { .. } => return self.effects.completions().extend(t.map(done)),
            Meta::Open { slot, .. }
            | Meta::Trim { slot, .. }
            | Meta::Seal { slot, .. }
            | Meta::Reserve { slot, .. }
            | Meta::Copy { slot, .. }
            | Meta::TakenBack { slot, .. } => slot,
        };
        moved.insert(slot);
        let Some(log) = self.logs.get_mut(slot) else {
            // Input: a log that was deleted before its command was durable.
            let answer = t.map(|t| of_deleted(meta, t));
            return self.effects.completions().extend(answer);
        };
        match *meta {
            Meta::Open {
                spec, incarnation, ..
            } => {
                log.life.spec_told |=
                    (spec, incarnation) == (log.life.spec, log.life.incarnation_asked);
                log.life.incarnation = incarnation;
                let bounds = log.bounds();
                return self
                    .effects
                    .completions()
                    .extend(t.map(|t| Completion::Opened { t, bounds }));
            }
            Meta::Reserve { until, .. } => log.numbers.reserve(until),
            Meta::Seal { .. } => {
                log.life.seal_told = true;
                self.readers.wake_all(log.at_tail.drain(..));
            }
            Meta::Trim { first, .. } => {
                // Also what is given up of a block leaves less of its segment.
                self.segments.want_move();
                log.numbers.first_durable = log.numbers.first_durable.max(first);
                let durable = log.numbers.first_durable;
                let gone = log.kept.take_left(durable);
                #[cfg(feature = "sabotage")]
                let gone = match self.config.bug {
                    Some(Bug::BlockGoneEarly) => {
                        gone.into_iter().chain(log.kept.lose_first()).collect()
                    }
                    _ => gone,
                };
                for place in gone {
                    self.segments.let_go(place.block);
                }
            }
            Meta::Copy { .. } | Meta::TakenBack { .. } => log.copies.apply(meta),
            Meta::Delete { .. } | Meta::Bury { .. } | Meta::SegmentSealed { .. } => {}
        }
        self.effects.completions().extend(t.map(done));
    }
}

/// The answer to a command of a log that was deleted before the command was durable.
fn of_deleted(meta: &Meta, t: Tag) -> Completion {
    let why = Refusal::NoLog;
    match meta {
        Meta::Open { .. } => Completion::Refused { t, why },
        _ => Completion::Done { t },
    }
}
