//! The store on PostgreSQL 15 or newer. Any number of nodes may use one database; the database is all
//! that they share.
//!
//! A request becomes a job in the request queue (`contract`, `request_queue`). Workers, one for each
//! connection (`worker`), take the jobs that have gathered there and do them in one round trip
//! (`round_trip`): one statement for all jobs of a kind (`job_batch`, `statements`), all statements in one
//! write, and all changes in one transaction. While a worker is busy the next jobs gather, so an idle
//! store answers at once and a busy one in large round trips: the cost of a round trip is much greater
//! than that of a request in it. Further workers help when many jobs wait, or when a worker is held up.
//!
//! Changes commit as any others do: an answer is as durable as the session's `synchronous_commit` says,
//! and what others see is durable too. The database makes one wait for the disk of all commits that come
//! during one.
//!
//! No request waits for longer than the patience that was set: for a database that is away (`liveness`),
//! for a lock that somebody holds (`round_trip`), or for a database that does not answer at all
//! (`worker`).
//!
//! One more connection is for maintenance (`maintenance`): it listens for notifications, makes delayed
//! messages ready, keeps the storage small, and finds low-water marks (`low_water`).
//!
//! The statements are functions of the schema `airmail` (`schema`), prepared once for each
//! connection. The same functions are there for `psql`.

mod connection;
mod contract;
mod job;
mod job_batch;
mod liveness;
mod load_counters;
mod low_water;
mod maintenance;
mod notify_switch;
mod raised;
mod request_queue;
mod round_trip;
mod row;
mod schema;
mod settled_ids;
mod statement_error;
mod statements;
mod worker;

use crate::notifier::Notifier;
use crate::store::StoreLoad;
use crate::store_error::{StoreFailure, StoreStartError};
pub use connection::SESSION_OPTIONS;
use futures::future::BoxFuture;
use liveness::Liveness;
use load_counters::LoadCounters;
use low_water::LowWaterMarks;
use notify_switch::NotifySwitch;
use parking_lot::Mutex;
use request_queue::RequestQueue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The options of a store on PostgreSQL.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database: `postgres://user@host:port/database`.
    pub url: String,
    /// Connections for requests, from 1, each with a worker. One more is for maintenance. Default 4:
    /// one does most, the others help when many requests wait and when one is held up.
    pub connections: usize,
    /// Requests that may wait for a worker, from 1; more are refused with
    /// [`StoreFailure::QueueFull`]. Default 10,000.
    pub waiting_max: usize,
    /// Time that a request waits for a database that is away, or whose tables somebody has locked,
    /// before [`StoreFailure::Away`]. Default 5 s.
    pub patience_ms: u64,
    /// Size to which one of the three slots of the storage grows before the next is begun.
    /// Default 128 MiB.
    pub slot_bytes: u64,
}

impl Options {
    /// Makes the default options for a database.
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

    fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms)
    }

    /// Checks the options, as far as that can be done without the database.
    ///
    /// # Errors
    /// [`StoreStartError::InvalidSetting`].
    pub fn check(&self) -> Result<(), StoreStartError> {
        connection::config(self).map(drop)
    }

    /// Checks that the database can be used, if it answers: one that is away may come later. Takes some
    /// seconds at most. Boxed, so that the database's client is compiled with this crate alone.
    ///
    /// # Errors
    /// [`StoreStartError::InvalidSetting`]; [`StoreFailure::Unusable`] if the schema is a newer node's.
    pub fn check_database(&self) -> BoxFuture<'_, Result<(), StoreStartError>> {
        Box::pin(async {
            let config = connection::config(self)?;
            Ok(connection::check_schema(&config).await?)
        })
    }
}

/// The store on PostgreSQL; see the module.
#[derive(Debug)]
pub struct PostgresStore {
    request_queue: Arc<RequestQueue>,
    notifier: Arc<Notifier>,
    notify_switch: Arc<NotifySwitch>,
    patience: Duration,
    load_counters: Arc<LoadCounters>,
    /// The bounds of the store; the rest of the load is counted.
    bounds: StoreLoad,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

/// The state that workers and maintenance share.
#[derive(Debug)]
struct StoreContext {
    config: tokio_postgres::Config,
    options: Options,
    request_queue: Arc<RequestQueue>,
    low_water: LowWaterMarks,
    notifier: Arc<Notifier>,
    notify_switch: Arc<NotifySwitch>,
    load_counters: Arc<LoadCounters>,
    liveness: Liveness,
}

impl PostgresStore {
    /// Starts the store on a database, which may be away: requests wait for it. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// [`StoreStartError::InvalidSetting`].
    pub fn start(options: Options) -> Result<PostgresStore, StoreStartError> {
        let config = connection::config(&options)?;
        let request_queue = Arc::new(RequestQueue::new(options.waiting_max));
        let notifier = Arc::new(Notifier::default());
        let notify_switch = Arc::new(NotifySwitch::default());
        let patience = options.patience();
        let workers = options.connections;
        let bounds = StoreLoad {
            connections_max: workers,
            waiting_max: options.waiting_max,
            ..StoreLoad::default()
        };
        let load_counters = Arc::new(LoadCounters::default());
        let context = Arc::new(StoreContext {
            config,
            options,
            request_queue: Arc::clone(&request_queue),
            low_water: LowWaterMarks::default(),
            notifier: Arc::clone(&notifier),
            notify_switch: Arc::clone(&notify_switch),
            load_counters: Arc::clone(&load_counters),
            liveness: Liveness::new(),
        });
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            tasks.spawn(worker::run(Arc::clone(&context)));
        }
        tasks.spawn(liveness::run(Arc::clone(&context), stopped.clone()));
        tasks.spawn(maintenance::run(context, stopped));
        Ok(PostgresStore {
            request_queue,
            notifier,
            notify_switch,
            patience,
            load_counters,
            bounds,
            stop,
            tasks: Mutex::new(tasks),
        })
    }

    async fn stop(&self) -> Result<(), StoreFailure> {
        self.request_queue.close();
        self.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
        Ok(())
    }
}
