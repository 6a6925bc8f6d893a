//! Publishing: from a client's batch to its ack.
//!
//! A log's publishes are answered in order, also those that never reach the storage: each takes its
//! place in the log's queue of pending answers, which is emptied from the front.

use super::Shard;
use crate::access::Action;
use crate::calls::Purpose;
use crate::catalog::CatalogInput;
use crate::input::Effects;
use crate::keys::{LogKey, SessionKey};
use crate::log_head::{Openness, Pending};
use crate::refusal;
use airmail_flow::Ticket;
use airmail_log::{Call, Completion, Refusal, Tag};
use airmail_model::bug;
use airmail_model::frame::{Ack, Refused, Reply, RequestId};
use airmail_model::{Batch, Checked, Error, ErrorCode, Lane, LogId, Now};

impl Shard {
    /// Appends a batch that has been admitted, or refuses it.
    pub(super) fn append(
        &mut self,
        session: SessionKey,
        request: RequestId,
        batch: Checked<Batch>,
        ticket: Option<Ticket>,
        out: &mut Effects,
    ) {
        let id = batch.log();
        let found = self.check(session, &batch);
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
        let head = &mut self.logs[log];
        let number = head.first_pending + head.pending.len() as u64;
        head.pending.push_back(pending);
        out.storage.push(Call::Append {
            t: self.calls.tag(Purpose::Append(log, number)),
            log: id,
            map: batch.map_epoch(),
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
        out: &mut Effects,
    ) {
        let id = batch.log();
        let mut pending = self.pending(session, request, batch);
        pending.result = Some(Err(self.to_refused(error, id)));
        if let Some(log) = self.logs.find(id) {
            self.logs[log].pending.push_back(pending);
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
    fn check(&mut self, session: SessionKey, batch: &Checked<Batch>) -> Result<(), Error> {
        let id = batch.log();
        if id.namespace == LogId::SYSTEM.namespace {
            return Err(Error::new(ErrorCode::NamespaceReserved)
                .field("batch.namespace_id")
                .value(id.namespace)
                .limit("at least 1"));
        }
        let principal = &self.sessions[session].principal;
        self.authorizer
            .authorize(principal, Action::Publish(id.namespace))?;
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
        if !self.ready() {
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
        for topic in batch.topics() {
            let owner = entry.map.log(topic.hash, id.lane);
            if owner != id {
                return Err(stale("batch.log")
                    .value(id.index)
                    .limit(format_args!("{}, for topic {:?}", owner.index, topic.name)));
            }
        }
        let open = self.logs.find(id).map(|log| self.logs[log].openness);
        match open {
            Some(Openness::Open) => Ok(()),
            _ => Err(self.busy("log").value(id)),
        }
    }

    fn to_refused(&self, error: Error, log: LogId) -> Refused {
        let entry = self.catalog().get(log.namespace);
        refusal::refused(error, entry.map(|entry| &entry.map))
    }

    /// The storage has taken a batch: a client's, or one of the catalog's.
    pub(super) fn appended(&mut self, now: Now, t: Tag, done: Completion, out: &mut Effects) {
        let Completion::Appended {
            extent,
            at,
            held,
            duplicate,
            exact,
            ..
        } = done
        else {
            bug!("{done:?} was taken for an append's");
            return;
        };
        match self.calls.answered(t) {
            Some(Purpose::Append(log, number)) => {
                let Some(head) = self.logs.get_mut(log) else {
                    // Input: a log that was deleted meanwhile, and whose publishes were answered then.
                    return;
                };
                head.end = head.end.max(extent.next());
                let ack = Ack {
                    extent,
                    appended: at,
                    held,
                    copies: 1,
                    duplicate,
                    exact,
                };
                self.settle(log, number, Ok(ack), out);
            }
            Some(Purpose::AppendSystem(of)) => {
                self.step_catalog(now, CatalogInput::Appended { of, extent }, out);
            }
            _ => {}
        }
    }

    /// The storage has refused a publish.
    pub(super) fn append_refused(
        &mut self,
        log: LogKey,
        number: u64,
        why: &Refusal,
        out: &mut Effects,
    ) {
        let Some(head) = self.logs.get_mut(log) else {
            // Input: a log that was deleted meanwhile, and whose publishes were answered then.
            return;
        };
        let id = head.id;
        let producer = head
            .pending_mut(number)
            .and_then(|pending| pending.producer);
        let error = if head.openness == Openness::Deleting {
            unknown(id)
        } else {
            refusal::error(why, id, producer)
        };
        let result = Err(self.to_refused(error, id));
        self.settle(log, number, result, out);
    }

    fn settle(
        &mut self,
        log: LogKey,
        number: u64,
        result: Result<Ack, Refused>,
        out: &mut Effects,
    ) {
        let head = &mut self.logs[log];
        match head.pending_mut(number) {
            Some(pending) => pending.result = Some(result),
            None => bug!(
                "publish {number} of {} is answered, and {} wait from {} on",
                head.id,
                head.pending.len(),
                head.first_pending
            ),
        }
        self.answer_in_order(log, out);
    }

    fn answer_in_order(&mut self, log: LogKey, out: &mut Effects) {
        loop {
            let head = &mut self.logs[log];
            match head.pending.front() {
                Some(pending) if pending.result.is_some() => {}
                _ => return,
            }
            head.first_pending += 1;
            if let Some(pending) = head.pending.pop_front() {
                self.answer(pending, out);
            }
        }
    }

    /// Gives a publish its answer; dropped if the session has ended meanwhile.
    fn answer(&mut self, pending: Pending, out: &mut Effects) {
        let result = pending.result.unwrap_or_else(|| {
            bug!(
                "{:?} of {:?} has its turn and no answer",
                pending.request,
                pending.session
            );
            let unknown = Error::new(ErrorCode::OutcomeUnknown).field("publish");
            Err(refusal::refused(unknown, None))
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
                self.allowance.live(pending.bytes);
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
    pub(super) fn abandon(&mut self, log: LogKey, out: &mut Effects) {
        let Some(mut head) = self.logs.remove(log) else {
            return;
        };
        let error = unknown(head.id);
        for mut pending in head.pending.drain(..) {
            let refused = || Err(refusal::refused(error.clone(), None));
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
