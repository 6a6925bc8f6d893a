//! Acks: from what the tower says of a publish to the answer of its client.
//!
//! A log's pending answers are given from the front, so that they come in the order of its publishes
//! ([`publish_order`](super::publish_order)). With its answer a publish hands back the ticket of the publish
//! gate, which makes room for others.

use super::log::LogState;
use super::publish_order::{Pending, StampedBy};
use super::{Gateway, GatewayEffects};
use crate::keys::LogKey;
use crate::storage_refusals;
use airmail_flow::Ticket;
use airmail_log::Refusal;
use airmail_model::bug;
use airmail_model::frame::{Ack, Refused, Reply};
use airmail_model::{Error, ErrorCode, LogId};

impl Gateway {
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
        let stamped = self.stamped_by(key, number);
        if let (Err(why), StampedBy::Gateway(epoch)) = (&result, stamped) {
            self.logs[key].end_epoch(epoch, number, why);
        }
        if let (Err(why), StampedBy::Client) = (&result, stamped)
            && !why.may_come_again()
        {
            self.doubt_stream(key, number);
        }
        let result = match (result, stamped) {
            (Ok(_), StampedBy::Doubted) => Err(Refusal::OutcomeUnknown),
            (Err(why), StampedBy::Gateway(_) | StampedBy::Doubted) => {
                Err(self.without_producer(why))
            }
            (result, _) => result,
        };
        let result = result.map_err(|why| self.append_refused(key, number, &why));
        self.settle(key, number, result, out);
    }

    /// Notes that the fate of a client's batch is open: nothing more of its epoch in its stream is sole.
    fn doubt_stream(&mut self, key: LogKey, number: u64) {
        let log = &mut self.logs[key];
        let pending = log.publishes.get_mut(number);
        let of = pending.and_then(|pending| Some((pending.session, pending.producer?)));
        if let Some((session, stamp)) = of
            && let Some(session) = self.sessions.find(session)
        {
            let id = self.logs[key].id;
            self.sessions[session].streams.doubt(id, stamp);
        }
    }

    /// Giver of a publish's stamp.
    fn stamped_by(&mut self, key: LogKey, number: u64) -> StampedBy {
        let pending = self.logs[key].publishes.get_mut(number);
        pending.map_or(StampedBy::Client, |pending| pending.stamped)
    }

    /// Answer for a client whose batch the storage has refused.
    fn append_refused(&mut self, key: LogKey, number: u64, why: &Refusal) -> Refused {
        let log = &mut self.logs[key];
        let id = log.id;
        let pending = log.publishes.get_mut(number);
        let producer = pending.and_then(|pending| pending.producer);
        let is_closed = log.state == LogState::Closed;
        let is_deleted = is_closed && self.catalog().get(id.namespace).is_none();
        let error = if is_deleted || is_closed && matches!(why, Refusal::NoLog) {
            self.gone(id)
        } else {
            storage_refusals::error(why, id, producer)
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
                "publish {number} of {} is answered, and {} wait from {:?} on",
                self.logs[log].id,
                self.logs[log].publishes.len(),
                self.logs[log].publishes.first()
            ),
        }
        self.answer_in_order(log, out);
    }

    /// Gives the answers of a log whose turn has come.
    pub(super) fn answer_in_order(&mut self, log: LogKey, out: &mut GatewayEffects) {
        while let Some(pending) = self.logs[log].publishes.pop_answered() {
            self.answer(pending, out);
        }
    }

    /// Gives a publish its answer; dropped if the session has ended meanwhile.
    pub(super) fn answer(&mut self, pending: Pending, out: &mut GatewayEffects) {
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
            self.stats.end_append(pending.lane, pending.bytes);
        }
        self.hand_back(pending.ticket, result.is_ok());
        match &result {
            Ok(ack) => {
                let Pending {
                    lane,
                    messages,
                    bytes,
                    ..
                } = pending;
                self.stats.published(lane, messages, bytes);
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

    /// Gives a publish's ticket back to the gate, which may let others in.
    pub(super) fn hand_back(&mut self, ticket: Option<Ticket>, acknowledged: bool) {
        if let (Some(gate), Some(ticket)) = (&mut self.publish_gate, ticket) {
            gate.hand_back(self.now.mono, ticket, acknowledged);
        }
    }

    /// Refusal of a publish to a log, with the map that its client should have.
    pub(super) fn to_refused(&self, error: Error, log: LogId) -> Refused {
        let entry = self.catalog().get(log.namespace);
        storage_refusals::refused(error, entry.map(|entry| &entry.map))
    }

    /// Answers everything that the publishes of a log that is no more still wait for.
    pub(super) fn abandon(&mut self, log: LogKey, out: &mut GatewayEffects) {
        let Some(mut log) = self.logs.remove(log) else {
            bug!("{log:?} is gone twice");
            return;
        };
        let gone = self.gone(log.id);
        for mut pending in log.publishes.take_all() {
            let is_unsure = pending.in_flight && gone.code() == ErrorCode::MapStale;
            if pending.result.is_none() {
                let error = if is_unsure {
                    storage_refusals::error(&Refusal::OutcomeUnknown, log.id, None)
                } else {
                    gone.clone()
                };
                pending.result = Some(Err(self.to_refused(error, log.id)));
            }
            self.answer(pending, out);
        }
    }

    /// Reason for which a log that is no more takes nothing: its namespace is deleted, or goes on with a later map.
    fn gone(&self, log: LogId) -> Error {
        let Some(entry) = self.catalog().get(log.namespace) else {
            // Input: a log that is deleted with its namespace.
            return unknown(log);
        };
        let of = entry
            .earlier_of(log)
            .map_or(entry.map.epoch, |of| of.map.epoch);
        Error::new(ErrorCode::MapStale)
            .field("batch.map_epoch")
            .value(of)
            .limit(entry.map.epoch)
    }
}

/// There is no such namespace, as the answer to a batch.
pub(super) fn unknown(log: LogId) -> Error {
    Error::new(ErrorCode::NamespaceNotFound)
        .field("batch.namespace_id")
        .value(log.namespace)
}
