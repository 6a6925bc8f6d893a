//! What becomes of each message, told to whoever kept its receipt.
//!
//! Messages are numbered as they are handed over. What was handed over one by one is gathered on
//! *pages* of up to 256 neighbours, of one batch where that is known; an answer for a whole batch is
//! one line on each of its pages, whatever the number of messages, and a receipt is a page and a
//! place on it. So a message costs no allocation and no wake-up of its own, a receipt that is dropped
//! costs nothing, and one whose page has one fate is read without a lock. Messages handed over
//! together have one *tally*.
//!
//! Invariants: the open chapters are in order of number and cover every message that is not
//! settled; each message is settled once. A flush is done when the first open chapter is newer.

use super::{Published, Summary};
use crate::core::{Settled, Ticket};
use airmail_model::Error;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;

/// Messages on one page.
const PAGE_MESSAGES: u64 = 256;
/// A page with this many ends where its batch ends.
const PART_MESSAGES: u64 = 32;

/// The fate of some neighbours.
#[derive(Debug)]
struct Line {
    first: u64,
    count: u64,
    /// Of the first; those after it have the numbers after its number.
    fate: Result<Published, Error>,
}

/// What is known of neighbouring messages, and who waits for it.
#[derive(Debug, Default)]
struct PageState {
    lines: Vec<Line>,
    waiting: Vec<(u64, Waker)>,
    /// Nothing more will be known.
    abandoned: bool,
}

/// The fates of messages that were handed over one after the other.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Of all of them, where they share it.
    whole: OnceLock<Line>,
    state: Mutex<PageState>,
}

#[derive(Debug, Default)]
struct TallyState {
    summary: Summary,
    waiting: Option<Waker>,
    done: bool,
    abandoned: bool,
}

/// The fate of messages that were handed over together.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<TallyState>);

impl Line {
    /// The fate of one of these messages.
    fn fate_of(&self, number: u64) -> Result<Published, Error> {
        let fate = self.fate.as_ref().map_err(Error::clone)?;
        Ok(Published {
            sequence: fate.sequence.plus(number - self.first),
            ..*fate
        })
    }
}

impl Page {
    /// The fate of the message with this number.
    pub(super) fn poll(
        &self,
        number: u64,
        context: &Context<'_>,
    ) -> Poll<Result<Published, Error>> {
        if let Some(whole) = self.whole.get() {
            return Poll::Ready(whole.fate_of(number));
        }
        let mut page = self.state.lock();
        let told = |line: &&Line| (line.first..line.first + line.count).contains(&number);
        if let Some(line) = page.lines.iter().find(told) {
            return Poll::Ready(line.fate_of(number));
        }
        if page.abandoned {
            return Poll::Ready(Err(super::abandoned()));
        }
        match page.waiting.iter_mut().find(|(who, _)| *who == number) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => page.waiting.push((number, context.waker().clone())),
        }
        Poll::Pending
    }

    /// Tells the fate of some messages, or of all that there are on the page.
    fn tell(&self, line: Line, all: bool, wakes: &mut Vec<Waker>) {
        let mut page = self.state.lock();
        let numbers = line.first..line.first + line.count;
        let concerned = |(number, _): &mut (u64, Waker)| numbers.contains(number);
        wakes.extend(page.waiting.extract_if(.., concerned).map(|(_, w)| w));
        if !all {
            page.lines.push(line);
        } else if self.whole.set(line).is_err() {
            debug_assert!(false, "each message is settled once");
        }
    }
}

impl Tally {
    /// The sums, when every message is settled.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Result<Summary, Error>> {
        let mut tally = self.0.lock();
        if tally.done {
            return Poll::Ready(Ok(tally.summary.clone()));
        }
        if tally.abandoned {
            return Poll::Ready(Err(super::abandoned()));
        }
        tally.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    fn tell(&self, count: u64, failure: Option<&Error>, last: bool, wakes: &mut Vec<Waker>) {
        let mut tally = self.0.lock();
        match failure {
            None => tally.summary.stored += count,
            Some(error) => {
                tally.summary.failed += count;
                tally.summary.error.get_or_insert_with(|| error.clone());
            }
        }
        if last {
            tally.done = true;
            wakes.extend(tally.waiting.take());
        }
    }
}

#[derive(Debug)]
enum Told {
    Each(Arc<Page>),
    Together(Arc<Tally>),
}

/// Neighbouring messages that are told of in one place.
#[derive(Debug)]
struct Chapter {
    first: u64,
    count: u64,
    unsettled: u64,
    /// It gets no more messages.
    ended: bool,
    told: Told,
}

/// The fates that are not known yet.
#[derive(Debug, Default)]
pub(super) struct Fates {
    open: VecDeque<Chapter>,
    next: u64,
    flushes: VecDeque<(u64, oneshot::Sender<()>)>,
    wakes: Vec<Waker>,
}

impl Fates {
    /// The ticket of the message that is added next.
    pub(super) fn next(&self) -> Ticket {
        Ticket(self.next)
    }

