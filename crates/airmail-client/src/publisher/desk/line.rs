//! The line of those who wait to hand something over.
//!
//! Whoever waits keeps its messages until it is let in, so one that stops waiting has handed over
//! nothing, and its place goes to the next.

use super::{Desk, Stalled, State, closed};
use crate::publisher::{Receipt, SummaryReceipt};
use airmail_model::{Error, Message};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Who waits, in order.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: VecDeque<(u64, Waker)>,
    next: u64,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn wake_first(&self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.waiting.front().map(|(_, waker)| waker.clone()));
    }

    pub(super) fn wake_all(&self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.waiting.iter().map(|(_, waker)| waker.clone()));
    }

    /// Whether it is the turn of whoever has this place, or none.
    fn is_turn_of(&self, place: Option<u64>) -> bool {
        let first = self.waiting.front().map(|(number, _)| *number);
        first.is_none() || first == place
    }

    /// Waits at `place`, or at the end.
    fn wait(&mut self, place: &mut Option<u64>, waker: &Waker) {
        let own = |(number, _): &&mut (u64, Waker)| Some(*number) == *place;
        match self.waiting.iter_mut().find(own) {
            Some((_, waiting)) => waiting.clone_from(waker),
            None => {
                *place = Some(self.next);
                self.waiting.push_back((self.next, waker.clone()));
                self.next += 1;
            }
        }
    }

    fn leave(&mut self, place: u64) {
        self.waiting.retain(|(number, _)| *number != place);
    }
}

/// What is handed over.
#[derive(Debug)]
pub(in crate::publisher) enum Work {
    One(Message),
    Together(Vec<Message>),
}

/// What its owner keeps of it.
#[derive(Debug)]
pub(in crate::publisher) enum Kept {
    One(Receipt),
    Together(SummaryReceipt),
}

/// Hands work over as soon as it is its turn.
#[derive(Debug)]
pub(in crate::publisher) struct Handing<'a> {
    desk: &'a Desk,
    namespace: &'a Arc<str>,
    work: Option<Work>,
    place: Option<u64>,
}

impl<'a> Handing<'a> {
    pub(in crate::publisher) fn new(
        desk: &'a Desk,
        namespace: &'a Arc<str>,
        work: Work,
    ) -> Handing<'a> {
        Handing {
            desk,
            namespace,
            work: Some(work),
            place: None,
        }
    }
}

impl Future for Handing<'_> {
    type Output = Result<Kept, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Handing {
            desk,
            namespace,
            work,
            place,
        } = self.get_mut();
        let polled = desk.with(|state| {
            if state.closed {
                return Poll::Ready(Err(closed()));
            }
            if state.stalled.is_some() || !state.line.is_turn_of(*place) {
                state.line.wait(place, context.waker());
                return Poll::Pending;
            }
            let Some(work) = work.take() else {
                // Polled after it was done.
                return Poll::Ready(Err(closed()));
            };
            place
                .take()
                .into_iter()
                .for_each(|own| state.line.leave(own));
            Poll::Ready(Ok(state.stall(desk, namespace, work)))
        });
        // In turns, so that the stream and other tasks get at the lock.
        while polled.is_ready() && desk.with(|state| state.go_on(&desk.shared)) {}
        polled
    }
}

impl Drop for Handing<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.desk.with(|state| {
                state.line.leave(place);
                if state.stalled.is_none() {
                    state.line.wake_first(&mut state.wakes);
                }
            });
        }
    }
}

impl State {
    /// Takes work; whatever of it finds no room stays stalled.
    fn stall(&mut self, desk: &Desk, namespace: &Arc<str>, work: Work) -> Kept {
        let ticket = self.fates.next();
        let (messages, kept) = match work {
            Work::One(message) => {
                let (page, number) = self.fates.add();
                let kept = Kept::One(Receipt { page, number });
                (VecDeque::from([message]), kept)
            }
            Work::Together(messages) => {
                let tally = self.fates.add_together(messages.len() as u64);
                (messages.into(), Kept::Together(SummaryReceipt(tally)))
            }
        };
        // It may have to be resolved, or given up.
        self.stream.wake_task = true;
        self.stalled = Some(Stalled {
            namespace: Arc::clone(namespace),
            messages,
            ticket,
            since: self.read_clock(&desk.shared).mono,
        });
        kept
    }
}

#[cfg(test)]
mod tests;
