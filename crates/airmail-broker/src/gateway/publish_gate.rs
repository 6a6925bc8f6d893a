//! The publish gate: how many published messages may be in flight to the storage, and who waits.
//!
//! A batch that has passed admission gets a ticket for its messages, or waits in one line for the
//! whole shard, within a bound of messages, bytes and time; what finds no place there, or waits too
//! long, is refused with a reason and a delay. The ticket goes back with the batch's answer, and
//! says how long it took: that is what the limiter goes by.

use super::{Gateway, GatewayEffects};
use crate::input::SessionId;
use crate::keys::SessionKey;
use airmail_flow::{
    Admission, Admitted, Gate, GateSettings, Reading, Refusal, RefusalReason, Ticket,
};
use airmail_model::frame::RequestId;
use airmail_model::{Batch, Checked, Error, ErrorCode, Mono};

/// A publish that waits.
#[derive(Clone, Debug)]
struct Waiting {
    session: SessionId,
    request: RequestId,
    batch: Checked<Batch>,
}

/// The gate, and the publishes that wait at it.
#[derive(Debug)]
pub(super) struct PublishGate {
    gate: Gate<Waiting>,
    /// Total size of the batches that wait.
    bytes: usize,
    /// Publishes whose turn has come in this step.
    admitted: Vec<Admitted<Waiting>>,
}

impl PublishGate {
    pub(super) fn new(settings: GateSettings) -> PublishGate {
        PublishGate {
            gate: Gate::new(settings),
            bytes: 0,
            admitted: Vec::new(),
        }
    }

    /// The gate's bound and what is in flight.
    pub(super) fn reading(&self) -> Reading {
        self.gate.reading()
    }

    /// When somebody has waited for too long.
    pub(super) fn deadline(&self) -> Option<Mono> {
        self.gate.deadline()
    }

    /// Total size of the batches that wait, as it is counted.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nobody's turn has come who has not been let go on.
    pub(super) fn is_settled(&self) -> bool {
        self.admitted.is_empty()
    }
}

impl Gateway {
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
        let now = self.now.mono;
        let Some(publish_gate) = &mut self.publish_gate else {
            // Input: a shard without a gate.
            return self.append(session, request, batch, None, out);
        };
        let messages = u64::from(batch.records());
        if let Some(ticket) = publish_gate.gate.try_enter(now, messages) {
            return self.append(session, request, batch, Some(ticket), out);
        }
        let bytes = batch.bytes().len();
        let room = self
            .config
            .publish_waiting_bytes
            .saturating_sub(publish_gate.bytes);
        let waiting = Waiting {
            session: self.sessions[session].id,
            request,
            batch: batch.clone(),
        };
        let asked = if bytes <= room {
            publish_gate.gate.enter(now, messages, waiting)
        } else {
            Admission::Refused(publish_gate.gate.refuse())
        };
        match asked {
            Admission::Go(ticket) => self.append(session, request, batch, Some(ticket), out),
            Admission::Waits(_) => {
                publish_gate.bytes += bytes;
                self.stats.parked += 1;
            }
            Admission::Refused(refusal) => {
                let error = overloaded(refusal, publish_gate.gate.bound());
                self.refuse_publish(session, request, &batch, error, out);
            }
        }
    }

    /// A publish has its answer: its ticket makes room for others.
    pub(super) fn hand_back(&mut self, ticket: Option<Ticket>, acknowledged: bool) {
        let (Some(publish_gate), Some(ticket)) = (&mut self.publish_gate, ticket) else {
            // Input: a shard without a gate, or a publish that was refused before it.
            return;
        };
        let PublishGate { gate, admitted, .. } = publish_gate;
        if acknowledged {
            gate.acknowledged(self.now.mono, ticket, admitted);
        } else {
            gate.abandoned(self.now.mono, ticket, admitted);
        }
    }

    /// Lets those go on whose turn has come. One that is refused on the way makes room for another.
    pub(super) fn let_in(&mut self, out: &mut GatewayEffects) {
        while let Some(publish_gate) = &mut self.publish_gate
            && !publish_gate.admitted.is_empty()
        {
            for (waiting, ticket) in std::mem::take(&mut publish_gate.admitted) {
                self.waited(&waiting);
                match self.sessions.find(waiting.session) {
                    Some(session) => {
                        let Waiting { request, batch, .. } = waiting;
                        self.append(session, request, batch, Some(ticket), out);
                    }
                    // Nobody is left to be answered, and nothing was promised.
                    None => self.hand_back(Some(ticket), false),
                }
            }
        }
    }

    /// Refuses those who have waited for too long.
    pub(super) fn expire(&mut self, out: &mut GatewayEffects) {
        while let Some(publish_gate) = &mut self.publish_gate {
            let PublishGate { gate, admitted, .. } = publish_gate;
            let Some((waiting, refusal)) = gate.expire(self.now.mono, admitted) else {
                // Input: nobody has waited for too long.
                return;
            };
            let error = overloaded(refusal, gate.bound());
            self.waited(&waiting);
            if let Some(session) = self.sessions.find(waiting.session) {
                self.refuse_publish(session, waiting.request, &waiting.batch, error, out);
            }
        }
    }

    fn waited(&mut self, waiting: &Waiting) {
        if let Some(publish_gate) = &mut self.publish_gate {
            publish_gate.bytes -= waiting.batch.bytes().len();
        }
    }
}

/// Error for the client.
fn overloaded(refusal: Refusal, bound: u64) -> Error {
    let error = Error::new(ErrorCode::Overloaded)
        .field("publishes")
        .value(match refusal.reason {
            RefusalReason::LineFull => "too many wait",
            RefusalReason::WaitedTooLong => "waited too long",
        });
    let error = error.limit(format_args!("{bound} messages in flight"));
    error.retry_after(refusal.retry_after)
}
