//! A request, as a clerk does it.

use airmail_model::Error;
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::tray::{CALLS_MAX, WEIGHT_MAX};
use crate::id::MessageId;
use crate::message::{Message, Outgoing, Receipt, Receive, Settle, Take};

/// Where the answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// What a request does. Jobs of one kind may be done by one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Send,
    Receive(Take),
    Settle(Settle),
    Call,
}

/// A request.
#[derive(Debug)]
pub(super) enum Job {
    /// Store messages.
    Send {
        messages: Vec<Outgoing>,
        reply: Reply<Vec<Result<MessageId, Error>>>,
    },
    /// Show, remove or lease the oldest.
    Receive {
        request: Receive,
        reply: Reply<Vec<Message>>,
    },
    /// Something about leases.
    Settle {
        receipts: Vec<Receipt>,
        what: Settle,
        reply: Reply<Vec<Result<(), Error>>>,
    },
    /// Any other: a statement of its own.
    Call {
        sql: &'static str,
        parameters: Vec<Box<dyn ToSql + Sync + Send>>,
        /// Changes nothing, so it may be done again.
        reads: bool,
        reply: Reply<Vec<Row>>,
    },
}

impl Job {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Job::Send { .. } => Kind::Send,
            Job::Receive { request, .. } => Kind::Receive(request.take),
            Job::Settle { what, .. } => Kind::Settle(*what),
            Job::Call { .. } => Kind::Call,
        }
    }

    /// Where it stands among statements that one connection does at once.
    pub(super) fn order(&self) -> u8 {
        match self {
            Job::Receive { request, .. } if request.take == Take::Peek => 0,
            Job::Call { reads: true, .. } => 1,
            Job::Receive { .. } => 2,
            Job::Settle { .. } => 3,
            Job::Call { .. } => 4,
            Job::Send { .. } => 5,
        }
    }

    /// How much of a statement it takes up, in messages.
    pub(super) fn weight(&self) -> usize {
        match self {
            Job::Send { messages, .. } => messages.len(),
            Job::Receive { request, .. } => request.count,
            Job::Settle { receipts, .. } => receipts.len(),
            Job::Call { .. } => WEIGHT_MAX / CALLS_MAX,
        }
    }

    /// How many bytes it brings.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Job::Send { messages, .. } => messages.iter().map(|m| m.content.len()).sum(),
            _ => 0,
        }
    }

    /// Nobody waits for it any more, and it has not begun.
    pub(super) fn is_given_up(&self) -> bool {
        match self {
            Job::Send { reply, .. } => reply.is_closed(),
            Job::Receive { reply, .. } => reply.is_closed(),
            Job::Settle { reply, .. } => reply.is_closed(),
            Job::Call { reply, .. } => reply.is_closed(),
        }
    }

    /// Answers it with an error. Who does not wait any more does not hear it.
    pub(super) fn fail(self, error: Error) {
        match self {
            Job::Send { reply, .. } => drop(reply.send(Err(error))),
            Job::Receive { reply, .. } => drop(reply.send(Err(error))),
            Job::Settle { reply, .. } => drop(reply.send(Err(error))),
            Job::Call { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}
