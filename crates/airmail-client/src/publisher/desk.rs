//! The desk: where messages are handed over, and what the stream takes from it.
//!
//! The core's [`Producer`] stands behind one lock that all senders, the outgoing stream and the
//! publishing task share. Who sends encodes the message into its log's open batch himself; the
//! stream is woken only when something became due. So a busy client pays no hand-over between tasks
//! for a message, and batches grow while the transport is busy.
//!
//! Work that finds no room, or whose namespace is not known yet, is *stalled*: it is taken, and
//! goes on as soon as it can. Behind it senders wait in line, each with its messages in its own
//! hands, and are let in one by one in the order in which they came.
//!
//! The clock is read for the first message of each batch, every 64 messages, and at each turn of
//! stream and task: so expiry is exact, and a message's own time may be a few messages old.
//!
//! Invariants: nobody is let in before whoever came earlier; while nothing is stalled, the first in
//! line has been woken. No lock is held while others are woken.

mod line;
mod stream;
#[cfg(test)]
mod tests;

pub(super) use line::{Handing, Kept, Work};
pub(super) use stream::{Pieces, Standing};

use super::Receipt;
use super::fates::Fates;
use crate::context::ClientContext;
use crate::core::{Backoff, Offer, Producer, ProducerOutput, PublishError, Taken, Ticket};
use airmail_model::{Error, ErrorCode, Message, Mono, NamespaceId, Now, ProducerEpoch, ProducerId};
use airmail_proto::namespace::DEFAULT_NAMESPACE;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::{Notify, oneshot};

/// Messages between two looks at the clock.
const CLOCK_MESSAGES: u32 = 64;
/// Stalled messages taken in without letting go of the lock.
const TURN_MESSAGES: usize = 4096;

/// The client takes nothing more.
pub(super) fn closed() -> Error {
    Error::new(ErrorCode::ShuttingDown)
        .field("client")
        .value("closed")
}

/// Taken, and not yet given to the producer.
#[derive(Debug)]
struct Stalled {
    namespace: Arc<str>,
    messages: VecDeque<Message>,
    /// Of the first of these.
    ticket: Ticket,
    since: Mono,
}

#[derive(Debug)]
struct State {
    producer: Producer,
    fates: Fates,
    stalled: Option<Stalled>,
    line: line::Line,
    namespaces: BTreeMap<String, NamespaceId>,
    /// The one asked for last, by the very `Arc` that its publisher has.
    last_namespace: Option<(Arc<str>, NamespaceId)>,
    now: Now,
    /// Messages since the clock was read.
    unread: u32,
    stream: stream::StreamState,
    backoff: Backoff,
    wakes: Vec<Waker>,
    closed: bool,
}

/// The one place where a client's messages are handed over.
#[derive(Debug)]
pub(crate) struct Desk {
    shared: Arc<ClientContext>,
    state: Mutex<State>,
    /// Wakes the publishing task.
    task: Notify,
}

impl Desk {
    pub(crate) fn new(shared: Arc<ClientContext>) -> Desk {
        let mut config = shared.producer.clone();
        config.seed = shared.seed();
        let frame_bytes = config.limits.frame_bytes as usize;
        // 0 stands for none.
        let id = ProducerId(shared.seed().max(1));
        let state = State {
            producer: Producer::new(config, id, ProducerEpoch(0)),
            fates: Fates::default(),
            stalled: None,
            line: line::Line::default(),
            namespaces: BTreeMap::new(),
            last_namespace: None,
            now: shared.nodes.clock.now(),
            unread: 0,
            stream: stream::StreamState::new(frame_bytes),
            backoff: shared.backoff(),
            wakes: Vec::new(),
            closed: false,
        };
        Desk {
            shared,
            state: Mutex::new(state),
            task: Notify::new(),
        }
    }

