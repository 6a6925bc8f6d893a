//! A request, as a clerk does it.

use super::tray::{CALLS_MAX, WEIGHT_MAX};
use crate::id::MessageId;
use crate::message::{Message, Outgoing, Receipt, Receive, Settle, Take};
use airmail_model::Error;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Where the answer goes, and how long it has been waited for.
#[derive(Debug)]
pub(super) struct Reply<T> {
    answer: oneshot::Sender<Result<T, Error>>,
    wait: Wait,
}

/// What a request has waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    asked: Instant,
    /// How often the database was too late with it, and had done nothing.
    lates: u32,
}

impl Wait {
    /// Whether it has been waited for as long as anybody waits.
    pub(super) fn is_over(self, patience: Duration) -> bool {
        self.asked.elapsed() >= patience
    }

    /// How often it was late.
    pub(super) fn lates(self) -> u32 {
        self.lates
    }
}

impl<T> Reply<T> {
    /// One that is waited for from now on.
    pub(super) fn new(answer: oneshot::Sender<Result<T, Error>>) -> Reply<T> {
        let asked = Instant::now();
        Reply {
            answer,
            wait: Wait { asked, lates: 0 },
        }
    }

    /// Gives the answer, or gets it back if nobody waits for it.
    pub(super) fn send(self, answer: Result<T, Error>) -> Result<(), Result<T, Error>> {
        self.answer.send(answer)
    }

    fn is_closed(&self) -> bool {
        self.answer.is_closed()
    }
}

/// What a statement of its own does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It looks something up.
    Looks,
    /// It looks through as much as there is.
    Searches,
    /// It changes something.
    Changes,
    /// It changes as much as there is.
    Sweeps,
}

impl Effect {
    /// Changes nothing, so it may be done again.
    pub(super) fn reads(self) -> bool {
        matches!(self, Effect::Looks | Effect::Searches)
    }

    /// May take long, though nothing is wrong.
    fn takes_long(self) -> bool {
        matches!(self, Effect::Searches | Effect::Sweeps)
    }
}

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
        effect: Effect,
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
            Job::Call { effect, .. } if effect.reads() => 1,
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

    /// What it has waited.
    pub(super) fn wait(&self) -> Wait {
        match self {
            Job::Send { reply, .. } => reply.wait,
            Job::Receive { reply, .. } => reply.wait,
            Job::Settle { reply, .. } => reply.wait,
            Job::Call { reply, .. } => reply.wait,
        }
    }

    /// The database was too late with it, and has done nothing.
    pub(super) fn was_late(&mut self) {
        let wait = match self {
            Job::Send { reply, .. } => &mut reply.wait,
            Job::Receive { reply, .. } => &mut reply.wait,
            Job::Settle { reply, .. } => &mut reply.wait,
            Job::Call { reply, .. } => &mut reply.wait,
        };
        wait.lates = wait.lates.saturating_add(1);
    }

    /// May take long, though nothing is wrong.
    pub(super) fn takes_long(&self) -> bool {
        matches!(self, Job::Call { effect, .. } if effect.takes_long())
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
