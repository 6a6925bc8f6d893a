//! A front door's handle of a shard: a bounded queue to it, a [`SendQueue`] back from it.
//!
//! Requests wait in the queue and, when that is full, in the connection, whose socket is then not
//! read. What must never wait or get lost (a stream is gone, credit comes back) goes by a list of
//! sessions that have a notice for the shard: each is on it at most once, so that it is bounded by their number.

use super::metrics::Snapshot;
use super::send_queue::SendQueue;
use crate::config::cluster::Roles;
use crate::frontdoor::{NamespaceNotFound, Unavailable};
use crate::life_signs::ALIVE_MIN;
use airmail_broker::catalog::{Catalog, Entry};
use airmail_broker::{Command, Outcome, Principal, Progress, SessionId};
use airmail_log::ClockState;
use airmail_model::clock::Clock;
use airmail_model::frame::{Nodes, Request};
use airmail_model::namespace::namespace_or_default;
use airmail_model::{Error, ErrorCode, Incarnation, Limits, LogId, Mono, Now, Sequence};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Messages to a shard that wait for its turn.
const QUEUE_ITEMS: usize = 1024;

/// A front door's message to a shard.
#[derive(Debug)]
pub(crate) enum ToShard {
    /// A stream has begun.
    Opened {
        queue: Arc<SendQueue>,
        principal: Principal,
        credit: u32,
    },
    /// A stream asks something.
    Request {
        session: SessionId,
        request: Request,
    },
    /// A unary call.
    Command {
        principal: Principal,
        command: Command,
        answer: oneshot::Sender<Result<Outcome, Error>>,
    },
    /// Asks which life a log is in.
    Incarnation {
        log: LogId,
        answer: oneshot::Sender<Option<Incarnation>>,
    },
    /// The counters are wanted.
    Snapshot { answer: oneshot::Sender<Snapshot> },
    /// The wall clock is right, somebody says.
    AcceptClock { answer: oneshot::Sender<ClockState> },
}

#[derive(Debug)]
struct Shared {
    node: String,
    roles: Roles,
    /// The shard wants to know what connections take.
    counts_sent: bool,
    /// Tells this run's request ids from those of others.
    run: u32,
    limits: Limits,
    clock: Arc<dyn Clock>,
    catalog: Mutex<Arc<Catalog>>,
    ready: AtomicBool,
    /// Distance that the shard has come in log 0, for those who wait for it.
    progress: watch::Sender<Progress>,
    /// Nodes that clients may use.
    serving: watch::Sender<Arc<Nodes>>,
    /// Milliseconds between two signs of life.
    alive_ms: AtomicU64,
    /// Turns that the shard has had.
    turns: AtomicU64,
    notices: Mutex<Vec<SessionId>>,
    wake: Notify,
    sessions: AtomicU64,
    calls: AtomicU64,
    stop: CancellationToken,
}

/// A handler's side of a shard. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ShardHandle {
    sender: mpsc::Sender<ToShard>,
    shared: Arc<Shared>,
}

impl ShardHandle {
    pub(crate) fn new(
        (node, roles, seed): (String, Roles, u64),
        limits: Limits,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        counts_sent: bool,
    ) -> (ShardHandle, mpsc::Receiver<ToShard>) {
        let (sender, receiver) = mpsc::channel(QUEUE_ITEMS);
        let shared = Shared {
            node,
            roles,
            counts_sent,
            run: (seed >> 32) as u32 ^ seed as u32,
            limits,
            clock,
            catalog: Mutex::default(),
            ready: AtomicBool::new(false),
            progress: watch::Sender::new(Progress::default()),
            serving: watch::Sender::new(Arc::default()),
            alive_ms: AtomicU64::new(millis(ALIVE_MIN)),
            turns: AtomicU64::new(0),
            notices: Mutex::default(),
            wake: Notify::new(),
            sessions: AtomicU64::new(1),
            calls: AtomicU64::new(1),
            stop,
        };
        let handle = ShardHandle {
            sender,
            shared: Arc::new(shared),
        };
        (handle, receiver)
    }

    // ---- For handlers ----

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn node(&self) -> &str {
        &self.shared.node
    }

