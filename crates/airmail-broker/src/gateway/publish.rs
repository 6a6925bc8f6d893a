//! Publishing: from a client's batch to the tower.
//!
//! A batch passes admission, then the publish gate, then it is checked and goes to the tower. It may have to
//! wait: for admission, with its session ([`admission`](super::admission)), or at the gate
//! ([`publish_gate`](super::publish_gate)), until another's answer makes room. A log's publishes are answered
//! in order ([`acks`](super::acks)), also those that never reach the storage: each takes its place in the
//! log's queue of pending answers (`order`).

use super::acks::unknown;
use super::log::LogState;
use super::publish_gate::{GateAnswer, PublishGate, Waiting};
use super::publish_order::{Pending, StampedBy};
use super::{Gateway, GatewayEffects};
use crate::access::{Action, Admit};
use crate::keys::SessionKey;
use crate::link::ToTower;
use crate::storage_refusals;
use airmail_flow::Ticket;
use airmail_model::frame::RequestId;
use airmail_model::{Batch, Checked, Error, ErrorCode, LogId, Role};

impl Gateway {
    /// A client publishes: the batch passes admission now, or waits behind the session's others.
    pub(super) fn publish(
        &mut self,
        session: SessionKey,
        request: RequestId,
        (batch, begins_epoch): (Checked<Batch>, bool),
        out: &mut GatewayEffects,
    ) {
        if let Some(stamp) = batch
            .producer()
            .filter(|_| begins_epoch && self.logs.keeps_streams)
        {
            let streams = &mut self.sessions[session].streams;
            streams.begin(batch.log(), stamp);
        }
        // Whoever comes while it is not sure that the namespaces are all is told so now: one that waits is looked at
        // again when it goes on, and nobody looks for its namespace then.
        let is_known = self.catalog().get(batch.log().namespace).is_some();
        if !self.namespaces.is_ready && !is_known {
            let error = self.busy("node");
            return self.refuse_publish(session, request, &batch, error, out);
        }
        if !self.sessions[session].publishes.queue.is_empty() {
            self.park(session, request, batch, out);
            return;
        }
        match self.ask_admission(session, &batch) {
            Admit::Go => self.enter(session, request, batch, out),
            Admit::WaitFor(delay) => {
                let wake = self.now.mono.plus(delay);
                self.sessions[session].publishes.wake = wake;
                self.park(session, request, batch, out);
            }
            Admit::Refuse(error) => self.refuse_publish(session, request, &batch, error, out),
        }
    }

    /// A batch has passed admission: it goes on now, or when there is room.
    pub(super) fn enter(
        &mut self,
        session: SessionKey,
        request: RequestId,
        batch: Checked<Batch>,
        out: &mut GatewayEffects,
    ) {
        // Those whose turn has come in this step stand before whoever asks now.
        self.let_in(out);
        let Some(gate) = &mut self.publish_gate else {
            // Input: a shard without a gate.
            return self.append(session, request, batch, None, out);
        };
        let id = self.sessions[session].id;
        match gate.enter(self.now.mono, id, request, &batch) {
            GateAnswer::Passed(ticket) => self.append(session, request, batch, Some(ticket), out),
            GateAnswer::Waits => self.stats.parked += 1,
            GateAnswer::Refused(error) => self.refuse_publish(session, request, &batch, error, out),
        }
    }

    /// Lets those go on whose turn has come. One that is refused on the way makes room for another.
    pub(super) fn let_in(&mut self, out: &mut GatewayEffects) {
        while let Some(admitted) = self.publish_gate.as_mut().and_then(PublishGate::admitted) {
            for (waiting, ticket) in admitted {
                let Waiting {
                    session,
                    request,
                    batch,
                } = waiting;
                match self.sessions.find(session) {
                    Some(session) => self.append(session, request, batch, Some(ticket), out),
                    // Nobody is left to be answered, and nothing was promised.
                    None => self.hand_back(Some(ticket), false),
                }
            }
        }
    }

    /// Refuses those who have waited at the gate for too long.
    pub(super) fn expire(&mut self, out: &mut GatewayEffects) {
        let now = self.now.mono;
        while let Some((waiting, error)) = self.publish_gate.as_mut().and_then(|g| g.expired(now)) {
            if let Some(session) = self.sessions.find(waiting.session) {
                self.refuse_publish(session, waiting.request, &waiting.batch, error, out);
            }
        }
    }

