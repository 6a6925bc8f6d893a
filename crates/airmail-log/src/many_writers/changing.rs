//! Calls of a handle that make logs, or remove them.

use super::State;
use super::handle::{LogsHandle, STRONGEST, busy, refused, unsupported};
use super::log::SharedLog;
use crate::contract::{Completion, LogSpec, Origin, Refusal, Tag};
use airmail_model::{Holder, Incarnation, LogId, Sequence};

impl LogsHandle {
    pub(super) fn provision(
        &self,
        state: &mut State,
        t: Tag,
        (first, logs): (LogId, u16),
        spec: LogSpec,
    ) -> Completion {
        if !spec.storage.is_first() {
            return refused(t, Refusal::Elsewhere(Holder::default()));
        }
        let settings = state.settings;
        if !settings.provisions || !STRONGEST.satisfies(spec.durability) {
            return unsupported(t, "provision");
        }
        if state.chance(settings.busy) {
            return refused(t, busy());
        }
        let provisions = Box::new(state.provisioned.make(first, logs));
        Completion::Provisioned { t, provisions }
    }

    pub(super) fn withdraw(&self, state: &mut State, t: Tag, origin: Origin) -> Completion {
        if !origin.storage.is_first() {
            return refused(t, Refusal::Elsewhere(Holder::default()));
        }
        if !state.settings.provisions {
            return unsupported(t, "withdraw");
        }
        state.provisioned.withdraw(&origin.provisions);
        Completion::Done { t }
    }

    pub(super) fn open(
        &mut self,
        state: &mut State,
        t: Tag,
        id: LogId,
        spec: LogSpec,
    ) -> Completion {
        if !spec.storage.is_first() {
            return refused(t, Refusal::Elsewhere(Holder::default()));
        }
        if !STRONGEST.satisfies(spec.durability) {
            return refused(t, Refusal::Unsupported("durability".into()));
        }
        let deleted = state.deleted.get(&id).copied();
        if deleted.is_some_and(|at| spec.as_of < at) && !state.logs.contains_key(&id) {
            return refused(t, Refusal::NoLog);
        }
        if state.settings.provisions
            && id != LogId::SYSTEM
            && let Err(why) = state.provisioned.open(id, &spec.provisions)
        {
            return refused(t, why);
        }
        match state.logs.get_mut(&id) {
            Some(log) if spec.as_of < log.spec.as_of => {}
            Some(log) if spec.epoch < log.spec.epoch => {
                let current = log.spec.epoch;
                return refused(t, Refusal::StaleMap { current });
            }
            Some(log) => log.spec = spec,
            None => {
                state.lives += 1;
                let life = Incarnation(state.lives);
                state.logs.insert(id, SharedLog::new(spec, life));
            }
        }
        let bounds = state.logs[&id].bounds();
        self.open.insert(id, bounds.incarnation);
        Completion::Opened { t, bounds }
    }

    pub(super) fn delete(
        &mut self,
        state: &mut State,
        t: Tag,
        id: LogId,
        as_of: Sequence,
        origin: Origin,
    ) -> Completion {
        if !origin.storage.is_first() {
            return refused(t, Refusal::Elsewhere(Holder::default()));
        }
        let is_later = |log: &SharedLog| log.spec.as_of > as_of;
        if !state.logs.get(&id).is_some_and(is_later) {
            state.logs.remove(&id);
            state.provisioned.delete(id, &origin.provisions);
            self.open.remove(&id);
            let deleted = state.deleted.entry(id).or_default();
            *deleted = as_of.max(*deleted);
        }
        Completion::Done { t }
    }
}
