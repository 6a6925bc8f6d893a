//! The store on PostgreSQL 15 or newer. Any number of nodes may use one database: what they share
//! is only there.
//!
//! A request becomes a job in a tray (`tray`). Clerks, one for each connection (`clerk`), take what has
//! gathered there and do it in a round (`round`): one statement for all jobs of a kind (`batch`), all of
//! them in one write, and what they change in one transaction. While a clerk is at work the next jobs
//! gather, so an idle store answers at once and a busy one in large rounds: what is done for one request
//! costs little, what is done for each round trip costs much. Further clerks help where jobs are a crowd,
//! or where one is held up.
//!
//! Statements that change something commit as any others do: an answer is durable as the session's
//! `synchronous_commit` says, and what others see is durable too. The database makes one wait for the
//! disk of all commits that come during one.
//!
//! Nobody waits for longer than the patience that was set: for a database that is away (`pulse`), for a
//! lock that somebody holds (`round`), or for one that answers nothing at all (`clerk`).
//!
//! One more connection is the tender's (`tender`): it listens for who rings waiting readers, puts
//! back what is due, keeps the storage small, and learns where lines begin (`heads`).
//!
//! The statements are functions of the schema `airmail` (`schema`), prepared once for each
//! connection. The same functions are there for `psql`.

mod batch;
mod clerk;
mod counts;
mod fault;
mod heads;
mod job;
mod link;
mod pulse;
mod request;
mod round;
mod row;
mod schema;
mod sharing;
mod tender;
mod tray;

use airmail_model::{Error, ErrorCode};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

pub use link::SESSION_OPTIONS;

use crate::bell::Bell;
use crate::store::Load;
use counts::Counts;
use heads::Heads;
use job::{Job, Reply};
use pulse::Pulse;
use tender::Arming;
use tray::Tray;

/// How to use a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// `postgres://user@host:port/database`.
    pub url: String,
    /// Clerks: connections for requests, from 1. One more is for what is done beside requests.
    /// Default 4: one does most, the others are for crowds and for when it is held up.
    pub connections: usize,
    /// Requests that may wait for a clerk, from 1; more are refused with `OVERLOADED`.
    /// Default 10,000.
    pub waiting_max: usize,
    /// How long a request waits for a database that is away, or whose tables somebody has locked,
    /// before `MAILBOXES_AWAY`. Default 5 s.
    pub patience_ms: u64,
    /// How large one of the three slots of the storage grows before the next is begun.
    /// Default 128 MiB.
    pub slot_bytes: u64,
}

impl Options {
    /// The defaults, for a database.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Options {
        Options {
            url: url.into(),
            connections: 4,
            waiting_max: 10_000,
            patience_ms: 5_000,
            slot_bytes: 128 << 20,
        }
    }

    /// How long a request waits.
    fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms)
    }

    /// Whether they can be used, as far as can be said without the database.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the field.
    pub fn check(&self) -> Result<(), Error> {
        link::config(self).map(drop)
    }

    /// Whether the database can be used, if it answers: one that is away may come. Takes some
    /// seconds at most.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the field; `MAILBOXES_UNUSABLE` if its schema is a newer node's.
    pub async fn look(&self) -> Result<(), Error> {
        link::look(&link::config(self)?).await
    }
}

/// The store on PostgreSQL; see the module.
#[derive(Debug)]
pub struct PostgresStore {
    tray: Arc<Tray>,
    bell: Arc<Bell>,
    arming: Arc<Arming>,
    patience: Duration,
    counts: Arc<Counts>,
    /// What the load is set beside.
    bounds: Load,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

/// What clerks and tender have in common.
#[derive(Debug)]
struct Surroundings {
    config: tokio_postgres::Config,
    options: Options,
    tray: Arc<Tray>,
    heads: Heads,
    bell: Arc<Bell>,
    arming: Arc<Arming>,
    counts: Arc<Counts>,
    pulse: Pulse,
}

impl PostgresStore {
    /// Begins to use a database, which may be away: requests wait for it. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what cannot be used of the options.
    pub fn start(options: Options) -> Result<PostgresStore, Error> {
        let config = link::config(&options)?;
        let tray = Arc::new(Tray::new(options.waiting_max));
        let bell = Arc::new(Bell::default());
        let arming = Arc::new(Arming::default());
        let patience = options.patience();
        let clerks = options.connections;
        let bounds = Load {
            connections_max: clerks,
            waiting_max: options.waiting_max,
            ..Load::default()
        };
        let counts = Arc::new(Counts::default());
        let surroundings = Arc::new(Surroundings {
            config,
            options,
            tray: Arc::clone(&tray),
            heads: Heads::default(),
            bell: Arc::clone(&bell),
            arming: Arc::clone(&arming),
            counts: Arc::clone(&counts),
            pulse: Pulse::new(),
        });
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for _ in 0..clerks {
            tasks.spawn(clerk::run(Arc::clone(&surroundings)));
        }
        tasks.spawn(pulse::watch_over(
            Arc::clone(&surroundings),
            stopped.clone(),
        ));
        tasks.spawn(tender::run(surroundings, stopped));
        Ok(PostgresStore {
            tray,
            bell,
            arming,
            patience,
            counts,
            bounds,
            stop,
            tasks: Mutex::new(tasks),
        })
    }

    /// Puts a job in the tray and waits for what becomes of it.
    async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.tray.put(job(Reply::new(reply)))?;
        // A clerk that ends in the middle has dropped the job.
        answer
            .await
            .unwrap_or_else(|_| Err(Error::new(ErrorCode::OutcomeUnknown)))
    }

    async fn end(&self) -> Result<(), Error> {
        self.tray.close();
        self.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
        Ok(())
    }
}
