//! The two questions that every publish, subscribe, look into history and admin action passes:
//! may this principal do it, and is there room for it now. Requests of mailboxes pass the first.

use airmail_model::frame::Wanted;
use airmail_model::mailbox::{AccountId, QueueId};
use airmail_model::verdict::Roles;
use airmail_model::{Error, NamespaceId, Now};
use std::sync::Arc;
use std::time::Duration;

/// The caller. Every input that begins something carries one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Principal {
    /// The name it is known by. Empty: anonymous, the only one until authentication is built.
    pub name: String,
    /// Roles that its front door believes it to have. None, but where a node trusts what clients say of themselves.
    pub roles: Roles,
}

/// Grant to somebody who may do what it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Roles by which it gets what is addressed to some roles only. For subscriptions and looks into history; the same for
    /// all topics of a namespace, where the newest grant to a stream counts for all of its subscriptions.
    pub roles: Roles,
}

/// Actions that a caller may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Publish to topics of a namespace.
    Publish(NamespaceId),
    /// Subscribe to a topic, or to a selection of topics.
    Subscribe(NamespaceId, &'a Wanted),
    /// Read the past of a topic, or of a selection of topics.
    History(NamespaceId, &'a Wanted),
    /// List a namespace's topics.
    ListTopics(NamespaceId),
    /// See, create, change or delete namespaces and roles.
    Administer,
    /// Ask something of mailboxes.
    Mailbox(MailboxAction),
}

/// Actions on mailboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxAction {
    /// Whether the node answers.
    Ping,
    /// Create or delete accounts and queues, or purge a queue.
    Administer,
    /// See accounts and queues, how many messages a queue has, or which have something for whom.
    See,
    /// Send to a queue, as this account.
    Send(QueueId, AccountId),
    /// Read from a queue, as this account: what is for it, or a broadcast.
    Receive(QueueId, AccountId),
    /// Look for a message in any queue, as this account.
    Find(AccountId),
    /// Acknowledge, extend or release what one has a lease of.
    Settle,
}

/// Decides who may do what. Called once for each action, by the shards and by the threads that
/// serve mailboxes, several at a time.
pub trait Authorizer: Send + Sync {
    /// Whether `principal` may do `action`, and as who.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` or `UNAUTHENTICATED`, with what was asked.
    fn authorize(&self, principal: &Principal, action: Action<'_>) -> Result<Grant, Error>;
}

impl<A: Authorizer + ?Sized> Authorizer for Arc<A> {
    fn authorize(&self, principal: &Principal, action: Action<'_>) -> Result<Grant, Error> {
        (**self).authorize(principal, action)
    }
}

/// Everyone may do everything, with the roles that its front door believes it to have.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize(&self, principal: &Principal, _: Action<'_>) -> Result<Grant, Error> {
        Ok(Grant {
            roles: principal.roles.clone(),
        })
    }
}

/// Cost of an action to the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Messages published; 1 for anything else.
    pub messages: u32,
    /// Bytes published; 0 for anything else.
    pub bytes: u32,
}

/// Whether there is room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admit {
    /// Now.
    Go,
    /// After this long, kept in order by the node.
    WaitFor(Duration),
    /// Not now; the error says when.
    Refuse(Error),
}

/// Decides what is let in, and when. Quotas and flow control take this place.
pub trait Admission: Send {
    /// Asks for room.
    fn admit(&mut self, now: Now, principal: &Principal, cost: Cost) -> Admit;
}

impl Admission for AllowAll {
    fn admit(&mut self, _: Now, _: &Principal, _: Cost) -> Admit {
        Admit::Go
    }
}
