//! A session's queue of events, from the shard to the connection that takes them.
//!
//! What is of lane high goes before what waits of lane normal ([`LaneQueue`]). Deliveries are bounded by the credit
//! that the shard counts, and by its delivery gate, which is told what the connection has taken; acks by the stream's
//! window of unacknowledged bytes; everything else by [`SendQueue::room`], for which the reading side waits before it
//! asks for more. The connection takes all that waits at once, so a stream holds at most twice these bounds:
//! what it has taken and not written, and what waits. From its first event of lane high on it takes turns
//! ([`lane_queue::TURN_BYTES`]) instead, and what it had taken is put back, so that lane high waits for no more than a
//! turn. A client that takes nothing all the same is cut off with `OVERLOADED`: that is the answer to the last bound.
//! Marks and gaps that continue one another are joined, so that a client that does not read for days costs no more
//! than one that does not read for a second.

mod lane_queue;

use super::shard_handle::ShardHandle;
use crate::frontdoor::{PublishRefusal, SubscribeRefusal};
use airmail_broker::SessionId;
use airmail_model::frame::{Generation, Maps, Nodes, Reply, RequestId, SubscriptionId, Welcome};
use airmail_model::limits::CREDIT_BYTES_MAX;
use airmail_model::{Error, ErrorCode};
use lane_queue::LaneQueue;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Items beyond which the stream's requests are not read.
const ROOM_ITEMS: usize = 16 << 10;
/// Items beyond which the stream is given up.
const ITEMS_MAX: usize = 1 << 20;
/// Bytes of deliveries beyond which the stream is given up. Only a client that grants again what it
/// has not taken gets there: a stream holds no more credit than [`CREDIT_BYTES_MAX`].
const BYTES_MAX: usize = 2 * CREDIT_BYTES_MAX as usize;

/// Something that the node tells a client. What is rare is boxed: a queue of the others is moved often.
#[derive(Debug)]
pub enum Event {
    /// The shard's word: an ack, a delivery or what belongs to one, a subscription's state.
    Reply(Reply),
    /// The answer to Hello.
    Welcome(Box<Welcome>),
    /// The answer to a question for maps.
    Maps(Box<Maps>),
    /// The node lives, and says something again within this time.
    Alive(Duration),
    /// The nodes that clients may use have changed.
    Nodes(Arc<Nodes>),
    /// The answer to a publish that no shard saw.
    PublishRefused(RequestId, Box<PublishRefusal>),
    /// The answer to a subscription that no shard saw.
    NotAdded(Box<NotAdded>),
}

/// A subscription that was refused before any shard saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdded {
    /// The number that it was asked for with. One in use under the same number goes on.
    pub subscription: SubscriptionId,
    /// The generation that it was asked for with.
    pub generation: Generation,
    /// The cause.
    pub refusal: SubscribeRefusal,
}

/// The cause that ends a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Over {
    /// Nothing can be sent on it any more.
    Gone,
    /// The node stops.
    Stopping,
}

/// A stream's news for its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Credit to be given back.
    pub(crate) credit: u32,
    /// Bytes of deliveries that the connection has taken.
    pub(crate) sent: u64,
    /// The session is to be closed.
    pub(crate) gone: bool,
}

#[derive(Debug, Default)]
struct State {
    queue: LaneQueue,
    end: Option<Result<(), Error>>,
    gone: bool,
    credit_back: u32,
    /// Bytes of deliveries taken since the shard asked.
    sent: u64,
    /// The shard wants to know at once when all is taken.
    watched: bool,
    notified: bool,
    /// Time within which the client was told that something is said again; `None`: it is told no news.
    within: Option<Duration>,
    /// Nodes that it is to be told of; of several, the last. They have no place in the queue: one who does not read
    /// would gather them there, and marks on either side of them would not be joined.
    nodes: Option<Arc<Nodes>>,
    /// Something was said since the last sign of life.
    has_said: bool,
    waker: Option<Waker>,
}

