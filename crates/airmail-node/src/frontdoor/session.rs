//! A session: one client of the node, from Hello to its end, in words of `airmail-model` alone.
//!
//! Its two halves are used at the same time: [`SessionRequests`] asks, [`SessionEvents`] takes what the node
//! has to tell. A translator whose reading and writing are two tasks splits a [`SessionHandle`]; one that
//! does both in a loop keeps it whole.
//!
//! What every front door would else write again is in here: that Hello comes first and only once; the
//! window of publishes that wait for their ack, and the numbers that they have meanwhile; credit that comes
//! back by itself; how a session ends. It ends in one of four ways, and never in silence:
//!
//! - its client asks for nothing more: what it published is answered first;
//! - it breaks a rule: the error comes after all that was answered;
//! - the node stops: nothing more is read, what was published is answered, then the client is told;
//! - its front door drops it: the shard gives up its subscriptions.

mod events;
mod requests;
mod window;

pub use events::SessionEvents;
pub use requests::SessionRequests;
pub(crate) use requests::{AfterRequests, RequestSource};

use super::{FrontDoor, SessionError, Unavailable};
use crate::send_queue::{Event, Taker};
use airmail_broker::Principal;
use airmail_model::frame::{Hello, RequestId, Subscribe, SubscriptionId};
use airmail_model::{Error, Mono};
use bytes::Bytes;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tokio_util::task::task_tracker::TaskTrackerToken;
use window::Window;

/// State that both halves of a session look at.
#[derive(Debug)]
struct Shared {
    window: Window,
    /// Hello has been said, or none is expected.
    greeted: AtomicBool,
}

/// Opens a session, as two halves, for the client that `principal` says.
pub(crate) async fn open(
    door: &FrontDoor,
    principal: Principal,
) -> Result<(SessionRequests, SessionEvents), Unavailable> {
    halves(door, principal, false, 0).await
}

/// Opens a session, as two halves, for one call, which says no Hello. Credit of `credit_bytes` comes back by
/// itself.
pub(crate) async fn open_for_one_call(
    door: &FrontDoor,
    principal: Principal,
    credit_bytes: u32,
) -> Result<(SessionRequests, SessionEvents), Unavailable> {
    halves(door, principal, true, credit_bytes).await
}

async fn halves(
    door: &FrontDoor,
    principal: Principal,
    greeted: bool,
    credit: u32,
) -> Result<(SessionRequests, SessionEvents), Unavailable> {
    let queue = door.handle().open(principal, credit).await?;
    queue.set_automatic_credit(credit > 0);
    let shared = Arc::new(Shared {
        window: Window::new(door.limits().unacked_bytes as usize),
        greeted: AtomicBool::new(greeted),
    });
    let events = SessionEvents::new(door, Taker::new(Arc::clone(&queue)), Arc::clone(&shared));
    let requests = SessionRequests::new(door.clone(), queue, shared);
    Ok((requests, events))
}

/// A session, whole. When it is dropped, its subscriptions end; what was published is stored or refused all
/// the same. A node that stops waits for its sessions, for as long as `node.stop_timeout` allows.
pub struct SessionHandle {
    requests: SessionRequests,
    events: SessionEvents,
    /// A stop of the node waits for it.
    open: TaskTrackerToken,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").finish_non_exhaustive()
    }
}

impl SessionHandle {
    /// Opens a session for a client that will say Hello. Its front door knows from the connection who the
    /// client is.
    ///
    /// # Errors
    /// [`Unavailable`] if the node has ended.
    pub async fn open(
        door: &FrontDoor,
        principal: Principal,
    ) -> Result<SessionHandle, Unavailable> {
        let halves = open(door, principal).await?;
        Ok(SessionHandle::whole(door, halves))
    }

    /// Opens a session for one call, which says no Hello. Credit of `credit_bytes` comes back by itself.
    ///
    /// # Errors
    /// [`Unavailable`] if the node starts or stops.
    pub(crate) async fn for_one_call(
        door: &FrontDoor,
        principal: Principal,
        credit_bytes: u32,
    ) -> Result<SessionHandle, Unavailable> {
        let halves = open_for_one_call(door, principal, credit_bytes).await?;
        Ok(SessionHandle::whole(door, halves))
    }

    fn whole(
        door: &FrontDoor,
        (requests, events): (SessionRequests, SessionEvents),
    ) -> SessionHandle {
        SessionHandle {
            requests,
            events,
            open: door.tasks().token(),
            stop: Box::pin(door.handle().stop().clone().cancelled_owned()),
        }
    }

    /// The asking half and the listening half, for two tasks. Neither is told by itself that the node stops.
    #[must_use]
    pub fn split(self) -> (SessionRequests, SessionEvents) {
        (self.requests, self.events.held_by(self.open))
    }

    /// Whether another request may be read. If not, it is to be read after some more events.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.requests.has_room()
    }

    /// Says Hello. Answered by [`Event::Welcome`].
    ///
    /// # Errors
    /// As [`SessionRequests::hello`].
    pub async fn hello(&self, hello: &Hello) -> Result<(), SessionError> {
        self.requests.hello(hello).await
    }

    /// Publishes a batch, of which nothing is said about its producer's epoch. Answered once, by an event with this number.
    ///
    /// # Errors
    /// As [`SessionRequests::publish`].
    pub async fn publish(
        &self,
        request: RequestId,
        batch: Bytes,
        received: Mono,
    ) -> Result<(), SessionError> {
        let batch = (batch, false);
        self.requests.publish(request, batch, received).await
    }

    /// Begins a subscription. Answered by a status.
    ///
    /// # Errors
    /// As [`SessionRequests::add`].
    pub async fn add(&self, subscribe: Subscribe) -> Result<(), SessionError> {
        self.requests.add(subscribe).await
    }

    /// Ends a subscription. Answered by a status.
    ///
    /// # Errors
    /// As [`SessionRequests::remove`].
    pub async fn remove(&self, subscription: SubscriptionId) -> Result<(), SessionError> {
        self.requests.remove(subscription).await
    }

    /// Grants credit for deliveries.
    ///
    /// # Errors
    /// As [`SessionRequests::credit`].
    pub async fn credit(&self, bytes: u32) -> Result<(), SessionError> {
        self.requests.credit(bytes).await
    }

    /// The asking half, which has the requests that are rarer.
    #[must_use]
    pub fn requests(&self) -> &SessionRequests {
        &self.requests
    }

    /// The next event; `None` when the session is over.
    ///
    /// # Errors
    /// Why the session ends: it is told once, after every event that was there. `SHUTTING_DOWN` when the node
    /// stops and everything that was published is answered.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        if let Poll::Ready(event) = self.events.poll_next(cx) {
            return Poll::Ready(event);
        }
        if self.stop.as_mut().poll(cx).is_ready() && self.requests.has_all_answers() {
            return Poll::Ready(Some(Err(Unavailable::Stopping.into())));
        }
        Poll::Pending
    }

    /// The next event, as [`SessionHandle::poll_next`] gives it. Can be dropped and called again.
    ///
    /// # Errors
    /// As [`SessionHandle::poll_next`].
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

#[cfg(test)]
mod tests;
