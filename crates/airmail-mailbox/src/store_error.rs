//! The errors of stores as types, so that a method's signature says what may become of a request.
//!
//! A request that does not succeed ends in one of two ways. Either the store works and *refuses* it, for
//! a reason that belongs to this request ([`NotFound`], [`NameTaken`] and so on): nothing was done, and the
//! same request is refused again until something changes. Or the store *fails* ([`StoreFailure`]), which
//! may happen to any request. [`StoreError`] is either of the two.
//!
//! What users see is an [`airmail_model::Error`]. The one translation is in `translation`:
//! [`crate::Mailboxes`] applies it, and no store makes such errors. A field that an error names is an
//! argument of the request or a setting of the node.

mod translation;

use crate::id::MessageId;
use std::fmt;
use std::time::Duration;

/// The setting that says which database or file is used.
pub(crate) const URL_SETTING: &str = "mailbox.url";
/// The setting that bounds the number of requests in a store's queue.
pub(crate) const WAITING_SETTING: &str = "mailbox.waiting";
/// The setting that says how many connections a store has.
pub(crate) const CONNECTIONS_SETTING: &str = "mailbox.connections";
/// The error of a request that may be refused with `R`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError<R> {
    /// The store works, and refuses the request. Nothing was done.
    #[error("{0}")]
    Refused(R),
    /// The store could not do the request.
    #[error(transparent)]
    Failed(#[from] StoreFailure),
}

impl<R> StoreError<R> {
    /// Converts the refusal.
    pub(crate) fn map<S>(self, convert: impl FnOnce(R) -> S) -> StoreError<S> {
        match self {
            StoreError::Refused(refusal) => StoreError::Refused(convert(refusal)),
            StoreError::Failed(failure) => StoreError::Failed(failure),
        }
    }
}

/// A failure that may happen to any request. All but [`OutcomeUnknown`](StoreFailure::OutcomeUnknown)
/// say that nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreFailure {
    /// The database cannot be reached, or somebody has locked what the request needs.
    #[error("the database does not answer: {reason}")]
    Away {
        /// The cause, in the database's or the system's words.
        reason: String,
        /// The state that the store waits for, where it can say more than that the database answers.
        expected: Option<&'static str>,
        /// The delay after which the request may succeed.
        retry_after: Duration,
    },
    /// The database is there and can never be used by this node.
    #[error("the database cannot be used: {found}, expected {expected}")]
    Unusable {
        /// The finding.
        found: String,
        /// The database that would do.
        expected: String,
    },
    /// The queue of requests is full.
    #[error("{waiting} requests wait, of at most {waiting_max}")]
    QueueFull {
        /// Requests that wait.
        waiting: usize,
        /// Requests that may wait.
        waiting_max: usize,
    },
    /// Another transaction went before, so the database rolled this one back.
    #[error("another transaction went before: {reason}")]
    Conflict {
        /// The cause, in the database's words.
        reason: String,
    },
    /// The disk of the database is full.
    #[error("the disk is full: {reason}")]
    DiskFull {
        /// The cause, in the database's words.
        reason: String,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// The connection was lost in the middle: the request was done, or it was not.
    #[error("the connection was lost before the answer")]
    OutcomeUnknown,
    /// The store met something that should not be.
    #[error("internal error of the store: {reason}")]
    Internal {
        /// The finding.
        reason: String,
    },
}

/// An error that keeps a store from being started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreStartError {
    /// A setting has a value that it cannot have.
    #[error("{setting} is {found}, and must be {expected}")]
    InvalidSetting {
        /// The setting's name in the node's configuration.
        setting: &'static str,
        /// The value, or what is wrong with it. A URL is not shown: it may hold a password.
        found: String,
        /// The values that it can have.
        expected: &'static str,
    },
    /// The store fails, and waiting does not help.
    #[error(transparent)]
    Failed(#[from] StoreFailure),
}

/// The kinds of things that have names and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    /// An account.
    Account,
    /// A queue.
    Queue,
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entity::Account => "account",
            Entity::Queue => "queue",
        })
    }
}

/// A refusal: an account or queue that the request names does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {entity} {value}")]
pub struct NotFound {
    /// The kind of the missing thing.
    pub entity: Entity,
    /// The argument that names it.
    pub argument: &'static str,
    /// The name or number that was given.
    pub value: String,
}

impl NotFound {
    pub(crate) fn account(argument: &'static str, value: impl fmt::Display) -> NotFound {
        NotFound {
            entity: Entity::Account,
            argument,
            value: value.to_string(),
        }
    }

    pub(crate) fn queue(value: impl fmt::Display) -> NotFound {
        NotFound {
            entity: Entity::Queue,
            argument: "queue",
            value: value.to_string(),
        }
    }
}

/// A refusal: an account or queue of the name exists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a {entity} {name}")]
pub struct NameTaken {
    /// The kind of thing that was to be created.
    pub entity: Entity,
    /// The name.
    pub name: String,
}

/// A refusal: an account or queue cannot be deleted while messages or settings refer to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entity} {value} is in use")]
pub struct NotEmpty {
    /// The kind of thing that was to be deleted.
    pub entity: Entity,
    /// The number that was given, and the reason where it is not messages.
    pub value: String,
}

/// The refusals of creating a queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateQueueRefusal {
    /// A queue of the name exists.
    #[error(transparent)]
    NameTaken(#[from] NameTaken),
    /// The queue for the dead letters does not exist.
    #[error(transparent)]
    DeadLettersNotFound(#[from] NotFound),
}

/// The refusals of deleting an account or queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteRefusal {
    /// There is no such account or queue.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// Messages or settings refer to it.
    #[error(transparent)]
    NotEmpty(#[from] NotEmpty),
}

/// A refusal: the message is for another account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {message} is for another account")]
pub struct NotForReader {
    /// The message.
    pub message: MessageId,
}

/// A refusal: the lease is no longer the reader's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease of message {message} has ended")]
pub struct LeaseEnded {
    /// The message.
    pub message: MessageId,
}
