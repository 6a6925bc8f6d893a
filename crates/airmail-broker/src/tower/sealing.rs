//! Seals: a log of an earlier map takes nothing more, and where it ends is told once, for ever.
//!
//! A seal that is durable is not the end yet: what was taken before it may still be under way. So the storage is asked
//! for the log's bounds until these say that it is sealed. The same may be learned by any other answer about the log, or
//! by its tail, where another shard or node has sealed it.
//!
//! An earlier log in which retention has left nothing for a while is told to the catalog, which has it deleted when the
//! others of its map are as far.

use super::log::{Openness, Seal, SealState};
use super::orders::settled;
use super::storage_calls::Purpose;
use super::{Tower, TowerEffects};
use crate::catalog::CatalogInput;
use crate::keys::TowerLogKey;
use crate::link::FromTower;
use crate::storage_refusals;
use airmail_log::{Bounds, Call, Refusal};
use airmail_model::{Error, MapEpoch, Sequence};

/// Looks at empty logs before they are told.
const LOOKS: u32 = 10;

impl Tower {
    /// Takes note that a log is to be sealed for this map.
    pub(super) fn want_seal(&mut self, key: TowerLogKey, next: MapEpoch) {
        let log = &mut self.logs[key];
        log.seal.get_or_insert(Seal {
            next,
            state: SealState::Wanted,
            orders: 0,
            empty_since: None,
        });
    }

    /// Seals an open log that is to be sealed, for an order of the catalog or without one; whether the order is answered
    /// by the seal.
    pub(super) fn seal_opened(
        &mut self,
        key: TowerLogKey,
        is_ordered: bool,
        out: &mut TowerEffects,
    ) -> bool {
        let log = &mut self.logs[key];
        let Some(seal) = log.seal.as_mut().filter(|_| log.sealed_at.is_none()) else {
            // Input: a log of the present map, or one whose end is told already.
            return false;
        };
        seal.orders += u32::from(is_ordered);
        self.go_on_sealing(key, out);
        is_ordered
    }

    /// Makes the call that a log's seal needs next, unless one is under way.
    pub(super) fn go_on_sealing(&mut self, key: TowerLogKey, out: &mut TowerEffects) {
        let log = &mut self.logs[key];
        let id = log.id;
        let is_open = log.openness == Openness::Open && log.sealed_at.is_none();
        let Some(seal) = log.seal.as_mut().filter(|_| is_open) else {
            // Input: a log that is not to be sealed, or not yet, or is.
            return;
        };
        let next = seal.next;
        match seal.state {
            SealState::Wanted => {
                seal.state = SealState::Sealing;
                let t = self.calls.tag(Purpose::Seal(key));
                out.call(Call::Seal { t, log: id, next });
            }
            SealState::Sealed => {
                seal.state = SealState::Ending;
                let t = self.calls.tag(Purpose::SealedEnd(key));
                out.call(Call::Bounds { t, log: id });
            }
            SealState::Sealing | SealState::Ending => {}
        }
    }

    /// The storage has sealed a log, or could not.
    pub(super) fn seal_answered(
        &mut self,
        key: TowerLogKey,
        result: Result<(), &Refusal>,
        out: &mut TowerEffects,
    ) {
        let Some(seal) = self.logs.get_mut(key).and_then(|log| log.seal.as_mut()) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        match result {
            Ok(()) => {
                seal.state = SealState::Sealed;
                self.go_on_sealing(key, out);
            }
            Err(why) => self.not_sealed(key, SealState::Wanted, why, out),
        }
    }