    /// Does something with the lock held, and wakes after that whom it concerns.
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
        let fates = std::mem::take(state.fates.wakes());
        let others = std::mem::take(&mut state.wakes);
        let task = std::mem::take(&mut state.stream.wake_task);
        drop(state);
        if task {
            self.task.notify_one();
        }
        fates.into_iter().for_each(Waker::wake);
        others.into_iter().for_each(Waker::wake);
    }

    /// Takes one message at once; `None` if it has to wait for something.
    pub(super) fn offer(
        &self,
        namespace: &Arc<str>,
        offer: Offer<'_>,
    ) -> Option<Result<Receipt, Error>> {
        self.with(|state| {
            if state.closed {
                return Some(Err(closed()));
            }
            if state.stalled.is_some() || !state.line.is_empty() {
                return None;
            }
            let id = state.namespace(namespace)?;
            let ticket = state.fates.next();
            let refused = match state.take(&self.shared, id, offer, ticket) {
                Ok(began) => {
                    if began {
                        state.fates.next_batch();
                    }
                    None
                }
                Err(PublishError::Refused(error)) => Some(error),
                Err(PublishError::Full | PublishError::Unresolved) => return None,
            };
            let (page, number) = state.fates.add();
            if let Some(error) = refused {
                state.fates.failed(ticket, 1, &error);
            }
            Some(Ok(Receipt { page, number }))
        })
    }

    /// Waits for everything that was taken before.
    pub(super) fn flush(&self) -> Result<oneshot::Receiver<()>, Error> {
        self.with(|state| {
            if state.closed {
                return Err(closed());
            }
            Ok(state.fates.flush())
        })
    }

    /// Takes nothing more; what was taken is still delivered.
    pub(crate) fn close(&self) {
        self.with(|state| {
            state.closed = true;
            state.stream.wake_task = true;
            let State { line, wakes, .. } = state;
            line.wake_all(wakes);
        });
    }

    /// Nobody will deliver any more what was taken.
    pub(super) fn abandon(&self) {
        self.close();
        self.with(|state| {
            state.stalled = None;
            state.fates.abandon();
            state.end_stream();
        });
    }
}

impl State {
    /// A namespace's number, if it is known.
    fn namespace(&mut self, name: &Arc<str>) -> Option<NamespaceId> {
        if let Some((last, id)) = &self.last_namespace
            && Arc::ptr_eq(last, name)
        {
            return Some(*id);
        }
        let id = *self.namespaces.get(named(name))?;
        self.last_namespace = Some((Arc::clone(name), id));
        Some(id)
    }

    fn read_clock(&mut self, shared: &ClientContext) -> Now {
        self.now = shared.nodes.clock.now();
        self.unread = 0;
        self.now
    }

    #[inline]
    fn wakes_nobody(&mut self) -> bool {
        self.wakes.is_empty() && self.fates.wakes().is_empty() && !self.stream.wake_task
    }

    /// Gives a message to the producer. Whether it is the first of its batch.
    fn take(
        &mut self,
        shared: &ClientContext,
        namespace: NamespaceId,
        offer: Offer<'_>,
        ticket: Ticket,
    ) -> Result<bool, PublishError> {
        let place = self.producer.place(namespace, offer.topic())?;
        if place.begins || self.unread >= CLOCK_MESSAGES {
            self.read_clock(shared);
        }
        self.unread += 1;
        let Taken { began, due } = self.producer.take(self.now, place, offer, ticket)?;
        if due {
            self.wakes.extend(self.stream.waiting.take());
        }
        self.stream.wake_task |= self.stream.wants_task();
        Ok(began)
    }

    /// Gives what is stalled to the producer, as far as it takes it. Whether there is more to take
    /// at once.
    fn go_on(&mut self, shared: &ClientContext) -> bool {
        let Some(mut stalled) = self.stalled.take() else {
            return false;
        };
        if let Some(id) = self.namespace(&stalled.namespace) {
            for _ in 0..TURN_MESSAGES {
                let Some(message) = stalled.messages.front() else {
                    break;
                };
                match self.take(shared, id, Offer::Message(message), stalled.ticket) {
                    Ok(_) => {}
                    Err(PublishError::Refused(error)) => {
                        self.fates.failed(stalled.ticket, 1, &error);
                    }
                    Err(PublishError::Full | PublishError::Unresolved) => {
                        self.stalled = Some(stalled);
                        return false;
                    }
                }
                stalled.messages.pop_front();
                stalled.ticket.0 += 1;
            }
        } else if !stalled.messages.is_empty() {
            self.stalled = Some(stalled);
            return false;
        }
        if stalled.messages.is_empty() {
            self.line.wake_first(&mut self.wakes);
            return false;
        }
        self.stalled = Some(stalled);
        true
    }

    /// What is stalled can't be delivered.
    fn fail_stalled(&mut self, error: &Error) {
        if let Some(stalled) = self.stalled.take() {
            let count = stalled.messages.len() as u64;
            self.fates.failed(stalled.ticket, count, error);
            self.line.wake_first(&mut self.wakes);
        }
    }

    fn settle(&mut self, out: &ProducerOutput) {
        for settled in &out.settled {
            self.fates.settled(settled);
        }
    }
}

/// Without a name it is the default one, which the node's answer calls by its name.
fn named(namespace: &str) -> &str {
    match namespace {
        "" => DEFAULT_NAMESPACE,
        name => name,
    }
}
