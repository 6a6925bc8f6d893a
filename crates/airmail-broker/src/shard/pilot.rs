//! The pilot: how many published messages may be in flight to the storage, and who waits.
//!
//! A batch that has passed admission gets a ticket for its messages, or waits in one line for the
//! whole shard, within a bound of messages, bytes and time; what finds no place there, or waits too
//! long, is refused with a reason and a delay. The ticket goes back with the batch's answer, and
//! says how long it took: that is what the limiter goes by.

use super::Shard;
use crate::input::{Effects, SessionId};
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

/// One shard's.
#[derive(Debug)]
pub(super) struct Pilot {
    gate: Gate<Waiting>,
    /// Of those that wait.
    bytes: usize,
    /// Their turn has come in this step.
    admitted: Vec<Admitted<Waiting>>,
}

impl Pilot {
    pub(super) fn new(settings: GateSettings) -> Pilot {
        Pilot {
            gate: Gate::new(settings),
            bytes: 0,
            admitted: Vec::new(),
        }
    }

    /// How it stands.
    pub(super) fn reading(&self) -> Reading {
        self.gate.reading()
    }

    /// When somebody has waited for too long.
    pub(super) fn deadline(&self) -> Option<Mono> {
        self.gate.deadline()
    }
}

impl Shard {
    /// A batch has passed admission: it goes on now, or when there is room.
    pub(super) fn enter(
        &mut self,
        session: SessionKey,
        request: RequestId,
        batch: Checked<Batch>,
        out: &mut Effects,
    ) {
        // Those whose turn has come in this step stand before whoever asks now.
        self.let_in(out);
        let now = self.mono;
        let Some(pilot) = &mut self.pilot else {
            return self.append(session, request, batch, None, out);
        };
        let messages = u64::from(batch.records());
        if let Some(ticket) = pilot.gate.try_enter(now, messages) {
            return self.append(session, request, batch, Some(ticket), out);
        }
        let bytes = batch.bytes().len();
        let room = self.config.pilot_waiting_bytes.saturating_sub(pilot.bytes);
        let waiting = Waiting {
            session: self.sessions[session].id,
            request,
            batch: batch.clone(),
        };
        let asked = if bytes <= room {
            pilot.gate.enter(now, messages, waiting)
        } else {
            Admission::Refused(pilot.gate.refuse())
        };
        match asked {
            Admission::Go(ticket) => self.append(session, request, batch, Some(ticket), out),
            Admission::Waits(_) => {
                pilot.bytes += bytes;
                self.stats.parked += 1;
            }
            Admission::Refused(refusal) => {
                let error = overloaded(refusal, pilot.gate.bound());
                self.refuse_publish(session, request, &batch, error, out);
            }
        }
    }

    /// A publish has its answer: its ticket makes room for others.
    pub(super) fn hand_back(&mut self, ticket: Option<Ticket>, acknowledged: bool) {
        let (Some(pilot), Some(ticket)) = (&mut self.pilot, ticket) else {
            return;
        };
        let Pilot { gate, admitted, .. } = pilot;
        if acknowledged {
            gate.acknowledged(self.mono, ticket, admitted);
        } else {
            gate.abandoned(self.mono, ticket, admitted);
        }
    }

    /// Those whose turn has come go on. One that is refused on the way makes room for another.
    pub(super) fn let_in(&mut self, out: &mut Effects) {
        while let Some(pilot) = &mut self.pilot
            && !pilot.admitted.is_empty()
        {
            for (waiting, ticket) in std::mem::take(&mut pilot.admitted) {
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
    pub(super) fn expire(&mut self, out: &mut Effects) {
        while let Some(pilot) = &mut self.pilot {
            let Pilot { gate, admitted, .. } = pilot;
            let Some((waiting, refusal)) = gate.expire(self.mono, admitted) else {
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
        if let Some(pilot) = &mut self.pilot {
            pilot.bytes -= waiting.batch.bytes().len();
        }
    }
}

/// What a client is told.
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
