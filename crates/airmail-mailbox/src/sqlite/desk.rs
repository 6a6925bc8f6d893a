//! The thread that owns the connection, and what it does beside requests.

use super::counts::Counts;
use crate::bell::Bell;
use crate::id::{AccountId, QueueId};
use crate::message::{Inbox, Recipients};
use airmail_model::{Error, ErrorCode};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Params, Row, ffi};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;

/// Requests of one transaction.
const WORKS_MAX: usize = 256;
/// The schema's version.
const VERSION: i32 = 1;
/// Rows that are put back or removed in one transaction.
const MOVED_MAX: i64 = 500;
/// The path of a store that is kept in memory.
const MEMORY: &str = ":memory:";
/// The mode of the file: its owner reads and writes it.
const FILE_MODE: u32 = 0o600;
/// How long it sleeps at most: what expires is looked for then.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Something to be done in a transaction, or why there is none. What it gives is called with what
/// became of the commit.
pub(super) type Work = Box<dyn FnOnce(Result<&mut Desk, Error>) -> After + Send>;
type After = Box<dyn FnOnce(Result<(), Error>)>;

/// What is done for one request, and where its answer goes.
pub(super) fn work<T: Send + 'static>(
    work: impl FnOnce(&mut Desk) -> Result<T, Error> + Send + 'static,
    reply: oneshot::Sender<Result<T, Error>>,
) -> Work {
    Box::new(move |desk| {
        // Who has given up before it is done, wants it not done.
        let given_up = || Error::new(ErrorCode::Internal).field("given up");
        let done = desk.and_then(|desk| {
            desk.alone(|desk| {
                let done = work(desk)?;
                if reply.is_closed() {
                    Err(given_up())
                } else {
                    Ok(done)
                }
            })
        });
        Box::new(move |committed| {
            let _ = reply.send(committed.and(done));
        })
    })
}

/// The thread's belongings.
#[derive(Debug)]
pub(super) struct Desk {
    connection: Connection,
    bell: Arc<Bell>,
    counts: Arc<Counts>,
    /// Lines in which something became readable in this transaction, and how much.
    rings: BTreeMap<Inbox, usize>,
    now: i64,
    next_due: Option<i64>,
}

impl Desk {
    pub(super) fn open(path: &Path, bell: Arc<Bell>, counts: Arc<Counts>) -> Result<Desk, Error> {
        // Whoever opens it logs it, once.
        let (connection, version) = connect(path).map_err(|error| unopened(&error))?;
        if version > VERSION {
            return Err(Error::new(ErrorCode::MailboxesUnusable)
                .field("schema of the mailboxes")
                .value(format!("version {version}"))
                .limit(format!("version {VERSION}: use a newer airmail")));
        }
        bring_up(&connection, version).map_err(|error| unopened(&error))?;
        let mut desk = Desk {
            connection,
            bell,
            counts,
            rings: BTreeMap::new(),
            now: 0,
            next_due: None,
        };
        desk.next_due = desk.find_next_due()?;
        Ok(desk)
    }

    /// Works until there is nobody who could ask.
    pub(super) fn run(mut self, works: &Receiver<Work>) {
        loop {
            let first = match works.recv_timeout(self.sleep()) {
                Ok(work) => Some(work),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let rest = std::iter::from_fn(|| works.try_recv().ok());
            let batch: Vec<Work> = first.into_iter().chain(rest.take(WORKS_MAX)).collect();
            self.turn(batch);
        }
    }

    fn sleep(&mut self) -> Duration {
        self.tell_time();
        let micros = self.next_due.map(|due| (due - self.now).max(0));
        let until_due = micros.and_then(|micros| u64::try_from(micros).ok());
        until_due.map_or(SLEEP_MAX, |micros| {
            // Up to the next millisecond: it wakes when it is due, and not a moment before.
            Duration::from_micros(micros + 1000).min(SLEEP_MAX)
        })
    }

    /// One transaction.
    fn turn(&mut self, works: Vec<Work>) {
        self.counts.take(works.len());
        self.tell_time();
        self.rings.clear();
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE");
        let mut done: Vec<After> = Vec::with_capacity(works.len());
        let committed = begun.map_err(|error| fault(&error)).and_then(|()| {
            let looked = self.alone(Desk::look_after);
            done.extend(works.into_iter().map(|work| work(Ok(self))));
            let next_due = self.find_next_due();
            self.connection
                .execute_batch("COMMIT")
                .map_err(|error| fault(&error))?;
            self.next_due = next_due?;
            looked
        });
        if committed.is_err() && !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        if committed.is_ok() {
            for (line, count) in &self.rings {
                self.bell.ring(*line, *count);
            }
        }
        self.counts.rest();
        for after in done {
            after(committed.clone());
        }
    }

    /// Does something so that it is undone if it fails, and nothing else is.
    fn alone<T>(&mut self, work: impl FnOnce(&mut Desk) -> Result<T, Error>) -> Result<T, Error> {
        self.execute("SAVEPOINT request", ())?;
        let done = work(self);
        if done.is_err() {
            self.execute("ROLLBACK TO request", ())?;
        }
        self.execute("RELEASE request", ())?;
        done
    }

    /// Puts back what is due and removes what has expired.
    fn look_after(&mut self) -> Result<(), Error> {
        if self.next_due.is_some_and(|due| due <= self.now) {
            let sql = "SELECT id FROM message WHERE due_at <= ?1 ORDER BY due_at LIMIT ?2";
            let due = self.all(sql, (self.now, MOVED_MAX), |row| row.get(0))?;
            for id in due {
                self.put_back(id)?;
            }
        }
        let sql = "SELECT id FROM message WHERE expires_at <= ?1 AND due_at IS NULL LIMIT ?2";
        let expired = self.all(sql, (self.now, MOVED_MAX), |row| row.get(0))?;
        for id in expired {
            self.expire(id)?;
        }
        Ok(())
    }

    fn find_next_due(&mut self) -> Result<Option<i64>, Error> {
        let sql = "SELECT min(due_at) FROM message WHERE due_at IS NOT NULL";
        Ok(self.one(sql, (), |row| row.get(0))?.flatten())
    }

    /// The time of this transaction, in microseconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    #[expect(clippy::disallowed_methods, reason = "the store's one clock")]
    fn tell_time(&mut self) {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        self.now = micros.max(self.now);
    }

    /// Something became readable.
    pub(super) fn ring(&mut self, queue: QueueId, receiver: i32) {
        let recipients = recipients(receiver);
        *self.rings.entry(Inbox { queue, recipients }).or_default() += 1;
    }

    /// Runs a statement; how many rows it changed.
    pub(super) fn execute(&mut self, sql: &str, parameters: impl Params) -> Result<usize, Error> {
        let run = |connection: &Connection| connection.prepare_cached(sql)?.execute(parameters);
        run(&self.connection).map_err(|error| fault(&error))
    }

    /// The row that a statement gives, if it gives one.
    pub(super) fn one<T>(
        &mut self,
        sql: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        let run = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row(parameters, read).optional()
        };
        run(&self.connection).map_err(|error| fault(&error))
    }

