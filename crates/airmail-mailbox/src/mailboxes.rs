//! Mailboxes as a node uses them: a store with every argument checked before, its errors translated to
//! those that users see, and readers that wait until there is a message.

use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{
    Counts, Message, Outgoing, Receipt, Receive, Recipients, Settle, Take, WAIT_MS_MAX, check_batch,
};
use crate::store::{Account, MailboxStore, Queue, QueueSettings, Selection, StoreLoad};
use airmail_model::{Error, ErrorCode, bug};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Mailboxes on a store. Cheap to clone.
///
/// Every method may also give the error of a [`StoreFailure`](crate::StoreFailure).
///
/// # Cancel safety
/// Dropping a future gives its answer up, not the request: a message that was being removed may be
/// gone. A reader that may be interrupted takes leases.
#[derive(Clone, Debug)]
pub struct Mailboxes {
    store: Arc<dyn MailboxStore>,
    /// True when readers may no longer wait.
    stopping: Arc<watch::Sender<bool>>,
}

impl Mailboxes {
    /// Makes mailboxes of a store.
    #[must_use]
    pub fn new(store: Arc<dyn MailboxStore>) -> Mailboxes {
        Mailboxes {
            store,
            stopping: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Returns its argument, which shows that the node answers. The store is not asked.
    #[must_use]
    pub fn ping(&self, payload: Bytes) -> Bytes {
        payload
    }

    /// Creates an account.
    ///
    /// # Errors
    /// `ACCOUNT_NAME_EXISTS`; `INVALID_ARGUMENT` for its name.
    pub async fn create_account(&self, name: &str) -> Result<AccountId, Error> {
        let name = Name::new("account", name)?;
        Ok(self.store.create_account(name).await?)
    }

    /// Deletes an account; with `force`, also all messages to and from it.
    ///
    /// # Errors
    /// `ACCOUNT_NOT_FOUND`; `ACCOUNT_NOT_EMPTY` if there are such messages, without `force`.
    pub async fn delete_account(&self, account: AccountId, force: bool) -> Result<(), Error> {
        Ok(self.store.delete_account(account, force).await?)
    }

    /// Finds an account by its name.
    ///
    /// # Errors
    /// `ACCOUNT_NOT_FOUND`; `INVALID_ARGUMENT` if the name is malformed.
    pub async fn find_account(&self, name: &str) -> Result<AccountId, Error> {
        let name = Name::new("account", name)?;
        Ok(self.store.find_account(name).await?)
    }

    /// Lists accounts, by number.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for too many at once.
    pub async fn accounts(&self, selection: Selection<AccountId>) -> Result<Vec<Account>, Error> {
        selection.check()?;
        Ok(self.store.accounts(selection).await?)
    }

    /// Creates a queue.
    ///
    /// # Errors
    /// `QUEUE_NAME_EXISTS`; `QUEUE_NOT_FOUND` if the queue for its dead letters does not exist;
    /// `INVALID_ARGUMENT` for its name, or for a bound on deliveries without a queue for dead letters.
    pub async fn create_queue(
        &self,
        name: &str,
        settings: QueueSettings,
    ) -> Result<QueueId, Error> {
        settings.check()?;
        let name = Name::new("queue", name)?;
        Ok(self.store.create_queue(name, settings).await?)
    }

    /// Deletes a queue; with `force`, also its messages.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`; `QUEUE_NOT_EMPTY` if it has messages, without `force`, or while it is for
    /// the dead letters of another.
    pub async fn delete_queue(&self, queue: QueueId, force: bool) -> Result<(), Error> {
        Ok(self.store.delete_queue(queue, force).await?)
    }

    /// Finds a queue by its name.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`; `INVALID_ARGUMENT` if the name is malformed.
    pub async fn find_queue(&self, name: &str) -> Result<QueueId, Error> {
        let name = Name::new("queue", name)?;
        Ok(self.store.find_queue(name).await?)
    }

    /// Lists queues, by number.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for too many at once.
    pub async fn queues(&self, selection: Selection<QueueId>) -> Result<Vec<Queue>, Error> {
        selection.check()?;
        Ok(self.store.queues(selection).await?)
    }

    /// Removes all messages of a queue and returns how many.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`.
    pub async fn purge(&self, queue: QueueId) -> Result<u64, Error> {
        Ok(self.store.purge(queue).await?)
    }

    /// Counts the messages of a queue.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`.
    pub async fn counts(&self, queue: QueueId) -> Result<Counts, Error> {
        Ok(self.store.counts(queue).await?)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`, `MESSAGE_TOO_LARGE`, `INVALID_ARGUMENT`.
    pub async fn send(&self, message: Outgoing) -> Result<MessageId, Error> {
        let mut results = self.send_all(vec![message]).await?;
        results.pop().unwrap_or_else(|| Err(without_result()))
    }

    /// Sends messages; each succeeds or fails by itself, as in [`Mailboxes::send`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for none or too many.
    pub async fn send_all(
        &self,
        messages: Vec<Outgoing>,
    ) -> Result<Vec<Result<MessageId, Error>>, Error> {
        check_batch("messages", messages.len())?;
        let checked: Vec<Result<(), Error>> = messages.iter().map(Outgoing::check).collect();
        let mut good = messages;
        let mut verdicts = checked.iter();
        good.retain(|_| verdicts.next().is_some_and(Result::is_ok));
        let mut sent = if good.is_empty() {
            Vec::new().into_iter()
        } else {
            self.store.send(good).await?.into_iter()
        };
        let each = checked.into_iter().map(|checked| match checked {
            Ok(()) => match sent.next() {
                Some(result) => result.map_err(Error::from),
                None => Err(without_result()),
            },
            Err(error) => Err(error),
        });
        Ok(each.collect())
    }

    /// Hands out the oldest messages of an inbox: 1 to `count` of them, and no more than have
    /// [`ANSWER_BYTES_MAX`](crate::message::ANSWER_BYTES_MAX) together. If there are none, waits for
    /// one for up to `wait`, at most an hour.
    ///
    /// # Errors
    /// `QUEUE_IS_EMPTY`, `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`, `INVALID_ARGUMENT`;
    /// `SHUTTING_DOWN` if it waited when waits were ended.
    pub async fn receive(&self, request: Receive, wait: Duration) -> Result<Vec<Message>, Error> {
        request.check()?;
        let deadline = Instant::now() + wait.min(Duration::from_millis(WAIT_MS_MAX));
        let mut found = self.store.receive(request).await?;
        if found.is_empty() && !wait.is_zero() {
            found = self.wait_for(request, deadline).await?;
        }
        if found.is_empty() {
            return Err(Error::new(ErrorCode::QueueIsEmpty)
                .field("queue")
                .value(request.queue));
        }
        Ok(found)
    }

    async fn wait_for(&self, request: Receive, deadline: Instant) -> Result<Vec<Message>, Error> {
        let waiter = self.store.waiter(request.inbox()).await?;
        let mut stopping = self.stopping.subscribe();
        loop {
            let notified = waiter.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let found = self.store.receive(request).await;
            // A reader that leaves the message where it is passes the notification on.
            if found.is_err()
                || (request.take == Take::Peek && found.as_ref().is_ok_and(|f| !f.is_empty()))
            {
                waiter.pass_on();
            }
            let found = found?;
            if !found.is_empty() {
                return Ok(found);
            }
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => {
                    return Err(Error::new(ErrorCode::ShuttingDown));
                }
                () = notified => {}
                () = sleep_until(deadline) => return Ok(found),
            }
        }
    }

    /// Ends all waits: readers that wait get `SHUTTING_DOWN`, and so do those that would begin to. All
    /// else goes on.
    pub fn end_waits(&self) {
        self.stopping.send_replace(true);
    }

    /// Returns the store's load; see [`MailboxStore::load`].
    #[must_use]
    pub fn load(&self) -> StoreLoad {
        self.store.load()
    }

    /// Shows one message, by its number.
    ///
    /// # Errors
    /// `NO_MESSAGE_FOUND`; `NO_PERMISSION_TO_READ` if it is for another account.
    pub async fn look_up(&self, message: MessageId, reader: AccountId) -> Result<Message, Error> {
        let found = self.store.look_up(message, reader).await?;
        found.ok_or_else(|| {
            Error::new(ErrorCode::NoMessageFound)
                .field("message")
                .value(message)
        })
    }

    /// Shows the oldest message from `sender` to `reader`, in any queue.
    ///
    /// # Errors
    /// `NO_MESSAGE_FOUND`, `ACCOUNT_NOT_FOUND`.
    pub async fn find_from(&self, sender: AccountId, reader: AccountId) -> Result<Message, Error> {
        let found = self.store.find_from(sender, reader).await?;
        found.ok_or_else(|| {
            Error::new(ErrorCode::NoMessageFound)
                .field("from")
                .value(sender)
        })
    }

    /// Lists the queues that hold a message for `recipients`.
    ///
    /// # Errors
    /// `NO_QUEUES_FOUND`.
    pub async fn queues_for(&self, recipients: Recipients) -> Result<Vec<QueueId>, Error> {
        let found = self.store.queues_for(recipients).await?;
        if found.is_empty() {
            return Err(Error::new(ErrorCode::NoQueuesFound));
        }
        Ok(found)
    }

    /// Acknowledges, extends or releases leased messages; each succeeds or fails by itself, with
    /// `LEASE_ENDED`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`.
    pub async fn settle(
        &self,
        receipts: Vec<Receipt>,
        what: Settle,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        check_batch("receipts", receipts.len())?;
        what.check()?;
        let settled = self.store.settle(receipts, what).await?.into_iter();
        Ok(settled.map(|result| result.map_err(Error::from)).collect())
    }

    /// Finishes what was begun; see [`MailboxStore::close`].
    ///
    /// # Errors
    /// The error of a [`StoreFailure`](crate::StoreFailure).
    pub async fn close(&self) -> Result<(), Error> {
        Ok(self.store.close().await?)
    }
}

/// The error of an item for which the store gave no result.
fn without_result() -> Error {
    bug!("a store gave fewer results than it was given items");
    Error::new(ErrorCode::Internal)
}
