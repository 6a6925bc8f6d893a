//! Provisions: what the storage makes for a namespace before the command that makes it, anew or not, or moves it there, is
//! written.
//!
//! They stand in the command, so that every node opens the logs with the same ones; nobody but the storage knows what
//! they mean. Each attempt at a command has provisions of its own, for the logs of its map. When log 0 surely
//! will not have them, because the command was void or was never stored, the storage is told to remove what it made.
//! Where that is not known nothing is removed: somebody may find the command in log 0. What a crash leaves, the storage
//! finds itself.

use super::CatalogCore;
use super::change::Change;
use super::fold::{Fold, first_version, moved};
use super::losses::recreated;
use super::messages::{CatalogEffect, CatalogEffects};
use super::namespaces::Entry;
use crate::storage_refusals;
use airmail_log::{LogSpec, Origin, Refusal};
use airmail_model::{Lane, LogId, Namespace, Now, Provisions, Sequence, bug};

/// Logs that a storage is asked to provision for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Provisioned {
    /// The first of them.
    first: LogId,
    logs: u16,
    spec: LogSpec,
    /// The storage has been asked, and has not answered.
    is_under_way: bool,
}

impl Provisioned {
    /// Logs of a map that a change brings; `None` for a change that brings none.
    fn of(change: &Change, fold: &Fold) -> Option<Provisioned> {
        let namespace: Namespace = match change {
            Change::Create { id, name, spec, .. } => first_version(*id, name, spec),
            Change::Move { id, storage, .. } => moved(fold.catalog.get(*id)?, *storage)?,
            Change::Recreate { id, .. } => recreated(fold.catalog.get(*id)?)?,
            _ => return None,
        };
        let entry = Entry::new(namespace, Provisions::NONE, Sequence(0));
        Some(Provisioned {
            first: LogId {
                namespace: entry.namespace.id,
                lane: Lane::Normal,
                index: entry.namespace.first_log,
            },
            logs: entry.namespace.spec.logs,
            spec: entry.log_spec(),
            is_under_way: true,
        })
    }

    /// Whether nothing is written yet, because the storage has not answered.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_under_way
    }
}

impl CatalogCore {
    /// Has the storage provision for what a change makes; what for, if there is anything to wait for.
    pub(super) fn provision(
        &self,
        change: &Change,
        out: &mut CatalogEffects,
    ) -> Option<Provisioned> {
        if !self.config.provisions {
            return None;
        }
        let provisioned = Provisioned::of(change, &self.fold)?;
        out.push(CatalogEffect::Provision {
            log: provisioned.first,
            logs: provisioned.logs,
            spec: provisioned.spec,
        });
        Some(provisioned)
    }

    /// The storage has provisioned for the command under way, or has not: it is written, or refused.
    pub(super) fn provisioned(
        &mut self,
        now: Now,
        result: Result<Provisions, Refusal>,
        out: &mut CatalogEffects,
    ) {
        let current = self.current.as_mut();
        let Some((provisioned, change)) = current.and_then(|of| {
            let provisioned = of.provisioned.as_mut().filter(|of| of.is_under_way)?;
            Some((provisioned, &mut of.change))
        }) else {
            bug!("{result:?} is of no command");
            return;
        };
        provisioned.is_under_way = false;
        let first = provisioned.first;
        let (Change::Create { provisions, .. }
        | Change::Move { provisions, .. }
        | Change::Recreate { provisions, .. }) = change
        else {
            bug!("{change:?} was provisioned for");
            return;
        };
        *provisions = match result {
            Ok(answered) => answered,
            Err(why) => {
                let error = storage_refusals::error(&why, first, None);
                return self.finish(now, Err(error), out);
            }
        };
        provisioned.spec.provisions = *provisions;
        let change = change.clone();
        if !self.fold.may_count(&change) {
            // Log 0 has been read on meanwhile: it would be void.
            self.withdraw(out);
            return self.void(now, out);
        }
        let written = self.may_change();
        if let Err(error) = written.and_then(|()| self.write(now, &change, out)) {
            self.withdraw(out);
            self.finish(now, Err(error), out);
        }
    }

    /// Log 0 surely has no command with the provisions of the one under way: the storage is to remove them.
    pub(super) fn withdraw(&self, out: &mut CatalogEffects) {
        let provisioned = self.current.as_ref().and_then(|of| of.provisioned);
        if let Some(of) = provisioned.filter(|of| !of.spec.provisions.is_none()) {
            out.push(CatalogEffect::Withdraw {
                log: of.first,
                logs: of.logs,
                origin: Origin {
                    storage: of.spec.storage,
                    provisions: of.spec.provisions,
                },
            });
        }
    }
}
