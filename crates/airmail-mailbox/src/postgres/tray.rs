//! Requests that wait for a lane. Bounded: what does not fit is refused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use airmail_model::{Error, ErrorCode};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

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

    /// How much of a statement it takes up, in messages.
    pub(super) fn weight(&self) -> usize {
        match self {
            Job::Send { messages, .. } => messages.len(),
            Job::Receive { request, .. } => request.count,
            Job::Settle { receipts, .. } => receipts.len(),
            Job::Call { .. } => WEIGHT_MAX,
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

/// Messages of one statement, as long as no single job has more.
const WEIGHT_MAX: usize = 1000;
/// Jobs of one statement.
const JOBS_MAX: usize = 256;
/// Bytes of content of one statement, as long as no single job has more.
const BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
struct Waiting {
    job: Job,
    since: Instant,
}

#[derive(Debug, Default)]
struct Contents {
    kinds: BTreeMap<Kind, VecDeque<Waiting>>,
    len: usize,
    closed: bool,
}

/// The tray.
#[derive(Debug)]
pub(super) struct Tray {
    contents: Mutex<Contents>,
    filled: Notify,
    waiting_max: usize,
}

impl Tray {
    pub(super) fn new(waiting_max: usize) -> Tray {
        Tray {
            contents: Mutex::new(Contents::default()),
            filled: Notify::new(),
            waiting_max,
        }
    }

    /// Adds a job, or says why not.
    pub(super) fn put(&self, job: Job) -> Result<(), Error> {
        {
            let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
            if contents.closed {
                return Err(Error::new(ErrorCode::ShuttingDown));
            }
            if contents.len >= self.waiting_max {
                return Err(Error::new(ErrorCode::Overloaded)
                    .field("requests that wait")
                    .value(contents.len)
                    .limit(self.waiting_max)
                    .retry_after(Duration::from_millis(100)));
            }
            let since = Instant::now();
            let waiting = Waiting { job, since };
            contents
                .kinds
                .entry(waiting.job.kind())
                .or_default()
                .push_back(waiting);
            contents.len += 1;
        }
        self.filled.notify_one();
        Ok(())
    }

    /// Jobs of one kind, of those that wait longest, for one statement. None: the tray is closed
    /// and empty.
    pub(super) async fn next(&self) -> Option<Vec<Job>> {
        loop {
            let filled = self.filled.notified();
            {
                let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
                let jobs = contents.take();
                if !jobs.is_empty() {
                    // Another lane may go on with the rest.
                    if contents.len > 0 {
                        self.filled.notify_one();
                    }
                    return Some(jobs);
                }
                if contents.closed {
                    self.filled.notify_one();
                    return None;
                }
            }
            filled.await;
        }
    }

    /// Takes out all that has waited for longer than `patience`.
    pub(super) fn take_overdue(&self, patience: Duration) -> Vec<Job> {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let mut overdue = Vec::new();
        for queue in contents.kinds.values_mut() {
            while queue
                .front()
                .is_some_and(|waiting| waiting.since.elapsed() >= patience)
            {
                overdue.extend(queue.pop_front().map(|waiting| waiting.job));
            }
        }
        contents.len -= overdue.len();
        contents.kinds.retain(|_, queue| !queue.is_empty());
        overdue
    }

    /// Takes no more jobs.
    pub(super) fn close(&self) {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.closed = true;
        drop(contents);
        self.filled.notify_one();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many jobs wait.
    pub(super) fn len(&self) -> usize {
        self.contents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len
    }

    pub(super) fn is_closed(&self) -> bool {
        self.contents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed
    }
}

impl Contents {
    fn take(&mut self) -> Vec<Job> {
        let mut jobs = Vec::new();
        let oldest = self
            .kinds
            .iter()
            .filter_map(|(kind, queue)| Some((queue.front()?.since, *kind)))
            .min();
        let Some((_, kind)) = oldest else {
            return jobs;
        };
        let Some(queue) = self.kinds.get_mut(&kind) else {
            return jobs;
        };
        let (mut weight, mut bytes) = (0, 0);
        while let Some(waiting) = queue.front() {
            weight += waiting.job.weight();
            bytes += waiting.job.bytes();
            let full = weight > WEIGHT_MAX || bytes > BYTES_MAX || jobs.len() >= JOBS_MAX;
            if full && !jobs.is_empty() {
                break;
            }
            self.len -= 1;
            jobs.extend(
                queue
                    .pop_front()
                    .map(|waiting| waiting.job)
                    .filter(|job| !job.is_given_up()),
            );
        }
        if queue.is_empty() {
            self.kinds.remove(&kind);
        }
        if jobs.is_empty() { self.take() } else { jobs }
    }
}
