//! The contract of a store: the requests, and for each the errors that it may end in.

use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{Counts, Inbox, Message, Outgoing, Receipt, Receive, Recipients, Settle};
use crate::notifier::Waiter;
use crate::store_error::{
    CreateQueueRefusal, DeleteRefusal, LeaseEnded, NameTaken, NotForReader, NotFound, StoreError,
    StoreFailure,
};
pub use airmail_model::mailbox::directory::{Account, Queue, QueueSettings, Selection};
use futures::future::BoxFuture;
use std::fmt::Debug;

/// The answer of a store, in time. Dropping the future gives up the answer, not the request: what was
/// begun may still be done.
pub type Answer<'a, T, E = StoreFailure> = BoxFuture<'a, Result<T, E>>;

/// The results of sending messages, in their order.
pub type SendResults = Vec<Result<MessageId, NotFound>>;

/// The results of settling leases, in their order.
pub type SettleResults = Vec<Result<(), LeaseEnded>>;

/// The load of a store and the means that it has to work it off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLoad {
    /// Connections for requests that the store may have.
    pub connections_max: usize,
    /// Connections that are up.
    pub connections: usize,
    /// Connections that have a statement under way.
    pub busy: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
    /// Requests that may wait for a connection; further ones are refused.
    pub waiting_max: usize,
    /// Requests done since the start.
    pub requests: u64,
    /// Round trips that these requests took: each carries all requests that were waiting.
    pub round_trips: u64,
    /// Time that all requests together waited for a connection, in microseconds. Only the store on
    /// PostgreSQL measures this and the next.
    pub waited_us: u64,
    /// Time that all round trips together took, in microseconds.
    pub round_trips_us: u64,
}

/// A store of accounts, queues and messages. [`mod@crate::conformance`] is the contract as tests.
///
/// A change that was acknowledged is durable. No message is handed out to two readers: one that was
/// removed is gone for all, one that is leased belongs to its reader until the lease has ended. Of each
/// [`Inbox`] the oldest message is handed out first, higher priorities before lower.
///
/// Arguments have been checked by [`crate::Mailboxes`], through which stores are used.
///
/// # Errors
/// The signature of each method says what it refuses. Beside that, every request may end in a
/// [`StoreFailure`].
pub trait MailboxStore: Debug + Send + Sync + 'static {
    /// Creates an account.
    fn create_account(&self, name: Name) -> Answer<'_, AccountId, StoreError<NameTaken>>;

    /// Deletes an account. With `force`, the messages to and from it are deleted too; without, it must
    /// have none.
    fn delete_account(
        &self,
        account: AccountId,
        force: bool,
    ) -> Answer<'_, (), StoreError<DeleteRefusal>>;

    /// Finds an account by its name.
    fn find_account(&self, name: Name) -> Answer<'_, AccountId, StoreError<NotFound>>;

    /// Lists accounts, by number.
    fn accounts(&self, selection: Selection<AccountId>) -> Answer<'_, Vec<Account>>;

    /// Creates a queue. The queue for its dead letters must exist.
    fn create_queue(
        &self,
        name: Name,
        settings: QueueSettings,
    ) -> Answer<'_, QueueId, StoreError<CreateQueueRefusal>>;

    /// Deletes a queue. With `force`, its messages are deleted too; without, it must have none. A queue
    /// for the dead letters of another is refused with [`NotEmpty`](crate::store_error::NotEmpty) in
    /// either case.
    fn delete_queue(
        &self,
        queue: QueueId,
        force: bool,
    ) -> Answer<'_, (), StoreError<DeleteRefusal>>;

    /// Finds a queue by its name.
    fn find_queue(&self, name: Name) -> Answer<'_, QueueId, StoreError<NotFound>>;

    /// Lists queues, by number.
    fn queues(&self, selection: Selection<QueueId>) -> Answer<'_, Vec<Queue>>;

    /// Removes all messages of a queue, also the delayed and the leased ones, and returns how many.
    fn purge(&self, queue: QueueId) -> Answer<'_, u64, StoreError<NotFound>>;

    /// Counts the messages of a queue, one by one.
    fn counts(&self, queue: QueueId) -> Answer<'_, Counts, StoreError<NotFound>>;

    /// Stores messages; each succeeds or is refused by itself.
    fn send(&self, messages: Vec<Outgoing>) -> Answer<'_, SendResults>;

    /// Hands out the oldest messages that there are, up to
    /// [`ANSWER_BYTES_MAX`](crate::message::ANSWER_BYTES_MAX) bytes, and at least one if there is one.
    /// An empty answer is no error.
    fn receive(&self, request: Receive) -> Answer<'_, Vec<Message>, StoreError<NotFound>>;

    /// Shows one message, unless it is gone.
    fn look_up(
        &self,
        message: MessageId,
        reader: AccountId,
    ) -> Answer<'_, Option<Message>, StoreError<NotForReader>>;

    /// Shows the oldest message from `sender` to `reader`, in any queue.
    fn find_from(
        &self,
        sender: AccountId,
        reader: AccountId,
    ) -> Answer<'_, Option<Message>, StoreError<NotFound>>;

    /// Lists the queues that could hand out a message for `recipients`, by number.
    fn queues_for(&self, recipients: Recipients) -> Answer<'_, Vec<QueueId>>;

    /// Ends, extends or releases leases; each succeeds or is refused by itself.
    fn settle(&self, receipts: Vec<Receipt>, what: Settle) -> Answer<'_, SettleResults>;

    /// Registers a reader that waits for messages of an inbox. From the answer until the waiter is
    /// dropped, each message of the inbox that becomes ready wakes one of the inbox's waiters.
    fn waiter(&self, inbox: Inbox) -> Answer<'_, Waiter>;

    /// Returns the store's load, at once.
    fn load(&self) -> StoreLoad;

    /// Finishes what was begun and ends the store's tasks and threads. Later requests get
    /// [`StoreFailure::Closed`].
    fn close(&self) -> Answer<'_, ()>;
}
