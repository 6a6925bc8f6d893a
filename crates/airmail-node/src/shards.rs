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
    /// The answer of each now or, where it is silent, its last.
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

    /// A waker of each, in order.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::cluster::Roles;
    use crate::shard_handle::ToShard;
    use airmail_broker::Progress;
    use airmail_model::clock::SystemClock;
    use airmail_model::{ErrorCode, Limits, Sequence};
    use futures::FutureExt as _;
    use std::pin::pin;
    use tokio::sync::mpsc::Receiver;

    fn two() -> (Shards, Vec<Receiver<ToShard>>) {
        let handle = |seed| {
            ShardHandle::new(
                ("node".into(), Roles::ALL, seed),
                Limits::DEFAULT,
                Arc::new(SystemClock::new()),
                CancellationToken::new(),
                false,
            )
        };
        let ((first, one), (second, other)) = (handle(1), handle(2));
        (Shards::new(first, vec![second]), vec![one, other])
    }

    /// Lets a shard answer what it is asked for next.
    async fn answer(shard: &mut Receiver<ToShard>, namespaces: u64) {
        let Some(ToShard::Snapshot { answer }) = shard.recv().await else {
            panic!("a snapshot was asked for");
        };
        let snapshot = Snapshot {
            ready: true,
            namespaces,
            ..Snapshot::default()
        };
        answer.send(snapshot).unwrap();
    }

    #[tokio::test]
    async fn a_shard_that_does_not_answer_counts_with_what_it_said_last_and_is_named() {
        let (shards, mut receivers) = two();
        let (mut other, mut one) = (receivers.pop().unwrap(), receivers.pop().unwrap());
        let all = async { futures::join!(answer(&mut one, 1), answer(&mut other, 2)) };
        let (told, _) = futures::join!(shards.answers(), all);
        assert!(told.silent.is_none());
        let namespaces =
            |told: &Answers| -> u64 { told.snapshots.iter().map(|one| one.namespaces).sum() };
        assert_eq!(3_u64, namespaces(&told));
        drop(other);
        let (told, ()) = futures::join!(shards.answers(), answer(&mut one, 5));
        assert_eq!(7_u64, namespaces(&told));
        assert!(matches!(told.silent, Some(Silent::Ended(_))));
        assert_eq!(
            [true, false],
            [told.snapshots[0].ready, told.snapshots[1].ready]
        );
        assert_eq!(
            Silent::Stuck(Some(3)).to_string(),
            "shard 3 does not answer"
        );
        assert_eq!(Silent::Stuck(None).to_string(), "the shard does not answer");
    }

    #[tokio::test]
    async fn a_change_is_answered_when_every_shard_serves_it_and_one_that_failed_at_once() {
        let (shards, mut receivers) = two();
        let by = shards.first().clone();
        let delete = || Command::DeleteNamespace {
            name: "n".into(),
            based_on: None,
        };
        let come = |place| Progress {
            folded: Sequence(place),
            settled: Sequence(place),
        };
        let mut answered = |result| {
            let Ok(ToShard::Command { answer, .. }) = receivers[0].try_recv() else {
                panic!("a command was given");
            };
            answer.send(result).unwrap();
        };
        by.publish_progress(come(7));
        let mut change = pin!(shards.change(&by, Principal::default(), delete()));
        assert!(change.as_mut().now_or_never().is_none());
        answered(Ok(Outcome::Deleted));
        assert!(change.as_mut().now_or_never().is_none());
        let other = shards.iter().nth(1).unwrap();
        other.publish_progress(come(6));
        assert!(change.as_mut().now_or_never().is_none());
        other.publish_progress(come(7));
        assert!(change.as_mut().now_or_never().unwrap().is_ok());

        by.publish_progress(come(9));
        let mut change = pin!(shards.change(&by, Principal::default(), delete()));
        assert!(change.as_mut().now_or_never().is_none());
        answered(Err(Error::new(ErrorCode::NamespaceNotFound)));
        assert!(change.as_mut().now_or_never().unwrap().is_err());
    }
}
