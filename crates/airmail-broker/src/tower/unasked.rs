//! Events of the storage that no call asked for: a log is lost for a while, or gained, maybe in a new life.
//!
//! While a log is lost its appends are refused as busy, so that its publishers come again instead of waiting for
//! a home that may not come back; but for those that the storage takes by another way. Everything else that was asked of it waits.

use super::log::Openness;
use super::{Tower, TowerEffects};
use crate::link::FromTower;
use airmail_log::Bounds;
use airmail_model::LogId;

impl Tower {
    /// A log cannot be used until it is gained.
    pub(super) fn lost(&mut self, log: LogId) {
        if let Some(key) = self.logs.find_open(log) {
            self.logs[key].is_lost = true;
        }
    }

    /// A log can be used again; or somebody else has begun a new life of it, which is told like one that was
    /// asked for.
    pub(super) fn gained(&mut self, log: LogId, bounds: &Bounds, out: &mut TowerEffects) {
        let Some(key) = self.logs.find_open(log) else {
            // Input: log 0, or a log that was deleted meanwhile.
            return;
        };
        self.known_end(key, bounds, out);
        let gained = &mut self.logs[key];
        gained.is_lost = false;
        let incarnation = bounds.incarnation;
        let is_new_life = gained.incarnation != incarnation;
        if gained.openness == Openness::Open && is_new_life {
            gained.incarnation = incarnation;
            let result = Ok(incarnation);
            out.tell(FromTower::Renewed { log, result });
        }
    }
}
