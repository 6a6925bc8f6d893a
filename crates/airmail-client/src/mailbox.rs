//! Mailboxes: accounts put messages in queues, and readers take them out, oldest first.
//!
//! Begin at [`Mailbox`]. The types of queues and messages are those that a node's store uses, too.

mod messages;

use crate::api::Answer;
use crate::context::ClientContext;
use crate::nodes::Node;
use airmail_model::Error;
use airmail_proto::mailbox as translate;
use airmail_proto::v1;
use bytes::Bytes;
use std::sync::Arc;

#[doc(no_inline)]
pub use airmail_model::mailbox::directory::LIST_MAX;
#[doc(no_inline)]
pub use airmail_model::mailbox::message::{
    ANSWER_BYTES_MAX, BATCH_MAX, CONTENT_BYTES_MAX, KEY_BYTES_MAX, PRIORITY_MAX, WAIT_MS_MAX,
};
#[doc(no_inline)]
pub use airmail_model::mailbox::{
    Account, AccountId, Counts, LeaseId, Message, MessageId, Name, Outgoing, Queue, QueueId,
    QueueSettings, Receipt, Receive, Recipients, Selection, Settle, Take,
};

/// A node's mailboxes. Cheap to clone; all clones share one connection.
///
/// A connection carries 1,024 requests at once, readers that wait among them; further ones wait for
/// their turn. A program with more readers connects more than once.
///
/// A change whose answer is lost with the connection gives `OUTCOME_UNKNOWN`: it was done, or not.
/// Every request may also give `MAILBOXES_AWAY` (the node's database does not answer; nothing was
/// done), `OVERLOADED`, `SHUTTING_DOWN` and `DISCONNECTED`, each after it was waited for
/// ([`ClientBuilder::call_timeout`](crate::ClientBuilder::call_timeout)), and `INTERNAL`.
///
/// ```no_run
/// # async fn example() -> Result<(), airmail_model::Error> {
/// use airmail_client::mailbox::{Recipients, Mailbox, Outgoing, QueueSettings, Receive, Take};
/// use std::time::Duration;
///
/// let mailbox = Mailbox::connect("airmail://127.0.0.1:7400").await?;
/// let shop = mailbox.create_account("shop").await?;
/// let kitchen = mailbox.create_account("kitchen").await?;
/// let orders = mailbox.create_queue("orders", QueueSettings::default()).await?;
/// mailbox.send(Outgoing::new(orders, shop, Recipients::Direct(kitchen), "a soup")).await?;
///
/// // Nobody else gets it for half a minute; then it is handed out again, unless acknowledged.
/// let request = Receive::new(orders, kitchen).take(Take::Lease { lease_ms: 30_000 });
/// for message in mailbox.receive(request, Duration::from_secs(5)).await? {
///     println!("cook {:?}", message.content);
///     mailbox.acknowledge(message.receipt()).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mailbox {
    shared: Arc<ClientContext>,
}

impl Mailbox {
    pub(crate) fn new(shared: Arc<ClientContext>) -> Mailbox {
        Mailbox { shared }
    }

    /// Makes a request that changes nothing; it is made again if its answer is lost.
    async fn read<R: Clone + Sync, A>(
        &self,
        call: fn(Node, R) -> Answer<'static, A>,
        request: R,
    ) -> Result<A, Error> {
        self.shared.call(true, call, request).await
    }

    /// Makes a request that changes something; if its answer is lost, the outcome is not known.
    async fn change<R: Clone + Sync, A>(
        &self,
        call: fn(Node, R) -> Answer<'static, A>,
        request: R,
    ) -> Result<A, Error> {
        self.shared.call(false, call, request).await
    }

    /// Gives back what it was given: whether a node answers. Its database is not asked.
    ///
    /// # Errors
    /// Those of all requests.
    pub async fn ping(&self, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        let payload = payload.into();
        let request = v1::PingRequest { payload };
        Ok(self.read(Node::ping, request).await?.payload)
    }

    /// Creates an account.
    ///
    /// # Errors
    /// `ACCOUNT_NAME_EXISTS`; `INVALID_ARGUMENT` for its name.
    pub async fn create_account(&self, name: &str) -> Result<AccountId, Error> {
        let name = name.to_owned();
        let request = v1::CreateAccountRequest { name };
        Ok(AccountId(
            self.change(Node::create_account, request).await?.id,
        ))
    }

