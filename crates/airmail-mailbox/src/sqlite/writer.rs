//! The writer: the thread that owns the connection, its transactions, and the messages that become ready
//! or expire with time.

use super::file;
use super::load_counters::LoadCounters;
use crate::id::QueueId;
use crate::message::Inbox;
use crate::notifier::Notifier;
use crate::receiver::recipients;
use crate::store_error::StoreFailure;
use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;

/// Requests of one transaction, beside its first.
const REQUESTS_MAX: usize = 256;
/// Rows that one transaction makes ready or removes.
const MOVED_MAX: i64 = 500;
/// Longest sleep of the thread: expired messages are searched for when it wakes.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Time by which the thread sleeps longer than until the next message is due, in microseconds, so that
/// it does not wake a moment before.
const DUE_MARGIN_US: u64 = 1000;

/// A request, to be called with the writer in a transaction, or with the reason why there is none. It
/// returns what is to be called with the result of the commit.
pub(super) type WriterRequest =
    Box<dyn FnOnce(Result<&mut Writer, StoreFailure>) -> AfterCommit + Send>;
type AfterCommit = Box<dyn FnOnce(Result<(), StoreFailure>)>;

/// Makes a request of what is to be done for it, and the way back for its answer.
pub(super) fn request<T: Send + 'static, E: From<StoreFailure> + Send + 'static>(
    work: impl FnOnce(&mut Writer) -> Result<T, E> + Send + 'static,
    reply: oneshot::Sender<Result<T, E>>,
) -> WriterRequest {
    Box::new(move |writer| {
        let done = match writer {
            // If the caller has dropped its future, the request is rolled back.
            Ok(writer) => writer.in_savepoint(work, || !reply.is_closed()),
            Err(failure) => Err(failure.into()),
        };
        Box::new(move |committed| {
            let _ = reply.send(committed.map_err(E::from).and(done));
        })
    })
}

/// The connection, and what belongs to the transaction under way.
#[derive(Debug)]
pub(super) struct Writer {
    connection: Connection,
    notifier: Arc<Notifier>,
    load_counters: Arc<LoadCounters>,
    /// Inboxes in which messages became ready in this transaction, and how many.
    ready: BTreeMap<Inbox, usize>,
    /// Time of this transaction, in microseconds since 1970.
    now_us: i64,
    /// Time at which the next message is due, if any is.
    next_due_us: Option<i64>,
}

impl Writer {
    /// Opens the file.
    ///
    /// # Errors
    /// Those of [`file::open`].
    pub(super) fn open(
        path: &Path,
        notifier: Arc<Notifier>,
        load_counters: Arc<LoadCounters>,
    ) -> Result<Writer, StoreFailure> {
        let mut writer = Writer {
            connection: file::open(path)?,
            notifier,
            load_counters,
            ready: BTreeMap::new(),
            now_us: 0,
            next_due_us: None,
        };
        writer.next_due_us = writer.find_next_due()?;
        Ok(writer)
    }

    /// Does requests until the store is closed.
    pub(super) fn run(mut self, requests: &Receiver<WriterRequest>) {
        loop {
            let first = match requests.recv_timeout(self.sleep()) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let rest = std::iter::from_fn(|| requests.try_recv().ok());
            let batch: Vec<WriterRequest> =
                first.into_iter().chain(rest.take(REQUESTS_MAX)).collect();
            self.run_transaction(batch);
        }
    }

    /// Returns the time for which the thread may sleep.
    fn sleep(&mut self) -> Duration {
        self.read_clock();
        let micros = self.next_due_us.map(|due| (due - self.now_us).max(0));
        let until_due = micros.and_then(|micros| u64::try_from(micros).ok());
        until_due.map_or(SLEEP_MAX, |micros| {
            Duration::from_micros(micros + DUE_MARGIN_US).min(SLEEP_MAX)
        })
    }

    /// Does requests in one transaction, and answers them after its commit.
    fn run_transaction(&mut self, requests: Vec<WriterRequest>) {
        self.load_counters.count_transaction(requests.len());
        self.read_clock();
        self.ready.clear();
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE");
        let mut after_commit: Vec<AfterCommit> = Vec::with_capacity(requests.len());
        let committed = begun.map_err(|error| failure(&error)).and_then(|()| {
            let moved = self.in_savepoint(Writer::move_due_and_expired, || true);
            after_commit.extend(requests.into_iter().map(|request| request(Ok(self))));
            let next_due = self.find_next_due();
            self.connection
                .execute_batch("COMMIT")
                .map_err(|error| failure(&error))?;
            self.next_due_us = next_due?;
            moved
        });
        if committed.is_err() && !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        if committed.is_ok() {
            for (inbox, count) in &self.ready {
                self.notifier.notify(*inbox, *count);
            }
        }
        self.load_counters.note_idle();
        for answer in after_commit {
            answer(committed.clone());
        }
    }