    /// Has the tower append a batch that was let in, or refuses it.
    fn append(
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
        let sole = match self.pass_stream(session, &batch) {
            Ok(sole) => sole,
            Err(error) => {
                self.hand_back(ticket, false);
                return self.refuse_publish(session, request, &batch, error, out);
            }
        };
        let mut pending = self.pending(session, request, &batch);
        let (batch, stamped) = self.logs.stamp(log, batch);
        pending.stamped = stamped;
        pending.in_flight = true;
        pending.ticket = ticket;
        self.stats.begin_append(id.lane, pending.bytes);
        // What the gateway stamps, no other has.
        let sole = sole || stamped != StampedBy::Client;
        let is_apart = sole && self.logs.appends_apart;
        let number = self.logs[log].publishes.push(pending, is_apart);
        out.tell(ToTower::Append {
            log: id,
            number,
            batch,
            sole,
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
        let mut is_apart = false;
        if let Some(stamp) = batch.producer().filter(|_| self.logs.keeps_streams) {
            let is_sole = self.sessions[session].streams.refused(id, stamp);
            is_apart = is_sole && self.logs.appends_apart;
        }
        let mut pending = self.pending(session, request, batch);
        pending.result = Some(Err(self.to_refused(error, id)));
        if let Some(log) = self.logs.find(id) {
            self.logs[log].publishes.push(pending, is_apart);
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
            stamped: StampedBy::Client,
            lane: batch.log().lane,
            messages: batch.records(),
            bytes: batch.bytes().len(),
            in_flight: false,
            ticket: None,
            result: None,
        }
    }

    /// Looks whether a batch is in its place of its session's stream, where that has to be kept; whether its epoch is
    /// sole there.
    fn pass_stream(&mut self, session: SessionKey, batch: &Checked<Batch>) -> Result<bool, Error> {
        let Some(stamp) = batch.producer().filter(|_| self.logs.keeps_streams) else {
            // Input: a batch without a producer, or a storage that finds holes itself.
            return Ok(false);
        };
        let (id, streams) = (batch.log(), &mut self.sessions[session].streams);
        let passed = streams.pass(id, stamp, batch.numbers());
        passed.map_err(|why| match why {
            Some(why) => storage_refusals::error(&why, id, Some(stamp)),
            None => self.busy("producers"),
        })
    }

    /// Refuses what is addressed to a role that there is not: nobody would ever get it.
    fn check_audiences(&self, batch: &Batch) -> Result<(), Error> {
        if !batch.is_restricted() {
            return Ok(());
        }
        let roles = self.catalog().roles();
        let mut known = None;
        for record in batch.iter() {
            // Mostly it is for whom the one before is.
            if known == Some(record.audience) {
                continue;
            }
            let mut audience = record.audience;
            if let Some(role) = audience.find(|role| !roles.has(*role)) {
                return Err(Role::not_found(role));
            }
            known = Some(record.audience);
        }
        Ok(())
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
        if !self.namespaces.is_ready {
            return Err(self.busy("node"));
        }
        let Some(entry) = self.catalog().get(id.namespace) else {
            return Err(unknown(id));
        };
        if !entry.has_lane(id.lane) {
            // It gets logs for it.
            return Err(self.busy("batch.lane").value(id.lane));
        }
        let stale = |field: &str| Error::new(ErrorCode::MapStale).field(field);
        let map = if batch.map_epoch() == entry.map.epoch {
            let unsealed = self.logs.moving.unsealed(id.namespace);
            #[cfg(feature = "sabotage")]
            let unsealed = unsealed
                .filter(|_| self.config.bug != Some(crate::sabotage::Bug::TakenBeforeSealed));
            if let Some(unsealed) = unsealed {
                return Err(self.not_sealed(unsealed));
            }
            &entry.map
        } else if let Some(kept) = entry.kept_map(batch.map_epoch(), id.lane) {
            #[cfg(feature = "sabotage")]
            if self.config.bug == Some(crate::sabotage::Bug::SealedNotAsked) {
                return Err(Error::new(ErrorCode::LogSealed).field("batch.log"));
            }
            // Its storage knows whether it has it already.
            kept
        } else {
            return Err(stale("batch.map_epoch")
                .value(batch.map_epoch())
                .limit(entry.map.epoch));
        };
        for (place, topic) in (0u16..).zip(batch.topic_hashes()) {
            let owner = map.log(topic, id.lane);
            if owner != id {
                let (owner, name) = (owner.index, batch.topic(place).name);
                return Err(stale("batch.log")
                    .value(id.index)
                    .limit(format_args!("{owner}, for topic {name:?}")));
            }
        }
        self.check_audiences(batch)?;
        if let Some(loss) = entry.suspended(id) {
            let name = &entry.namespace.name;
            return Err(storage_refusals::suspended(id, name, loss));
        }
        let state = self.logs.find(id).map(|log| self.logs[log].state);
        match state {
            Some(LogState::Open) => Ok(()),
            Some(LogState::Closed) | None => Err(self.not_open(id)),
        }
    }
}