    /// Adds one message: its page and number.
    pub(super) fn add(&mut self) -> (Arc<Page>, u64) {
        let number = self.next;
        self.next += 1;
        if let Some(chapter) = self.open.back_mut()
            && let Told::Each(page) = &chapter.told
            && !chapter.ended
        {
            chapter.count += 1;
            chapter.unsettled += 1;
            chapter.ended = chapter.count == PAGE_MESSAGES;
            return (Arc::clone(page), number);
        }
        let page = Arc::<Page>::default();
        self.open.push_back(Chapter {
            first: number,
            count: 1,
            unsettled: 1,
            ended: false,
            told: Told::Each(Arc::clone(&page)),
        });
        (page, number)
    }

    /// What is added next is of another batch than what was added last.
    pub(super) fn next_batch(&mut self) {
        if let Some(chapter) = self.open.back_mut() {
            chapter.ended |= chapter.count >= PART_MESSAGES;
        }
    }

    /// Adds `count` messages with one tally; their tickets are the next ones.
    pub(super) fn add_together(&mut self, count: u64) -> Arc<Tally> {
        let tally = Arc::<Tally>::default();
        self.end_page();
        if count == 0 {
            tally.tell(0, None, true, &mut self.wakes);
        } else {
            self.open.push_back(Chapter {
                first: self.next,
                count,
                unsettled: count,
                ended: true,
                told: Told::Together(Arc::clone(&tally)),
            });
            self.next += count;
        }
        tally
    }

    fn end_page(&mut self) {
        if let Some(chapter) = self.open.back_mut() {
            chapter.ended = true;
        }
        self.forget_settled();
    }

    /// `count` messages from `first` on failed before they were sent.
    pub(super) fn failed(&mut self, first: Ticket, count: u64, error: &Error) {
        self.tell(first.0, count, &Err(error.clone()));
        self.forget_settled();
    }

    /// Some messages are settled.
    pub(super) fn settled(&mut self, settled: &Settled) {
        let mut published = settled.result.as_ref().map(|ack| Published {
            log: settled.log,
            sequence: ack.extent.first,
            appended: ack.appended,
            held: ack.held,
            copies: ack.copies,
            duplicate: ack.duplicate,
            exact: ack.exact,
        });
        for run in settled.tickets.chunk_by(|a, b| a.0 + 1 == b.0) {
            let count = run.len() as u64;
            self.tell(run[0].0, count, &published.map_err(Error::clone));
            if let Ok(published) = &mut published {
                published.sequence = published.sequence.plus(count);
            }
        }
        self.forget_settled();
    }

    /// Tells the fate of neighbours, page by page.
    fn tell(&mut self, first: u64, count: u64, fate: &Result<Published, Error>) {
        let end = first + count;
        let mut at = first;
        while at < end {
            let after = self.open.partition_point(|chapter| chapter.first <= at);
            let chapter = after.checked_sub(1).and_then(|n| self.open.get_mut(n));
            let Some(chapter) = chapter.filter(|chapter| at < chapter.first + chapter.count) else {
                return;
            };
            let count = end.min(chapter.first + chapter.count) - at;
            chapter.unsettled = chapter.unsettled.saturating_sub(count);
            match &chapter.told {
                Told::Together(tally) => {
                    let last = chapter.unsettled == 0;
                    tally.tell(count, fate.as_ref().err(), last, &mut self.wakes);
                }
                Told::Each(page) => {
                    let fate = fate.clone().map(|published| Published {
                        sequence: published.sequence.plus(at - first),
                        ..published
                    });
                    let line = Line {
                        first: at,
                        count,
                        fate,
                    };
                    let all = chapter.ended && count == chapter.count;
                    page.tell(line, all, &mut self.wakes);
                }
            }
            at += count;
        }
    }

    fn forget_settled(&mut self) {
        let done = |chapter: &mut Chapter| chapter.ended && chapter.unsettled == 0;
        while self.open.pop_front_if(done).is_some() {}
        let least = self.open.front().map_or(self.next, |first| first.first);
        // Whoever asked may have stopped waiting.
        while let Some((_, done)) = self.flushes.pop_front_if(|(until, _)| *until <= least) {
            let _ = done.send(());
        }
    }

    /// Waits for every message that was added.
    pub(super) fn flush(&mut self) -> oneshot::Receiver<()> {
        let (done, flushed) = oneshot::channel();
        self.flushes.push_back((self.next, done));
        self.end_page();
        flushed
    }

    /// Who is to be woken, once no lock is held.
    #[inline]
    pub(super) fn wakes(&mut self) -> &mut Vec<Waker> {
        &mut self.wakes
    }

    /// Nobody will learn any more what is not known yet.
    pub(super) fn abandon(&mut self) {
        for chapter in self.open.drain(..) {
            match &chapter.told {
                Told::Each(page) => {
                    let mut page = page.state.lock();
                    page.abandoned = true;
                    self.wakes.extend(page.waiting.drain(..).map(|(_, w)| w));
                }
                Told::Together(tally) => {
                    let mut tally = tally.0.lock();
                    tally.abandoned = true;
                    self.wakes.extend(tally.waiting.take());
                }
            }
        }
        self.flushes.clear();
    }
}

#[cfg(test)]
mod tests;
