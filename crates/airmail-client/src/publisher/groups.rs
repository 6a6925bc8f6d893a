//! What was handed over together, until all of it is settled.
//!
//! A group's number is the ticket of each of its messages. Numbers only grow, so that a flush is
//! done when the least open group is newer than it.

use super::{Published, Summary};
use crate::core::{Settled, Ticket};
use airmail_model::Error;
use airmail_model::frame::Ack;
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::oneshot;

/// Who waits for a group.
#[derive(Debug)]
pub(super) enum Waiter {
    One(oneshot::Sender<Result<Published, Error>>),
    Many(oneshot::Sender<Summary>),
}

#[derive(Debug)]
struct Group {
    waiter: Waiter,
    open: usize,
    summary: Summary,
}

/// Every group that is not settled, and every flush that waits for some.
#[derive(Debug, Default)]
pub(super) struct Groups {
    open: BTreeMap<u64, Group>,
    flushes: VecDeque<(u64, oneshot::Sender<()>)>,
    next: u64,
}

impl Groups {
    /// A group of `count` messages.
    pub(super) fn begin(&mut self, waiter: Waiter, count: usize) -> Ticket {
        let number = self.next;
        self.next += 1;
        let group = Group {
            waiter,
            open: count,
            summary: Summary::default(),
        };
        if count == 0 {
            group.tell(None);
        } else {
            self.open.insert(number, group);
        }
        Ticket(number)
    }

    /// `count` messages of a group failed before they were sent.
    pub(super) fn failed(&mut self, ticket: Ticket, count: usize, error: &Error) {
        self.progress(ticket, count, None, Err(error));
    }

    /// Some messages are settled.
    pub(super) fn settled(&mut self, settled: &Settled) {
        let mut at = 0;
        for run in settled.tickets.chunk_by(|a, b| a == b) {
            let published = settled.result.as_ref().ok().map(|ack| Published {
                log: settled.log,
                sequence: ack.extent.first.plus(at),
                appended: ack.appended,
                held: ack.held,
                copies: ack.copies,
                duplicate: ack.duplicate,
                exact: ack.exact,
            });
            self.progress(run[0], run.len(), published, settled.result.as_ref());
            at += run.len() as u64;
        }
    }

    fn progress(
        &mut self,
        ticket: Ticket,
        count: usize,
        published: Option<Published>,
        result: Result<&Ack, &Error>,
    ) {
        let Some(group) = self.open.get_mut(&ticket.0) else {
            return;
        };
        group.open = group.open.saturating_sub(count);
        match result {
            Ok(_) => group.summary.stored += count as u64,
            Err(error) => {
                group.summary.failed += count as u64;
                group.summary.error.get_or_insert_with(|| error.clone());
            }
        }
        if group.open == 0
            && let Some(group) = self.open.remove(&ticket.0)
        {
            group.tell(published);
        }
    }

    /// Waits for every group that has begun.
    pub(super) fn flush(&mut self, done: oneshot::Sender<()>) {
        self.flushes.push_back((self.next, done));
    }

    /// Answers the flushes that have nothing left to wait for.
    pub(super) fn answer_flushes(&mut self) {
        let least = self.open.keys().next().copied().unwrap_or(self.next);
        while self
            .flushes
            .front()
            .is_some_and(|(until, _)| *until <= least)
        {
            if let Some((_, done)) = self.flushes.pop_front() {
                // Whoever asked may have stopped waiting.
                let _ = done.send(());
            }
        }
    }
}

impl Group {
    fn tell(self, published: Option<Published>) {
        // A receipt may have been dropped: then nobody wants to know.
        match self.waiter {
            Waiter::One(waiter) => {
                let result = match (published, self.summary.error) {
                    (Some(published), _) => Ok(published),
                    (None, Some(error)) => Err(error),
                    (None, None) => Err(super::abandoned()),
                };
                let _ = waiter.send(result);
            }
            Waiter::Many(waiter) => {
                let _ = waiter.send(self.summary);
            }
        }
    }
}