    /// All rows that a statement gives.
    pub(super) fn all<T>(
        &mut self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let run = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement
                .query_map(parameters, read)?
                .collect::<Result<Vec<T>, _>>()
        };
        run(&self.connection).map_err(|error| fault(&error))
    }

    /// The first rows that a statement gives, up to one that is too much.
    pub(super) fn all_while<T>(
        &mut self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
        mut more: impl FnMut(&T) -> bool,
    ) -> Result<Vec<T>, Error> {
        let run = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(parameters, read)?;
            rows.take_while(|row| row.as_ref().map_or(true, &mut more))
                .collect::<Result<Vec<T>, _>>()
        };
        run(&self.connection).map_err(|error| fault(&error))
    }

    /// The number of the row that was inserted last.
    pub(super) fn inserted(&self) -> i64 {
        self.connection.last_insert_rowid()
    }
}

/// Opens the file, and says which version of the schema is there; 0 if none is.
fn connect(path: &Path) -> rusqlite::Result<(Connection, i32)> {
    make_file(path)?;
    // A path is never taken for a URI: that could name another file than the one that was made.
    let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_millis(500))?;
    // Exclusive: a second process would not ring this one's readers. Full: what is acknowledged
    // is on the disk.
    connection.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         BEGIN EXCLUSIVE;",
    )?;
    let version = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    Ok((connection, version))
}

/// Makes the file for its owner alone, where there is none. SQLite would let everybody read it that the
/// process's mask lets; what it makes beside it (`-wal`, `-shm`) has the file's own mode.
fn make_file(path: &Path) -> rusqlite::Result<()> {
    if path.as_os_str() == MEMORY || path.exists() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let made = options.mode(FILE_MODE).open(path);
    made.map(drop).map_err(|error| {
        let code = ffi::Error::new(ffi::SQLITE_CANTOPEN);
        let said = format!("{}: {error}", path.display());
        rusqlite::Error::SqliteFailure(code, Some(said))
    })
}

fn bring_up(connection: &Connection, version: i32) -> rusqlite::Result<()> {
    if version == 0 {
        connection.execute_batch(include_str!("schema.sql"))?;
        connection.execute_batch("PRAGMA user_version = 1")?;
    }
    connection.execute_batch("COMMIT")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Why a file cannot be opened.
fn unopened(error: &rusqlite::Error) -> Error {
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) {
        return Error::new(ErrorCode::MailboxesUnusable)
            .field("sqlite")
            .value(error)
            .limit("a file of SQLite, or none");
    }
    of_table(error).limit("a sound file that no other process uses")
}

/// An error of SQLite as one of the table; what should not be is logged.
fn fault(error: &rusqlite::Error) -> Error {
    let told = of_table(error);
    if told.code() == ErrorCode::Internal {
        tracing::error!(error = %error, "SQLite refused a statement");
    }
    told
}

fn of_table(error: &rusqlite::Error) -> Error {
    let full = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
    let code = if full {
        ErrorCode::StorageFull
    } else {
        ErrorCode::Internal
    };
    Error::new(code).field("sqlite").value(error)
}

/// A receiver as the table has it: 0 for broadcasts.
pub(super) fn receiver(recipients: Recipients) -> i32 {
    match recipients {
        Recipients::Direct(account) => account.0,
        Recipients::Broadcast => 0,
    }
}

/// The other way round.
pub(super) fn recipients(receiver: i32) -> Recipients {
    match receiver {
        0 => Recipients::Broadcast,
        account => Recipients::Direct(AccountId(account)),
    }
}
