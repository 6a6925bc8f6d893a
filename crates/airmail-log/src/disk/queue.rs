//! What the shard's thread and a journal's file threads share: operations that wait, and
//! completions that wait.
//!
//! The shard's thread never waits here longer than for a lock that is held to move items.
//! The journal bounds what it has under way; [`Queue::BOUND`] is the backstop behind it, and what
//! exceeds it is answered at once as `ResourceBusy`, undone.

use crate::files::{FileDone, FileName, FileOp, FileToken};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::files::Waker;

/// An operation and where its answer goes.
pub(super) type Order = (FileToken, FileOp);

/// Operations to threads, completions back.
pub(super) struct Queue {
    orders: Mutex<Orders>,
    /// The writer waits here.
    to_write: Condvar,
    /// The workers wait here.
    to_work: Condvar,
    done: Mutex<Vec<FileDone>>,
    waker: Waker,
}

#[derive(Default)]
struct Orders {
    /// In order of submission: creates, writes, renames, removes.
    writes: VecDeque<Order>,
    reads: VecDeque<Order>,
    fills: VecDeque<Order>,
    /// A fill is under way; there is one at a time, so that reads always have a thread.
    filling: bool,
    closed: bool,
}

impl Queue {
    /// Operations that may wait for a thread.
    pub(super) const BOUND: usize = 16 * 1024;

    pub(super) fn new(waker: Waker) -> Queue {
        Queue {
            orders: Mutex::default(),
            to_write: Condvar::new(),
            to_work: Condvar::new(),
            done: Mutex::default(),
            waker,
        }
    }

    /// Hands an operation to the thread that does its kind.
    pub(super) fn submit(&self, token: FileToken, op: FileOp) {
        let mut orders = lock(&self.orders);
        let waiting = orders.writes.len() + orders.reads.len() + orders.fills.len();
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
                orders.writes.push_back((token, op));
                self.to_write.notify_one();
            }
        }
    }

    /// Everything there is to write, into `out`; waits for some. False: there will be no more.
    pub(super) fn writes(&self, out: &mut Vec<Order>) -> bool {
        let mut orders = lock(&self.orders);
        while orders.writes.is_empty() {
            if orders.closed {
                return false;
            }
            orders = wait(&self.to_write, orders);
        }
        out.extend(orders.writes.drain(..));
        true
    }

    /// The next read or fill; waits for one. `None`: there will be no more.
    pub(super) fn work(&self) -> Option<Order> {
        let mut orders = lock(&self.orders);
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
            orders = wait(&self.to_work, orders);
        }
    }

    /// The fill that [`Queue::work`] gave out has ended.
    pub(super) fn filled(&self) {
        lock(&self.orders).filling = false;
        self.to_work.notify_all();
    }

    /// What was submitted is still done; then the threads end.
    pub(super) fn close(&self) {
        lock(&self.orders).closed = true;
        self.to_write.notify_all();
        self.to_work.notify_all();
    }

    /// Answers operations, and wakes the shard.
    pub(super) fn finish(&self, results: impl IntoIterator<Item = (FileToken, io::Result<Bytes>)>) {
        let results = results.into_iter();
        lock(&self.done).extend(results.map(|(token, result)| FileDone { token, result }));
        (self.waker)();
    }

    /// Takes the answers that are there.
    pub(super) fn poll(&self, out: &mut Vec<FileDone>) {
        out.append(&mut lock(&self.done));
    }
}

/// The error of an operation on `name`, of the kind that the system gave.
pub(super) fn failed(what: &str, name: &FileName, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {name}: {error}"))
}

/// Poisoning says nothing here: no state is left half changed by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let guard = condition.wait(guard);
    guard.unwrap_or_else(PoisonError::into_inner)
}
