//! Events of the storage that no call asked for: a log is lost for a while, or gained, maybe in a new life; or something of
//! it is lost for ever.
//!
//! While a log is lost its appends are refused as busy, so that its publishers come again instead of waiting for
//! a home that may not come back; but for those that the storage takes by another way. Everything else that was asked of it waits.
//!
//! A new life in which the log goes on from further back ends whatever is read of the one before: numbers of the two are
//! not to be mixed. The gateway, which is told of the life, asks for everything anew. There are such lives where many write
//! to a log, which nobody can seal.

use super::log::Openness;
use super::{Tower, TowerEffects};
use crate::catalog::CatalogInput;
use crate::keys::TowerLogKey;
use crate::link::FromTower;
use airmail_log::{Bounds, LogLoss};
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
        let is_open = self.logs[key].openness == Openness::Open;
        let is_new_life = is_open && self.begin_life(key, bounds, out);
        self.known_end(key, bounds, out);
        self.logs[key].is_lost = false;
        if is_new_life {
            let result = Ok(bounds.incarnation);
            out.tell(FromTower::Renewed { log, result });
        }
    }

    /// Takes note of the life that a log is in; whether that is another one than before. Where it goes on from further back
    /// than the log was, nothing that was read of the life before counts.
    pub(super) fn begin_life(
        &mut self,
        key: TowerLogKey,
        bounds: &Bounds,
        out: &mut TowerEffects,
    ) -> bool {
        let goes_back = self.goes_back(key);
        let log = &mut self.logs[key];
        let before = std::mem::replace(&mut log.incarnation, bounds.incarnation);
        if before == bounds.incarnation {
            return false;
        }
        if goes_back && bounds.next < log.end {
            log.end = bounds.next;
            self.stop_tail(key, out);
        }
        true
    }

    /// The storage has lost something of a log, which stops by that. Log 0 is told, and told again until it says so itself.
    pub(super) fn suspended(&mut self, log: LogId, loss: Box<LogLoss>, out: &mut TowerEffects) {
        let Some(key) = self.logs.find_open(log) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        self.logs[key].loss = Some(loss);
        self.tell_loss(key, out);
    }

    /// Tells the catalog what a log has lost, if log 0 does not say it yet.
    pub(super) fn tell_loss(&mut self, key: TowerLogKey, out: &mut TowerEffects) {
        let log = &mut self.logs[key];
        if let Some(loss) = log.loss.clone() {
            let log = log.id;
            out.to_catalog
                .push_back(CatalogInput::Suspended { log, loss: *loss });
            self.retry_later();
        }
    }
}
