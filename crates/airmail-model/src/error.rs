//! The one table of errors that a user can see: number, name, gRPC code, retriable, meaning.
//!
//! An [`Error`] names the field, the value and the limit where there are such, so that whoever
//! reads it knows what to change. Numbers and names are never reused: a retired one stays listed, is
//! never sent, and is read as the error that replaced it.

use crate::holder::Holder;
use std::fmt;
use std::time::Duration;

macro_rules! error_table {
    (
        $($variant:ident = $code:literal, $name:literal, $grpc:ident, $retry:literal, $text:literal;)*
        $($old:literal, $old_name:literal => $instead:ident;)*
    ) => {
        /// Every error, by its number on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ErrorCode {
            $(#[doc = $text] $variant = $code,)*
        }

        impl ErrorCode {
            /// Every error that may be sent, in order of number.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// Every error that is no longer sent, in order of number.
            pub const RETIRED: &'static [RetiredCode] = &[$(RetiredCode {
                code: $old,
                name: $old_name,
                instead: ErrorCode::$instead,
            },)*];

            /// The name on the wire and in every message: upper case, for ever.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(ErrorCode::$variant => $name,)* }
            }

            /// The meaning, for people.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(ErrorCode::$variant => $text,)* }
            }

            /// The gRPC status that carries it.
            #[must_use]
            pub const fn grpc(self) -> GrpcCode {
                match self { $(ErrorCode::$variant => GrpcCode::$grpc,)* }
            }

            /// Returns whether the same request may succeed later, unchanged.
            #[must_use]
            pub const fn retriable(self) -> bool {
                match self { $(ErrorCode::$variant => $retry,)* }
            }

            /// The error of a number. The number of a retired one gives the error that replaced it.
            #[must_use]
            pub const fn from_u16(code: u16) -> Option<ErrorCode> {
                match code {
                    $($code => Some(ErrorCode::$variant),)*
                    $($old => Some(ErrorCode::$instead),)*
                    _ => None,
                }
            }

            /// The error of a name. The name of a retired one gives the error that replaced it.
            #[must_use]
            pub fn from_name(name: &str) -> Option<ErrorCode> {
                match name {
                    $($name => Some(ErrorCode::$variant),)*
                    $($old_name => Some(ErrorCode::$instead),)*
                    _ => None,
                }
            }
        }
    };
}

/// An error that nodes of earlier versions sent and that none sends any more. Its number and name
/// are not given to another; a client reads it as the error that replaced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetiredCode {
    /// The number on the wire.
    pub code: u16,
    /// The name on the wire.
    pub name: &'static str,
    /// The error that is sent in its place.
    pub instead: ErrorCode,
}

impl ErrorCode {
    /// Returns whether an SDK waits, for as long as the error says, and repeats the request by itself.
    ///
    /// These are the retriable errors but for those that answer the question: "the queue is empty" is
    /// what the caller wanted to know, and nothing to wait for. All of these but `DISCONNECTED` say
    /// that nothing was done, so that a change may be requested again as well.
    #[must_use]
    pub const fn waited_for(self) -> bool {
        self.retriable()
            && !matches!(
                self,
                ErrorCode::QueueIsEmpty | ErrorCode::NoQueuesFound | ErrorCode::NoMessageFound
            )
    }
}

