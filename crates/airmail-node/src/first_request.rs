//! Whether a connection has made a request, and how long it may take to make its first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct FirstRequest(AtomicBool);

impl FirstRequest {
    /// A request has come.
    pub(super) fn note(&self) {
        // A load is all that most requests cost.
        if !self.has_come() {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any request has come.
    pub(super) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends when none has come within `patience`, and never if one has.
    pub(super) async fn is_overdue(&self, patience: Duration) {
        // In two halves: a node that had no turn for long looks at what has come before it judges. The
        // timers are let go, for most connections go on for long.
        for _ in 0..2 {
            Box::pin(tokio::time::sleep(patience / 2)).await;
            if self.has_come() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn who_makes_no_request_is_overdue_and_who_has_made_one_never_is() {
        let patience = Duration::from_millis(20);
        let silent = FirstRequest::default();
        silent.is_overdue(patience).await;
        assert!(!silent.has_come());
        let begun = FirstRequest::default();
        begun.note();
        let overdue = begun.is_overdue(patience);
        let later = tokio::time::timeout(patience * 5, overdue);
        assert!(later.await.is_err(), "it has begun");
        assert!(silent.is_overdue(patience).now_or_never().is_none());
    }
}