    /// Deletes an account; with `force`, also all messages to and from it.
    ///
    /// # Errors
    /// `ACCOUNT_NOT_FOUND`; `ACCOUNT_NOT_EMPTY` if there are such messages, without `force`.
    pub async fn delete_account(&self, account: AccountId, force: bool) -> Result<(), Error> {
        let id = account.0;
        let request = v1::DeleteAccountRequest { id, force };
        self.change(Node::delete_account, request).await.map(drop)
    }

    /// The account of a name.
    ///
    /// # Errors
    /// `ACCOUNT_NOT_FOUND`; `INVALID_ARGUMENT` for what is no name.
    pub async fn find_account(&self, name: &str) -> Result<AccountId, Error> {
        let name = name.to_owned();
        let request = v1::FindAccountRequest { name };
        Ok(AccountId(self.read(Node::find_account, request).await?.id))
    }

    /// Accounts, by number. The page after one that is full is [`Selection::After`] its last.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for more than [`LIST_MAX`] at once.
    pub async fn accounts(&self, selection: Selection<AccountId>) -> Result<Vec<Account>, Error> {
        selection.check()?;
        let request = translate::accounts_to_proto(selection);
        let accounts = self
            .read(Node::list_accounts, request)
            .await?
            .accounts
            .into_iter();
        accounts.map(translate::account_from_proto).collect()
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
        let request = v1::CreateQueueRequest {
            name: name.to_owned(),
            settings: Some(translate::settings_to_proto(settings)),
        };
        Ok(QueueId(self.change(Node::create_queue, request).await?.id))
    }

    /// Deletes a queue; with `force`, also its messages.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`; `QUEUE_NOT_EMPTY` if it has messages, without `force`, or while it is for
    /// the dead letters of another.
    pub async fn delete_queue(&self, queue: QueueId, force: bool) -> Result<(), Error> {
        let id = queue.0;
        let request = v1::DeleteQueueRequest { id, force };
        self.change(Node::delete_queue, request).await.map(drop)
    }

    /// The queue of a name.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`; `INVALID_ARGUMENT` for what is no name.
    pub async fn find_queue(&self, name: &str) -> Result<QueueId, Error> {
        let name = name.to_owned();
        let request = v1::FindQueueRequest { name };
        Ok(QueueId(self.read(Node::find_queue, request).await?.id))
    }

    /// Queues, by number. The page after one that is full is [`Selection::After`] its last.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for more than [`LIST_MAX`] at once.
    pub async fn queues(&self, selection: Selection<QueueId>) -> Result<Vec<Queue>, Error> {
        selection.check()?;
        let request = translate::queues_to_proto(selection);
        let queues = self
            .read(Node::list_queues, request)
            .await?
            .queues
            .into_iter();
        queues.map(translate::queue_from_proto).collect()
    }

    /// Removes all messages of a queue, also the delayed and the leased; how many.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`.
    pub async fn purge(&self, queue: QueueId) -> Result<u64, Error> {
        let request = v1::PurgeQueueRequest { id: queue.0 };
        Ok(self.change(Node::purge_queue, request).await?.messages)
    }

    /// Counts the messages of a queue.
    ///
    /// # Errors
    /// `QUEUE_NOT_FOUND`.
    pub async fn counts(&self, queue: QueueId) -> Result<Counts, Error> {
        let request = v1::CountMessagesRequest { queue: queue.0 };
        Ok(translate::counts_from_proto(
            self.read(Node::count_messages, request).await?,
        ))
    }

    /// The queues that hold something for an account, or a broadcast.
    ///
    /// # Errors
    /// `NO_QUEUES_FOUND`.
    pub async fn queues_for(&self, recipients: Recipients) -> Result<Vec<QueueId>, Error> {
        let reader = translate::recipients_to_proto(recipients);
        let request = v1::FindQueuesRequest { reader };
        let queues = self.read(Node::find_queues, request).await?.queues;
        Ok(queues.into_iter().map(QueueId).collect())
    }
}