/// The gRPC status codes that the table uses, by their standard numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "named and defined by gRPC")]
pub enum GrpcCode {
    Unknown = 2,
    InvalidArgument = 3,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

error_table! {
    InvalidArgument = 1, "INVALID_ARGUMENT", InvalidArgument, false, "a field of the request is missing or has a value it cannot have";
    MessageTooLarge = 2, "MESSAGE_TOO_LARGE", InvalidArgument, false, "the message is larger than the node accepts";
    BatchTooLarge = 3, "BATCH_TOO_LARGE", InvalidArgument, false, "the batch is larger, or has more messages, than the node accepts";
    BatchMalformed = 4, "BATCH_MALFORMED", InvalidArgument, false, "the batch is not as its format says";
    TopicInvalid = 5, "TOPIC_INVALID", InvalidArgument, false, "the topic's name is not allowed";
    AttributesInvalid = 6, "ATTRIBUTES_INVALID", InvalidArgument, false, "the message's attributes are too many or not well formed";
    PositionInvalid = 7, "POSITION_INVALID", InvalidArgument, false, "the position cannot be read, or belongs to another namespace";
    NamespaceInvalid = 8, "NAMESPACE_INVALID", InvalidArgument, false, "the namespace's name or settings are not allowed";
    NamespaceNotFound = 9, "NAMESPACE_NOT_FOUND", NotFound, false, "there is no namespace of this name";
    NamespaceExists = 10, "NAMESPACE_EXISTS", AlreadyExists, false, "a namespace of this name exists";
    NamespaceChanged = 11, "NAMESPACE_CHANGED", Aborted, false, "the namespace has changed since the version that the change is based on";
    NamespaceReserved = 12, "NAMESPACE_RESERVED", PermissionDenied, false, "the namespace belongs to the system";
    DurabilityUnavailable = 13, "DURABILITY_UNAVAILABLE", FailedPrecondition, false, "the node's storage cannot give this durability";
    MapStale = 14, "MAP_STALE", FailedPrecondition, true, "the batch was made with another map of topics to logs; the answer has the present one";
    LogSealed = 15, "LOG_SEALED", FailedPrecondition, true, "the log takes nothing more; a newer map names its successors";
    OutOfOrder = 16, "OUT_OF_ORDER", FailedPrecondition, false, "the producer's sequence is not the next one: something before it is missing";
    UnknownProducer = 17, "UNKNOWN_PRODUCER", FailedPrecondition, false, "the node no longer knows this producer, so it cannot tell a retry from a new message";
    ProducerFenced = 18, "PRODUCER_FENCED", Aborted, false, "a newer epoch of this producer has taken over";
    StorageFull = 19, "STORAGE_FULL", ResourceExhausted, true, "the disk is full; reading goes on";
    StorageFailed = 20, "STORAGE_FAILED", Unavailable, true, "the storage failed; the message is not stored";
    OutcomeUnknown = 21, "OUTCOME_UNKNOWN", Unknown, false, "it is not known whether the message was stored, or the change made";
    ProtocolUnsupported = 22, "PROTOCOL_UNSUPPORTED", FailedPrecondition, false, "client and node have no protocol version in common";
    HelloExpected = 23, "HELLO_EXPECTED", FailedPrecondition, false, "a stream must begin with Hello, once";
    Unimplemented = 24, "UNIMPLEMENTED", Unimplemented, false, "the feature is reserved and does not work yet";
    SubscriptionInvalid = 25, "SUBSCRIPTION_INVALID", InvalidArgument, false, "the subscription is not possible as it is asked for";
    Unauthenticated = 26, "UNAUTHENTICATED", Unauthenticated, false, "the node does not know who asks";
    PermissionDenied = 27, "PERMISSION_DENIED", PermissionDenied, false, "who asks may not do this";
    Overloaded = 28, "OVERLOADED", ResourceExhausted, true, "the node has more to do than it admits";
    ShuttingDown = 29, "SHUTTING_DOWN", Unavailable, true, "the node is stopping; another, or the same one later, will answer";
    Internal = 30, "INTERNAL", Internal, false, "the node has met something that should not be; its log says more";
    Disconnected = 31, "DISCONNECTED", Unavailable, true, "the connection to the node was lost, and not regained in time";
    QueueNameExists = 33, "QUEUE_NAME_EXISTS", AlreadyExists, false, "a queue of this name exists";
    QueueNotFound = 34, "QUEUE_NOT_FOUND", NotFound, false, "there is no such queue";
    QueueNotEmpty = 35, "QUEUE_NOT_EMPTY", FailedPrecondition, false, "the queue still has messages, or is where another's dead letters go";
    NoPermissionToRead = 36, "NO_PERMISSION_TO_READ", PermissionDenied, false, "the message is for another account";
    QueueIsEmpty = 37, "QUEUE_IS_EMPTY", NotFound, true, "the queue has nothing for this reader";
    NoQueuesFound = 38, "NO_QUEUES_FOUND", NotFound, true, "no queue has anything for this reader";
    UnknownRequestType = 39, "UNKNOWN_REQUEST_TYPE", Unimplemented, false, "the mailboxes have no such request";
    NoMessageFound = 40, "NO_MESSAGE_FOUND", NotFound, true, "there is no such message";
    AccountNameExists = 41, "ACCOUNT_NAME_EXISTS", AlreadyExists, false, "an account of this name exists";
    AccountNotFound = 42, "ACCOUNT_NOT_FOUND", NotFound, false, "there is no such account";
    AccountNotEmpty = 43, "ACCOUNT_NOT_EMPTY", FailedPrecondition, false, "there still are messages to or from the account";
    LeaseEnded = 44, "LEASE_ENDED", FailedPrecondition, false, "the lease has ended, and the message may be at another reader";
    MailboxesAway = 45, "MAILBOXES_AWAY", Unavailable, true, "the database of the mailboxes does not answer; nothing was done";
    MailboxesUnusable = 46, "MAILBOXES_UNUSABLE", FailedPrecondition, false, "the database of the mailboxes is none that this node can use; nothing was done";
    Elsewhere = 47, "ELSEWHERE", Unavailable, true, "another node has the log, or takes what is asked; nothing was done";
    Unavailable = 48, "UNAVAILABLE", Unavailable, true, "the node that has the log cannot be reached; nothing was stored";
    LogSuspended = 51, "LOG_SUSPENDED", FailedPrecondition, false, "the log has stopped: its storage has lost something of it, and an operator has to decide";
    RoleNotFound = 52, "ROLE_NOT_FOUND", NotFound, false, "there is no such role";
    RoleExists = 53, "ROLE_EXISTS", AlreadyExists, false, "a role of this name exists";
    FilterInvalid = 54, "FILTER_INVALID", InvalidArgument, false, "the text is no filter";
    FilterTooComplex = 55, "FILTER_TOO_COMPLEX", ResourceExhausted, false, "the filter, or all filters together, need more than the node allows";
    32, "INTERNAL_ERROR" => Internal;
}

/// An error as a user sees it: an entry of the table, with the facts of the case.
///
/// ```
/// use airmail_model::{Error, ErrorCode};
/// let error = Error::new(ErrorCode::MessageTooLarge)
///     .field("payload").value("2000000 bytes").limit("1048576 bytes");
/// assert_eq!(
///     error.to_string(),
///     "MESSAGE_TOO_LARGE: the message is larger than the node accepts \
///      (payload: 2000000 bytes, limit: 1048576 bytes)",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Facts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    code: ErrorCode,
    field: String,
    value: String,
    limit: String,
    retry_after: Option<Duration>,
    waited: Option<Duration>,
    holder: Option<Holder>,
}

