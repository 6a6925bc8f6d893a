//! News: what the shell's threads and librdkafka's callbacks tell the owner, and the threads themselves.
//!
//! A callback does nothing but push to the list and, if it was empty, call the owner's waker: it may run while
//! librdkafka holds a queue's lock, so nothing here calls librdkafka, and no other lock is taken below the list's.

use crate::brokers::{Answer, Failure, Token, Told};
use airmail_log::Waker;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

/// Reasons for which nothing can be stored at the moment.
#[derive(Debug, Default)]
struct Trouble {
    /// The producer has failed, and there is no other yet.
    fatal: Option<String>,
    /// No broker is there.
    down: Option<String>,
}

/// Everything that the owner and the threads share.
pub(super) struct News {
    waker: Waker,
    told: Mutex<Vec<Told>>,
    trouble: Mutex<Trouble>,
    closing: AtomicBool,
    running: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News")
            .field("told", &self.told.lock().len())
            .field("trouble", &*self.trouble.lock())
            .field("closing", &self.closing)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl News {
    /// Begins with no threads and nothing to tell.
    pub(super) fn new(waker: Waker) -> Arc<News> {
        Arc::new(News {
            waker,
            told: Mutex::new(Vec::new()),
            trouble: Mutex::default(),
            closing: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            threads: Mutex::new(Vec::new()),
        })
    }

    /// Adds something to be told, and wakes the owner if there was nothing yet.
    pub(super) fn tell(&self, news: Told) {
        let first = {
            let mut told = self.told.lock();
            told.push(news);
            told.len() == 1
        };
        if first {
            (self.waker)();
        }
    }

    /// Wakes the owner.
    pub(super) fn wake(&self) {
        (self.waker)();
    }

    /// Tells the answer to a question or an order.
    pub(super) fn answer(&self, token: Token, answer: Answer) {
        self.tell(Told::Answered { token, answer });
    }

    /// Tells that a question or an order has failed.
    pub(super) fn fail(&self, token: Token, failure: Failure) {
        self.answer(token, Answer::Failed(failure));
    }

    /// Moves all that is to be told behind `told`.
    pub(super) fn take(&self, told: &mut Vec<Told>) {
        told.append(&mut self.told.lock());
    }

    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.told.lock().is_empty()
    }

    /// Notes that no broker is there.
    pub(super) fn note_down(&self, why: &str) {
        self.trouble.lock().down = Some(why.to_owned());
    }

    /// Notes that the producer has failed.
    pub(super) fn note_fatal(&self, why: &str) {
        self.trouble
            .lock()
            .fatal
            .get_or_insert_with(|| why.to_owned());
    }

    /// Notes that there is another producer in place of the one that has failed.
    pub(super) fn note_renewed(&self) {
        self.trouble.lock().fatal = None;
    }

    /// Notes that a broker has answered.
    pub(super) fn note_answer(&self) {
        self.trouble.lock().down = None;
    }

    /// Whether no broker was there when one was last looked for.
    pub(super) fn is_down(&self) -> bool {
        self.trouble.lock().down.is_some()
    }

    /// The reason for which nothing can be stored, if there is one.
    pub(super) fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.fatal.clone().or_else(|| trouble.down.clone())
    }

    /// The producer's failure, until there is another.
    pub(super) fn fatal(&self) -> Option<String> {
        self.trouble.lock().fatal.clone()
    }

    /// Asks all threads to end.
    pub(super) fn begin_closing(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Whether threads are to end.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Starts a thread that [`join`](News::join) will join.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn spawn(
        self: &Arc<News>,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(Arc::clone(self));
        // Where the thread cannot be had, `running` is dropped with the closure.
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            let _running = running;
            work();
        })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Whether no thread has anything more to do.
    pub(super) fn are_threads_done(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// Waits for the end of all threads.
    pub(super) fn join(&self) {
        let threads = mem::take(&mut *self.threads.lock());
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of Kafka's client has panicked");
            }
        }
    }
}

/// A thread that runs; wakes the owner at its end, who may wait for it.
struct Running(Arc<News>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        (self.0.waker)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_woken_for_the_first_news_alone_and_for_the_end_of_a_thread() {
        let woken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&woken);
        let news = News::new(Arc::new(move || {
            counted.fetch_add(1, Ordering::AcqRel);
        }));
        news.fail(Token(1), Failure::TimedOut);
        news.fail(Token(2), Failure::NoTopic);
        assert_eq!(woken.load(Ordering::Acquire), 1);
        let mut told = Vec::new();
        news.take(&mut told);
        assert_eq!(told.len(), 2);
        assert!(news.is_empty());

        let telling = Arc::clone(&news);
        news.spawn("kafka-test", move || {
            telling.fail(Token(3), Failure::TimedOut);
        })
        .unwrap();
        news.join();
        assert!(news.are_threads_done());
        assert_eq!(woken.load(Ordering::Acquire), 3);
    }

    #[test]
    fn a_failure_of_the_producer_lasts_until_there_is_another() {
        let news = News::new(Arc::new(|| ()));
        news.note_down("no broker");
        assert_eq!(news.trouble().as_deref(), Some("no broker"));
        news.note_answer();
        assert_eq!(news.trouble(), None);
        news.note_fatal("fenced");
        news.note_fatal("again");
        news.note_answer();
        assert_eq!(news.trouble().as_deref(), Some("fenced"));
        news.note_renewed();
        assert_eq!(news.trouble(), None);
    }
}
