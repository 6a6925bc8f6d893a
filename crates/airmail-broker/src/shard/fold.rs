//! Folding log 0: what each command does to the logs when it is met.

use super::Shard;
use super::manage::Phase;
use crate::calls::Purpose;
use crate::command::Change;
use crate::input::Effects;
use crate::keys::LogKey;
use crate::log_head::Openness;
use crate::refusal;
use airmail_log::{Bounds, Call, LogSpec, Refusal, Stored};
use airmail_model::{Error, ErrorCode, Lane, LogId, LogIndex, NamespaceId, Now};

impl Shard {
    /// The next commands of log 0.
    pub(super) fn system_batch(&mut self, now: Now, stored: &Stored, out: &mut Effects) {
        for record in stored.batch.iter() {
            // A command that cannot be read is of a later version: it is void here.
            let change = Change::decode(record.payload);
            let applied = change
                .as_ref()
                .is_some_and(|c| self.namespaces.fold.apply(c));
            let at = stored.base.plus(record.index.into());
            self.namespaces.met(at, applied);
            if let Some(change) = change.filter(|_| applied) {
                self.changed(&change, out);
            }
        }
        self.namespaces.next = stored.extent.next();
        if let Some(r) = self.namespaces.reader {
            let bytes = u32::try_from(stored.batch.bytes().len()).unwrap_or(u32::MAX);
            out.storage.push(Call::Credit { r, bytes });
        }
        self.conclude(now, out);
    }

    /// Does for the logs what a command means. While log 0 is read for the first time, only its end
    /// counts.
    fn changed(&mut self, change: &Change, out: &mut Effects) {
        if matches!(self.namespaces.phase, Phase::Opening | Phase::Replaying) {
            return;
        }
        self.namespaces.publish();
        match change {
            Change::Create { id, .. } | Change::Update { id, .. } => self.open_logs(*id, out),
            Change::Delete { id, .. } => self.delete_logs(*id, out),
            Change::Purged { .. } => {}
        }
    }

    /// Opens a namespace's logs, or tells open ones how they are to be kept now.
    pub(super) fn open_logs(&mut self, id: NamespaceId, out: &mut Effects) {
        let Some(entry) = self.catalog().get(id).cloned() else {
            return;
        };
        for log in entry.map.logs(Lane::Normal) {
            let key = self.logs.key(log);
            self.namespaces.settling.entry(id).or_default().left += 1;
            self.open_log(key, out);
        }
    }

    /// Asks the storage to open a log as its namespace says.
    pub(super) fn open_log(&mut self, log: LogKey, out: &mut Effects) {
        let id = self.logs[log].id;
        let Some(entry) = self.catalog().get(id.namespace) else {
            return;
        };
        let spec = LogSpec {
            durability: entry.namespace.spec.durability,
            retention: entry.namespace.spec.retention,
            epoch: entry.map.epoch,
        };
        if self.logs[log].openness != Openness::Open {
            self.logs[log].openness = Openness::Opening;
        }
        let t = self.calls.tag(Purpose::Open(log));
        out.storage.push(Call::Open { t, log: id, spec });
    }

    pub(super) fn log_opened(&mut self, now: Now, log: LogKey, bounds: Bounds, out: &mut Effects) {
        let Some(head) = self.logs.get_mut(log) else {
            return;
        };
        let namespace = head.id.namespace;
        if head.openness != Openness::Deleting {
            head.openness = Openness::Open;
            head.incarnation = bounds.incarnation;
            head.end = head.end.max(bounds.next);
        }
        self.settled(now, namespace, None, out);
    }

    /// A log could not be opened: it is tried again. One that is open stays as it is.
    pub(super) fn log_not_opened(
        &mut self,
        now: Now,
        log: LogKey,
        why: &Refusal,
        out: &mut Effects,
    ) {
        let Some(head) = self.logs.get_mut(log) else {
            return;
        };
        let id = head.id;
        if head.openness == Openness::Opening {
            head.openness = Openness::Failed;
            self.retry_later(now);
        }
        let error = refusal::error(why, id, None);
        self.settled(now, id.namespace, Some(error), out);
    }

    /// Ends everything that a deleted namespace's logs were used for, and deletes them.
    pub(super) fn delete_logs(&mut self, id: NamespaceId, out: &mut Effects) {
        let count = self.namespaces.fold.dying.get(&id).copied().unwrap_or(0);
        for index in 0..count {
            let log = LogId {
                namespace: id,
                lane: Lane::Normal,
                index: LogIndex(index),
            };
            let key = self.logs.key(log);
            self.fail_subscribers(key, id, out);
            self.logs[key].openness = Openness::Deleting;
            self.namespaces.settling.entry(id).or_default().left += 1;
            let t = self.calls.tag(Purpose::Delete(id, key));
            out.storage.push(Call::Delete { t, log });
        }
    }

    pub(super) fn log_deleted(
        &mut self,
        now: Now,
        id: NamespaceId,
        log: LogKey,
        out: &mut Effects,
    ) {
        self.abandon(log, out);
        self.settled(now, id, None, out);
    }

    /// A log could not be deleted. The namespace is gone all the same; what is left is deleted at
    /// the next start.
    pub(super) fn log_not_deleted(
        &mut self,
        now: Now,
        id: NamespaceId,
        log: LogKey,
        why: &Refusal,
        out: &mut Effects,
    ) {
        if *why == Refusal::NoLog {
            return self.log_deleted(now, id, log, out);
        }
        let log_id = self.logs[log].id;
        self.abandon(log, out);
        self.settled(now, id, Some(refusal::error(why, log_id, None)), out);
    }

    /// One of a namespace's logs is opened or deleted, or could not be.
    fn settled(&mut self, now: Now, id: NamespaceId, error: Option<Error>, out: &mut Effects) {
        if let Some(settling) = self.namespaces.settling.get_mut(&id) {
            settling.left = settling.left.saturating_sub(1);
            settling.error = settling.error.take().or(error);
            if settling.left == 0 && settling.error.is_none() {
                self.purge(now, id, out);
            }
        }
        self.conclude(now, out);
        self.check_ready();
    }

    /// Writes down that nothing of a deleted namespace is left.
    fn purge(&mut self, now: Now, id: NamespaceId, out: &mut Effects) {
        if !self.namespaces.fold.dying.contains_key(&id) {
            return;
        }
        // If it is not written, the deletion is only done once more at the next start.
        if let Ok(batch) = (Change::Purged { id }).to_batch(now.wall) {
            out.storage.push(Call::Append {
                t: self.calls.tag(Purpose::Purge),
                log: LogId::SYSTEM,
                map: crate::command::SYSTEM_EPOCH,
                batch,
            });
        }
    }
}

/// The namespace of a subscription or log is no more.
pub(super) fn deleted(id: NamespaceId) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("namespace")
        .value(id)
        .limit("not deleted")
}
