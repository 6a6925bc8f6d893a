//! The liveness of the database, and the failure of requests that have waited for it for too long.
//!
//! Requests wait in the queue for a worker. While round trips end, they wait for as long as it takes: the
//! database is busy. If none has ended for as long as any request may wait, the database is taken to be
//! away, and the requests that have waited that long fail. They have not begun, so nothing was done for
//! them.

use super::StoreContext;
use super::statement_error::away;
use crate::store_error::StoreFailure;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Checks for overdue requests within the time that a request may wait.
const CHECKS: u32 = 8;
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(10);
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(250);
/// Interval at which a condition that lasts is logged again.
pub(super) const LOG_AGAIN: Duration = Duration::from_secs(60);

/// The time of the database's last answer, and the reason why there is no connection.
#[derive(Debug)]
pub(super) struct Liveness {
    started: Instant,
    /// Time of the last answer, in milliseconds since the start.
    answered_ms: AtomicU64,
    last_failure: Mutex<Option<ConnectFailure>>,
}

/// The failure of the last attempt to connect.
#[derive(Debug)]
struct ConnectFailure {
    failure: StoreFailure,
    logged: Instant,
}

impl Liveness {
    pub(super) fn new() -> Liveness {
        Liveness {
            started: Instant::now(),
            answered_ms: AtomicU64::new(0),
            last_failure: Mutex::new(None),
        }
    }

    /// Notes that the database has answered.
    pub(super) fn note_answer(&self) {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.answered_ms.store(ms, Ordering::Relaxed);
    }

    /// Returns whether the database has not answered for as long as `patience`.
    fn is_silent_for(&self, patience: Duration) -> bool {
        let answered = Duration::from_millis(self.answered_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(answered) >= patience
    }

    /// Notes that there is a connection.
    pub(super) fn note_connected(&self) {
        *self.last_failure.lock() = None;
    }

    /// Notes that an attempt to connect has failed. It is logged once, and again if it lasts.
    pub(super) fn note_not_connected(&self, failure: StoreFailure) {
        let failure = match failure {
            StoreFailure::Away { .. } | StoreFailure::Unusable { .. } => failure,
            other => away(other),
        };
        let mut last_failure = self.last_failure.lock();
        let is_known = last_failure
            .as_ref()
            .is_some_and(|known| known.failure == failure && known.logged.elapsed() < LOG_AGAIN);
        if !is_known {
            tracing::warn!(error = %failure, "the database of the mailboxes cannot be used");
            let logged = Instant::now();
            *last_failure = Some(ConnectFailure { failure, logged });
        }
    }

    /// Returns the failure of requests that have waited for too long.
    fn failure(&self) -> StoreFailure {
        let last_failure = self.last_failure.lock();
        let failure = last_failure
            .as_ref()
            .map(|last_failure| last_failure.failure.clone());
        failure.unwrap_or_else(|| away("no answer"))
    }

    /// Returns whether waiting is of no use.
    fn is_hopeless(&self) -> bool {
        matches!(self.failure(), StoreFailure::Unusable { .. })
    }
}

impl StoreContext {
    /// Fails the requests that have waited long enough for a connection; all of them if there will be
    /// no more attempts, or none that could help.
    pub(super) fn fail_overdue_requests(&self) {
        let patience = if self.request_queue.is_closed() || self.liveness.is_hopeless() {
            Duration::ZERO
        } else {
            self.options.patience()
        };
        for job in self.request_queue.take_overdue(patience) {
            job.fail(self.liveness.failure());
        }
    }
}

/// Fails overdue requests while the database is silent, until the store stops.
pub(super) async fn run(context: Arc<StoreContext>, mut stopped: watch::Receiver<bool>) {
    let patience = context.options.patience();
    let interval = (patience / CHECKS).clamp(CHECK_INTERVAL_MIN, CHECK_INTERVAL_MAX);
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(interval) => {}
        }
        if context.liveness.is_silent_for(patience) {
            context.fail_overdue_requests();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_database_that_answers_is_not_away_however_long_others_wait() {
        let liveness = Liveness::new();
        let patience = Duration::from_secs(5);
        tokio::time::sleep(patience).await;
        assert!(liveness.is_silent_for(patience), "it has never answered");
        liveness.note_answer();
        tokio::time::sleep(patience / 2).await;
        assert!(!liveness.is_silent_for(patience));
        tokio::time::sleep(patience / 2).await;
        assert!(liveness.is_silent_for(patience));
    }

    #[tokio::test(start_paused = true)]
    async fn overdue_requests_fail_with_the_reason_why_there_is_no_connection() {
        let liveness = Liveness::new();
        assert_eq!(liveness.failure(), away("no answer"));
        let reason = "no such function".to_owned();
        liveness.note_not_connected(StoreFailure::Internal { reason });
        let failure = liveness.failure();
        assert!(
            matches!(&failure, StoreFailure::Away { reason, .. } if reason.contains("no such function")),
            "{failure}"
        );
        assert!(!liveness.is_hopeless());
        liveness.note_not_connected(StoreFailure::Unusable {
            found: "version 2".to_owned(),
            expected: "version 1".to_owned(),
        });
        assert!(liveness.is_hopeless());
        liveness.note_connected();
        assert!(!liveness.is_hopeless());
    }
}
