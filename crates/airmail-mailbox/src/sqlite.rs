//! The store on SQLite: the embedded default, for one process, which locks the file.
//!
//! One thread owns the connection (`desk`). It takes what requests have gathered and does them in
//! one transaction, one sync for all: an idle store answers at once, a busy one in large batches.
//! A request that fails is rolled back alone. Nothing is answered before the commit.

mod counts;
mod desk;
mod directory;
mod handing;
mod opening;
mod request;
mod settling;

use crate::bell::Bell;
use airmail_model::{Error, ErrorCode};
use counts::Counts;
use desk::{Desk, Work};
use opening::Opening;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Requests that may wait for the thread, if nothing else is said; more are refused with
/// `OVERLOADED`.
pub const WAITING_MAX: usize = 10_000;
/// How long a start waits for what becomes of the first try to open the file.
const FIRST_TRY_MAX: Duration = Duration::from_secs(5);

/// The store on SQLite; see the module.
#[derive(Debug)]
pub struct SqliteStore {
    /// None once it is closed.
    works: Mutex<Option<SyncSender<Work>>>,
    bell: Arc<Bell>,
    counts: Arc<Counts>,
    waiting_max: usize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Begins to use a file, which is made if it is not there. While it cannot be opened (another
    /// process has it, it is damaged, the disk is full) requests get `MAILBOXES_AWAY`, and it is
    /// tried again. `:memory:` is kept in memory, and gone with the store. `waiting_max` requests
    /// may wait, from 1, such as [`WAITING_MAX`].
    ///
    /// # Errors
    /// `MAILBOXES_UNUSABLE` if the file is no database, or a newer version's; `INTERNAL` if
    /// the system has no thread for it.
    pub fn start(path: &Path, waiting_max: usize) -> Result<SqliteStore, Error> {
        let bell = Arc::new(Bell::default());
        let counts = Arc::new(Counts::default());
        let opening = Opening {
            path: path.to_owned(),
            bell: Arc::clone(&bell),
            counts: Arc::clone(&counts),
        };
        let (works, taken) = sync_channel(waiting_max.max(1));
        let (first, tried) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("mailboxes".to_owned())
            .spawn(move || opening.run(&taken, &first))
            .map_err(|error| Error::new(ErrorCode::Internal).field("thread").value(error))?;
        // One that takes longer is away, and told so to who asks.
        if let Ok(Err(error)) = tried.recv_timeout(FIRST_TRY_MAX)
            && error.code() == ErrorCode::MailboxesUnusable
        {
            return Err(error);
        }
        Ok(SqliteStore {
            works: Mutex::new(Some(works)),
            bell,
            counts,
            waiting_max: waiting_max.max(1),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Has something done in a transaction, and waits for its commit.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.put(desk::work(work, reply))?;
        answer
            .await
            .unwrap_or_else(|_| Err(Error::new(ErrorCode::OutcomeUnknown)))
    }

    fn put(&self, work: Work) -> Result<(), Error> {
        let works = self.works.lock();
        let Some(works) = works.as_ref() else {
            return Err(Error::new(ErrorCode::ShuttingDown));
        };
        // Before it can be taken, so that it is not counted out first.
        self.counts.put();
        works.try_send(work).map_err(|error| {
            self.counts.refuse();
            match error {
                TrySendError::Full(_) => Error::new(ErrorCode::Overloaded)
                    .field("requests that wait")
                    .limit(self.waiting_max)
                    .retry_after(Duration::from_millis(100)),
                TrySendError::Disconnected(_) => Error::new(ErrorCode::Internal).field("thread"),
            }
        })
    }

    /// The thread ends when all that was asked for is done.
    async fn end(&self) {
        // All that was asked for before has then been answered.
        let _ = self.ask(|_| Ok(())).await;
        drop(self.works.lock().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
