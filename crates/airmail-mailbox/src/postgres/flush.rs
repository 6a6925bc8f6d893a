//! Answers that wait for the disk.
//!
//! Lanes commit without waiting for it, so that they go on with the next requests meanwhile. What a
//! request has changed is answered only when it is durable: when a commit that waits has been made
//! after it, for what the database writes to its log it writes in order. That commit is a flusher's,
//! on a connection of its own: one for all that has gathered. Answers that rest on no change, such as that a queue is empty, do not wait.
//!
//! A server that crashes forgets commits that were not waited for, so a flush counts only for what
//! was done on the same life of the server. The flushers' connections have a number, and a lane's
//! connection that of the flushers' that were there before it: if the server has crashed since, theirs
//! are gone too. What was done under another number has an unknown outcome.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airmail_model::{Error, ErrorCode};
use futures::future::{join_all, select_all, try_join_all};
use tokio::sync::{Notify, watch};
use tokio_postgres::Row;

use super::Surroundings;
use super::link::Link;
use super::tray::Reply;
use super::work;
use crate::id::MessageId;
use crate::message::{Message, Take};

/// A transaction that writes to the database's log, and so waits for it.
const FLUSH: &str = "SELECT pg_logical_emit_message(true, 'airmail', '')::text";
/// Answers that may wait; more make the lanes wait.
const WAITING_MAX: usize = 4096;
/// While one commit waits for the disk, what is done meanwhile waits for the next one already: the
/// database makes one wait of all commits that come during one.
const FLUSHERS: usize = 3;
const RETRY: Duration = Duration::from_millis(20);

/// An answer that may be given when all before is durable.
#[derive(Debug)]
pub(super) enum Done {
    Send {
        results: Vec<Result<MessageId, Error>>,
        reply: Reply<Vec<Result<MessageId, Error>>>,
    },
    Receive {
        messages: Vec<Message>,
        take: Take,
        reply: Reply<Vec<Message>>,
    },
    Settle {
        results: Vec<Result<(), Error>>,
        reply: Reply<Vec<Result<(), Error>>>,
    },
    Call {
        rows: Vec<Row>,
        reply: Reply<Vec<Row>>,
    },
}

impl Done {
    /// Gives the answer, or the error. Messages whose reader is gone come back.
    fn deliver(self, flushed: &Result<(), Error>) -> Option<(Take, Vec<Message>)> {
        let flushed = flushed.clone();
        match self {
            Done::Send { results, reply } => drop(reply.send(flushed.map(|()| results))),
            Done::Settle { results, reply } => drop(reply.send(flushed.map(|()| results))),
            Done::Call { rows, reply } => drop(reply.send(flushed.map(|()| rows))),
            Done::Receive {
                messages,
                take,
                reply,
            } => {
                if let Err(Ok(orphans)) = reply.send(flushed.map(|()| messages)) {
                    return Some((take, orphans));
                }
            }
        }
        None
    }
}

#[derive(Debug, Default)]
struct Waiting {
    done: Vec<(u64, Done)>,
    closed: bool,
    /// Why there is no connection.
    trouble: String,
}

/// Where lanes put answers for the flusher.
#[derive(Debug)]
pub(super) struct Answers {
    waiting: Mutex<Waiting>,
    filled: Notify,
    room: Notify,
    /// The number of the flusher's connection; 0: there is none.
    life: watch::Sender<u64>,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers {
            waiting: Mutex::default(),
            filled: Notify::new(),
            room: Notify::new(),
            life: watch::Sender::new(0),
        }
    }
}

impl Answers {
    /// Adds an answer to what was done on a connection made in `life`.
    pub(super) fn put(&self, life: u64, done: Done) {
        self.lock().done.push((life, done));
        self.filled.notify_one();
    }

    /// Tells the number of the flusher's connection.
    pub(super) fn life(&self) -> watch::Receiver<u64> {
        self.life.subscribe()
    }

    /// Why there is no connection.
    pub(super) fn trouble(&self) -> String {
        self.lock().trouble.clone()
    }

    /// No more will come.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// Ends when the flusher is not far behind.
    pub(super) async fn room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.lock().done.len() < WAITING_MAX {
                return;
            }
            room.await;
        }
    }

    /// All that waits; none if it is closed.
    async fn next(&self) -> Option<Vec<(u64, Done)>> {
        loop {
            let filled = self.filled.notified();
            {
                let mut waiting = self.lock();
                if !waiting.done.is_empty() {
                    self.room.notify_waiters();
                    return Some(std::mem::take(&mut waiting.done));
                }
                if waiting.closed {
                    self.filled.notify_one();
                    return None;
                }
            }
            filled.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Flushes until the answers are closed.
pub(super) async fn run(with: Arc<Surroundings>) {
    let mut life = 0;
    loop {
        let connecting = (0..FLUSHERS).map(|_| Link::connect(&with.config, None));
        match try_join_all(connecting).await {
            Ok(mut links) => {
                life += 1;
                with.answers.life.send_replace(life);
                let flushing = links
                    .iter_mut()
                    .map(|link| Box::pin(flush(&with, link, life)));
                // Where one ends, all do: they are of one life.
                let (all_done, _, others) = select_all(flushing).await;
                if all_done {
                    join_all(others).await;
                    return;
                }
                with.answers.life.send_replace(0);
                with.answers.lock().trouble = "the connection ended".to_owned();
            }
            Err(error) => {
                tracing::warn!(error, "the database of the mailboxes does not answer");
                with.answers.lock().trouble = error;
                if with.answers.lock().closed {
                    return;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
        for (_, done) in std::mem::take(&mut with.answers.lock().done) {
            done.deliver(&unknown());
        }
        with.answers.room.notify_waiters();
    }
}

/// Says whether it ended because there is nothing more to flush.
async fn flush(with: &Surroundings, link: &mut Link, life: u64) -> bool {
    loop {
        let next = tokio::select! {
            biased;
            () = link.closed() => return false,
            next = with.answers.next() => next,
        };
        let Some(waiting) = next else {
            return true;
        };
        let flushed = link.query(FLUSH, &[]).await;
        let flushed = flushed.map(drop).or_else(|_| unknown());
        for (of_life, done) in waiting {
            if of_life != life {
                done.deliver(&unknown());
            } else if let Some((take, orphans)) = done.deliver(&flushed) {
                work::give_back(link, take, &orphans).await;
            }
        }
        if link.is_closed() {
            return false;
        }
    }
}

/// What was changed may be lost with the server.
fn unknown() -> Result<(), Error> {
    Err(Error::new(ErrorCode::OutcomeUnknown).field("database"))
}
