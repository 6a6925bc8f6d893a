//! The summary of messages that were handed over together: counted as they are settled, and given
//! when the last one is.

use super::client_ended::ClientEnded;
use super::published::Summary;
use airmail_model::Error;
use parking_lot::Mutex;
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
struct GroupState {
    summary: Summary,
    waiting: Option<Waker>,
    done: bool,
    /// The client was dropped: nothing more will be known.
    abandoned: bool,
}

/// Results of messages that were handed over together, counted.
#[derive(Debug, Default)]
pub(super) struct GroupCompletion(Mutex<GroupState>);

impl GroupCompletion {
    /// Gives the summary when every message is settled, or has the caller woken then.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Result<Summary, Error>> {
        let mut group = self.0.lock();
        if group.done {
            return Poll::Ready(Ok(group.summary.clone()));
        }
        if group.abandoned {
            return Poll::Ready(Err(ClientEnded::Dropped.into()));
        }
        group.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// Counts `count` more messages as stored, or as failed with `failure`; `last` if none is
    /// missing now.
    pub(super) fn complete(
        &self,
        count: u64,
        failure: Option<&Error>,
        last: bool,
        wakes: &mut Vec<Waker>,
    ) {
        let mut group = self.0.lock();
        match failure {
            None => group.summary.stored += count,
            Some(error) => {
                group.summary.failed += count;
                group.summary.error.get_or_insert_with(|| error.clone());
            }
        }
        if last {
            group.done = true;
            wakes.extend(group.waiting.take());
        }
    }

    /// Ends the wait: nothing more will be known.
    pub(super) fn abandon(&self, wakes: &mut Vec<Waker>) {
        let mut group = self.0.lock();
        group.abandoned = true;
        wakes.extend(group.waiting.take());
    }
}
