//! A shard's event loop: wait until something happens, take in a bounded amount of it, take one turn, hand
//! out what came of it.
//!
//! The connections' tasks run on the same thread between turns; each turn takes at most
//! [`TURN_BYTES`] of requests, so that neither side starves the other.

use super::clock_jump_logger::ClockJumpLogger;
use super::life_signs::LifeSigns;
use super::metrics::Snapshot;
use super::runtime::alarm::Alarm;
use super::runtime::thread_time::ThreadTime;
use super::send_queue::{Event, Notice, SendQueue};
use super::shard_handle::{ShardHandle, ToShard, stopping};
use airmail_broker::engine::TurnOutput;
use airmail_broker::{ClientInput, CommandId, Engine, Outcome, Progress, SessionId};
use airmail_log::LogStorage;
use airmail_model::clock::Clock;
use airmail_model::frame::{Reply, Request};
use airmail_model::{Error, Mono, Now};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Bytes of requests taken in one turn.
const TURN_BYTES: usize = 1 << 20;
/// Requests taken in one turn.
const TURN_ITEMS: usize = 1024;

/// A shard with everything that it needs of the outside.
pub(crate) struct EventLoop {
    pub(crate) node: Engine<Box<dyn LogStorage>>,
    pub(crate) handle: ShardHandle,
    pub(crate) receiver: mpsc::Receiver<ToShard>,
    pub(crate) clock: Arc<dyn Clock>,
    queues: BTreeMap<SessionId, Arc<SendQueue>>,
    commands: BTreeMap<CommandId, oneshot::Sender<Result<Outcome, Error>>>,
    next_command: u64,
    output: TurnOutput,
    /// Acks of one turn, to be sent after its other replies.
    acks: Vec<(SessionId, Reply)>,
    notices: Vec<SessionId>,
    /// The log has told that the shard has failed.
    failed: bool,
    /// The storage has been told that every log is open.
    opened: bool,
    /// New lives of logs that have been told.
    renewed: u64,
    /// Jumps of the clock that the log has told of; the first shard tells, for all.
    clock_jumps: Option<ClockJumpLogger>,
    /// Distance that the shard has come in log 0, as was told last.
    progress: Progress,
    life_signs: LifeSigns,
    turns: u64,
}

impl EventLoop {
    pub(crate) fn new(
        node: Engine<Box<dyn LogStorage>>,
        handle: ShardHandle,
        receiver: mpsc::Receiver<ToShard>,
        clock: Arc<dyn Clock>,
        is_first: bool,
    ) -> EventLoop {
        EventLoop {
            life_signs: LifeSigns::new(handle.watch_nodes()),
            node,
            handle,
            receiver,
            clock,
            queues: BTreeMap::new(),
            commands: BTreeMap::new(),
            next_command: 1,
            output: TurnOutput::default(),
            acks: Vec::new(),
            notices: Vec::new(),
            failed: false,
            opened: false,
            renewed: 0,
            clock_jumps: is_first.then(ClockJumpLogger::default),
            progress: Progress::default(),
            turns: 0,
        }
    }

    /// Takes turns until `finish`; then closes the storage and ends, at the latest when `give_up`.
    pub(crate) async fn run(mut self, finish: CancellationToken, give_up: CancellationToken) {
        let mut alarm = Alarm::default();
        let mut time = ThreadTime::new(Handle::current().metrics());
        let mut now = self.clock.now();
        let mut deadline = self.turn(now, &mut time);
        while !finish.is_cancelled() {
            let first = tokio::select! {
                biased;
                message = self.receiver.recv() => message,
                () = self.handle.woken() => None,
                () = alarm.until(deadline, now) => None,
                () = finish.cancelled() => break,
            };
            now = self.clock.now();
            self.take_in(now, first);
            deadline = self.turn(now, &mut time);
            if !self.receiver.is_empty() {
                // The connections' tasks get their turn, however much there is to do here.
                tokio::task::yield_now().await;
            }
        }
        for queue in self.queues.values() {
            queue.end(Err(stopping()));
        }
        self.close(&mut alarm, &mut time, give_up).await;
    }

    fn take_in(&mut self, now: Now, first: Option<ToShard>) {
        let (mut bytes, mut items) = (0, 0);
        let mut next = first.or_else(|| self.receiver.try_recv().ok());
        while let Some(message) = next {
            bytes += self.take(now, message);
            items += 1;
            if bytes >= TURN_BYTES || items >= TURN_ITEMS {
                break;
            }
            next = self.receiver.try_recv().ok();
        }
        self.take_notices(now);
    }

