//! A file that cannot be opened is tried again and again: it may be on a disk that is full, in use by
//! another process, or about to be put back from a copy. Who asks meanwhile is told so at once. The
//! first try is told to who starts the store: what no waiting can mend is refused there.

use super::counts::Counts;
use super::desk::{Desk, Work};
use crate::bell::Bell;
use airmail_model::{Error, ErrorCode};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;
use tokio::time::Instant;

const RETRY: Duration = Duration::from_secs(1);

/// What a desk is made of.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) path: PathBuf,
    pub(super) bell: Arc<Bell>,
    pub(super) counts: Arc<Counts>,
}

impl Opening {
    /// Works until there is nobody who could ask.
    pub(super) fn run(self, works: &Receiver<Work>, first: &SyncSender<Result<(), Error>>) {
        let mut told = None;
        loop {
            match Desk::open(&self.path, Arc::clone(&self.bell), Arc::clone(&self.counts)) {
                Ok(desk) => {
                    // Nobody listens but to the first.
                    let _ = first.try_send(Ok(()));
                    self.counts.open();
                    return desk.run(works);
                }
                Err(error) => {
                    let _ = first.try_send(Err(error.clone()));
                    if told.as_ref() != Some(&error) {
                        let path = self.path.display();
                        tracing::error!(%path, %error, "the file of the mailboxes cannot be used");
                    }
                    if self.refuse(works, &error).is_err() {
                        return;
                    }
                    told = Some(error);
                }
            }
        }
    }

    /// Refuses what is asked until it is time to try again.
    fn refuse(&self, works: &Receiver<Work>, why: &Error) -> Result<(), RecvTimeoutError> {
        let again = Instant::now() + RETRY;
        loop {
            let rest = again.saturating_duration_since(Instant::now());
            match works.recv_timeout(rest) {
                Ok(work) => {
                    self.counts.take(1);
                    work(Err(refusal(why)))(Ok(()));
                    self.counts.rest();
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(ended) => return Err(ended),
            }
        }
    }
}

/// What is told to who asks.
fn refusal(why: &Error) -> Error {
    if why.code() == ErrorCode::MailboxesUnusable {
        return why.clone();
    }
    Error::new(ErrorCode::MailboxesAway)
        .field(why.field_name())
        .value(why.found())
        .limit(why.expected())
        .retry_after(RETRY)
}
