//! Orders of the catalog: log 0 is served for it, and the logs of namespaces are opened, and tried
//! again, or deleted with everything that uses them.

use super::catchup::queue::HeldFor;
use super::log::{Openness, TowerLog};
use super::storage_calls::{Owner, Purpose};
use super::{Tower, TowerEffects};
use crate::catalog::{CatalogInput, Order, SystemAppend};
use crate::keys::TowerLogKey;
use crate::link::FromTower;
use crate::storage_refusals;
use airmail_log::{Bounds, Call, Kept, LogSpec, Origin, Refusal};
use airmail_model::{Batch, Checked, Error, Extent, Lane, LogId, LogIndex, NamespaceId, Sequence};

impl Tower {
    pub(super) fn open_system(&mut self, spec: LogSpec, out: &mut TowerEffects) {
        let log = LogId::SYSTEM;
        let t = self.calls.tag(Purpose::OpenSystem);
        self.keep_later();
        let spec = Box::new(spec);
        out.call(Call::Open { t, log, spec });
    }

    pub(super) fn read_system(&mut self, from: Sequence, credit: u32, out: &mut TowerEffects) {
        out.call(Call::Read {
            r: self.calls.reader(Owner::System),
            log: LogId::SYSTEM,
            from,
            scope: Box::default(),
            credit,
        });
    }

    /// Asks where log 0 ends. The answer is an effect.
    pub(super) fn ask_system_end(&mut self, out: &mut TowerEffects) {
        let (t, log) = (self.calls.tag(Purpose::SystemEnd), LogId::SYSTEM);
        out.call(Call::Bounds { t, log });
    }

    pub(super) fn append_system(
        &mut self,
        of: SystemAppend,
        batch: Checked<Batch>,
        out: &mut TowerEffects,
    ) {
        out.call(Call::Append {
            t: self.calls.tag(Purpose::AppendSystem(of)),
            log: LogId::SYSTEM,
            map: batch.map_epoch(),
            batch,
            sole: false,
        });
    }

    pub(super) fn system_appended(
        &mut self,
        of: SystemAppend,
        result: Result<Extent, Refusal>,
        out: &mut TowerEffects,
    ) {
        out.to_catalog.push_back(match result {
            Ok(extent) => CatalogInput::Appended { of, extent },
            Err(why) => CatalogInput::AppendRefused { of, why },
        });
    }

    /// Has the storage provision for a namespace.
    pub(super) fn provision(
        &mut self,
        log: LogId,
        logs: u16,
        spec: LogSpec,
        out: &mut TowerEffects,
    ) {
        let t = self.calls.tag(Purpose::Provision);
        let spec = Box::new(spec);
        out.call(Call::Provision { t, log, logs, spec });
    }

    /// Has the storage remove provisions. Its answer does not matter: what is left is removed by its upkeep.
    pub(super) fn withdraw(
        &mut self,
        log: LogId,
        logs: u16,
        origin: Origin,
        out: &mut TowerEffects,
    ) {
        out.call(Call::Withdraw {
            t: self.calls.tag(Purpose::Withdraw),
            log,
            logs,
            origin: Box::new(origin),
        });
    }

    /// Tells a storage what log 0 names of it.
    pub(super) fn keep(&mut self, kept: Kept, out: &mut TowerEffects) {
        let t = self.calls.tag(Purpose::Keep);
        let kept = Box::new(kept);
        out.call(Call::Keep { t, kept });
    }

    pub(super) fn order(&mut self, order: Order, out: &mut TowerEffects) {
        match order {
            Order::Open { log, spec, seal } => {
                let key = self.logs.key(log);
                let of = &mut self.logs[key];
                if of.spec.soundness != spec.soundness {
                    // Log 0 says what is to come of it.
                    of.loss = None;
                }
                of.spec = spec;
                if let Some(next) = seal {
                    self.want_seal(key, next);
                }
                self.open_log(key, Some(log.namespace), out);
            }
            Order::Delete {
                namespace,
                first,
                logs,
                has_high,
                as_of,
                origin,
            } => {
                let high = has_high.then_some(Lane::High);
                for lane in [Lane::Normal].into_iter().chain(high) {
                    for index in (first.0..=u16::MAX).take(logs.into()).map(LogIndex) {
                        let log = LogId {
                            namespace,
                            lane,
                            index,
                        };
                        self.delete_log(log, as_of, origin, out);
                    }
                }
            }
        }
    }

    /// Asks the storage to open a log, or to keep an open one as its namespace says now: as the catalog has ordered for
    /// a namespace, or once more after that has failed.
    pub(super) fn open_log(
        &mut self,
        key: TowerLogKey,
        ordered: Option<NamespaceId>,
        out: &mut TowerEffects,
    ) {
        let log = &mut self.logs[key];
        if log.openness != Openness::Open {
            log.openness = Openness::Opening;
        }
        log.is_unkept = false;
        let t = self.calls.tag(Purpose::Open(ordered, key));
        let (log, spec) = (log.id, log.spec);
        let spec = Box::new(spec);
        out.call(Call::Open { t, log, spec });
    }