    pub(crate) fn roles(&self) -> Roles {
        self.shared.roles
    }

    pub(crate) fn now(&self) -> Now {
        self.shared.clock.now()
    }

    pub(crate) fn mono(&self) -> Mono {
        self.shared.clock.mono()
    }

    /// Cancelled when the node begins to stop.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.shared.stop
    }

    /// A name for a call, told with its error and in the log.
    pub(crate) fn request_id(&self) -> String {
        let call = self.shared.calls.fetch_add(1, Ordering::Relaxed);
        format!("{:08x}-{call}", self.shared.run)
    }

    /// Whether the node can be asked anything now.
    pub(crate) fn check_up(&self) -> Result<(), Unavailable> {
        if self.shared.stop.is_cancelled() {
            Err(Unavailable::Stopping)
        } else if self.is_ready() {
            Ok(())
        } else {
            Err(Unavailable::Starting)
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire)
    }

    /// The place in log 0 up to which the shard has folded it.
    pub(crate) fn folded(&self) -> Sequence {
        self.shared.progress.borrow().folded
    }

    /// Waits until the shard serves what log 0 says up to a place, or has ended.
    pub(crate) async fn has_settled(&self, place: Sequence) {
        let mut progress = self.shared.progress.subscribe();
        // It lives as long as this.
        let _ = progress.wait_for(|reached| reached.settled >= place).await;
    }

    /// Turns that the shard has had, as far as it has said so.
    pub(crate) fn turns(&self) -> u64 {
        self.shared.turns.load(Ordering::Relaxed)
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared.catalog.lock())
    }

    /// The namespace of a name; the empty name is `default`.
    pub(crate) fn namespace(&self, name: &str) -> Result<Arc<Entry>, NamespaceNotFound> {
        let name = namespace_or_default(name);
        let catalog = self.catalog();
        let found = catalog.by_name(name).cloned();
        found.ok_or_else(|| NamespaceNotFound { name: name.into() })
    }

    /// Nodes that clients may use, as they were told last.
    pub(crate) fn serving_nodes(&self) -> Arc<Nodes> {
        Arc::clone(&self.shared.serving.borrow())
    }

    /// Time within which a stream is given its next sign of life.
    pub(crate) fn alive_within(&self) -> Duration {
        Duration::from_millis(self.shared.alive_ms.load(Ordering::Relaxed))
    }

    /// Has clients told which nodes they may use.
    pub(crate) fn serve_nodes(&self, nodes: &Arc<Nodes>) {
        self.shared.serving.send_replace(Arc::clone(nodes));
        self.wake();
    }

    /// Opens a session: its queue is what the shard answers into.
    pub(crate) async fn open(
        &self,
        principal: Principal,
        credit: u32,
    ) -> Result<Arc<SendQueue>, Unavailable> {
        let session = SessionId(self.shared.sessions.fetch_add(1, Ordering::Relaxed));
        let queue = Arc::new(SendQueue::new(session, self.clone()));
        self.send(ToShard::Opened {
            queue: Arc::clone(&queue),
            principal,
            credit,
        })
        .await?;
        Ok(queue)
    }

    pub(crate) fn request(
        &self,
        session: SessionId,
        request: Request,
    ) -> impl Future<Output = Result<(), Unavailable>> {
        self.send(ToShard::Request { session, request })
    }

    pub(crate) async fn command(
        &self,
        principal: Principal,
        command: Command,
    ) -> Result<Outcome, Error> {
        let (answer, outcome) = oneshot::channel();
        let is_change = !matches!(command, Command::ListTopics { .. });
        self.send(ToShard::Command {
            principal,
            command,
            answer,
        })
        .await?;
        // It was handed over: whether a change was made before the end is not known.
        let gone = |_| if is_change { unknown() } else { stopping() };
        outcome.await.map_err(gone)?
    }

    /// Asks which life a log is in.
    pub(crate) async fn incarnation(&self, log: LogId) -> Result<Option<Incarnation>, Error> {
        let (answer, incarnation) = oneshot::channel();
        self.send(ToShard::Incarnation { log, answer }).await?;
        incarnation.await.map_err(|_| stopping())
    }

    pub(crate) async fn snapshot(&self) -> Result<Snapshot, Error> {
        let (answer, snapshot) = oneshot::channel();
        self.send(ToShard::Snapshot { answer }).await?;
        snapshot.await.map_err(|_| stopping())
    }

    /// Has the storage believe the wall clock.
    pub(crate) async fn accept_clock(&self) -> Result<ClockState, Error> {
        let (answer, clock) = oneshot::channel();
        self.send(ToShard::AcceptClock { answer }).await?;
        clock.await.map_err(|_| stopping())
    }

    async fn send(&self, message: ToShard) -> Result<(), Unavailable> {
        let sent = self.sender.send(message).await;
        sent.map_err(|_| Unavailable::Stopping)
    }

    // ---- For queues and storage ----

    /// Whether the shard is to be told what connections take.
    pub(crate) fn counts_sent(&self) -> bool {
        self.shared.counts_sent
    }

    /// Puts a session on the list of those that have a notice, which the shard takes in its next turn.
    pub(crate) fn notify(&self, session: SessionId) {
        self.shared.notices.lock().push(session);
    }

    /// Makes the shard take a turn soon. Can be called from any thread.
    pub(crate) fn wake(&self) {
        self.shared.wake.notify_one();
    }

    // ---- For the shard ----

    pub(crate) fn watch_nodes(&self) -> watch::Receiver<Arc<Nodes>> {
        self.shared.serving.subscribe()
    }

    pub(crate) async fn woken(&self) {
        self.shared.wake.notified().await;
    }

    pub(crate) fn take_notices(&self, into: &mut Vec<SessionId>) {
        into.append(&mut self.shared.notices.lock());
    }

    pub(crate) fn publish_catalog(&self, catalog: &Arc<Catalog>, ready: bool) {
        let mut held = self.shared.catalog.lock();
        if !Arc::ptr_eq(&held, catalog) {
            *held = Arc::clone(catalog);
        }
        drop(held);
        self.shared.ready.store(ready, Ordering::Release);
    }

    /// Tells those who wait how far log 0 has been folded.
    pub(crate) fn publish_progress(&self, progress: Progress) {
        self.shared.progress.send_replace(progress);
    }

    /// Tells how often there are signs of life.
    pub(crate) fn publish_alive(&self, within: Duration) {
        self.shared
            .alive_ms
            .store(millis(within), Ordering::Relaxed);
    }

    /// Tells how many turns there have been.
    pub(crate) fn publish_turns(&self, turns: u64) {
        self.shared.turns.store(turns, Ordering::Relaxed);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The error of whatever is asked of a node that stops.
pub(crate) fn stopping() -> Error {
    Unavailable::Stopping.into()
}

/// The error of a change that was under way when the node stopped.
fn unknown() -> Error {
    Error::new(ErrorCode::OutcomeUnknown)
        .field("node")
        .value("stopping")
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_log::TopicPage;
    use airmail_model::NamespaceId;
    use airmail_model::clock::SystemClock;

    #[tokio::test]
    async fn what_a_stop_cuts_off_may_have_been_done_if_it_changes_something() {
        let (handle, mut shard) = ShardHandle::new(
            ("node".into(), Roles::ALL, 1),
            Limits::DEFAULT,
            Arc::new(SystemClock::new()),
            CancellationToken::new(),
            false,
        );
        let change = Command::DeleteNamespace {
            name: "n".into(),
            based_on: None,
        };
        let question = Command::ListTopics {
            namespace: NamespaceId(2),
            page: TopicPage {
                prefix: String::new(),
                after: String::new(),
                limit: 1,
            },
        };
        for (command, code) in [
            (change, ErrorCode::OutcomeUnknown),
            (question, ErrorCode::ShuttingDown),
        ] {
            let ends = async { drop(shard.recv().await) };
            let (told, ()) = futures::join!(handle.command(Principal::default(), command), ends);
            assert_eq!(told.unwrap_err().code(), code);
        }
        // What was never handed over was not done.
        drop(shard);
        let late = Command::DeleteNamespace {
            name: "n".into(),
            based_on: None,
        };
        let told = handle.command(Principal::default(), late).await;
        assert_eq!(told.unwrap_err().code(), ErrorCode::ShuttingDown);
    }
}
