//! The publish gate: how many published messages may be in flight to the storage, and who waits.
//!
//! A batch that has passed admission gets a ticket for its messages, or waits in the line of its lane for the
//! whole shard, within a bound of messages, bytes (`gates`) and time, of which lane high has a reserve on top; what finds no place there, or waits
//! too long, is refused with a reason and a delay. The ticket goes back with the batch's answer, and
//! says how long it took: that is what the limiter goes by.

use crate::input::SessionId;
use airmail_flow::{
    Admission, Admitted, Gate, GateSettings, Reading, Refusal, RefusalReason, Ticket,
};
use airmail_model::frame::RequestId;
use airmail_model::{Batch, Checked, Error, ErrorCode, Lane, LaneBytes, Mono};

/// A publish that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) session: SessionId,
    pub(super) request: RequestId,
    pub(super) batch: Checked<Batch>,
}

/// Answer of the gate to a batch that comes.
pub(super) enum GateAnswer {
    /// It may go on, with a ticket to be handed back.
    Passed(Ticket),
    /// It waits until there is room.
    Waits,
    /// It is to be refused.
    Refused(Error),
}

/// The gate, and the publishes that wait at it.
#[derive(Debug)]
pub(super) struct PublishGate {
    gate: Gate<Waiting>,
    /// Total size of the batches that wait.
    bytes: LaneBytes,
    /// Most bytes of batches that may wait.
    waiting_bytes_max: usize,
    /// Publishes whose turn has come in this step.
    admitted: Vec<Admitted<Waiting>>,
}

impl PublishGate {
    /// A gate with nothing in flight, at which at most `waiting_bytes_max` bytes of batches wait.
    pub(super) fn new(settings: GateSettings, waiting_bytes_max: usize) -> PublishGate {
        PublishGate {
            gate: Gate::new(settings),
            bytes: LaneBytes::default(),
            waiting_bytes_max,
            admitted: Vec::new(),
        }
    }

    /// Lets a batch pass, or keeps a share of it until there is room.
    pub(super) fn enter(
        &mut self,
        now: Mono,
        session: SessionId,
        request: RequestId,
        batch: &Checked<Batch>,
    ) -> GateAnswer {
        let messages = u64::from(batch.records());
        let lane = batch.log().lane;
        if let Some(ticket) = self.gate.try_enter(now, lane, messages) {
            return GateAnswer::Passed(ticket);
        }
        let bytes = batch.bytes().len();
        let asked = if self.has_room(lane, bytes) {
            let waiting = Waiting {
                session,
                request,
                batch: batch.clone(),
            };
            self.gate.enter(now, lane, messages, waiting)
        } else {
            Admission::Refused(self.gate.refuse())
        };
        match asked {
            Admission::Go(ticket) => GateAnswer::Passed(ticket),
            Admission::Waits(_) => {
                self.bytes.add(lane, bytes);
                GateAnswer::Waits
            }
            Admission::Refused(refusal) => {
                GateAnswer::Refused(overloaded(refusal, self.gate.bound()))
            }
        }
    }

    /// A publish has its answer: its ticket makes room for others.
    pub(super) fn hand_back(&mut self, now: Mono, ticket: Ticket, acknowledged: bool) {
        if acknowledged {
            self.gate.acknowledged(now, ticket, &mut self.admitted);
        } else {
            self.gate.abandoned(now, ticket, &mut self.admitted);
        }
    }

    /// Takes those whose turn has come, in order, if there are any.
    pub(super) fn admitted(&mut self) -> Option<Vec<Admitted<Waiting>>> {
        if self.admitted.is_empty() {
            return None;
        }
        let admitted = std::mem::take(&mut self.admitted);
        for (waiting, _) in &admitted {
            let batch = &waiting.batch;
            self.bytes.remove(batch.log().lane, batch.bytes().len());
        }
        Some(admitted)
    }

    /// Takes the next one that has waited for too long, with the error for its client.
    pub(super) fn expired(&mut self, now: Mono) -> Option<(Waiting, Error)> {
        let (waiting, refusal) = self.gate.expire(now, &mut self.admitted)?;
        let batch = &waiting.batch;
        self.bytes.remove(batch.log().lane, batch.bytes().len());
        Some((waiting, overloaded(refusal, self.gate.bound())))
    }

    /// The gate's bound and what is in flight.
    pub(super) fn reading(&self) -> Reading {
        self.gate.reading()
    }

    /// When somebody has waited for too long.
    pub(super) fn deadline(&self) -> Option<Mono> {
        self.gate.deadline()
    }

    /// Whether a batch may wait beside those that do.
    fn has_room(&self, lane: Lane, bytes: usize) -> bool {
        let mut after = self.bytes;
        after.add(lane, bytes);
        let most = self.waiting_bytes_max;
        self.bytes.fits(lane, bytes, most) && after.counted(most) <= most
    }

    /// Total size of the batches that wait, as it is counted.
    pub(super) fn waiting_bytes(&self) -> LaneBytes {
        self.bytes
    }

    /// Whether nobody's turn has come who has not been let go on.
    pub(super) fn is_settled(&self) -> bool {
        self.admitted.is_empty()
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