    /// Does work so that it alone is rolled back if it fails, or is no longer wanted afterwards.
    fn in_savepoint<T, E: From<StoreFailure>>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, E>,
        is_wanted: impl FnOnce() -> bool,
    ) -> Result<T, E> {
        self.execute("SAVEPOINT request", ())?;
        let done = work(self);
        if done.is_err() || !is_wanted() {
            self.execute("ROLLBACK TO request", ())?;
        }
        self.execute("RELEASE request", ())?;
        done
    }

    /// Makes messages ready that are due, and removes those that have expired.
    fn move_due_and_expired(&mut self) -> Result<(), StoreFailure> {
        if self.next_due_us.is_some_and(|due| due <= self.now_us) {
            let sql = "SELECT id FROM message WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2";
            let due = self.all(sql, (self.now_us, MOVED_MAX), |row| row.get(0))?;
            for id in due {
                self.make_ready(id)?;
            }
        }
        let sql = "SELECT id FROM message WHERE expires_at <= ?1 AND due_at IS NULL LIMIT ?2";
        let expired = self.all(sql, (self.now_us, MOVED_MAX), |row| row.get(0))?;
        for id in expired {
            self.expire(id)?;
        }
        Ok(())
    }

    fn find_next_due(&mut self) -> Result<Option<i64>, StoreFailure> {
        let sql = "SELECT min(due_at) FROM message WHERE due_at IS NOT NULL";
        Ok(self.one(sql, (), |row| row.get(0))?.flatten())
    }

    /// Returns the time of this transaction, in microseconds since 1970.
    pub(super) fn now_us(&self) -> i64 {
        self.now_us
    }

    #[expect(clippy::disallowed_methods, reason = "the store's one clock")]
    fn read_clock(&mut self) {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        self.now_us = micros.max(self.now_us);
    }

    /// Notes that a message became ready. Its readers are notified after the commit.
    pub(super) fn note_ready(&mut self, queue: QueueId, receiver: i32) {
        let recipients = recipients(receiver);
        *self.ready.entry(Inbox { queue, recipients }).or_default() += 1;
    }

    /// Runs a statement and returns how many rows it changed.
    pub(super) fn execute(
        &mut self,
        sql: &str,
        parameters: impl Params,
    ) -> Result<usize, StoreFailure> {
        let run = |connection: &Connection| connection.prepare_cached(sql)?.execute(parameters);
        run(&self.connection).map_err(|error| failure(&error))
    }

    /// Returns the row that a statement gives, if it gives one.
    pub(super) fn one<T>(
        &mut self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreFailure> {
        let run = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row(parameters, read).optional()
        };
        run(&self.connection).map_err(|error| failure(&error))
    }

    /// Returns all rows that a statement gives.
    pub(super) fn all<T>(
        &mut self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreFailure> {
        let run = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement
                .query_map(parameters, read)?
                .collect::<Result<Vec<T>, _>>()
        };
        run(&self.connection).map_err(|error| failure(&error))
    }

    /// Returns the first rows that a statement gives, up to one that is not wanted.
    pub(super) fn all_while<T>(
        &mut self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Result<Vec<T>, StoreFailure> {
        let run = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(parameters, read)?;
            rows.take_while(|row| row.as_ref().map_or(true, &mut is_wanted))
                .collect::<Result<Vec<T>, _>>()
        };
        run(&self.connection).map_err(|error| failure(&error))
    }

    /// Returns the number of the row that was inserted last.
    pub(super) fn inserted(&self) -> i64 {
        self.connection.last_insert_rowid()
    }
}

/// Converts the error of a statement; one that should not be is logged.
fn failure(error: &rusqlite::Error) -> StoreFailure {
    let failure = file::failure(error);
    if let StoreFailure::Internal { .. } = failure {
        tracing::error!(error = %error, "SQLite refused a statement");
    }
    failure
}
