//! The store on SQLite: the embedded default, for one process, which locks the file.
//!
//! One thread owns the connection (`desk`). It takes what requests have gathered and does them in
//! one transaction, one sync for all: an idle store answers at once, a busy one in large batches.
//! A request that fails is rolled back alone. Nothing is answered before the commit.

mod desk;
mod directory;
mod handing;
mod request;
mod settling;

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use airmail_model::{Error, ErrorCode};
use tokio::sync::oneshot;

use crate::bell::Bell;
use desk::{Desk, Work};

/// Requests that may wait for the thread; more are refused with `OVERLOADED`.
const WAITING_MAX: usize = 10_000;

/// The store on SQLite; see the module.
#[derive(Debug)]
pub struct SqliteStore {
    /// None once it is closed.
    works: Mutex<Option<SyncSender<Work>>>,
    bell: Arc<Bell>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if it cannot be opened: another process has it, or it is no such file.
    pub fn open(path: &Path) -> Result<SqliteStore, Error> {
        let bell = Arc::new(Bell::default());
        let desk = Desk::open(path, Arc::clone(&bell))?;
        let (works, taken) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("mailboxes".to_owned())
            .spawn(move || desk.run(&taken))
            .map_err(|error| {
                Error::new(ErrorCode::InternalError)
                    .field("thread")
                    .value(error)
            })?;
        Ok(SqliteStore {
            works: Mutex::new(Some(works)),
            bell,
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
        let works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(works) = works.as_ref() else {
            return Err(Error::new(ErrorCode::ShuttingDown));
        };
        works.try_send(work).map_err(|error| match error {
            TrySendError::Full(_) => Error::new(ErrorCode::Overloaded)
                .field("requests that wait")
                .limit(WAITING_MAX)
                .retry_after(Duration::from_millis(100)),
            TrySendError::Disconnected(_) => Error::new(ErrorCode::InternalError).field("thread"),
        })
    }

    /// The thread ends when all that was asked for is done.
    async fn end(&self) {
        let done = self.ask(|_| Ok(())).await;
        drop(
            self.works
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let (Ok(()), Some(thread)) = (done, thread) {
            let _ = thread.join();
        }
    }
}
