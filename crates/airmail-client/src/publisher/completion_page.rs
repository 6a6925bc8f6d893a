//! The results of neighbouring messages, in one place that all their ack futures point to.
//!
//! An ack future is a page and a number. An answer for a whole batch is one span on each page that the
//! batch is on, however many messages it has, so a message costs no allocation and no wake-up of
//! its own, and an ack future that is dropped costs nothing. Where one span covers the whole page it is
//! read without a lock.

use super::client_ended::ClientEnded;
use super::published::Published;
use airmail_model::Error;
use airmail_model::bug;
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

/// One result for messages with consecutive numbers.
#[derive(Debug)]
pub(super) struct CompletedSpan {
    pub(super) first: u64,
    pub(super) count: u64,
    /// Result of the first message; each one behind it has the next sequence number.
    pub(super) result: Result<Published, Error>,
}

impl CompletedSpan {
    fn contains(&self, number: u64) -> bool {
        (self.first..self.first + self.count).contains(&number)
    }

    /// Derives the result of one of these messages.
    fn result_of(&self, number: u64) -> Result<Published, Error> {
        let first = self.result.as_ref().map_err(Error::clone)?;
        Ok(Published {
            sequence: first.sequence.plus(number - self.first),
            ..*first
        })
    }
}

#[derive(Debug, Default)]
struct PageState {
    spans: Vec<CompletedSpan>,
    /// Ack futures that are being awaited, by number.
    waiting: Vec<(u64, Waker)>,
    /// The client was dropped: nothing more will be known.
    abandoned: bool,
}

/// Results of messages that were handed over one after the other.
#[derive(Debug, Default)]
pub(super) struct CompletionPage {
    /// The one result of all messages on the page, where they share one.
    whole: OnceLock<CompletedSpan>,
    state: Mutex<PageState>,
}

impl CompletionPage {
    /// Gives the result of the message with this number, or has the caller woken when it is known.
    pub(super) fn poll(
        &self,
        number: u64,
        context: &Context<'_>,
    ) -> Poll<Result<Published, Error>> {
        if let Some(whole) = self.whole.get() {
            return Poll::Ready(whole.result_of(number));
        }
        let mut page = self.state.lock();
        if let Some(span) = page.spans.iter().find(|span| span.contains(number)) {
            return Poll::Ready(span.result_of(number));
        }
        if page.abandoned {
            return Poll::Ready(Err(ClientEnded::Dropped.into()));
        }
        match page.waiting.iter_mut().find(|(who, _)| *who == number) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => page.waiting.push((number, context.waker().clone())),
        }
        Poll::Pending
    }

    /// Records the result of some messages, or of `all` that there are on the page.
    pub(super) fn complete(&self, span: CompletedSpan, all: bool, wakes: &mut Vec<Waker>) {
        let mut page = self.state.lock();
        let concerned = |(number, _): &mut (u64, Waker)| span.contains(*number);
        wakes.extend(page.waiting.extract_if(.., concerned).map(|(_, w)| w));
        if !all {
            page.spans.push(span);
        } else if let Err(span) = self.whole.set(span) {
            drop(page);
            bug!("messages from {} on are completed twice", span.first);
        }
    }

    /// Ends the wait of every ack future: nothing more will be known.
    pub(super) fn abandon(&self, wakes: &mut Vec<Waker>) {
        let mut page = self.state.lock();
        page.abandoned = true;
        wakes.extend(page.waiting.drain(..).map(|(_, waker)| waker));
    }
}