impl Error {
    /// An error without facts yet.
    #[must_use]
    pub fn new(code: ErrorCode) -> Error {
        Error(Box::new(Facts {
            code,
            field: String::new(),
            value: String::new(),
            limit: String::new(),
            retry_after: None,
            waited: None,
            holder: None,
        }))
    }

    /// The error of a feature that is reserved and does not work yet; `field` names it.
    #[must_use]
    pub fn unimplemented(field: impl Into<String>) -> Error {
        Error::new(ErrorCode::Unimplemented).field(field)
    }

    /// Names the field, setting or flag that is wrong.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Error {
        self.0.field = field.into();
        self
    }

    /// Gives the value found. Shortened to 200 characters.
    #[must_use]
    pub fn value(mut self, value: impl fmt::Display) -> Error {
        self.0.value = value.to_string().chars().take(200).collect();
        self
    }

    /// Gives the value that would have been right.
    #[must_use]
    pub fn limit(mut self, limit: impl fmt::Display) -> Error {
        self.0.limit = limit.to_string();
        self
    }

    /// Says how long to wait before trying again.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Error {
        self.0.retry_after = Some(delay);
        self
    }

    /// Says which node has what was asked for.
    #[must_use]
    pub fn held_by(mut self, holder: Holder) -> Error {
        self.0.holder = Some(holder);
        self
    }

    /// Says for how long the caller has tried before it gave up. Not sent over the wire: the caller's side
    /// adds it.
    #[must_use]
    pub fn waited(mut self, time: Duration) -> Error {
        self.0.waited = Some(time);
        self
    }

    /// The entry of the table that this error is.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The field that is wrong, or empty.
    #[must_use]
    pub fn field_name(&self) -> &str {
        &self.0.field
    }

    /// The value found, or empty.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.0.value
    }

    /// The value that would have been right, or empty.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.0.limit
    }

    /// The time to wait before trying again, where the node knows it.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The node that has what was asked for, as far as the one that answered knows. Only of `ELSEWHERE`.
    #[must_use]
    pub fn holder(&self) -> Option<Holder> {
        self.0.holder
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &self.0;
        write!(f, "{}: {}", facts.code.name(), facts.code.text())?;
        let mut parts = Vec::new();
        match (facts.field.is_empty(), facts.value.is_empty()) {
            (false, false) => parts.push(format!("{}: {}", facts.field, facts.value)),
            (false, true) => parts.push(facts.field.clone()),
            (true, false) => parts.push(facts.value.clone()),
            (true, true) => {}
        }
        if !facts.limit.is_empty() {
            parts.push(format!("limit: {}", facts.limit));
        }
        if let Some(holder) = facts.holder {
            parts.push(format!("held by {holder}"));
        }
        if let Some(delay) = facts.retry_after {
            parts.push(format!("retry after {} ms", delay.as_millis()));
        }
        if let Some(time) = facts.waited {
            parts.push(format!("waited {} ms", time.as_millis()));
        }
        if parts.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", parts.join(", "))
        }
    }
}

impl std::error::Error for Error {}
