//! The mailboxes as they are used: a store, with every argument checked, nothing found told by its
//! code, and readers that wait.

use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{
    Counts, Message, Outgoing, Receipt, Receive, Recipients, Settle, Take, WAIT_MS_MAX, check_batch,
};
use crate::store::{Account, Load, MailboxStore, Queue, QueueSettings, Which};
use airmail_model::{Error, ErrorCode};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Mailboxes on a store. Cheap to clone.
///
/// Every method may also give the errors that all requests of a [`MailboxStore`] share.
///
/// # Cancel safety
/// Dropping a future gives its answer up, not the request: a message that was being removed may be
/// gone. Who may be interrupted takes leases.
#[derive(Clone, Debug)]
pub struct Mailboxes {
    store: Arc<dyn MailboxStore>,
    /// True when nobody is to wait any more.
    stopping: Arc<watch::Sender<bool>>,
}

impl Mailboxes {
    /// Mailboxes on `store`.
    #[must_use]
    pub fn new(store: Arc<dyn MailboxStore>) -> Mailboxes {
        Mailboxes {
            store,
            stopping: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Gives back what it was given: whether the node answers. The store is not asked.
    #[must_use]
    pub fn ping(&self, payload: Bytes) -> Bytes {
        payload
    }

    /// Creates an account.
    ///
    /// # Errors
    /// `ACCOUNT_NAME_EXISTS`; `INVALID_ARGUMENT` for its name.
    pub async fn create_account(&self, name: &str) -> Result<AccountId, Error> {
        self.store.create_account(Name::new("account", name)?).await
    }

    /// Deletes an account; with `force`, also all messages to and from it.
    ///
    /// # Errors
    /// `ACCOUNT_NOT_FOUND`; `ACCOUNT_NOT_EMPTY` if there are such messages, without `force`.
    pub async fn delete_account(&self, account: AccountId, force: bool) -> Result<(), Error> {
        self.store.delete_account(account, force).await
    }

    /// The account of a name.
    ///
    /// # Errors
    /// `ACCOUNT_NOT_FOUND`; `INVALID_ARGUMENT` for what is no name.
    pub async fn find_account(&self, name: &str) -> Result<AccountId, Error> {
        self.store.find_account(Name::new("account", name)?).await
    }

    /// Accounts, by number.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for too many at once.
    pub async fn accounts(&self, which: Which<AccountId>) -> Result<Vec<Account>, Error> {
        which.check()?;
        self.store.accounts(which).await
    }

    /// Creates a queue.
    ///
    /// # Errors
    /// `QUEUE_NAME_EXISTS`; `QUEUE_NOT_FOUND` for its dead letters'; `INVALID_ARGUMENT` for its
    /// name, or for a bound on deliveries without a queue for dead letters.
    pub async fn create_queue(
        &self,
        name: &str,
        settings: QueueSettings,
    ) -> Result<QueueId, Error> {
        settings.check()?;
        let name = Name::new("queue", name)?;
        self.store.create_queue(name, settings).await
    }

    /// Deletes a queue; with `force`, also its messages.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`; `QUEUE_NOT_EMPTY` if it has messages, without `force`, or while it is for
    /// the dead letters of another.
    pub async fn delete_queue(&self, queue: QueueId, force: bool) -> Result<(), Error> {
        self.store.delete_queue(queue, force).await
    }

    /// The queue of a name.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`; `INVALID_ARGUMENT` for what is no name.
    pub async fn find_queue(&self, name: &str) -> Result<QueueId, Error> {
        self.store.find_queue(Name::new("queue", name)?).await
    }

    /// Queues, by number.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for too many at once.
    pub async fn queues(&self, which: Which<QueueId>) -> Result<Vec<Queue>, Error> {
        which.check()?;
        self.store.queues(which).await
    }

    /// Removes all messages of a queue; how many.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`.
    pub async fn purge(&self, queue: QueueId) -> Result<u64, Error> {
        self.store.purge(queue).await
    }

    /// How many messages a queue has.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`.
    pub async fn counts(&self, queue: QueueId) -> Result<Counts, Error> {
        self.store.counts(queue).await
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`, `MESSAGE_TOO_LARGE`, `INVALID_ARGUMENT`.
    pub async fn send(&self, message: Outgoing) -> Result<MessageId, Error> {
        let mut results = self.send_all(vec![message]).await?;
        results
            .pop()
            .unwrap_or_else(|| Err(Error::new(ErrorCode::Internal)))
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
            Ok(()) => sent
                .next()
                .unwrap_or_else(|| Err(Error::new(ErrorCode::Internal))),
            Err(error) => Err(error),
        });
        Ok(each.collect())
    }

    /// The oldest messages for a reader: 1 to as many as asked for, and no more than have
    /// [`ANSWER_BYTES_MAX`](crate::message::ANSWER_BYTES_MAX) together. If there are none, waits for
    /// them for up to `wait`, at most an hour.
    ///
    /// # Errors
    /// `QUEUE_IS_EMPTY`, `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`, `INVALID_ARGUMENT`;
    /// `SHUTTING_DOWN` for who waited when waits were ended.
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
        let watch = self.store.watch(request.inbox()).await?;
        let mut stopping = self.stopping.subscribe();
        loop {
            let rung = watch.rung();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let found = self.store.receive(request).await;
            // Who does not take what the ring was for lets another look.
            if found.is_err()
                || (request.take == Take::Peek && found.as_ref().is_ok_and(|f| !f.is_empty()))
            {
                watch.pass_on();
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
                () = rung => {}
                () = sleep_until(deadline) => return Ok(found),
            }
        }
    }

    /// From now on no reader waits: those that do get `SHUTTING_DOWN`, and so does who asks for a
    /// message that is not there. All else goes on.
    pub fn end_waits(&self) {
        self.stopping.send_replace(true);
    }

    /// How much there is to do; see [`MailboxStore::load`].
    #[must_use]
    pub fn load(&self) -> Load {
        self.store.load()
    }

    /// One message by its number, shown.
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

    /// The oldest message from `sender` to `reader`, in any queue, shown.
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

    /// The queues that hold something for recipients.
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
        self.store.settle(receipts, what).await
    }

    /// Finishes what was begun; see [`MailboxStore::close`].
    ///
    /// # Errors
    /// Those of all requests.
    pub async fn close(&self) -> Result<(), Error> {
        self.store.close().await
    }
}
