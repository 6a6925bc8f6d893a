//! Whether a peer takes what it is sent.
//!
//! A peer that reads nothing fills every buffer on the way to it, and then nothing more can be
//! written: no ping that would ask whether it is there, and no farewell that would end its connection.
//! So one that leaves a write waiting, and from which nothing comes either, is given up after a while.
//! Nothing is measured while writes go through: a timer is made when one has to wait.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Starvation {
    patience: Duration,
    /// Since a write had to wait, and nothing has come.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Starvation {
    /// A peer is given up after `patience`.
    pub(super) fn new(patience: Duration) -> Starvation {
        Starvation {
            patience,
            waiting: None,
        }
    }

    /// Something has come from the peer.
    pub(super) fn heard(&mut self) {
        if self.waiting.is_some() {
            self.waiting = None;
        }
    }

    /// What became of a write, or that the peer is given up.
    pub(super) fn look<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            return written;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        waiting.as_mut().poll(cx).map(|()| {
            let why = "it takes nothing that it is sent";
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use std::future::poll_fn;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_and_says_nothing_is_given_up() {
        let patience = Duration::from_secs(60);
        let mut starvation = Starvation::new(patience);
        let done = poll_fn(|cx| starvation.look(Poll::Ready(Ok(7)), cx));
        assert_eq!(done.await.unwrap(), 7);
        let stuck = poll_fn(|cx| starvation.look(Poll::<io::Result<()>>::Pending, cx));
        assert_eq!(stuck.await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_something_has_time_again() {
        let patience = Duration::from_secs(60);
        let mut starvation = Starvation::new(patience);
        for _ in 0..5 {
            let mut stuck = poll_fn(|cx| starvation.look(Poll::<io::Result<()>>::Pending, cx));
            assert!((&mut stuck).now_or_never().is_none());
            tokio::time::sleep(patience / 2).await;
            assert!((&mut stuck).now_or_never().is_none());
            starvation.heard();
        }
    }
}
