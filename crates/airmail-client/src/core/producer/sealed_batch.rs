//! A sealed batch: one that has its numbers, and is sent until it is settled.

use super::{Settled, Ticket};
use airmail_model::frame::{Ack, RequestId};
use airmail_model::{Batch, Checked, Error, ErrorCode, LogId, Mono};

/// A batch with its numbers, until it is settled.
#[derive(Debug)]
pub(super) struct SealedBatch {
    pub(super) batch: Checked<Batch>,
    pub(super) tickets: Vec<Ticket>,
    /// Number of bytes of the memory bound that its messages take.
    pub(super) held_bytes: usize,
    /// Time at which its first message was published.
    pub(super) published: Mono,
    /// Request that it is in flight as, on this connection.
    pub(super) request: Option<RequestId>,
    /// True if an attempt was lost with its connection, or its outcome is unknown: it may have been stored.
    pub(super) attempt_lost: bool,
    /// Error with which the last attempt was refused.
    pub(super) last_error: Option<Error>,
}

impl SealedBatch {
    /// Gives the length of the encoded batch in bytes.
    pub(super) fn len(&self) -> usize {
        self.batch.bytes().len()
    }

    /// Tells whether it may be stored: an attempt was lost, or is in flight.
    pub(super) fn is_maybe_stored(&self) -> bool {
        self.attempt_lost || self.request.is_some()
    }

    /// Gives the error that its messages end with: `OUTCOME_UNKNOWN` if it may be stored.
    pub(super) fn final_error(&self, error: &Error) -> Error {
        if !self.is_maybe_stored() || error.code() == ErrorCode::OutcomeUnknown {
            return error.clone();
        }
        Error::new(ErrorCode::OutcomeUnknown)
            .field("publish")
            .value(error)
    }

    /// Settles its messages; returns the bytes of the memory bound that become free.
    pub(super) fn settle(
        self,
        log: LogId,
        result: Result<Ack, Error>,
        settled: &mut Vec<Settled>,
    ) -> usize {
        settled.push(Settled {
            tickets: self.tickets,
            log,
            result,
        });
        self.held_bytes
    }
}
