//! Orders that follow from changes to namespaces, to the side that has their logs, and the results
//! of those.

use super::change::Change;
use super::fold::Dying;
use super::messages::{CatalogEffect, CatalogEffects, Order, SystemAppend};
use super::{CatalogCore, Phase};
use airmail_model::bug;
use airmail_model::{Error, Lane, NamespaceId, Now};
use std::sync::Arc;

/// Logs of a namespace that are being opened or deleted.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// Number of orders that have not been answered for.
    pub(super) left: usize,
    /// Error of the first of those that failed.
    pub(super) error: Option<Error>,
}

impl CatalogCore {
    /// Orders for the logs what a command means. While log 0 is read for the first time, only its end
    /// counts.
    pub(super) fn changed(&mut self, change: &Change, out: &mut CatalogEffects) {
        if self.phase < Phase::Settling {
            return;
        }
        self.serve(out);
        match change {
            Change::Create { id, .. } | Change::Update { id, .. } => self.order_open(*id, out),
            Change::Delete { id, .. } => self.order_deletion(*id, out),
            Change::Purged { .. } | Change::Raise { .. } => {}
        }
    }

    /// Orders every log open that there is to be, and every other one away.
    pub(super) fn order_all(&mut self, out: &mut CatalogEffects) {
        self.serve(out);
        let known: Vec<_> = self.snapshot.iter().map(|e| e.namespace.id).collect();
        for id in known {
            self.order_open(id, out);
        }
        let dying: Vec<_> = self.fold.dying.keys().copied().collect();
        for id in dying {
            self.order_deletion(id, out);
        }
    }

    /// Makes what has been folded visible.
    fn serve(&mut self, out: &mut CatalogEffects) {
        self.snapshot = Arc::new(self.fold.catalog.clone());
        out.push(CatalogEffect::Changed);
    }

    /// Orders a namespace's logs open, or open ones to be kept as it says now.
    fn order_open(&mut self, id: NamespaceId, out: &mut CatalogEffects) {
        let Some(entry) = self.snapshot.get(id) else {
            bug!("namespace {id} is to be opened and is not there");
            return;
        };
        let spec = entry.log_spec();
        let settling = self.settling.entry(id).or_default();
        for log in entry.map.logs(Lane::Normal) {
            settling.left += 1;
            out.push(CatalogEffect::Order(Order::Open { log, spec }));
        }
    }

    /// Orders a deleted namespace's logs away.
    fn order_deletion(&mut self, id: NamespaceId, out: &mut CatalogEffects) {
        let Some(dying) = self.fold.dying.get(&id).copied() else {
            bug!("namespace {id} is to be deleted and was not");
            return;
        };
        let Dying {
            logs,
            as_of,
            origin,
        } = dying;
        self.settling.entry(id).or_default().left += usize::from(logs);
        let order = Order::Delete {
            namespace: id,
            logs,
            as_of,
            origin,
        };
        out.push(CatalogEffect::Order(order));
    }

    /// An order for one of a namespace's logs is answered: it is opened or deleted, or could not be. One that could not
    /// be opened is tried again by the side that has it, which tells nothing more here.
    pub(super) fn log_settled(
        &mut self,
        now: Now,
        id: NamespaceId,
        result: Result<(), Error>,
        out: &mut CatalogEffects,
    ) {
        if let Some(settling) = self.settling.get_mut(&id) {
            settling.left = settling.left.saturating_sub(1);
            settling.error = settling.error.take().or(result.err());
            if settling.left == 0 && settling.error.is_none() {
                self.purge(now, id, out);
            }
        }
        self.conclude(now, out);
        self.forget_settled();
        self.check_ready();
    }

    /// Forgets whose orders are done, if no command waits to hear of it. Until all is ready, the start does.
    pub(super) fn forget_settled(&mut self) {
        if self.phase == Phase::Ready && self.current.is_none() {
            self.settling.retain(|_, settling| settling.left > 0);
        }
    }

    /// Writes down that nothing of a deleted namespace is left.
    fn purge(&mut self, now: Now, id: NamespaceId, out: &mut CatalogEffects) {
        if !self.fold.dying.contains_key(&id) {
            return;
        }
        // If it is not written, the deletion is only done once more at the next start.
        if let Ok(batch) = (Change::Purged { id }).to_batch(now.wall, self.fold.version) {
            let of = SystemAppend::Purge;
            out.push(CatalogEffect::Append { of, batch });
        }
    }
}
