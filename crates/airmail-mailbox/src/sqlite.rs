//! The store on SQLite: the embedded default, for one process, which locks the file.
//!
//! One thread owns the connection (`writer`). It takes the requests that have gathered and does them in
//! one transaction, with one sync for all: an idle store answers at once, a busy one in large batches. A
//! request that fails is rolled back alone. Nothing is answered before the commit.

mod contract;
mod directory;
mod file;
mod leases;
mod load_counters;
mod messages;
mod writer;
mod writer_thread;

use crate::notifier::Notifier;
use crate::store_error::StoreFailure;
use airmail_model::bug;
use load_counters::LoadCounters;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use writer::{Writer, WriterRequest};
use writer_thread::WriterThread;

/// Default of the number of requests that may wait for the thread; more are refused with
/// [`StoreFailure::QueueFull`].
pub const WAITING_MAX: usize = 10_000;
/// Time that a start waits for the result of the first attempt to open the file.
const FIRST_ATTEMPT_MAX: Duration = Duration::from_secs(5);

/// The store on SQLite; see the module.
#[derive(Debug)]
pub struct SqliteStore {
    /// The queue of requests; none once the store is closed.
    requests: Mutex<Option<SyncSender<WriterRequest>>>,
    notifier: Arc<Notifier>,
    load_counters: Arc<LoadCounters>,
    waiting_max: usize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Starts the store on a file, which is made if it is not there. While it cannot be opened (another
    /// process has it, it is damaged, the disk is full) requests get [`StoreFailure::Away`], and it is
    /// tried again. `:memory:` is kept in memory, and gone with the store. `waiting_max` requests
    /// may wait, from 1, such as [`WAITING_MAX`].
    ///
    /// # Errors
    /// [`StoreFailure::Unusable`] if the file is not a database of SQLite, or a newer version's;
    /// [`StoreFailure::Internal`] if the system has no thread for it.
    pub fn start(path: &Path, waiting_max: usize) -> Result<SqliteStore, StoreFailure> {
        let notifier = Arc::new(Notifier::default());
        let load_counters = Arc::new(LoadCounters::default());
        let writer_thread = WriterThread {
            path: path.to_owned(),
            notifier: Arc::clone(&notifier),
            load_counters: Arc::clone(&load_counters),
        };
        let (requests, received) = sync_channel(waiting_max.max(1));
        let (first, attempted) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("mailboxes".to_owned())
            .spawn(move || writer_thread.run(&received, &first))
            .map_err(|error| StoreFailure::Internal {
                reason: format!("no thread: {error}"),
            })?;
        // If the attempt takes longer, the database is away, and requests say so.
        if let Ok(Err(unusable @ StoreFailure::Unusable { .. })) =
            attempted.recv_timeout(FIRST_ATTEMPT_MAX)
        {
            return Err(unusable);
        }
        Ok(SqliteStore {
            requests: Mutex::new(Some(requests)),
            notifier,
            load_counters,
            waiting_max: waiting_max.max(1),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Does a request in a transaction, and waits for its commit.
    async fn submit<T: Send + 'static, E: From<StoreFailure> + Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        self.push(writer::request(work, reply))?;
        answer
            .await
            .unwrap_or_else(|_| Err(StoreFailure::OutcomeUnknown.into()))
    }

    fn push(&self, request: WriterRequest) -> Result<(), StoreFailure> {
        let requests = self.requests.lock();
        let requests = requests.as_ref().ok_or(StoreFailure::Closed)?;
        // Counted before the thread can take it, so that it is not counted out first.
        self.load_counters.count_queued();
        requests.try_send(request).map_err(|error| {
            self.load_counters.count_refused();
            match error {
                TrySendError::Full(_) => StoreFailure::QueueFull {
                    waiting: self.waiting_max,
                    waiting_max: self.waiting_max,
                },
                TrySendError::Disconnected(_) => {
                    bug!("the thread of the mailboxes has ended before its store");
                    let reason = "the thread of the mailboxes has ended".to_owned();
                    StoreFailure::Internal { reason }
                }
            }
        })
    }

    /// Waits until all requests are done, and ends the thread.
    async fn stop(&self) {
        // The last request: its answer says that those before have been answered.
        let _: Result<(), StoreFailure> = self.submit(|_| Ok(())).await;
        drop(self.requests.lock().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
