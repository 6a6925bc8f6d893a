//! The listening half of a session: what the node has to tell its client.

use super::Shared;
use crate::frontdoor::FrontDoor;
use crate::send_queue::{Event, Taker};
use airmail_model::frame::{Ack, Refused, Reply, RequestId};
use airmail_model::{Error, Lane, Mono};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The listening half of a session. When it is dropped, the session is over.
pub struct SessionEvents {
    door: FrontDoor,
    taker: Taker,
    shared: Arc<Shared>,
    /// When the events that were taken together were taken, once an ack among them wanted to know.
    taken_at: Option<Mono>,
    /// A stop of the node waits for it, where no task does that is waited for.
    #[expect(dead_code, reason = "dropped with this")]
    open: Option<TaskTrackerToken>,
}

impl fmt::Debug for SessionEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionEvents").finish_non_exhaustive()
    }
}

impl SessionEvents {
    pub(super) fn new(door: &FrontDoor, taker: Taker, shared: Arc<Shared>) -> SessionEvents {
        SessionEvents {
            door: door.clone(),
            taker,
            shared,
            taken_at: None,
            open: None,
        }
    }

    /// These events, for which a stop of the node waits.
    pub(super) fn held_by(self, open: TaskTrackerToken) -> SessionEvents {
        SessionEvents {
            open: Some(open),
            ..self
        }
    }

    /// The front door's view of the node.
    #[must_use]
    pub fn door(&self) -> &FrontDoor {
        &self.door
    }

    /// The next event; `None` when the session is over. A delivery counts as consumed when it is given here,
    /// while credit comes back by itself.
    ///
    /// # Errors
    /// Why the session ends: it is told once, after every event that was there.
    #[inline]
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        loop {
            if self.taker.has_none_at_hand() {
                self.taken_at = None;
            }
            let event = match self.taker.poll_take(cx) {
                Poll::Ready(Some(Ok(event))) => event,
                other => return other,
            };
            let Event::Reply(Reply::Acked { request, result }) = event else {
                return Poll::Ready(Some(Ok(event)));
            };
            // Others of the same request may have still to be answered.
            if let Some((request, result)) = self.settle(request, result) {
                let acked = Reply::Acked { request, result };
                return Poll::Ready(Some(Ok(Event::Reply(acked))));
            }
        }
    }

    /// The next event, as [`SessionEvents::poll_next`] gives it. Can be dropped and called again.
    ///
    /// # Errors
    /// As [`SessionEvents::poll_next`].
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Whether something has come that was not taken yet.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.taker.has_more()
    }

    /// Takes the ack of a batch. The answer to its client's request, if this was the last batch of it.
    fn settle(
        &mut self,
        batch: RequestId,
        result: Result<Ack, Refused>,
    ) -> Option<(RequestId, Result<Ack, Refused>)> {
        let settled = self.shared.window.settle(batch, result)?;
        let now = *self.taken_at.get_or_insert_with(|| self.door.mono());
        let took = now.since(settled.since);
        let metrics = self.door.metrics();
        metrics.publish_latency.observe(took.as_secs_f64());
        if settled.lane == Lane::High {
            metrics.publish_high_latency.observe(took.as_secs_f64());
        }
        settled.answer
    }
}
