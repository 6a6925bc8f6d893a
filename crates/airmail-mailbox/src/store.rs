//! The contract of a store.

use crate::bell::Watch;
use crate::id::{AccountId, MessageId, Name, QueueId};
use crate::message::{Counts, Inbox, Message, Outgoing, Receipt, Receive, Recipients, Settle};
use airmail_model::Error;
pub use airmail_model::mailbox::directory::{Account, Queue, QueueSettings, Which};
use futures::future::BoxFuture;
use std::fmt::Debug;

/// What a store answers, in its time. Dropping it gives the answer up, not the request: what was
/// begun may still be done.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// What a store has to do and what it has done, for whoever watches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections for requests that the store may have.
    pub connections_max: usize,
    /// Those that are up.
    pub connections: usize,
    /// Those that have a statement under way.
    pub busy: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
    /// Those that may; more are refused.
    pub waiting_max: usize,
    /// Requests done since the start.
    pub requests: u64,
    /// Round trips that they took, of as many requests each as were waiting.
    pub round_trips: u64,
    /// What all requests together waited for a connection, in microseconds. Only the store on
    /// PostgreSQL tells this and the next.
    pub waited_us: u64,
    /// What all round trips together took, in microseconds.
    pub round_trips_us: u64,
}

/// Where accounts, queues and messages are kept. [`mod@crate::conformance`] is the contract as tests.
///
/// What is acknowledged is durable. Nothing is handed out to two readers: a message that was removed
/// is gone for all, one that is leased is at its reader until the lease has ended. Of each [`Inbox`]
/// the oldest is handed out first, higher priorities before lower.
///
/// Arguments have been checked by [`crate::Mailboxes`], through which stores are used.
///
/// # Errors
/// Each request may end in `MAILBOXES_AWAY`, `MAILBOXES_UNUSABLE` or `OVERLOADED` (nothing was done),
/// `OUTCOME_UNKNOWN` (the database went away in the middle: it was done or not) or `INTERNAL`.
pub trait MailboxStore: Debug + Send + Sync + 'static {
    /// Creates an account. `ACCOUNT_NAME_EXISTS`.
    fn create_account(&self, name: Name) -> Answer<'_, AccountId>;

    /// Deletes an account; with `force`, also the messages to and from it, without which it must
    /// have none. `ACCOUNT_NOT_FOUND`, `ACCOUNT_NOT_EMPTY`.
    fn delete_account(&self, account: AccountId, force: bool) -> Answer<'_, ()>;

    /// The account of a name. `ACCOUNT_NOT_FOUND`.
    fn find_account(&self, name: Name) -> Answer<'_, AccountId>;

    /// Accounts, by number.
    fn accounts(&self, which: Which<AccountId>) -> Answer<'_, Vec<Account>>;

    /// Creates a queue. `QUEUE_NAME_EXISTS`; `QUEUE_NOT_FOUND` for its dead letters'.
    fn create_queue(&self, name: Name, settings: QueueSettings) -> Answer<'_, QueueId>;

    /// Deletes a queue; with `force`, also its messages, without which it must have none.
    /// `QUEUE_NOT_FOUND`; `QUEUE_NOT_EMPTY`, also while another queue's dead letters go there.
    fn delete_queue(&self, queue: QueueId, force: bool) -> Answer<'_, ()>;

    /// The queue of a name. `QUEUE_NOT_FOUND`.
    fn find_queue(&self, name: Name) -> Answer<'_, QueueId>;

    /// Queues, by number.
    fn queues(&self, which: Which<QueueId>) -> Answer<'_, Vec<Queue>>;

    /// Removes all messages of a queue, also the delayed and the leased; how many.
    /// `QUEUE_NOT_FOUND`.
    fn purge(&self, queue: QueueId) -> Answer<'_, u64>;

    /// How many messages a queue has: counts them. `QUEUE_NOT_FOUND`.
    fn counts(&self, queue: QueueId) -> Answer<'_, Counts>;

    /// Stores messages; each succeeds or fails by itself. `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`.
    fn send(&self, messages: Vec<Outgoing>) -> Answer<'_, Vec<Result<MessageId, Error>>>;

    /// The oldest messages that there are, up to
    /// [`ANSWER_BYTES_MAX`](crate::message::ANSWER_BYTES_MAX), at least one if there is one; none is no
    /// error. `QUEUE_NOT_FOUND`, `ACCOUNT_NOT_FOUND`.
    fn receive(&self, request: Receive) -> Answer<'_, Vec<Message>>;

    /// One message, unless it is gone, shown. `NO_PERMISSION_TO_READ` if it is for another.
    fn look_up(&self, message: MessageId, reader: AccountId) -> Answer<'_, Option<Message>>;

    /// The oldest message from `sender` to `reader`, in any queue, shown. `ACCOUNT_NOT_FOUND`.
    fn find_from(&self, sender: AccountId, reader: AccountId) -> Answer<'_, Option<Message>>;

    /// The queues that could hand out something, by number.
    fn queues_for(&self, recipients: Recipients) -> Answer<'_, Vec<QueueId>>;

    /// Ends, lengthens or gives back leases. `LEASE_ENDED` for each that is not the reader's.
    fn settle(&self, receipts: Vec<Receipt>, what: Settle) -> Answer<'_, Vec<Result<(), Error>>>;

    /// From when this is answered until the watch is dropped, each message that can newly be handed
    /// out of `line` rings one of its watches.
    fn watch(&self, line: Inbox) -> Answer<'_, Watch>;

    /// How much there is to do, and with what it is done; at once.
    fn load(&self) -> Load;

    /// Finishes what was begun and ends the store's tasks and threads. Requests that come
    /// afterwards get `SHUTTING_DOWN`.
    fn close(&self) -> Answer<'_, ()>;
}
