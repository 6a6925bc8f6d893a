//! The accumulator: collects a client's messages in batches until the publish stream drains them.
//!
//! It is the core's [`Producer`] behind one lock, which all senders, the request body of the stream
//! and the publishing task take. A sender encodes its message into the open batch of the message's
//! log itself; the stream is woken only when something became due. So a busy client pays no
//! hand-over between tasks for a message, and batches grow while the transport is busy.
//!
//! When the producer's memory is used up, or a namespace is not resolved yet, one submission is
//! *stalled*: the accumulator holds it and appends it as soon as it can. Later senders wait behind
//! it ([`waiters`]), each with its messages in its own hands, and are admitted one by one in the
//! order in which they came. Each lane has such a line of its own ([`line`]), so that a sender of lane high
//! does not wait behind those of lane normal; one with messages of both lanes comes to that of lane high when
//! it is its turn in the other.
//!
//! The clock is read for the first message of each batch, every 64 messages, and whenever the
//! stream or the task comes. So expiry is exact, and a message's own time may be a few messages
//! old.
//!
//! Invariants: nobody is admitted before a sender that came to a line earlier; while nothing is
//! stalled in a line, its first waiter has been woken. No lock is held while others are woken.

mod line;
mod outgoing;
mod stream_side;
#[cfg(test)]
mod tests;
mod waiters;

pub(super) use stream_side::{AccumulatorStatus, Drained};
pub(super) use waiters::{Submission, WaitToSubmit};

use super::ack_future::AckFuture;
use super::client_ended::ClientEnded;
use super::completions::Completions;
use crate::context::ClientContext;
use crate::core::{Accepted, Backoff, MessageRef, Producer, ProducerOutput, PublishError, Ticket};
use airmail_model::namespace::DEFAULT_NAMESPACE;
use airmail_model::{Lane, NamespaceId, Now, ProducerEpoch, ProducerId};
use line::Line;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::{Notify, oneshot};

/// Number of messages between two readings of the clock.
const CLOCK_MESSAGES: u32 = 64;
/// Number of stalled messages that are appended before the lock is released.
const TURN_MESSAGES: usize = 4096;

#[derive(Debug)]
struct State {
    producer: Producer,
    completions: Completions,
    /// Way in of each lane.
    lines: [Line; Lane::ALL.len()],
    namespaces: BTreeMap<String, NamespaceId>,
    /// The namespace that was looked up last, by the very `Arc` that its publisher has.
    last_namespace: Option<(Arc<str>, NamespaceId)>,
    now: Now,
    /// Number of messages since the clock was read.
    since_clock: u32,
    stream: stream_side::CurrentStream,
    outgoing: outgoing::Outgoing,
    backoff: Backoff,
    wakes: Vec<Waker>,
    closed: bool,
}

/// The one place where a client's messages are handed over.
#[derive(Debug)]
pub(crate) struct Accumulator {
    shared: Arc<ClientContext>,
    state: Mutex<State>,
    /// Wakes the publishing task.
    task: Notify,
}

impl Accumulator {
    pub(crate) fn new(shared: Arc<ClientContext>) -> Accumulator {
        let mut config = shared.producer.clone();
        config.seed = shared.seed();
        let frame_bytes = config.limits.frame_bytes as usize;
        // 0 stands for no producer.
        let id = ProducerId(shared.seed().max(1));
        let state = State {
            producer: Producer::new(config, id, ProducerEpoch(0)),
            completions: Completions::default(),
            lines: Default::default(),
            namespaces: BTreeMap::new(),
            last_namespace: None,
            now: shared.clock.now(),
            since_clock: 0,
            stream: stream_side::CurrentStream::new(frame_bytes),
            outgoing: outgoing::Outgoing::default(),
            backoff: shared.backoff(),
            wakes: Vec::new(),
            closed: false,
        };
        Accumulator {
            shared,
            state: Mutex::new(state),
            task: Notify::new(),
        }
    }

