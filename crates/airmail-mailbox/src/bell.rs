//! Waiting readers: who is rung when there is something for them.
//!
//! A reader takes a [`Watch`], asks the store, and if there was nothing waits to be rung. A ring
//! that comes between asking and waiting is kept. Each ring wakes one watch, the longest waiting;
//! a watch that is dropped with a ring in hand passes it on.

use crate::message::Inbox;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The watches of one node.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    lines: Mutex<BTreeMap<Inbox, Arc<Notify>>>,
}

impl Bell {
    /// A watch on a line.
    pub(crate) fn watch(self: &Arc<Bell>, line: Inbox) -> Watch {
        let mut lines = self.lines.lock();
        let notify = Arc::clone(lines.entry(line).or_default());
        Watch {
            bell: Arc::clone(self),
            line,
            notify,
        }
    }

    /// Wakes up to `count` watches of a line.
    pub(crate) fn ring(&self, line: Inbox, count: usize) {
        let lines = self.lines.lock();
        if let Some(notify) = lines.get(&line) {
            // The map holds one; each watch another. More rings than watches wake nobody else.
            for _ in 0..count.min(Arc::strong_count(notify) - 1) {
                notify.notify_one();
            }
        }
    }

    /// Wakes every watch: something was missed.
    pub(crate) fn ring_all(&self) {
        for line in self.watched() {
            self.ring(line, usize::MAX);
        }
    }

    /// The lines that somebody watches.
    pub(crate) fn watched(&self) -> Vec<Inbox> {
        let lines = self.lines.lock();
        lines.keys().copied().collect()
    }
}

/// A place in the line of those who are rung; see [`crate::MailboxStore::watch`].
#[derive(Debug)]
pub struct Watch {
    bell: Arc<Bell>,
    line: Inbox,
    notify: Arc<Notify>,
}

impl Watch {
    /// Ends when the watch is rung. Begin it (`enable`) before asking the store, so that a ring
    /// between the question and the wait counts.
    pub fn rung(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Lets another be rung in this one's place.
    pub fn pass_on(&self) {
        self.notify.notify_one();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut lines = self.bell.lines.lock();
        // The map's and this one's: nobody else watches.
        if Arc::strong_count(&self.notify) == 2 {
            lines.remove(&self.line);
        }
    }
}
