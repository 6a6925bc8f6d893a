//! The queue of senders of a lane that wait until the accumulator admits them.
//!
//! A sender with messages of both lanes waits in the queues of both, and is admitted when it is first in each. It
//! takes both places under one lock, so of two such senders one is before the other in both queues.
//!
//! A waiting sender keeps its messages until it is admitted. So one that stops waiting has handed
//! over nothing, and its turn goes to the next.

use super::line::Stalled;
use super::{Accumulator, State, Ticket};
use crate::publisher::ack_future::{AckFuture, SummaryFuture};
use crate::publisher::client_ended::ClientEnded;
use crate::publisher::completions::Completions;
use airmail_model::{Lane, Message};
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

    /// Tells whether it has messages of this lane; of none, if it is empty, it counts as one of lane normal.
    fn has(&self, lane: Lane) -> bool;

    /// Registers its messages, in order, for completion.
    fn register(self, completions: &mut Completions) -> (VecDeque<Message>, Self::Future);
}

impl Submission for Message {
    type Future = AckFuture;

    fn has(&self, lane: Lane) -> bool {
        self.lane == lane
    }

    fn register(self, completions: &mut Completions) -> (VecDeque<Message>, AckFuture) {
        let (page, number) = completions.add();
        (VecDeque::from([self]), AckFuture { page, number })
    }
}

impl Submission for Vec<Message> {
    type Future = SummaryFuture;

    fn has(&self, lane: Lane) -> bool {
        self.iter().any(|message| message.lane == lane) || (self.is_empty() && lane == Lane::Normal)
    }

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
    /// The sender's number in each lane's queue while it waits there.
    sender: [Option<u64>; Lane::ALL.len()],
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
            sender: [None; Lane::ALL.len()],
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
            let Some(waiting) = submission else {
                // Polled again after it was done.
                return Poll::Ready(Err(ClientEnded::Closed));
            };
            if !state.is_turn_of(waiting, *sender) {
                state.wait(waiting, sender, context.waker());
                return Poll::Pending;
            }
            for (line, sender) in state.lines.iter_mut().zip(sender) {
                if let Some(sender) = sender.take() {
                    line.waiters.leave(sender);
                }
            }
            match submission.take() {
                Some(submission) => {
                    Poll::Ready(Ok(state.stall(accumulator, namespace, submission)))
                }
                None => Poll::Ready(Err(ClientEnded::Closed)),
            }
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
        for lane in Lane::ALL {
            if let Some(sender) = self.sender[lane as usize].take() {
                self.accumulator.with(|state| {
                    let line = state.line(lane);
                    line.waiters.leave(sender);
                    if line.stalled.is_none() {
                        state.wake_first(lane);
                    }
                });
            }
        }
    }
}

impl State {
    /// Tells whether a sender with these numbers is next in the line of each lane that it has messages of.
    fn is_turn_of(
        &mut self,
        submission: &impl Submission,
        sender: [Option<u64>; Lane::ALL.len()],
    ) -> bool {
        Lane::ALL.into_iter().all(|lane| {
            let line = self.line(lane);
            let is_turn = line.stalled.is_none() && line.waiters.is_turn_of(sender[lane as usize]);
            is_turn || !submission.has(lane)
        })
    }

    /// Lets a sender wait in the line of each lane that it has messages of.
    fn wait(
        &mut self,
        submission: &impl Submission,
        sender: &mut [Option<u64>; Lane::ALL.len()],
        waker: &Waker,
    ) {
        for lane in Lane::ALL {
            if submission.has(lane) {
                let line = self.line(lane);
                line.waiters.wait(&mut sender[lane as usize], waker);
            }
        }
    }

    /// Holds a submission until the producer has taken all of it.
    fn stall<S: Submission>(
        &mut self,
        accumulator: &Accumulator,
        namespace: &Arc<str>,
        submission: S,
    ) -> S::Future {
        let first = self.completions.next_ticket();
        let stands_in = Lane::ALL.map(|lane| submission.has(lane));
        let (messages, ack) = submission.register(&mut self.completions);
        // The namespace may have to be resolved, or the submission given up in time.
        self.stream.wake_task = true;
        let since = self.read_clock(&accumulator.shared).mono;
        let mut of_lanes = [VecDeque::new(), VecDeque::new()];
        for (message, ticket) in messages.into_iter().zip(first.0..) {
            of_lanes[message.lane as usize].push_back((Ticket(ticket), message));
        }
        let lines = self.lines.iter_mut().zip(of_lanes).zip(stands_in);
        for ((line, messages), _) in lines.filter(|(_, stands)| *stands) {
            line.stalled = Some(Stalled {
                namespace: Arc::clone(namespace),
                messages,
                since,
            });
        }
        ack
    }
}

#[cfg(test)]
mod tests;