    /// Runs `act` under the lock, and then wakes the tasks that became ready by it.
    #[inline]
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = act(&mut state);
        if state.wakes_nobody() {
            return result;
        }
        self.wake(state);
        result
    }

    #[inline(never)]
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let wakers = std::mem::take(state.completions.wakes());
        let others = std::mem::take(&mut state.wakes);
        let task = std::mem::take(&mut state.stream.wake_task);
        drop(state);
        if task {
            self.task.notify_one();
        }
        wakers.into_iter().for_each(Waker::wake);
        others.into_iter().for_each(Waker::wake);
    }

    /// Appends one message if that is possible at once; `None` if its sender has to wait.
    pub(super) fn try_append(
        &self,
        namespace: &Arc<str>,
        message: MessageRef<'_>,
    ) -> Option<Result<AckFuture, ClientEnded>> {
        self.with(|state| {
            if state.closed {
                return Some(Err(ClientEnded::Closed));
            }
            if !state.line(message.lane()).is_free() {
                return None;
            }
            let id = state.resolved(namespace)?;
            let ticket = state.completions.next_ticket();
            let refused = match state.append(&self.shared, id, message, ticket) {
                Ok(begins_batch) => {
                    if begins_batch {
                        state.completions.begin_batch();
                    }
                    None
                }
                Err(PublishError::Refused(error)) => Some(error),
                Err(PublishError::Full | PublishError::Unresolved) => return None,
            };
            let (page, number) = state.completions.add();
            if let Some(error) = refused {
                state.completions.fail(&[ticket], &error);
            }
            Some(Ok(AckFuture { page, number }))
        })
    }

    /// Begins to wait until everything that was handed over before is settled.
    pub(super) fn flush(&self) -> Result<oneshot::Receiver<()>, ClientEnded> {
        self.with(|state| {
            if state.closed {
                return Err(ClientEnded::Closed);
            }
            Ok(state.completions.flush())
        })
    }

    /// Accepts nothing more; what was handed over is still delivered.
    pub(crate) fn close(&self) {
        self.with(|state| {
            state.closed = true;
            state.stream.wake_task = true;
            let State { lines, wakes, .. } = state;
            lines.iter().for_each(|line| line.waiters.wake_all(wakes));
        });
    }

    /// Ends every wait: nobody delivers any more what was handed over.
    pub(super) fn abandon(&self) {
        self.close();
        self.with(|state| {
            state.lines.iter_mut().for_each(|line| line.stalled = None);
            state.completions.abandon();
            state.end_stream();
        });
    }
}

impl State {
    /// Looks up a namespace's number; `None` while it is not resolved.
    fn resolved(&mut self, name: &Arc<str>) -> Option<NamespaceId> {
        if let Some((last, id)) = &self.last_namespace
            && Arc::ptr_eq(last, name)
        {
            return Some(*id);
        }
        let id = *self.namespaces.get(or_default(name))?;
        self.last_namespace = Some((Arc::clone(name), id));
        Some(id)
    }

    fn read_clock(&mut self, shared: &ClientContext) -> Now {
        self.now = shared.clock.now();
        self.since_clock = 0;
        self.now
    }

    #[inline]
    fn wakes_nobody(&mut self) -> bool {
        self.wakes.is_empty() && self.completions.wakes().is_empty() && !self.stream.wake_task
    }

    /// Gives a message to the producer; returns whether it is the first of its batch.
    fn append(
        &mut self,
        shared: &ClientContext,
        namespace: NamespaceId,
        message: MessageRef<'_>,
        ticket: Ticket,
    ) -> Result<bool, PublishError> {
        let destination = self
            .producer
            .destination(namespace, message.topic(), message.lane())?;
        if destination.begins_batch || self.since_clock >= CLOCK_MESSAGES {
            self.read_clock(shared);
        }
        self.since_clock += 1;
        let Accepted { begins_batch, due } =
            self.producer
                .accept(self.now, destination, message, ticket)?;
        if due {
            self.wakes.extend(self.stream.waiting.take());
        }
        self.stream.wake_task |= self.stream.needs_task();
        Ok(begins_batch)
    }

    fn complete(&mut self, out: &ProducerOutput) {
        for settled in &out.settled {
            self.completions.settle(settled);
        }
    }
}

/// Gives the default namespace's name where none is named, since the node's answer uses it.
fn or_default(namespace: &str) -> &str {
    match namespace {
        "" => DEFAULT_NAMESPACE,
        name => name,
    }
}
