//! Publishing: from a client's batch to its ack.
//!
//! A log's publishes are answered in order, also those that never reach the storage: each takes its
//! place in the log's queue of pending answers, which is emptied from the front.

use super::log::LogState;
use super::publish_order::Pending;
use super::{Gateway, GatewayEffects};
use crate::access::Action;
use crate::keys::{LogKey, SessionKey};
use crate::link::ToTower;
use crate::storage_refusals;
use airmail_flow::Ticket;
use airmail_log::Refusal;
use airmail_model::bug;
use airmail_model::frame::{Ack, Refused, Reply, RequestId};
use airmail_model::{Batch, Checked, Error, ErrorCode, Lane, LogId};

impl Gateway {
    /// Appends a batch that has been admitted, or refuses it.
    pub(super) fn append(
        &mut self,
        session: SessionKey,
        request: RequestId,
        batch: Checked<Batch>,
        ticket: Option<Ticket>,
        out: &mut GatewayEffects,
    ) {
        let id = batch.log();
        let found = self.check_batch(session, &batch);
        let log = match (found, self.logs.find(id)) {
            (Ok(()), Some(log)) => log,
            (found, _) => {
                self.hand_back(ticket, false);
                let error = found.err().unwrap_or_else(|| unknown(id));
                return self.refuse_publish(session, request, &batch, error, out);
            }
        };
        let mut pending = self.pending(session, request, &batch);
        pending.in_flight = true;
        pending.ticket = ticket;
        self.stats.appends_in_flight += 1;
        self.stats.appends_in_flight_bytes += pending.bytes as u64;
        let number = self.logs[log].publishes.push(pending);
        out.tell(ToTower::Append {
            log: id,
            number,
            batch,
        });
    }

    /// Refuses a publish, behind the answers to those that came before it to its log.
    pub(super) fn refuse_publish(
        &mut self,
        session: SessionKey,
        request: RequestId,
        batch: &Checked<Batch>,
        error: Error,
        out: &mut GatewayEffects,
    ) {
        let id = batch.log();
        let mut pending = self.pending(session, request, batch);
        pending.result = Some(Err(self.to_refused(error, id)));
        if let Some(log) = self.logs.find(id) {
            self.logs[log].publishes.push(pending);
            self.answer_in_order(log, out);
        } else {
            self.answer(pending, out);
        }
    }

    fn pending(&self, session: SessionKey, request: RequestId, batch: &Checked<Batch>) -> Pending {
        Pending {
            session: self.sessions[session].id,
            request,
            producer: batch.producer(),
            messages: batch.records(),
            bytes: batch.bytes().len(),
            in_flight: false,
            ticket: None,
            result: None,
        }
    }

    /// Everything that is asked of a batch before it goes to the storage.
    fn check_batch(&mut self, session: SessionKey, batch: &Checked<Batch>) -> Result<(), Error> {
        let id = batch.log();
        if id.namespace == LogId::SYSTEM.namespace {
            return Err(Error::new(ErrorCode::NamespaceReserved)
                .field("batch.namespace_id")
                .value(id.namespace)
                .limit("at least 1"));
        }
        let principal = &self.sessions[session].principal;
        let authorizer = &self.access.authorizer;
        authorizer.authorize(principal, Action::Publish(id.namespace))?;
        if batch.is_control() || batch.is_sliced() {
            return Err(Error::new(ErrorCode::BatchMalformed)
                .field("batch.flags")
                .value(if batch.is_control() {
                    "control"
                } else {
                    "sliced"
                })
                .limit("neither, in what a client publishes"));
        }
        if id.lane != Lane::Normal {
            return Err(Error::unimplemented("batch.lane").value(id.lane));
        }
        if !self.namespaces.is_ready {
            return Err(self.busy("node"));
        }
        let Some(entry) = self.catalog().get(id.namespace) else {
            return Err(unknown(id));
        };
        let stale = |field: &str| Error::new(ErrorCode::MapStale).field(field);
        if batch.map_epoch() != entry.map.epoch {
            return Err(stale("batch.map_epoch")
                .value(batch.map_epoch())
                .limit(entry.map.epoch));
        }
        for (place, topic) in (0u16..).zip(batch.topic_hashes()) {
            let owner = entry.map.log(topic, id.lane);
            if owner != id {
                let (owner, name) = (owner.index, batch.topic(place).name);
                return Err(stale("batch.log")
                    .value(id.index)
                    .limit(format_args!("{owner}, for topic {name:?}")));
            }
        }
        let state = self.logs.find(id).map(|log| self.logs[log].state);
        match state {
            Some(LogState::Open) => Ok(()),
            Some(LogState::Closed) | None => Err(self.busy("log").value(id)),
        }
    }