impl State {
    fn push(&mut self, item: Event) {
        self.has_said = true;
        self.queue.push(item);
        let bytes = self.queue.bytes();
        if self.queue.len() > ITEMS_MAX || bytes > BYTES_MAX {
            let (value, limit) = if bytes > BYTES_MAX {
                (format!("{bytes} bytes not taken"), BYTES_MAX)
            } else {
                (format!("{} answers not taken", self.queue.len()), ITEMS_MAX)
            };
            let error = Error::new(ErrorCode::Overloaded);
            let error = error.field("stream").value(value).limit(limit);
            self.queue.clear();
            self.end = Some(Err(error));
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct SendQueue {
    session: SessionId,
    handle: ShardHandle,
    state: Mutex<State>,
    changed: Notify,
    /// Credit comes back by itself: what the connection takes counts as consumed.
    automatic_credit: AtomicBool,
    /// The connection takes turns: there was something of lane high.
    takes_turns: AtomicBool,
}

impl SendQueue {
    pub(crate) fn new(session: SessionId, handle: ShardHandle) -> SendQueue {
        SendQueue {
            session,
            handle,
            state: Mutex::default(),
            changed: Notify::new(),
            automatic_credit: AtomicBool::new(false),
            takes_turns: AtomicBool::new(false),
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Adds something to be sent. Dropped if the stream has ended.
    pub(crate) fn push(&self, item: Event) {
        self.push_all([item]);
    }

    /// Adds several things, in order.
    pub(crate) fn push_all(&self, items: impl IntoIterator<Item = Event>) {
        let mut state = self.state.lock();
        for item in items {
            if state.gone || state.end.is_some() {
                // The others are still to be taken out of where they come from.
                continue;
            }
            state.push(item);
        }
        if state.queue.has_lanes() {
            self.takes_turns.store(true, Ordering::Relaxed);
        }
        wake(state);
    }

    /// Has the client be told of nodes, and that this one lives: it was told that something is said within this time.
    pub(crate) fn begin_news(&self, within: Duration) {
        self.state.lock().within = Some(within);
    }

    /// Says that the node lives, if nothing was said since this was called before, or the time is another one now.
    pub(crate) fn say_alive(&self, within: Duration) {
        let mut state = self.state.lock();
        let Some(told) = state.within else {
            return;
        };
        let has_said = std::mem::take(&mut state.has_said);
        let is_due = !has_said || told != within;
        // Who has something to take hears that first, and the time when it has.
        if is_due && state.queue.is_empty() && state.end.is_none() && !state.gone {
            state.within = Some(within);
            state.push(Event::Alive(within));
            // It is no more than this that is to be said once in so long.
            state.has_said = false;
            wake(state);
        }
    }

    /// Tells of other nodes.
    pub(crate) fn tell_nodes(&self, nodes: &Arc<Nodes>) {
        let mut state = self.state.lock();
        if state.within.is_some() && state.end.is_none() && !state.gone {
            state.nodes = Some(Arc::clone(nodes));
            wake(state);
        }
    }

    /// Nothing more comes: the stream ends after what is queued.
    pub(crate) fn end(&self, how: Result<(), Error>) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.end = Some(how);
        }
        wake(state);
        self.changed.notify_waiters();
    }

    /// Everything that is to be sent, or a turn of it, into `into`, of which `given` bytes of deliveries have gone. That
    /// is empty, or what was taken before there was anything of lane high: it is put back first. `None` when the stream
    /// has ended well.
    fn poll_take(
        &self,
        cx: &mut Context<'_>,
        into: &mut VecDeque<Event>,
        given: u64,
    ) -> Poll<Option<Result<(), Error>>> {
        let mut state = self.state.lock();
        if !into.is_empty() {
            state.queue.put_back(into);
        }
        // Of a turn without deliveries nothing is counted, and it may be the last of what the shard waits for.
        let counts = given > 0 || (state.watched && state.queue.has_lanes());
        if counts && self.handle.counts_sent() {
            self.count_sent(&mut state, given);
        }
        if let Some(nodes) = state.nodes.take() {
            state.push(Event::Nodes(nodes));
        }
        let waited = state.queue.len();
        if waited > 0 {
            state.queue.take(into);
            let has_room = waited > ROOM_ITEMS && state.queue.len() <= ROOM_ITEMS;
            drop(state);
            if has_room {
                self.changed.notify_waiters();
            }
            return Poll::Ready(Some(Ok(())));
        }
        state.queue.rest(into);
        match state.end.clone() {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => {
                // Told once; after it the stream is over.
                state.end = Some(Ok(()));
                Poll::Ready(Some(Err(error)))
            }
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Adds to what the shard is told when it looks next; if it waits for that, it looks soon.
    fn count_sent(&self, state: &mut State, given: u64) {
        state.sent += given;
        if !std::mem::replace(&mut state.notified, true) {
            self.handle.notify(self.session);
        }
        if state.queue.is_empty() && std::mem::take(&mut state.watched) {
            self.handle.wake();
        }
    }

    /// For the shard: it gives the stream nothing until it has taken what it was given.
    pub(crate) fn watch(&self) {
        let mut state = self.state.lock();
        // It may have taken all of it meanwhile.
        state.watched = state.sent == 0 || !state.queue.is_empty();
        if !state.watched {
            self.handle.wake();
        }
    }

    fn has_more(&self) -> bool {
        let state = self.state.lock();
        !state.queue.is_empty() || state.nodes.is_some()
    }

    /// Whether the stream has taken enough for more requests to be read.
    pub(crate) fn has_room(&self) -> bool {
        self.state.lock().queue.len() <= ROOM_ITEMS
    }

    /// Waits until the stream has taken enough for more requests to be read. At once if it is gone.
    pub(crate) async fn room(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state.lock();
                if state.queue.len() <= ROOM_ITEMS || state.gone || state.end.is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Waits until nothing can be sent on the stream any more.
    pub(crate) async fn gone(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state.lock();
                if state.gone || state.end.is_some() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Waits until the stream is to end for a reason that is not in it.
    pub(crate) async fn over(&self, stop: &CancellationToken) -> Over {
        tokio::select! {
            biased;
            () = self.gone() => Over::Gone,
            () = stop.cancelled() => Over::Stopping,
        }
    }

    /// The connection will take nothing more: the shard closes the session.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.gone = true;
        state.queue.clear();
        self.notify(state);
        self.changed.notify_waiters();
    }

    /// Has credit come back by itself from here on, or no longer.
    pub(crate) fn set_automatic_credit(&self, is_automatic: bool) {
        self.automatic_credit.store(is_automatic, Ordering::Relaxed);
    }

    /// Gives credit back for what the connection has taken.
    fn return_credit(&self, bytes: u32) {
        let mut state = self.state.lock();
        state.credit_back = state.credit_back.saturating_add(bytes);
        self.notify(state);
    }

    /// For the shard: what has happened since it last asked.
    pub(crate) fn take_notice(&self) -> Notice {
        let mut state = self.state.lock();
        state.notified = false;
        Notice {
            credit: std::mem::take(&mut state.credit_back),
            sent: std::mem::take(&mut state.sent),
            gone: state.gone,
        }
    }

    fn notify(&self, mut state: MutexGuard<'_, State>) {
        let notifies = !std::mem::replace(&mut state.notified, true);
        drop(state);
        if notifies {
            self.handle.notify(self.session);
        }
        self.handle.wake();
    }
}

/// The taking end of a send queue: it takes all that is there at a time, or a turn. When it is dropped, the shard
/// closes the session.
#[derive(Debug)]
pub(crate) struct Taker {
    queue: Arc<SendQueue>,
    /// Taken, and not yet given.
    taken: VecDeque<Event>,
    /// Bytes of deliveries given, of what was taken last.
    given: u64,
    /// Taking gives no more than a turn at once.
    takes_turns: bool,
}

impl Taker {
    pub(crate) fn new(queue: Arc<SendQueue>) -> Taker {
        Taker {
            queue,
            taken: VecDeque::new(),
            given: 0,
            takes_turns: false,
        }
    }

    /// The next thing to be sent; `None` when the stream has ended well. A delivery counts as consumed when it
    /// is given here, while credit comes back by itself.
    #[inline]
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if self.taken.is_empty() || self.is_to_put_back() {
            self.takes_turns |= self.queue.takes_turns.load(Ordering::Relaxed);
            let given = std::mem::take(&mut self.given);
            match self.queue.poll_take(cx, &mut self.taken, given) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        let item = self.taken.pop_front();
        let cost = match &item {
            Some(Event::Reply(Reply::Delivery(delivery))) => {
                self.given += delivery.body.len() as u64;
                delivery.cost()
            }
            Some(Event::Reply(Reply::Expired(expired))) => expired.cost(),
            _ => 0,
        };
        if cost > 0 && self.queue.automatic_credit.load(Ordering::Relaxed) {
            self.queue.return_credit(cost);
        }
        Poll::Ready(item.map(Ok))
    }

    /// Whether all was taken, before there was anything of lane high.
    fn is_to_put_back(&self) -> bool {
        !self.takes_turns && self.queue.takes_turns.load(Ordering::Relaxed)
    }

    /// Whether all that was taken has been given: the next thing is of another time.
    pub(crate) fn has_none_at_hand(&self) -> bool {
        self.taken.is_empty()
    }

    /// Whether something can be taken at once.
    pub(crate) fn has_more(&self) -> bool {
        !self.taken.is_empty() || self.queue.has_more()
    }
}

impl Deref for Taker {
    type Target = SendQueue;

    fn deref(&self) -> &SendQueue {
        &self.queue
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        self.queue.leave();
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod sample_delivery;
#[cfg(test)]
mod tests;
