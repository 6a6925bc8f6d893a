//! The queue of senders that wait until the accumulator admits them.
//!
//! A waiting sender keeps its messages until it is admitted. So one that stops waiting has handed
//! over nothing, and its turn goes to the next.

use super::{Accumulator, Stalled, State};
use crate::publisher::ack_future::{AckFuture, SummaryFuture};
use crate::publisher::client_ended::ClientEnded;
use crate::publisher::completions::Completions;
use airmail_model::Message;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Waiting senders by number, first come first.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    queue: VecDeque<(u64, Waker)>,
    /// Number of the next sender that begins to wait.
    next: u64,
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn wake_first(&self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.queue.front().map(|(_, waker)| waker.clone()));
    }

    pub(super) fn wake_all(&self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.queue.iter().map(|(_, waker)| waker.clone()));
    }

    /// Tells whether the sender with this number is next, or one without a number because nobody
    /// waits.
    fn is_turn_of(&self, sender: Option<u64>) -> bool {
        let first = self.queue.front().map(|(number, _)| *number);
        first.is_none() || first == sender
    }

    /// Lets a sender wait under its number, or at the end under a new one.
    fn wait(&mut self, sender: &mut Option<u64>, waker: &Waker) {
        let own = |(number, _): &&mut (u64, Waker)| Some(*number) == *sender;
        match self.queue.iter_mut().find(own) {
            Some((_, waiting)) => waiting.clone_from(waker),
            None => {
                *sender = Some(self.next);
                self.queue.push_back((self.next, waker.clone()));
                self.next += 1;
            }
        }
    }

    fn leave(&mut self, sender: u64) {
        self.queue.retain(|(number, _)| *number != sender);
    }
}

/// One message, or several together, that a sender waits to hand over.
pub(in crate::publisher) trait Submission: Unpin {
    /// Future that its sender keeps.
    type Future;

    /// Registers its messages, in order, for completion.
    fn register(self, completions: &mut Completions) -> (VecDeque<Message>, Self::Future);
}

impl Submission for Message {
    type Future = AckFuture;

    fn register(self, completions: &mut Completions) -> (VecDeque<Message>, AckFuture) {
        let (page, number) = completions.add();
        (VecDeque::from([self]), AckFuture { page, number })
    }
}

impl Submission for Vec<Message> {
    type Future = SummaryFuture;

    fn register(self, completions: &mut Completions) -> (VecDeque<Message>, SummaryFuture) {
        let group = completions.add_group(self.len() as u64);
        (self.into(), SummaryFuture(group))
    }
}

/// Waits for the sender's turn, and then hands its submission over.
#[derive(Debug)]
pub(in crate::publisher) struct WaitToSubmit<'a, S> {
    accumulator: &'a Accumulator,
    namespace: &'a Arc<str>,
    submission: Option<S>,
    /// The sender's number while it waits.
    sender: Option<u64>,
}

impl<'a, S> WaitToSubmit<'a, S> {
    pub(in crate::publisher) fn new(
        accumulator: &'a Accumulator,
        namespace: &'a Arc<str>,
        submission: S,
    ) -> WaitToSubmit<'a, S> {
        WaitToSubmit {
            accumulator,
            namespace,
            submission: Some(submission),
            sender: None,
        }
    }
}

impl<S: Submission> Future for WaitToSubmit<'_, S> {
    type Output = Result<S::Future, ClientEnded>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let WaitToSubmit {
            accumulator,
            namespace,
            submission,
            sender,
        } = self.get_mut();
        let polled = accumulator.with(|state| {
            if state.closed {
                return Poll::Ready(Err(ClientEnded::Closed));
            }
            if state.stalled.is_some() || !state.waiters.is_turn_of(*sender) {
                state.waiters.wait(sender, context.waker());
                return Poll::Pending;
            }
            let Some(submission) = submission.take() else {
                // Polled again after it was done.
                return Poll::Ready(Err(ClientEnded::Closed));
            };
            if let Some(sender) = sender.take() {
                state.waiters.leave(sender);
            }
            Poll::Ready(Ok(state.stall(accumulator, namespace, submission)))
        });
        // In several turns, so that the stream and other tasks get the lock in between.
        while polled.is_ready()
            && accumulator.with(|state| state.append_stalled(&accumulator.shared))
        {}
        polled
    }
}

impl<S> Drop for WaitToSubmit<'_, S> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            self.accumulator.with(|state| {
                state.waiters.leave(sender);
                if state.stalled.is_none() {
                    state.waiters.wake_first(&mut state.wakes);
                }
            });
        }
    }
}

impl State {
    /// Holds a submission until the producer has taken all of it.
    fn stall<S: Submission>(
        &mut self,
        accumulator: &Accumulator,
        namespace: &Arc<str>,
        submission: S,
    ) -> S::Future {
        let ticket = self.completions.next_ticket();
        let (messages, ack) = submission.register(&mut self.completions);
        // The namespace may have to be resolved, or the submission given up in time.
        self.stream.wake_task = true;
        self.stalled = Some(Stalled {
            namespace: Arc::clone(namespace),
            messages,
            ticket,
            since: self.read_clock(&accumulator.shared).mono,
        });
        ack
    }
}

#[cfg(test)]
mod tests;
