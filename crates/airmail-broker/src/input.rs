//! The shard's closed enums: what can happen to it, what it can want done, and its answers to commands.

use crate::access::Principal;
use airmail_log::{Call, Completion, TopicPage, TopicSeen};
use airmail_model::frame::{Reply, Request};
use airmail_model::{
    Durability, Error, LogId, Mono, Namespace, NamespaceId, Retention, Role, StorageName,
};

/// A stream of one client, for its life. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A command under way, by its sender's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

/// Everything that can happen to a shard.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client, or its connection, has done something.
    Client(ClientInput),
    /// The storage has something to say.
    Storage(Completion),
    /// The deadline of [`Effects::deadline`] has come.
    Timer,
}

/// Everything that clients and their connections do.
#[derive(Clone, Debug)]
pub enum ClientInput {
    /// A client has opened a stream and said Hello.
    Opened {
        /// The stream.
        session: SessionId,
        /// The client at its other end.
        principal: Principal,
        /// Bytes of deliveries that it has room for.
        credit: u32,
    },
    /// A client asks something on its stream.
    Request {
        /// The stream.
        session: SessionId,
        /// The request.
        request: Request,
    },
    /// A stream's connection has taken deliveries. To be told for every delivery, sooner or later, if
    /// there is a delivery gate; at once when nothing of a stream in [`Effects::watch`] is left.
    Sent {
        /// The stream.
        session: SessionId,
        /// Bytes of their bodies.
        bytes: u64,
    },
    /// A stream has ended, by whichever side. Nothing is sent on it any more.
    Closed {
        /// The stream.
        session: SessionId,
    },
    /// A unary call. Answered once by [`Effects::outcomes`].
    Command {
        /// Comes back with the answer.
        id: CommandId,
        /// The caller.
        principal: Principal,
        /// The command.
        command: Command,
    },
}

impl From<ClientInput> for Input {
    fn from(input: ClientInput) -> Input {
        Input::Client(input)
    }
}

/// Commands of unary calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Creates a namespace. Durability `None`: the strongest that the storage has.
    CreateNamespace {
        /// Its name.
        name: String,
        /// Logs in the normal lane.
        logs: u16,
        /// Bounds on the records that are kept.
        retention: Retention,
        /// Durability that an ack promises.
        durability: Option<Durability>,
        /// The storage that is to have its logs.
        storage: StorageName,
    },
    /// Changes a namespace. `None`: stays as it is.
    UpdateNamespace {
        /// Its name.
        name: String,
        /// Number of logs. Reserved: another number than it has is refused as unimplemented.
        logs: Option<u16>,
        /// Bounds on the records that are kept.
        retention: Option<Retention>,
        /// Durability that an ack promises.
        durability: Option<Durability>,
        /// The storage that has its logs. Another one than it is in is refused as unimplemented: that
        /// is a move.
        storage: Option<StorageName>,
        /// Refused as `NAMESPACE_CHANGED` if it is at another version.
        based_on: Option<u64>,
    },
    /// Moves a namespace to another storage, with its publishers and subscribers.
    MoveNamespace {
        /// Its name.
        name: String,
        /// The storage that is to have its logs.
        storage: StorageName,
        /// Refused as `NAMESPACE_CHANGED` if it is at another version.
        based_on: Option<u64>,
    },
    /// Accepts that a log has lost its end: it goes on where it was cut, in a new life. Refused of a log that is not
    /// suspended, and of one that is all lost.
    AcceptLoss {
        /// The log.
        log: LogId,
    },
    /// Makes a namespace anew where it is, since all of its logs are lost. Refused as long as none is known to be.
    RecreateNamespace {
        /// Its name.
        name: String,
        /// Refused as `NAMESPACE_CHANGED` if it is at another version.
        based_on: Option<u64>,
    },
    /// Deletes a namespace and all that it holds. Its subscribers are told.
    DeleteNamespace {
        /// Its name.
        name: String,
        /// Refused as `NAMESPACE_CHANGED` if it is at another version.
        based_on: Option<u64>,
    },
    /// Creates a role.
    CreateRole {
        /// Its name.
        name: String,
    },
    /// Deletes a role. What is addressed to it stays so, and nobody else ever has its number.
    DeleteRole {
        /// Its name.
        name: String,
    },
    /// Lists topics that hold messages, over all logs of the namespace.
    ListTopics {
        /// The namespace.
        namespace: NamespaceId,
        /// The page to list.
        page: TopicPage,
    },
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The namespace as created or changed; durable.
    Namespace(Namespace),
    /// The role as created; durable.
    Role(Role),
    /// The namespace or role is deleted; durable.
    Deleted,
    /// In byte order of name, each once.
    Topics {
        /// This page's.
        topics: Vec<TopicSeen>,
        /// There are more.
        more: bool,
    },
}

/// Everything that a shard can want done.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be sent to clients, in order for each session.
    pub replies: Vec<(SessionId, Reply)>,
    /// Answers to commands.
    pub outcomes: Vec<(CommandId, Result<Outcome, Error>)>,
    /// To be asked of the storage, in order.
    pub storage: Vec<Call>,
    /// Streams that were given nothing because of what they have not taken: [`ClientInput::Sent`] is awaited.
    pub watch: Vec<SessionId>,
    /// When to give [`Input::Timer`], if nothing else happens before.
    pub deadline: Option<Mono>,
}
