//! The queue of senders of a lane that wait until the accumulator admits them.
//!
//! A sender with messages of both lanes is admitted when it is first in the queues of both. It waits in that of lane normal
//! alone until it is its turn there, and keeps that turn while it waits in the other. So whoever is in the queue of lane high
//! waits for lane high alone, and of two such senders, which come by the queue of lane normal, neither waits for the other
//! in both.
//!
//! A waiting sender keeps its messages until it is admitted. So one that stops waiting has handed
//! over nothing, and its turn goes to the next.

use super::line::{Stalled, Ticketed};
use super::{Accumulator, State};
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
    pub(super) fn is_turn_of(&self, sender: Option<u64>) -> bool {
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
    /// Whether it has messages of each lane, and so stands in its line.
    stands_in: [bool; Lane::ALL.len()],
    /// The sender's number in each lane's queue while it waits there.
    sender: [Option<u64>; Lane::ALL.len()],
}

impl<'a, S: Submission> WaitToSubmit<'a, S> {
    pub(in crate::publisher) fn new(
        accumulator: &'a Accumulator,
        namespace: &'a Arc<str>,
        submission: S,
    ) -> WaitToSubmit<'a, S> {
        WaitToSubmit {
            accumulator,
            namespace,
            stands_in: Lane::ALL.map(|lane| submission.has(lane)),
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
            stands_in,
            sender,
        } = self.get_mut();
        let stands_in = *stands_in;
        let polled = accumulator.with(|state| {
            if state.closed {
                return Poll::Ready(Err(ClientEnded::Closed));
            }
            if submission.is_some() && state.waits(stands_in, sender, context.waker()) {
                return Poll::Pending;
            }
            for (line, sender) in state.lines.iter_mut().zip(sender) {
                if let Some(sender) = sender.take() {
                    line.waiters.leave(sender);
                }
            }
            match submission.take() {
                Some(submission) => {
                    let stalled = state.stall(accumulator, namespace, submission, stands_in);
                    Poll::Ready(Ok(stalled))
                }
                // Polled again after it was done.
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
    /// Lets a sender wait in the lines that it stands in, lane normal's first, up to one where it is not its turn. Returns false,
    /// and nothing is changed, where it is its turn in all.
    fn waits(
        &mut self,
        stands_in: [bool; Lane::ALL.len()],
        sender: &mut [Option<u64>; Lane::ALL.len()],
        waker: &Waker,
    ) -> bool {
        let stands_in = |lane: &Lane| stands_in[*lane as usize];
        for lane in Lane::ALL.into_iter().filter(stands_in) {
            if self.line(lane).is_turn_of(sender[lane as usize]) {
                continue;
            }
            let up_to_it = Lane::ALL.into_iter().take(1 + lane as usize);
            for lane in up_to_it.filter(stands_in) {
                let waiters = &mut self.line(lane).waiters;
                waiters.wait(&mut sender[lane as usize], waker);
            }
            return true;
        }
        false
    }

    /// Holds a submission until the producer has taken all of it.
    fn stall<S: Submission>(
        &mut self,
        accumulator: &Accumulator,
        namespace: &Arc<str>,
        submission: S,
        stands_in: [bool; Lane::ALL.len()],
    ) -> S::Future {
        let first = self.completions.next_ticket();
        let (messages, ack) = submission.register(&mut self.completions);
        // The namespace may have to be resolved, or the submission given up in time.
        self.stream.wake_task = true;
        let since = self.read_clock(&accumulator.shared).mono;
        let of_lanes = Ticketed::by_lane(first, messages, stands_in);
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
