//! Jobs: requests as they wait for a worker, each with the way back for its answer.

use super::raised::Raised;
use super::request_queue::{STATEMENTS_MAX, WEIGHT_MAX};
use crate::message::{Message, Outgoing, Receipt, Receive, Settle, Take};
use crate::store::{SendResults, SettleResults};
use crate::store_error::{NotFound, StoreError, StoreFailure};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// The way back for an answer, with the time that the request has waited.
#[derive(Debug)]
pub(super) struct ReplySender<T, E = StoreFailure> {
    answer: oneshot::Sender<Result<T, E>>,
    wait: RequestWait,
}

/// The wait of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestWait {
    since: Instant,
    /// Number of statements with this request that timed out, and did nothing.
    timeouts: u32,
}

impl RequestWait {
    /// Returns whether the request has waited for as long as any may.
    pub(super) fn is_over(self, patience: Duration) -> bool {
        self.since.elapsed() >= patience
    }

    /// Returns how often its statement timed out.
    pub(super) fn timeouts(self) -> u32 {
        self.timeouts
    }
}

impl<T, E: From<StoreFailure>> ReplySender<T, E> {
    /// Begins the wait for an answer.
    pub(super) fn new(answer: oneshot::Sender<Result<T, E>>) -> ReplySender<T, E> {
        let since = Instant::now();
        ReplySender {
            answer,
            wait: RequestWait { since, timeouts: 0 },
        }
    }

    /// Answers. Returns the answer if the caller no longer waits for it.
    pub(super) fn send(self, answer: Result<T, E>) -> Result<(), Result<T, E>> {
        self.answer.send(answer)
    }

    /// Answers with a failure. A caller that no longer waits does not hear it.
    pub(super) fn fail(self, failure: StoreFailure) {
        let _ = self.answer.send(Err(failure.into()));
    }

    fn is_closed(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The classes of statements that are a request each, by what they read or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementClass {
    /// Looks something up.
    Look,
    /// Looks through as much as there is.
    Search,
    /// Changes something.
    Change,
    /// Changes as much as there is.
    Sweep,
}

impl StatementClass {
    /// Returns whether the statement changes nothing, so that it may be repeated.
    pub(super) fn is_read(self) -> bool {
        matches!(self, StatementClass::Look | StatementClass::Search)
    }

    /// Returns whether the statement may take long though nothing is wrong.
    fn takes_long(self) -> bool {
        matches!(self, StatementClass::Search | StatementClass::Sweep)
    }
}

/// The kind of a job. One statement may do many jobs of one kind, except statements, which are one job
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JobKind {
    Send,
    Receive(Take),
    Settle(Settle),
    Statement,
}

/// A request and the way back for its answer.
#[derive(Debug)]
pub(super) enum Job {
    /// Store messages.
    Send {
        messages: Vec<Outgoing>,
        reply: ReplySender<SendResults>,
    },
    /// Show, remove or lease the oldest messages.
    Receive {
        request: Receive,
        reply: ReplySender<Vec<Message>, StoreError<NotFound>>,
    },
    /// End, extend or release leases.
    Settle {
        receipts: Vec<Receipt>,
        what: Settle,
        reply: ReplySender<SettleResults>,
    },
    /// Any other request: a statement of its own.
    Statement {
        sql: &'static str,
        parameters: Vec<Box<dyn ToSql + Sync + Send>>,
        class: StatementClass,
        reply: ReplySender<Vec<Row>, StoreError<Raised>>,
    },
}

impl Job {
    pub(super) fn kind(&self) -> JobKind {
        match self {
            Job::Send { .. } => JobKind::Send,
            Job::Receive { request, .. } => JobKind::Receive(request.take),
            Job::Settle { what, .. } => JobKind::Settle(*what),
            Job::Statement { .. } => JobKind::Statement,
        }
    }

    /// Returns the job's rank in a round trip: statements of a lower rank go first, and those that do
    /// not wait for the disk have the lowest.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Job::Receive { request, .. } if request.take == Take::Peek => 0,
            Job::Statement { class, .. } if class.is_read() => 1,
            Job::Receive { .. } => 2,
            Job::Settle { .. } => 3,
            Job::Statement { .. } => 4,
            Job::Send { .. } => 5,
        }
    }

    /// Returns the part of a statement that the job takes up, in messages.
    pub(super) fn weight(&self) -> usize {
        match self {
            Job::Send { messages, .. } => messages.len(),
            Job::Receive { request, .. } => request.count,
            Job::Settle { receipts, .. } => receipts.len(),
            Job::Statement { .. } => WEIGHT_MAX / STATEMENTS_MAX,
        }
    }

    /// Returns the number of content bytes that the job sends.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Job::Send { messages, .. } => messages.iter().map(|m| m.content.len()).sum(),
            _ => 0,
        }
    }

    /// Returns the job's wait so far.
    pub(super) fn wait(&self) -> RequestWait {
        match self {
            Job::Send { reply, .. } => reply.wait,
            Job::Receive { reply, .. } => reply.wait,
            Job::Settle { reply, .. } => reply.wait,
            Job::Statement { reply, .. } => reply.wait,
        }
    }

    /// Counts a statement with this job that timed out, and did nothing.
    pub(super) fn count_timeout(&mut self) {
        let wait = match self {
            Job::Send { reply, .. } => &mut reply.wait,
            Job::Receive { reply, .. } => &mut reply.wait,
            Job::Settle { reply, .. } => &mut reply.wait,
            Job::Statement { reply, .. } => &mut reply.wait,
        };
        wait.timeouts = wait.timeouts.saturating_add(1);
    }

    /// Returns whether the job may take long though nothing is wrong.
    pub(super) fn takes_long(&self) -> bool {
        matches!(self, Job::Statement { class, .. } if class.takes_long())
    }

    /// Returns whether the caller has dropped its future before the job began.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Job::Send { reply, .. } => reply.is_closed(),
            Job::Receive { reply, .. } => reply.is_closed(),
            Job::Settle { reply, .. } => reply.is_closed(),
            Job::Statement { reply, .. } => reply.is_closed(),
        }
    }

    /// Answers with a failure.
    pub(super) fn fail(self, failure: StoreFailure) {
        match self {
            Job::Send { reply, .. } => reply.fail(failure),
            Job::Receive { reply, .. } => reply.fail(failure),
            Job::Settle { reply, .. } => reply.fail(failure),
            Job::Statement { reply, .. } => reply.fail(failure),
        }
    }
}
