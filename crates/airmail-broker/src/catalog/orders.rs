//! Orders that follow from changes to namespaces, to the side that has their logs, and the results
//! of those.

use super::change::Change;
use super::fold::{Dying, DyingLogs};
use super::messages::{CatalogEffect, CatalogEffects, Order, SystemAppend};
use super::namespaces::EarlierState;
use super::{CatalogCore, Phase};
use airmail_model::bug;
use airmail_model::{Error, LogId, MapEpoch, NamespaceId, Now, Sequence};
use std::sync::Arc;

/// Logs of a namespace that are being opened, sealed or deleted.
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
            Change::Create { id, .. }
            | Change::Update { id, .. }
            | Change::Move { id, .. }
            | Change::AddHigh { id }
            | Change::Recreate { id, .. } => self.order_open(*id, out),
            Change::Suspend { log, .. } | Change::Truncate { log, .. } => {
                self.order_log(*log, out);
            }
            Change::Retired { id, .. } => self.order_retired_away(*id, out),
            Change::Delete { id, .. } => self.order_deletion(*id, out),
            Change::Purged { .. }
            | Change::Raise { .. }
            | Change::CreateRole { .. }
            | Change::DeleteRole { .. } => {}
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
        self.forget_emptied();
        out.push(CatalogEffect::Changed);
    }

    /// Orders a namespace's logs open, or open ones to be kept as it says now.
    fn order_open(&mut self, id: NamespaceId, out: &mut CatalogEffects) {
        let Some(entry) = self.snapshot.get(id) else {
            bug!("namespace {id} is to be opened and is not there");
            return;
        };
        let settling = self.settling.entry(id).or_default();
        let mut order = |log, spec, seal| {
            settling.left += 1;
            out.push(CatalogEffect::Order(Order::Open { log, spec, seal }));
        };
        for log in entry.all_logs() {
            order(log, entry.spec_of(log), None);
        }
        for earlier in entry.earlier.iter().filter(|earlier| earlier.is_kept()) {
            let next = MapEpoch(earlier.map.epoch.0 + 1);
            for log in earlier.all_logs() {
                order(log, entry.earlier_spec(earlier), Some(next));
            }
        }
        self.order_retired_away(id, out);
    }

    /// Orders a log of a namespace's present map open as the namespace says now.
    fn order_log(&mut self, log: LogId, out: &mut CatalogEffects) {
        let Some(entry) = self.snapshot.get(log.namespace) else {
            bug!("{log} is to be opened, and its namespace is not there");
            return;
        };
        let (spec, seal) = (entry.spec_of(log), None);
        self.settling.entry(log.namespace).or_default().left += 1;
        out.push(CatalogEffect::Order(Order::Open { log, spec, seal }));
    }

    /// Orders the logs of a namespace's retired maps away.
    fn order_retired_away(&mut self, id: NamespaceId, out: &mut CatalogEffects) {
        let Some(entry) = self.snapshot.get(id).cloned() else {
            bug!("logs of namespace {id} are retired, and it is not there");
            return;
        };
        for earlier in &entry.earlier {
            if let EarlierState::Retired {
                as_of,
                is_purged: false,
                ..
            } = earlier.state
            {
                self.order_away(id, DyingLogs::of(earlier), as_of, out);
            }
        }
    }

    /// Orders logs of one map away.
    fn order_away(
        &mut self,
        namespace: NamespaceId,
        dying: DyingLogs,
        as_of: Sequence,
        out: &mut CatalogEffects,
    ) {
        let DyingLogs {
            first,
            logs,
            has_high,
            origin,
        } = dying;
        let lanes = 1 + usize::from(has_high);
        self.settling.entry(namespace).or_default().left += usize::from(logs) * lanes;
        out.push(CatalogEffect::Order(Order::Delete {
            namespace,
            first,
            logs,
            has_high,
            as_of,
            origin,
        }));
    }

    /// Orders a deleted namespace's logs away.
    fn order_deletion(&mut self, id: NamespaceId, out: &mut CatalogEffects) {
        let Some(Dying { as_of, logs }) = self.fold.dying.get(&id).cloned() else {
            bug!("namespace {id} is to be deleted and was not");
            return;
        };
        for of in logs {
            self.order_away(id, of, as_of, out);
        }
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

    /// Writes down that nothing is left of a deleted namespace, or of the retired logs of one that is there.
    fn purge(&mut self, now: Now, id: NamespaceId, out: &mut CatalogEffects) {
        if self.fold.dying.contains_key(&id) {
            return self.note(now, &Change::Purged { id, epoch: None }, out);
        }
        let Some(entry) = self.fold.catalog.get(id).cloned() else {
            // Input: an order about a namespace that is purged already.
            return;
        };
        for earlier in &entry.earlier {
            if let EarlierState::Retired {
                is_purged: false, ..
            } = earlier.state
            {
                let epoch = Some(earlier.map.epoch);
                self.note(now, &Change::Purged { id, epoch }, out);
            }
        }
    }

    /// Something is to be published to lane high of a namespace: that is to have logs for it.
    pub(super) fn want_high(&self, now: Now, id: NamespaceId, out: &mut CatalogEffects) {
        let has_high = self.fold.catalog.get(id).map(|entry| entry.has_high);
        if has_high == Some(false) && self.phase == Phase::Ready && !self.log.is_torn {
            self.note(now, &Change::AddHigh { id }, out);
        }
    }

    /// Writes a note to log 0. If it is not written, what it is about is only done once more, later.
    pub(super) fn note(&self, now: Now, change: &Change, out: &mut CatalogEffects) {
        if let Ok(batch) = change.to_batch(now.wall, self.fold.version) {
            let of = SystemAppend::Note;
            out.push(CatalogEffect::Append { of, batch });
        }
    }
}
