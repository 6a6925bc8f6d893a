//! Provisions: what the storage makes for a namespace before the command that makes it is written.
//!
//! They stand in the command, so that every node opens the logs with the same ones; nobody but the storage knows what
//! they mean. Each attempt at a command has provisions of its own, for the number of its namespace. When log 0 surely
//! will not have them, because the command was void or was never stored, the storage is told to remove what it made.
//! Where that is not known nothing is removed: somebody may find the command in log 0. What a crash leaves, the storage
//! finds itself.

use super::CatalogCore;
use super::change::Change;
use super::fold::first_version;
use super::messages::{CatalogEffect, CatalogEffects};
use super::namespaces::Entry;
use crate::storage_refusals;
use airmail_log::{Origin, Refusal};
use airmail_model::{Lane, LogId, LogIndex, NamespaceId, Now, Provisions, Sequence, bug};

impl CatalogCore {
    /// Has the storage provision for what a change makes; whether there is anything to wait for.
    pub(super) fn provision(&self, change: &Change, out: &mut CatalogEffects) -> bool {
        let Change::Create { id, name, spec, .. } = change else {
            // Input: a change of a namespace that is there.
            return false;
        };
        if !self.config.provisions {
            return false;
        }
        let namespace = first_version(*id, name, spec);
        let entry = Entry::new(namespace, Provisions::NONE, Sequence(0));
        out.push(CatalogEffect::Provision {
            log: first_log(*id),
            logs: spec.logs,
            spec: entry.log_spec(),
        });
        true
    }

    /// The storage has provisioned for the command under way, or has not: it is written, or refused.
    pub(super) fn provisioned(
        &mut self,
        now: Now,
        result: Result<Provisions, Refusal>,
        out: &mut CatalogEffects,
    ) {
        let current = self.current.as_mut().filter(|of| of.is_provisioning);
        let Some(current) = current else {
            bug!("{result:?} is of no command");
            return;
        };
        current.is_provisioning = false;
        let Change::Create {
            id,
            name,
            provisions,
            ..
        } = &mut current.change
        else {
            bug!("{current:?} was provisioned for");
            return;
        };
        *provisions = match result {
            Ok(answered) => answered,
            Err(why) => {
                let error = storage_refusals::error(&why, first_log(*id), None);
                return self.finish(now, Err(error), out);
            }
        };
        if !self.fold.are_free(*id, name) {
            // Log 0 has been read on meanwhile: it would be void.
            self.withdraw(out);
            return self.void(now, out);
        }
        let change = current.change.clone();
        let written = self.may_change();
        if let Err(error) = written.and_then(|()| self.write(now, &change, out)) {
            self.withdraw(out);
            self.finish(now, Err(error), out);
        }
    }

    /// Log 0 surely has no command with the provisions of the one under way: the storage is to remove them.
    pub(super) fn withdraw(&self, out: &mut CatalogEffects) {
        let change = self.current.as_ref().map(|current| &current.change);
        if let Some(Change::Create {
            id,
            spec,
            provisions,
            ..
        }) = change
            && !provisions.is_none()
        {
            out.push(CatalogEffect::Withdraw {
                log: first_log(*id),
                logs: spec.logs,
                origin: Origin {
                    storage: spec.storage,
                    provisions: *provisions,
                },
            });
        }
    }
}

/// The first log of a namespace that is made.
fn first_log(namespace: NamespaceId) -> LogId {
    LogId {
        namespace,
        lane: Lane::Normal,
        index: LogIndex(0),
    }
}