    /// Takes one message; its size.
    fn take(&mut self, now: Now, message: ToShard) -> usize {
        match message {
            ToShard::Opened {
                queue,
                principal,
                credit,
            } => {
                let session = queue.session();
                self.queues.insert(session, queue);
                let opened = ClientInput::Opened {
                    session,
                    principal,
                    credit,
                };
                self.node.input(now, opened);
                0
            }
            ToShard::Request { session, request } => {
                let bytes = match &request {
                    Request::Publish { batch, .. } => batch.bytes().len(),
                    _ => 64,
                };
                if self.queues.contains_key(&session) {
                    self.node
                        .input(now, ClientInput::Request { session, request });
                }
                bytes
            }
            ToShard::Command {
                principal,
                command,
                answer,
            } => {
                let id = CommandId(self.next_command);
                self.next_command += 1;
                self.commands.insert(id, answer);
                let command = ClientInput::Command {
                    id,
                    principal,
                    command,
                };
                self.node.input(now, command);
                64
            }
            ToShard::Incarnation { log, answer } => {
                // Whoever asked may have gone.
                let _ = answer.send(self.node.shard().incarnation(log));
                64
            }
            ToShard::Snapshot { answer } => {
                let snapshot = Snapshot {
                    stats: self.node.shard().stats(),
                    ready: self.node.shard().ready(),
                    namespaces: self.node.shard().catalog().len() as u64,
                    trouble: self.node.storage().trouble(),
                    damage: self.node.storage().damage(),
                    read_bytes: self.node.storage().read_bytes(),
                    flow: self.node.shard().flow(),
                    clock: self.node.storage().clock(),
                };
                // Whoever asked may have gone.
                let _ = answer.send(snapshot);
                0
            }
            ToShard::AcceptClock { answer } => {
                self.node.storage_mut().accept_clock(now);
                // Whoever asked may have gone.
                let _ = answer.send(self.node.storage().clock());
                64
            }
        }
    }

    /// Deliveries that have gone, credit that comes back, and streams that are gone.
    fn take_notices(&mut self, now: Now) {
        self.handle.take_notices(&mut self.notices);
        for session in self.notices.drain(..) {
            let Some(queue) = self.queues.get(&session) else {
                continue;
            };
            let Notice { credit, sent, gone } = queue.take_notice();
            if gone {
                self.queues.remove(&session);
                self.node.input(now, ClientInput::Closed { session });
                continue;
            }
            if sent > 0 {
                let bytes = sent;
                self.node.input(now, ClientInput::Sent { session, bytes });
            }
            if credit > 0 {
                let request = Request::Credit { bytes: credit };
                self.node
                    .input(now, ClientInput::Request { session, request });
            }
        }
    }

    fn turn(&mut self, now: Now, time: &mut ThreadTime) -> Option<Mono> {
        let is_somebody_late = self.node.shard().has_subscriptions_behind();
        if let Some(worked) = time.more_if(is_somebody_late) {
            self.node.worked(worked);
        }
        let deadline = self.node.turn(now, &mut self.output);
        self.tell_failure();
        self.tell_lives();
        if let Some(clock_jumps) = &mut self.clock_jumps {
            clock_jumps.tell(&self.node.storage().clock());
        }
        // Before the answers: whoever reads "created" finds the namespace there.
        let shard = self.node.shard();
        self.handle.publish_catalog(shard.catalog(), shard.ready());
        let progress = shard.progress();
        if progress != self.progress {
            self.progress = progress;
            self.handle.publish_progress(progress);
        }
        self.turns += 1;
        self.handle.publish_turns(self.turns);
        // Acks go last: whoever publishes has other batches under way, a subscriber waits for this
        // one. A publish stream has nothing but acks, so the order within a session stays.
        let acked = |reply: &Reply| matches!(reply, Reply::Acked { .. });
        let late = self
            .output
            .replies
            .extract_if(.., |(_, reply)| acked(reply));
        self.acks.extend(late);
        let replies = self.output.replies.drain(..).chain(self.acks.drain(..));
        let mut replies = replies.peekable();
        while let Some((session, reply)) = replies.next() {
            let Some(queue) = self.queues.get(&session) else {
                continue;
            };
            let more = || Some(replies.next_if(|(next, _)| *next == session)?.1);
            let of_session = std::iter::once(reply).chain(std::iter::from_fn(more));
            queue.push_all(of_session.map(Event::Reply));
        }
        for session in self.output.watch.drain(..) {
            if let Some(queue) = self.queues.get(&session) {
                queue.watch();
            }
        }
        for (id, outcome) in self.output.outcomes.drain(..) {
            if let Some(answer) = self.commands.remove(&id) {
                // Whoever asked may have gone.
                let _ = answer.send(outcome);
            }
        }
        let signs = self.life_signs.give(now.mono, &self.queues);
        self.handle.publish_alive(self.life_signs.within());
        deadline.into_iter().chain(signs).min()
    }

    /// Tells once that namespaces are lost or cannot be changed.
    fn tell_failure(&mut self) {
        let failure = self.node.shard().failure();
        if let Some(error) = failure.filter(|_| !self.failed) {
            tracing::error!(%error, "namespaces cannot be changed, and some may be lost");
        }
        self.failed = failure.is_some();
    }

    /// Tells that a position has shown that the files are older than they were; and the storage, that
    /// every log has been opened.
    fn tell_lives(&mut self) {
        let renewed = self.node.shard().renewed();
        if renewed > std::mem::replace(&mut self.renewed, renewed) {
            tracing::warn!(
                logs = renewed,
                "a position lies beyond the end of its log: the data directory is an older copy of \
                 itself; the log has begun a new life (see docs/backup.md)"
            );
        }
        if !self.opened && self.node.shard().ready() {
            self.opened = true;
            self.node.storage_mut().opened();
        }
    }

    /// Lets the storage finish and write its last checkpoint.
    async fn close(mut self, alarm: &mut Alarm, time: &mut ThreadTime, give_up: CancellationToken) {
        self.node.storage_mut().close(self.clock.now());
        loop {
            let now = self.clock.now();
            let deadline = self.turn(now, time);
            if self.node.storage_mut().is_closed() {
                return;
            }
            tokio::select! {
                biased;
                () = self.handle.woken() => {}
                () = alarm.until(deadline, now) => {}
                () = give_up.cancelled() => {
                    tracing::error!("storage did not close in time: its next start takes longer");
                    return;
                }
            }
        }
    }
}
