//! Completions: the result of each message, brought to its ack future.
//!
//! Messages are numbered as they are handed over. Those that were handed over one by one share
//! *pages* ([`CompletionPage`]) with up to 255 neighbours, of the same batch where that is known;
//! those handed over together share one *group* ([`GroupCompletion`]). The messages of one page or
//! group are a *span*.
//!
//! Invariants: the pending spans are in the order of their numbers, and cover every message that is
//! not settled. Each message is completed once. A flush is done when no pending span has a message
//! that is older than it.

use super::completion_page::{CompletedSpan, CompletionPage};
use super::group_completion::GroupCompletion;
use super::published::Published;
use crate::core::{Settled, Ticket};
use airmail_model::Error;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::oneshot;

/// Number of messages on one page, at most.
const PAGE_MESSAGES: u64 = 256;
/// Number of messages from which on a page ends where its batch ends.
const PART_MESSAGES: u64 = 32;

/// Place where the results of a span are recorded.
#[derive(Debug)]
enum Recorder {
    Page(Arc<CompletionPage>),
    Group(Arc<GroupCompletion>),
}

/// Messages with consecutive numbers whose results are recorded in one place, and are not all
/// known.
#[derive(Debug)]
struct PendingSpan {
    first: u64,
    count: u64,
    unsettled: u64,
    /// True if no message is added any more.
    full: bool,
    recorder: Recorder,
}

/// Completions of all messages that are not settled yet.
#[derive(Debug, Default)]
pub(super) struct Completions {
    pending: VecDeque<PendingSpan>,
    /// Number of the message that is added next.
    next: u64,
    /// Flushes, each with the number before which everything has to be settled.
    flushes: VecDeque<(u64, oneshot::Sender<()>)>,
    wakes: Vec<Waker>,
}

impl Completions {
    /// Gives the ticket of the message that is added next.
    pub(super) fn next_ticket(&self) -> Ticket {
        Ticket(self.next)
    }

    /// Adds one message; gives its page and its number.
    pub(super) fn add(&mut self) -> (Arc<CompletionPage>, u64) {
        let number = self.next;
        self.next += 1;
        if let Some(span) = self.pending.back_mut()
            && let Recorder::Page(page) = &span.recorder
            && !span.full
        {
            span.count += 1;
            span.unsettled += 1;
            span.full = span.count == PAGE_MESSAGES;
            return (Arc::clone(page), number);
        }
        let page = Arc::<CompletionPage>::default();
        self.pending.push_back(PendingSpan {
            first: number,
            count: 1,
            unsettled: 1,
            full: false,
            recorder: Recorder::Page(Arc::clone(&page)),
        });
        (page, number)
    }

    /// Notes that the next message belongs to another batch than the last one.
    pub(super) fn begin_batch(&mut self) {
        if let Some(span) = self.pending.back_mut() {
            span.full |= span.count >= PART_MESSAGES;
        }
    }

    /// Adds `count` messages as one group; their tickets are the next ones.
    pub(super) fn add_group(&mut self, count: u64) -> Arc<GroupCompletion> {
        let group = Arc::<GroupCompletion>::default();
        self.end_page();
        if count == 0 {
            group.complete(0, None, true, &mut self.wakes);
        } else {
            self.pending.push_back(PendingSpan {
                first: self.next,
                count,
                unsettled: count,
                full: true,
                recorder: Recorder::Group(Arc::clone(&group)),
            });
            self.next += count;
        }
        group
    }

    fn end_page(&mut self) {
        if let Some(span) = self.pending.back_mut() {
            span.full = true;
        }
        self.drop_settled();
    }

    /// Completes messages that failed before they reached the producer.
    pub(super) fn fail(&mut self, tickets: &[Ticket], error: &Error) {
        let failed = Err(error.clone());
        for (first, count) in runs(tickets) {
            self.complete(first, count, &failed);
        }
        self.drop_settled();
    }

    /// Completes messages that the producer has settled.
    pub(super) fn settle(&mut self, settled: &Settled) {
        let mut published = settled.result.as_ref().map(|ack| Published {
            log: settled.log,
            sequence: ack.extent.first,
            appended: ack.appended,
            held: ack.held,
            duplicate: ack.duplicate,
            exact: ack.exact,
        });
        for (first, count) in runs(&settled.tickets) {
            self.complete(first, count, &published.map_err(Error::clone));
            if let Ok(published) = &mut published {
                published.sequence = published.sequence.plus(count);
            }
        }
        self.drop_settled();
    }

    /// Records one result for `count` messages from `first` on, span by span.
    fn complete(&mut self, first: u64, count: u64, result: &Result<Published, Error>) {
        let end = first + count;
        let mut at = first;
        while at < end {
            let after = self.pending.partition_point(|span| span.first <= at);
            let span = after.checked_sub(1).and_then(|n| self.pending.get_mut(n));
            let Some(span) = span.filter(|span| at < span.first + span.count) else {
                // The client was dropped meanwhile: every wait has ended.
                return;
            };
            let count = end.min(span.first + span.count) - at;
            span.unsettled = span.unsettled.saturating_sub(count);
            match &span.recorder {
                Recorder::Group(group) => {
                    let last = span.unsettled == 0;
                    group.complete(count, result.as_ref().err(), last, &mut self.wakes);
                }
                Recorder::Page(page) => {
                    let result = result.clone().map(|published| Published {
                        sequence: published.sequence.plus(at - first),
                        ..published
                    });
                    let completed = CompletedSpan {
                        first: at,
                        count,
                        result,
                    };
                    let all = span.full && count == span.count;
                    page.complete(completed, all, &mut self.wakes);
                }
            }
            at += count;
        }
    }

    /// Drops the spans that are settled, and ends the flushes that waited for no others.
    fn drop_settled(&mut self) {
        let done = |span: &mut PendingSpan| span.full && span.unsettled == 0;
        while self.pending.pop_front_if(done).is_some() {}
        let least = self.pending.front().map_or(self.next, |first| first.first);
        while let Some((_, done)) = self.flushes.pop_front_if(|(until, _)| *until <= least) {
            // Fails if the caller has stopped waiting.
            let _ = done.send(());
        }
    }

    /// Begins to wait until every message that was added is settled.
    pub(super) fn flush(&mut self) -> oneshot::Receiver<()> {
        let (done, flushed) = oneshot::channel();
        self.flushes.push_back((self.next, done));
        self.end_page();
        flushed
    }

    /// Gives the wakers of the ack futures that are ready, to be woken once no lock is held.
    #[inline]
    pub(super) fn wakes(&mut self) -> &mut Vec<Waker> {
        &mut self.wakes
    }

    /// Ends every wait: no more results will come.
    pub(super) fn abandon(&mut self) {
        for span in self.pending.drain(..) {
            match &span.recorder {
                Recorder::Page(page) => page.abandon(&mut self.wakes),
                Recorder::Group(group) => group.abandon(&mut self.wakes),
            }
        }
        self.flushes.clear();
    }
}

/// Divides tickets into runs of consecutive ones: the first number of each, and how many they are.
fn runs(tickets: &[Ticket]) -> impl Iterator<Item = (u64, u64)> {
    let runs = tickets.chunk_by(|a, b| a.0 + 1 == b.0);
    runs.map(|run| (run[0].0, run.len() as u64))
}

#[cfg(test)]
mod tests;
