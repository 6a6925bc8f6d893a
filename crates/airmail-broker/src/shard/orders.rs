//! Between the catalog and the rest of the shard: what happens to log 0 is handed to it, and what it wants
//! done is done. The logs that it orders open are opened here, and tried again; those that it orders away
//! lose their subscribers and publishes.

use super::Shard;
use crate::calls::{Owner, Purpose};
use crate::catalog::{CatalogEffect, CatalogEffects, CatalogInput, CommandRefusal, Order};
use crate::input::Effects;
use crate::keys::LogKey;
use crate::log_head::Openness;
use crate::refusal;
use airmail_log::{Bounds, Call, LogSpec, Refusal};
use airmail_model::{Error, ErrorCode, Lane, LogId, LogIndex, NamespaceId, Now};

impl Shard {
    /// Hands the catalog what has happened, and does what it wants done.
    pub(super) fn step_catalog(&mut self, now: Now, input: CatalogInput, out: &mut Effects) {
        let mut effects = CatalogEffects::default();
        self.catalog.step(now, input, &mut effects);
        for effect in effects.in_order {
            self.do_for_catalog(now, effect, out);
        }
    }

    fn do_for_catalog(&mut self, now: Now, effect: CatalogEffect, out: &mut Effects) {
        let log = LogId::SYSTEM;
        match effect {
            CatalogEffect::Open(spec) => {
                let t = self.calls.tag(Purpose::OpenSystem);
                out.storage.push(Call::Open { t, log, spec });
            }
            CatalogEffect::Read { from, credit_bytes } => out.storage.push(Call::Read {
                r: self.calls.reader(Owner::System),
                log,
                from,
                scope: Box::default(),
                credit: credit_bytes,
            }),
            CatalogEffect::Credit { r, bytes } => out.storage.push(Call::Credit { r, bytes }),
            CatalogEffect::Append { of, batch } => out.storage.push(Call::Append {
                t: self.calls.tag(Purpose::AppendSystem(of)),
                log,
                map: batch.map_epoch(),
                batch,
            }),
            CatalogEffect::Order(Order::Open { log, spec }) => {
                let key = self.logs.key(log);
                self.open_log(key, spec, out);
            }
            CatalogEffect::Order(Order::Delete { namespace, logs }) => {
                self.delete_logs(namespace, logs, out);
            }
            CatalogEffect::Answer { id, result } => {
                let result = result.map_err(|refusal| self.command_error(refusal));
                self.answer_command(id, result, out);
            }
            // Whoever needs the namespaces asks for the snapshot each time.
            CatalogEffect::Changed => {}
            CatalogEffect::RetryLater => self.retry_later(now),
        }
    }

    /// What a client is told whose command was not done.
    fn command_error(&mut self, refusal: CommandRefusal) -> Error {
        match refusal {
            CommandRefusal::NotReady => self.busy("node"),
            CommandRefusal::QueueFull { commands_max } => {
                let limit = format!("{commands_max} commands that wait");
                self.busy("commands").limit(limit)
            }
            CommandRefusal::Failed(error) => error,
        }
    }

    /// Tells the catalog that a log is opened or deleted, or could not be.
    fn log_settled(
        &mut self,
        now: Now,
        namespace: NamespaceId,
        result: Result<(), Error>,
        out: &mut Effects,
    ) {
        let input = CatalogInput::LogSettled { namespace, result };
        self.step_catalog(now, input, out);
    }

    /// Asks the storage to open a log, or to keep an open one as its namespace says now.
    fn open_log(&mut self, log: LogKey, spec: LogSpec, out: &mut Effects) {
        let head = &mut self.logs[log];
        if head.openness != Openness::Open {
            head.openness = Openness::Opening;
        }
        let t = self.calls.tag(Purpose::Open(log));
        let log = head.id;
        out.storage.push(Call::Open { t, log, spec });
    }

    /// Asks once more for a log that could not be opened, as its namespace says now.
    pub(super) fn open_again(&mut self, log: LogKey, out: &mut Effects) {
        let namespace = self.logs[log].id.namespace;
        let Some(entry) = self.catalog().get(namespace) else {
            // Input: a namespace that was deleted meanwhile, as its logs are about to be.
            return;
        };
        let spec = entry.log_spec();
        self.open_log(log, spec, out);
    }

    pub(super) fn log_opened(&mut self, now: Now, log: LogKey, bounds: Bounds, out: &mut Effects) {
        let Some(head) = self.logs.get_mut(log) else {
            // Input: a log that was deleted while it was opened.
            return;
        };
        let namespace = head.id.namespace;
        if head.openness != Openness::Deleting {
            head.openness = Openness::Open;
            head.incarnation = bounds.incarnation;
            head.end = head.end.max(bounds.next);
        }
        self.log_settled(now, namespace, Ok(()), out);
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
            // Input: a log that was deleted while it was opened.
            return;
        };
        let id = head.id;
        if head.openness == Openness::Opening {
            head.openness = Openness::Failed;
            self.retry_later(now);
        }
        let error = refusal::error(why, id, None);
        self.log_settled(now, id.namespace, Err(error), out);
    }

    /// Ends everything that a deleted namespace's logs were used for, and deletes them.
    fn delete_logs(&mut self, id: NamespaceId, count: u16, out: &mut Effects) {
        for index in 0..count {
            let log = LogId {
                namespace: id,
                lane: Lane::Normal,
                index: LogIndex(index),
            };
            let key = self.logs.key(log);
            self.fail_subscribers(key, id, out);
            self.logs[key].openness = Openness::Deleting;
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
        self.log_settled(now, id, Ok(()), out);
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
        let error = refusal::error(why, self.logs[log].id, None);
        self.abandon(log, out);
        self.log_settled(now, id, Err(error), out);
    }
}

/// The namespace of a subscription or log is no more.
pub(super) fn deleted(id: NamespaceId) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("namespace")
        .value(id)
        .limit("not deleted")
}