    /// The storage has said what a sealed log holds.
    pub(super) fn sealed_end(
        &mut self,
        key: TowerLogKey,
        result: Result<&Bounds, &Refusal>,
        out: &mut TowerEffects,
    ) {
        let Some(seal) = self.logs.get_mut(key).and_then(|log| log.seal.as_mut()) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        match result {
            Ok(bounds) => {
                // What was taken before the seal may be under way yet.
                seal.state = SealState::Sealed;
                self.known_end(key, bounds, out);
                #[cfg(feature = "sabotage")]
                if self.config.bug == Some(crate::sabotage::Bug::EndBeforeSealed) {
                    return self.note_sealed(key, bounds.next, out);
                }
                if bounds.sealed.is_none() {
                    self.retry_later();
                }
            }
            Err(why) => self.not_sealed(key, SealState::Sealed, why, out),
        }
    }

    /// A log could not be sealed: it is tried again.
    fn not_sealed(
        &mut self,
        key: TowerLogKey,
        state: SealState,
        why: &Refusal,
        out: &mut TowerEffects,
    ) {
        let log = &mut self.logs[key];
        let error = storage_refusals::error(why, log.id, None);
        if let Some(seal) = &mut log.seal {
            seal.state = state;
        }
        self.settle_seal(key, &Err(error), out);
        self.retry_later();
    }

    /// Answers the orders that wait for a log's seal.
    pub(super) fn settle_seal(
        &mut self,
        key: TowerLogKey,
        result: &Result<(), Error>,
        out: &mut TowerEffects,
    ) {
        let log = &mut self.logs[key];
        let namespace = log.id.namespace;
        let seal = log.seal.as_mut();
        let orders = seal.map_or(0, |seal| std::mem::take(&mut seal.orders));
        for _ in 0..orders {
            settled(namespace, result.clone(), out);
        }
    }

    /// Takes note that a log is sealed, and where it ends for ever; tells so once.
    pub(super) fn note_sealed(&mut self, key: TowerLogKey, end: Sequence, out: &mut TowerEffects) {
        let Some(log) = self.logs.get_mut(key).filter(|log| log.sealed_at.is_none()) else {
            // Input: what was told before, or is of a log that was deleted meanwhile.
            return;
        };
        log.sealed_at = Some(end);
        log.end = log.end.max(end);
        out.tell(FromTower::Sealed { log: log.id, end });
        self.settle_seal(key, &Ok(()), out);
        self.look_for_empty_later();
    }

    /// Makes sure that it is noticed when there is nothing left in an earlier log.
    fn look_for_empty_later(&mut self) {
        let at = self.now.mono.plus(self.config.retire_after / LOOKS);
        self.timers.empty.get_or_insert(at);
    }

    /// Asks what is left in earlier logs.
    pub(super) fn look_for_empty(&mut self, out: &mut TowerEffects) {
        let keys: Vec<TowerLogKey> = self.logs.keys().collect();
        for key in keys {
            let log = &self.logs[key];
            let is_earlier = log.seal.is_some() && log.sealed_at.is_some();
            if is_earlier && log.openness == Openness::Open {
                let log = log.id;
                let t = self.calls.tag(Purpose::Left(key));
                out.call(Call::Bounds { t, log });
                self.look_for_empty_later();
            }
        }
    }

    /// The storage has said what is left in an earlier log.
    pub(super) fn left(&mut self, key: TowerLogKey, bounds: &Bounds, out: &mut TowerEffects) {
        let now = self.now.mono;
        let retire_after = self.config.retire_after;
        let Some(log) = self.logs.get_mut(key) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let (id, end) = (log.id, bounds.next);
        let Some(seal) = &mut log.seal else {
            // Input: a log that was deleted meanwhile, and made anew.
            return;
        };
        let is_left = bounds.first < end;
        #[cfg(feature = "sabotage")]
        let is_left = is_left && self.config.bug != Some(crate::sabotage::Bug::RetiredUnemptied);
        if is_left {
            seal.empty_since = None;
            return;
        }
        let since = *seal.empty_since.get_or_insert(now);
        if since.plus(retire_after) <= now {
            out.to_catalog
                .push_back(CatalogInput::Emptied { log: id, end });
        }
    }
}
