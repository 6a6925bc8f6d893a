//! The queues between the shard's thread and a journal's file threads: waiting operations, and
//! waiting completions.
//!
//! Operations that change files go to one of two writers by the file's [`Lane`], so everything
//! about one file is done by one thread, in order of submission.
//!
//! The shard's thread never waits here longer than for a lock that is held to move items. The
//! journal bounds its operations under way; [`Queue::BOUND`] is the backstop behind it: an
//! operation beyond it is answered at once as `ResourceBusy`, undone.

use crate::contract::Waker;
use crate::files::{FileDone, FileName, FileOp, FileToken};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;

/// An operation and where its answer goes.
pub(super) type Order = (FileToken, FileOp);

/// The writer that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Commits go here, and whatever is quick.
    Commits,
    /// Indexes and checkpoints: new files, whose making takes many times as long as a commit, and
    /// for which nobody waits.
    Derived,
}

impl Lane {
    fn of(op: &FileOp) -> Lane {
        let derived = |name: &FileName| name.starts_with("idx-") || name.starts_with("checkpoint-");
        match op {
            FileOp::Create { name } | FileOp::Write { name, .. } | FileOp::Remove { name }
                if derived(name) =>
            {
                Lane::Derived
            }
            _ => Lane::Commits,
        }
    }
}

/// Operations to threads, completions back.
pub(super) struct Queue {
    orders: Mutex<Orders>,
    /// The writers wait here, each at its own.
    to_write: [Condvar; 2],
    /// The workers wait here.
    to_work: Condvar,
    done: Mutex<Vec<FileDone>>,
    waker: Waker,
}

#[derive(Default)]
struct Orders {
    /// The writers' queues, by lane.
    writes: [Writes; 2],
    reads: VecDeque<Order>,
    fills: VecDeque<Order>,
    /// A fill is under way; there is one at a time, so that reads always have a thread.
    filling: bool,
    closed: bool,
}

/// Operations that wait for one writer.
#[derive(Default)]
struct Writes {
    /// The writer sleeps. It is woken once, and takes all that is there by then.
    asleep: bool,
    /// Orders in the order of submission: creates, writes, renames, removes.
    waiting: VecDeque<Order>,
}

impl Queue {
    /// Operations that may wait for a thread.
    pub(super) const BOUND: usize = 16 * 1024;

    pub(super) fn new(waker: Waker) -> Queue {
        Queue {
            orders: Mutex::default(),
            to_write: [const { Condvar::new() }; 2],
            to_work: Condvar::new(),
            done: Mutex::default(),
            waker,
        }
    }

    /// Hands an operation to the thread that does its kind.
    pub(super) fn submit(&self, token: FileToken, op: FileOp) {
        let mut orders = self.orders.lock();
        let writes: usize = orders.writes.iter().map(|of| of.waiting.len()).sum();
        let waiting = writes + orders.reads.len() + orders.fills.len();
        if waiting >= Queue::BOUND {
            drop(orders);
            let error = io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("{waiting} file operations wait already"),
            );
            return self.finish([(token, Err(error))]);
        }
        match op {
            FileOp::Read { .. } => {
                orders.reads.push_back((token, op));
                self.to_work.notify_one();
            }
            FileOp::Fill { .. } => {
                orders.fills.push_back((token, op));
                self.to_work.notify_one();
            }
            _ => {
                let lane = Lane::of(&op) as usize;
                let writes = &mut orders.writes[lane];
                writes.waiting.push_back((token, op));
                let wake = std::mem::take(&mut writes.asleep);
                // It would wake up only to wait for the lock.
                drop(orders);
                if wake {
                    self.to_write[lane].notify_one();
                }
            }
        }
    }

    /// Everything a lane has to write, into `out`; waits for some. False: there will be no more.
    pub(super) fn writes(&self, lane: Lane, out: &mut Vec<Order>) -> bool {
        let lane = lane as usize;
        let mut orders = self.orders.lock();
        while orders.writes[lane].waiting.is_empty() {
            if orders.closed {
                return false;
            }
            orders.writes[lane].asleep = true;
            self.to_write[lane].wait(&mut orders);
        }
        out.extend(orders.writes[lane].waiting.drain(..));
        true
    }

    /// The next read or fill; waits for one. `None`: there will be no more.
    pub(super) fn work(&self) -> Option<Order> {
        let mut orders = self.orders.lock();
        loop {
            if !orders.filling
                && let Some(fill) = orders.fills.pop_front()
            {
                orders.filling = true;
                return Some(fill);
            }
            if let Some(read) = orders.reads.pop_front() {
                return Some(read);
            }
            if orders.closed && orders.fills.is_empty() {
                return None;
            }
            self.to_work.wait(&mut orders);
        }
    }

    /// The fill that [`Queue::work`] gave out has ended.
    pub(super) fn filled(&self) {
        self.orders.lock().filling = false;
        self.to_work.notify_all();
    }

    /// Finishes the submitted operations; then the threads end.
    pub(super) fn close(&self) {
        self.orders.lock().closed = true;
        for writer in &self.to_write {
            writer.notify_all();
        }
        self.to_work.notify_all();
    }

    /// Answers operations, and wakes the shard.
    pub(super) fn finish(&self, results: impl IntoIterator<Item = (FileToken, io::Result<Bytes>)>) {
        let results = results.into_iter();
        self.done
            .lock()
            .extend(results.map(|(token, result)| FileDone::new(token, result)));
        (self.waker)();
    }

    /// Answers a read.
    pub(super) fn finish_read(&self, done: FileDone) {
        self.done.lock().push(done);
        (self.waker)();
    }

    /// Takes the answers that are there.
    pub(super) fn poll(&self, out: &mut Vec<FileDone>) {
        out.append(&mut self.done.lock());
    }
}

/// The error of an operation on `name`, of the kind that the system gave.
pub(super) fn failed(what: &str, name: &FileName, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {name}: {error}"))
}
