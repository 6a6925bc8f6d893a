//! The notifier: wakes readers that wait when a message becomes ready for them.
//!
//! A reader registers a [`Waiter`], asks the store, and if there was nothing waits to be woken. A
//! notification between the question and the wait is kept. Each notification wakes one waiter, the one
//! that has waited longest; a waiter that is dropped with a notification in hand passes it on.

use crate::message::Inbox;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The notifier of one store in one node.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    inboxes: Mutex<BTreeMap<Inbox, Arc<Notify>>>,
}

impl Notifier {
    /// Registers a waiter of an inbox.
    pub(crate) fn waiter(self: &Arc<Notifier>, inbox: Inbox) -> Waiter {
        let mut inboxes = self.inboxes.lock();
        let notify = Arc::clone(inboxes.entry(inbox).or_default());
        Waiter {
            notifier: Arc::clone(self),
            inbox,
            notify,
        }
    }

    /// Wakes up to `count` waiters of an inbox.
    pub(crate) fn notify(&self, inbox: Inbox, count: usize) {
        let inboxes = self.inboxes.lock();
        if let Some(notify) = inboxes.get(&inbox) {
            // The map holds one reference and each waiter another. A notification beyond the number of
            // waiters would be kept for one that comes later and has nothing to find.
            for _ in 0..count.min(Arc::strong_count(notify) - 1) {
                notify.notify_one();
            }
        }
    }

    /// Wakes every waiter, because notifications may have been missed.
    pub(crate) fn notify_all(&self) {
        for inbox in self.awaited_inboxes() {
            self.notify(inbox, usize::MAX);
        }
    }

    /// Returns the inboxes that have waiters.
    pub(crate) fn awaited_inboxes(&self) -> Vec<Inbox> {
        let inboxes = self.inboxes.lock();
        inboxes.keys().copied().collect()
    }
}

/// A reader's registration for messages of an inbox; see [`crate::MailboxStore::waiter`].
#[derive(Debug)]
pub struct Waiter {
    notifier: Arc<Notifier>,
    inbox: Inbox,
    notify: Arc<Notify>,
}

impl Waiter {
    /// Waits for a notification. Enable the future (`enable`) before asking the store, so that a
    /// notification between the question and the wait counts.
    pub fn notified(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Wakes another waiter in this one's place.
    pub fn pass_on(&self) {
        self.notify.notify_one();
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut inboxes = self.notifier.inboxes.lock();
        // The map's reference and this one's: there is no other waiter.
        if Arc::strong_count(&self.notify) == 2 {
            inboxes.remove(&self.inbox);
        }
    }
}
