//! All shards of a node, for whoever asks each of them: health, metrics, the state of flow and clock, and
//! the wait for a change of namespaces to be known everywhere.
//!
//! Nobody is kept waiting by a shard that has no turns: each is given some patience, all at the same time.
//! What it said last is remembered, so that sums of counters do not go back while one is silent.

use crate::metrics::Snapshot;
use crate::shard_handle::ShardHandle;
use airmail_broker::{Command, Outcome, Principal};
use airmail_log::{ClockState, Waker};
use airmail_model::Error;
use futures::future::join_all;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Time after which a shard that does not answer counts as stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Time that a change of namespaces waits for other shards to know of it. It is answered then, too: it has
/// been made.
const SETTLING: Duration = Duration::from_secs(5);

/// The shards, in order. Cheap to clone; there is at least one.
#[derive(Clone, Debug)]
pub(crate) struct Shards(Arc<All>);

#[derive(Debug)]
struct All {
    first: ShardHandle,
    others: Vec<ShardHandle>,
    /// The last answers.
    last: Mutex<Vec<Snapshot>>,
}

/// Answers of all shards, one for each in order.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    /// What each has said now or, where it is silent, the last time.
    pub(crate) snapshots: Vec<Snapshot>,
    /// The first that did not answer.
    pub(crate) silent: Option<Silent>,
}

/// A shard that does not answer.
#[derive(Clone, Debug)]
pub(crate) enum Silent {
    /// The only one, or the one with this number.
    Stuck(Option<usize>),
    /// It has ended.
    Ended(Error),
}

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Silent::Stuck(None) => f.write_str("the shard does not answer"),
            Silent::Stuck(Some(shard)) => write!(f, "shard {shard} does not answer"),
            Silent::Ended(error) => error.fmt(f),
        }
    }
}

impl Shards {
    pub(crate) fn new(first: ShardHandle, others: Vec<ShardHandle>) -> Shards {
        let last = vec![Snapshot::default(); 1 + others.len()];
        Shards(Arc::new(All {
            first,
            others,
            last: Mutex::new(last),
        }))
    }

    /// The first shard, which has the system log.
    pub(crate) fn first(&self) -> &ShardHandle {
        &self.0.first
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ShardHandle> {
        std::iter::once(&self.0.first).chain(&self.0.others)
    }

    pub(crate) fn count(&self) -> usize {
        1 + self.0.others.len()
    }

    /// What wakes each.
    pub(crate) fn wakers(&self) -> Vec<Waker> {
        let wakers = self.iter().cloned().map(|handle| {
            let waker: Waker = Arc::new(move || handle.wake());
            waker
        });
        wakers.collect()
    }

    /// Cancelled when the node begins to stop.
    pub(crate) fn stop(&self) -> &CancellationToken {
        self.0.first.stop()
    }

    /// Whether every shard takes requests.
    pub(crate) fn are_ready(&self) -> bool {
        self.iter().all(ShardHandle::is_ready)
    }

    /// Asks all for their counters.
    pub(crate) async fn answers(&self) -> Answers {
        let asked = self.iter().map(|one| timeout(PATIENCE, one.snapshot()));
        let told = join_all(asked).await;
        let mut silent = None;
        let mut last = self.0.last.lock();
        for (shard, told) in told.into_iter().enumerate() {
            let why = match told {
                Ok(Ok(snapshot)) => {
                    last[shard] = snapshot;
                    continue;
                }
                Ok(Err(error)) => Silent::Ended(error),
                Err(_) => Silent::Stuck((self.count() > 1).then_some(shard)),
            };
            last[shard].ready = false;
            silent.get_or_insert(why);
        }
        Answers {
            snapshots: last.clone(),
            silent,
        }
    }

    /// Has the storage of each believe the wall clock.
    pub(crate) async fn accept_clock(&self) -> Result<ClockState, Error> {
        let told = join_all(self.iter().map(ShardHandle::accept_clock)).await;
        let clocks: Result<Vec<ClockState>, Error> = told.into_iter().collect();
        Ok(Snapshot::clock_of(clocks?.iter()).unwrap_or_default())
    }

    /// Has the shard `by` make a change of namespaces. Its answer waits for the others to know of it, so that
    /// what was created here can be published to there.
    pub(crate) async fn change(
        &self,
        by: &ShardHandle,
        principal: Principal,
        command: Command,
    ) -> Result<Outcome, Error> {
        let outcome = by.command(principal, command).await?;
        if !self.0.others.is_empty() {
            let place = by.folded();
            let known = self.iter().map(|shard| shard.has_settled(place));
            if timeout(SETTLING, join_all(known)).await.is_err() {
                tracing::warn!("a change of namespaces is not known to every shard yet");
            }
        }
        Ok(outcome)
    }
}
