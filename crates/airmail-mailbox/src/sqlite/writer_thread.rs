//! The thread of the writer: it opens the file, and then writes. A file that cannot be opened is tried
//! again and again: it may be on a disk that is full, in use by another process, or about to be restored
//! from a copy. Requests that come meanwhile fail at once. The start of the store waits for the result of
//! the first attempt, and fails if waiting for longer does not help.

use super::load_counters::LoadCounters;
use super::writer::{Writer, WriterRequest};
use crate::notifier::Notifier;
use crate::store_error::StoreFailure;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;
use tokio::time::Instant;

const RETRY: Duration = Duration::from_secs(1);

/// The thread, before its file is open.
#[derive(Debug)]
pub(super) struct WriterThread {
    pub(super) path: PathBuf,
    pub(super) notifier: Arc<Notifier>,
    pub(super) load_counters: Arc<LoadCounters>,
}

impl WriterThread {
    /// Opens the file and writes, until the store is closed.
    pub(super) fn run(
        self,
        requests: &Receiver<WriterRequest>,
        first: &SyncSender<Result<(), StoreFailure>>,
    ) {
        let mut logged = None;
        loop {
            let (notifier, counters) =
                (Arc::clone(&self.notifier), Arc::clone(&self.load_counters));
            match Writer::open(&self.path, notifier, counters) {
                Ok(writer) => {
                    // Only the result of the first attempt has a listener.
                    let _ = first.try_send(Ok(()));
                    self.load_counters.note_open();
                    return writer.run(requests);
                }
                Err(failure) => {
                    let _ = first.try_send(Err(failure.clone()));
                    if logged.as_ref() != Some(&failure) {
                        let path = self.path.display();
                        tracing::error!(%path, error = %failure, "the file of the mailboxes cannot be used");
                    }
                    if self.fail_requests(requests, &failure).is_err() {
                        return;
                    }
                    logged = Some(failure);
                }
            }
        }
    }

    /// Fails requests until it is time to try again.
    fn fail_requests(
        &self,
        requests: &Receiver<WriterRequest>,
        failure: &StoreFailure,
    ) -> Result<(), RecvTimeoutError> {
        let again = Instant::now() + RETRY;
        loop {
            let rest = again.saturating_duration_since(Instant::now());
            match requests.recv_timeout(rest) {
                Ok(request) => {
                    self.load_counters.count_transaction(1);
                    request(Err(while_not_open(failure)))(Ok(()));
                    self.load_counters.note_idle();
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(ended) => return Err(ended),
            }
        }
    }
}

/// Converts the failure of an attempt to open the file to that of a request.
fn while_not_open(failure: &StoreFailure) -> StoreFailure {
    let reason = match failure {
        StoreFailure::Unusable { .. } => return failure.clone(),
        StoreFailure::Internal { reason } | StoreFailure::DiskFull { reason } => reason.clone(),
        other => other.to_string(),
    };
    StoreFailure::Away {
        reason,
        expected: Some("a sound file that no other process uses"),
        retry_after: RETRY,
    }
}
