//! A node that runs, for whoever started it.

use crate::frontdoor::FrontDoor;
use crate::mailboxes::{MailboxUrl, NodeMailboxes};
use futures::future::{join_all, select_all};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Time that a stop waits for HTTP requests under way.
const HTTP_PATIENCE: Duration = Duration::from_secs(1);

/// The thread of a shard, and what says that it has ended.
#[derive(Debug)]
pub(crate) struct RunningShard {
    pub(crate) thread: JoinHandle<()>,
    pub(crate) ended: oneshot::Receiver<()>,
}

/// A node that runs.
#[derive(Debug)]
pub struct Running {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where health and metrics are.
    pub http_address: Option<SocketAddr>,
    /// Where other nodes connect that use this one's storage.
    pub cluster_address: Option<SocketAddr>,
    pub(crate) door: FrontDoor,
    pub(crate) shutdown: CancellationToken,
    pub(crate) shards: Vec<RunningShard>,
    /// Everything that is served where the node was started: HTTP, and accepting for several shards.
    pub(crate) tasks: TaskTracker,
    pub(crate) mailboxes: NodeMailboxes,
    /// Time that the mailboxes may take to end.
    pub(crate) patience: Duration,
}

impl Running {
    /// Sessions with the node, for a front door of one's own. All are on the first shard.
    #[must_use]
    pub fn front_door(&self) -> &FrontDoor {
        &self.door
    }

    /// Where the mailboxes are.
    #[must_use]
    pub fn mailboxes_url(&self) -> &MailboxUrl {
        self.mailboxes.url()
    }

    /// Whether a shard has ended.
    pub(crate) fn has_lost_a_shard(&mut self) -> bool {
        let mut shards = self.shards.iter_mut();
        shards.any(|shard| !matches!(shard.ended.try_recv(), Err(TryRecvError::Empty)))
    }

    /// Waits until the node has stopped, which it does when its `shutdown` is cancelled, or when one of its
    /// shards ends.
    pub async fn wait(mut self) {
        let (threads, ends): (Vec<_>, Vec<_>) = std::mem::take(&mut self.shards)
            .into_iter()
            .map(|shard| (shard.thread, shard.ended))
            .unzip();
        // An error means that the thread is gone: stopped all the same.
        let (_, _, others) = select_all(ends).await;
        self.shutdown.cancel();
        join_all(others).await;
        self.tasks.close();
        // A client that holds its connection open does not hold up the end.
        let _ = tokio::time::timeout(HTTP_PATIENCE, self.tasks.wait()).await;
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("the shard's thread panicked");
            }
        }
        self.mailboxes.close(self.patience).await;
    }

    /// Stops the node in order and waits until it has.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.wait().await;
    }
}
