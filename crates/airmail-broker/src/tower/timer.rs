//! Work of the tower that is due by time: it tells members their progress, and tries failed calls
//! of the storage again.

use super::catchup::queue::HeldFor;
use super::log::{Openness, TowerLog};
use super::{Tower, TowerEffects};
use crate::catalog::CatalogInput;
use crate::keys::TowerLogKey;
use airmail_model::Mono;

/// When to do something even if nothing happens.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// To tell members how far they have got.
    pub(super) marks: Option<Mono>,
    /// To open logs and start readers that failed.
    pub(super) retry: Option<Mono>,
    /// To let catch-up readers read on: what they may read was used up.
    pub(super) allowance: Option<Mono>,
    /// To pass over a reader that is silent then.
    pub(super) silence: Option<Mono>,
    /// To sweep a log.
    pub(super) sweep: Option<Mono>,
    /// To look whether earlier logs are empty.
    pub(super) empty: Option<Mono>,
    /// To tell the storage what log 0 names.
    pub(super) upkeep: Option<Mono>,
}

impl Tower {
    /// When the tower wants to be called, if nothing else happens before.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let timers = &self.timers;
        let storage = [timers.retry, timers.allowance, timers.silence];
        let others = [timers.marks, timers.sweep, timers.empty, timers.upkeep];
        let all = storage.into_iter().chain(others);
        all.flatten().min()
    }

    pub(super) fn timer(&mut self, out: &mut TowerEffects) {
        let now = self.now.mono;
        let is_due = |at: &mut Option<Mono>| at.take_if(|at| *at <= now).is_some();
        if is_due(&mut self.timers.marks) {
            self.mark(out);
        }
        is_due(&mut self.timers.allowance);
        is_due(&mut self.timers.silence);
        is_due(&mut self.timers.sweep);
        if is_due(&mut self.timers.empty) {
            self.look_for_empty(out);
        }
        if is_due(&mut self.timers.upkeep) {
            out.to_catalog.push_back(CatalogInput::Upkeep);
            self.keep_later();
        }
        if is_due(&mut self.timers.retry) {
            self.retry(out);
        }
    }

    /// Makes sure that a storage is told after a while what log 0 names, if it keeps anything by that.
    pub(super) fn keep_later(&mut self) {
        if self.capabilities.provisions {
            let at = self.now.mono.plus(self.config.upkeep_interval);
            self.timers.upkeep.get_or_insert(at);
        }
    }

    /// Makes sure that members are told before long how far they have got.
    pub(super) fn mark_later(&mut self) {
        let at = self.now.mono.plus(self.config.mark_interval);
        self.timers.marks.get_or_insert(at);
    }

    /// Makes sure that what failed is tried again.
    pub(super) fn retry_later(&mut self) {
        let at = self.now.mono.plus(self.config.retry_delay);
        self.timers.retry.get_or_insert(at);
    }

    fn retry(&mut self, out: &mut TowerEffects) {
        out.to_catalog.push_back(CatalogInput::Retry);
        for log in self.members.held(HeldFor::Failure) {
            self.members.release(log, HeldFor::Failure);
        }
        let logs: Vec<TowerLogKey> = self.logs.keys().collect();
        for key in logs {
            let TowerLog {
                openness,
                is_unkept,
                tail,
                ..
            } = self.logs[key];
            if openness == Openness::Failed || openness == Openness::Open && is_unkept {
                self.open_log(key, None, out);
            }
            let has_no_reader = tail.is_some_and(|tail| tail.reader.is_none());
            let may_read = !matches!(openness, Openness::Failed | Openness::Suspended);
            if has_no_reader && may_read {
                self.read_tail_again(key, out);
            }
            self.go_on_sealing(key, out);
            self.tell_loss(key, out);
        }
    }
}