    /// A log is open, or could not be opened. The catalog counts its orders: each is answered once, whatever the log has
    /// become meanwhile, and what the tower tries by itself is not.
    pub(super) fn open_answered(
        &mut self,
        ordered: Option<NamespaceId>,
        key: TowerLogKey,
        result: Result<&Bounds, &Refusal>,
        out: &mut TowerEffects,
    ) {
        let result = match result {
            Ok(bounds) => {
                if self.log_opened(key, bounds, out)
                    && self.seal_opened(key, ordered.is_some(), out)
                {
                    return;
                }
                Ok(())
            }
            Err(why) => self.log_not_opened(key, why, out),
        };
        if let Some(namespace) = ordered {
            settled(namespace, result, out);
        }
    }

    /// A log is open; `false` if it was deleted meanwhile.
    fn log_opened(&mut self, key: TowerLogKey, bounds: &Bounds, out: &mut TowerEffects) -> bool {
        let Some(log) = self.log_to_open(key) else {
            // Input: a log that was deleted while it was opened.
            return false;
        };
        log.openness = Openness::Open;
        log.holder = None;
        log.is_lost = false;
        let (log, incarnation) = (log.id, bounds.incarnation);
        // A log that was cut comes back in another life.
        self.begin_life(key, bounds, out);
        out.tell(FromTower::Opened { log, incarnation });
        self.known_end(key, bounds, out);
        true
    }

    /// A log could not be opened: it is tried again. One that is open stays as it is meanwhile, unless it is to stop.
    fn log_not_opened(
        &mut self,
        key: TowerLogKey,
        why: &Refusal,
        out: &mut TowerEffects,
    ) -> Result<(), Error> {
        let Some(log) = self.log_to_open(key) else {
            // Input: a log that was deleted while it was opened.
            return Ok(());
        };
        let id = log.id;
        if let Refusal::Suspended(_) = why
            && log.spec.soundness.is_suspended
        {
            log.openness = Openness::Suspended;
        } else if log.openness == Openness::Opening {
            log.openness = Openness::Failed;
            if let Refusal::Elsewhere(holder) = *why
                && log.holder.replace(holder) != Some(holder)
            {
                out.tell(FromTower::Elsewhere { log: id, holder });
            }
            self.retry_later();
        } else if log.openness == Openness::Open {
            log.is_unkept = true;
            self.retry_later();
        }
        Err(storage_refusals::error(why, id, None))
    }

    /// A log that is not being deleted.
    fn log_to_open(&mut self, key: TowerLogKey) -> Option<&mut TowerLog> {
        let log = self.logs.get_mut(key)?;
        (log.openness != Openness::Deleting).then_some(log)
    }

    /// Ends everything that a log was used for, and deletes it. One that is being deleted with its map may be ordered away
    /// once more, with its namespace: each order has an answer.
    fn delete_log(&mut self, log: LogId, as_of: Sequence, origin: Origin, out: &mut TowerEffects) {
        let key = self.logs.key(log);
        if self.logs[key].openness != Openness::Deleting {
            self.close_log(key, out);
        }
        let t = self.calls.tag(Purpose::Delete(log.namespace, key));
        out.call(Call::Delete {
            t,
            log,
            as_of,
            origin: Box::new(origin),
        });
    }

    /// Ends everything that a log was used for that is to be deleted.
    fn close_log(&mut self, key: TowerLogKey, out: &mut TowerEffects) {
        let log = self.logs[key].id;
        self.stop_tail(key, out);
        for member in self.members.of_log(key) {
            let member = self.members[member].id;
            self.leave(member, out);
        }
        self.members.release(key, HeldFor::Failure);
        self.logs[key].openness = Openness::Deleting;
        self.settle_seal(key, &Ok(()), out);
        out.tell(FromTower::Closed { log });
    }

    /// A log is deleted, or could not be. The namespace is gone all the same; what is left is deleted at the
    /// next start.
    pub(super) fn log_deleted(
        &mut self,
        namespace: NamespaceId,
        key: TowerLogKey,
        result: Result<(), &Refusal>,
        out: &mut TowerEffects,
    ) {
        let Some(log) = self.logs.remove(key) else {
            // Input: a log that was ordered away twice, and is gone since the first answer.
            return settled(namespace, Ok(()), out);
        };
        let log = log.id;
        self.ends.forget(key);
        out.tell(FromTower::Gone { log });
        let result = result.map_err(|why| storage_refusals::error(why, log, None));
        settled(namespace, result, out);
    }
}

/// Tells the catalog that a log is opened or deleted, or could not be.
pub(super) fn settled(namespace: NamespaceId, result: Result<(), Error>, out: &mut TowerEffects) {
    let input = CatalogInput::LogSettled { namespace, result };
    out.to_catalog.push_back(input);
}