    fn to_refused(&self, error: Error, log: LogId) -> Refused {
        let entry = self.catalog().get(log.namespace);
        storage_refusals::refused(error, entry.map(|entry| &entry.map))
    }

    /// The tower has said what became of a publish.
    pub(super) fn appended(
        &mut self,
        log: LogId,
        number: u64,
        result: Result<Ack, Refusal>,
        out: &mut GatewayEffects,
    ) {
        let Some(key) = self.logs.find(log) else {
            // Input: a log that was deleted meanwhile, and whose publishes were answered then.
            return;
        };
        let result = result.map_err(|why| self.append_refused(key, number, &why));
        self.settle(key, number, result, out);
    }

    /// Answer for a client whose batch the storage has refused.
    fn append_refused(&mut self, key: LogKey, number: u64, why: &Refusal) -> Refused {
        let log = &mut self.logs[key];
        let id = log.id;
        let pending = log.publishes.get_mut(number);
        let producer = pending.and_then(|pending| pending.producer);
        let error = match log.state {
            LogState::Closed => unknown(id),
            LogState::Open => storage_refusals::error(why, id, producer),
        };
        self.to_refused(error, id)
    }

    fn settle(
        &mut self,
        log: LogKey,
        number: u64,
        result: Result<Ack, Refused>,
        out: &mut GatewayEffects,
    ) {
        let publishes = &mut self.logs[log].publishes;
        match publishes.get_mut(number) {
            Some(pending) => pending.result = Some(result),
            None => bug!(
                "publish {number} of {} is answered, and {} wait from {} on",
                self.logs[log].id,
                self.logs[log].publishes.iter().len(),
                self.logs[log].publishes.first()
            ),
        }
        self.answer_in_order(log, out);
    }

    fn answer_in_order(&mut self, log: LogKey, out: &mut GatewayEffects) {
        while let Some(pending) = self.logs[log].publishes.pop_answered() {
            self.answer(pending, out);
        }
    }

    /// Gives a publish its answer; dropped if the session has ended meanwhile.
    fn answer(&mut self, pending: Pending, out: &mut GatewayEffects) {
        let result = pending.result.unwrap_or_else(|| {
            bug!(
                "{:?} of {:?} has its turn and no answer",
                pending.request,
                pending.session
            );
            let unknown = Error::new(ErrorCode::OutcomeUnknown).field("publish");
            Err(storage_refusals::refused(unknown, None))
        });
        if pending.in_flight {
            self.stats.appends_in_flight -= 1;
            self.stats.appends_in_flight_bytes -= pending.bytes as u64;
        }
        self.hand_back(pending.ticket, result.is_ok());
        match &result {
            Ok(ack) => {
                self.stats.published_batches += 1;
                self.stats.published_messages += u64::from(pending.messages);
                self.stats.published_bytes += pending.bytes as u64;
                self.live.moved_bytes += pending.bytes;
                self.stats.duplicates += u64::from(ack.duplicate);
            }
            Err(refused) => self.stats.refuse(refused.error.code()),
        }
        if self.sessions.find(pending.session).is_some() {
            let request = pending.request;
            let reply = Reply::Acked { request, result };
            out.replies.push((pending.session, reply));
        }
    }

    /// Answers everything that a deleted log's publishes still wait for.
    pub(super) fn abandon(&mut self, log: LogKey, out: &mut GatewayEffects) {
        let Some(mut log) = self.logs.remove(log) else {
            bug!("{log:?} is gone twice");
            return;
        };
        let error = unknown(log.id);
        for mut pending in log.publishes.take_all() {
            let refused = || Err(storage_refusals::refused(error.clone(), None));
            pending.result.get_or_insert_with(refused);
            self.answer(pending, out);
        }
    }
}

/// There is no such namespace, as the answer to a batch.
fn unknown(log: LogId) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("batch.namespace_id")
        .value(log.namespace)
}
