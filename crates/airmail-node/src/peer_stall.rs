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
pub(super) struct PeerStall {
    patience: Duration,
    /// Since a write had to wait, and nothing has come.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl PeerStall {
    /// A peer is given up after `patience`.
    pub(super) fn new(patience: Duration) -> PeerStall {
        PeerStall {
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

    /// The result of a write, or the error that gives the peer up.
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

    fn stuck(stall: &mut PeerStall) -> impl Future<Output = io::Result<()>> {
        poll_fn(|cx| stall.look(Poll::Pending, cx))
    }

    #[tokio::test]
    async fn who_takes_nothing_and_says_nothing_is_given_up() {
        let mut stall = PeerStall::new(Duration::from_millis(10));
        let done = poll_fn(|cx| stall.look(Poll::Ready(Ok(7)), cx));
        assert_eq!(done.await.unwrap(), 7);
        assert!(stall.waiting.is_none(), "nothing had to wait");
        let given_up = stuck(&mut stall).await.unwrap_err();
        assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn who_says_something_has_all_its_time_again_and_who_takes_a_little_has_not() {
        let mut stall = PeerStall::new(Duration::from_secs(3_600));
        assert!(stuck(&mut stall).now_or_never().is_none());
        let since = stall.waiting.as_ref().unwrap().deadline();
        let a_little = poll_fn(|cx| stall.look(Poll::Ready(Ok(1)), cx));
        a_little.await.unwrap();
        assert!(stuck(&mut stall).now_or_never().is_none());
        assert_eq!(stall.waiting.as_ref().unwrap().deadline(), since);
        stall.heard();
        assert!(stall.waiting.is_none());
    }
}
