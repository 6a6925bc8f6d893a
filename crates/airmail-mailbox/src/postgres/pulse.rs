//! Whether the database does anything, and what is told to those who have waited for too long.
//!
//! Jobs wait in the tray for a clerk. While rounds end, they wait for as long as it takes: the
//! database is busy. If none has ended for as long as anybody waits, the database is taken to be away,
//! and those whose patience is over are told so. They have not begun, so nothing was done for them.

use super::Surroundings;
use super::fault::away;
use airmail_model::{Error, ErrorCode};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// So often within the patience it is looked for those whose patience is over.
const LOOKS: u32 = 8;
const LOOK_MIN: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_millis(250);
/// What goes on is in the log again after so long.
pub(super) const TELL_AGAIN: Duration = Duration::from_secs(60);

/// The last sign of life.
#[derive(Debug)]
pub(super) struct Pulse {
    started: Instant,
    beat_ms: AtomicU64,
    trouble: Mutex<Option<Trouble>>,
}

/// Why there is no connection.
#[derive(Debug)]
struct Trouble {
    error: Error,
    told: Instant,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse {
            started: Instant::now(),
            beat_ms: AtomicU64::new(0),
            trouble: Mutex::new(None),
        }
    }

    /// The database has answered.
    pub(super) fn beat(&self) {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat_ms.store(ms, Ordering::Relaxed);
    }

    /// Whether it has answered nothing for so long.
    fn is_still_for(&self, patience: Duration) -> bool {
        let beat = Duration::from_millis(self.beat_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(beat) >= patience
    }

    /// There is a connection.
    pub(super) fn recover(&self) {
        *self.trouble.lock() = None;
    }

    /// There is none. It is in the log once, and again if it lasts.
    pub(super) fn fail(&self, error: Error) {
        let error = match error.code() {
            ErrorCode::MailboxesAway | ErrorCode::MailboxesUnusable => error,
            _ => away(error),
        };
        let mut trouble = self.trouble.lock();
        let known = trouble
            .as_ref()
            .is_some_and(|known| known.error == error && known.told.elapsed() < TELL_AGAIN);
        if !known {
            tracing::warn!(%error, "the database of the mailboxes cannot be used");
            let told = Instant::now();
            *trouble = Some(Trouble { error, told });
        }
    }

    /// What is told to those whose patience is over.
    fn why(&self) -> Error {
        let trouble = self.trouble.lock();
        let error = trouble.as_ref().map(|trouble| trouble.error.clone());
        error.unwrap_or_else(|| away("no answer"))
    }

    /// Whether waiting is of no use.
    fn is_hopeless(&self) -> bool {
        self.why().code() == ErrorCode::MailboxesUnusable
    }
}

impl Surroundings {
    /// Answers those who have waited long enough for a connection; all of them if there will be no
    /// more tries, or none that could help.
    pub(super) fn give_up(&self) {
        let patience = if self.tray.is_closed() || self.pulse.is_hopeless() {
            Duration::ZERO
        } else {
            self.options.patience()
        };
        for job in self.tray.take_overdue(patience) {
            job.fail(self.pulse.why());
        }
    }
}

/// Looks after those who wait for a clerk, until told to stop.
pub(super) async fn watch_over(with: Arc<Surroundings>, mut stopped: watch::Receiver<bool>) {
    let patience = with.options.patience();
    let step = (patience / LOOKS).clamp(LOOK_MIN, LOOK_MAX);
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(step) => {}
        }
        if with.pulse.is_still_for(patience) {
            with.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_database_that_answers_is_not_away_however_long_others_wait() {
        let pulse = Pulse::new();
        let patience = Duration::from_secs(5);
        tokio::time::sleep(patience).await;
        assert!(pulse.is_still_for(patience), "it has never answered");
        pulse.beat();
        tokio::time::sleep(patience / 2).await;
        assert!(!pulse.is_still_for(patience));
        tokio::time::sleep(patience / 2).await;
        assert!(pulse.is_still_for(patience));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_is_why_there_is_no_connection() {
        let pulse = Pulse::new();
        assert_eq!(pulse.why().code(), ErrorCode::MailboxesAway);
        pulse.fail(Error::new(ErrorCode::Internal).value("no such function"));
        assert_eq!(pulse.why().code(), ErrorCode::MailboxesAway);
        assert!(pulse.why().found().contains("no such function"));
        assert!(!pulse.is_hopeless());
        pulse.fail(Error::new(ErrorCode::MailboxesUnusable));
        assert!(pulse.is_hopeless());
        pulse.recover();
        assert!(!pulse.is_hopeless());
    }
}
