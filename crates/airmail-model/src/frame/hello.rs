//! Hello: what a client says first on a stream, and what the node answers.

use super::nodes::Nodes;
use crate::error::Error;
use crate::limits::Limits;
use crate::map::LogMap;
use std::time::Duration;

/// The first request of a stream, once its protocol version has been agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol version that both sides speak from here on.
    pub protocol: u32,
    /// Names of the namespaces whose maps the client wants. None: that of the default namespace.
    pub namespaces: Vec<String>,
    /// Room that the client has for deliveries.
    pub credit: Credit,
    /// Names of roles that the client says it has.
    pub roles: Vec<String>,
}

impl Hello {
    /// The first protocol version in which a node tells [`News`](super::News), and of nodes in its answer to Hello.
    pub const PROTOCOL_NEWS: u32 = 2;
    /// The feature that a client asks for which names roles: a node that knows nothing of roles refuses it.
    pub const FEATURE_ROLES: &str = "roles";
    /// Roles that a client names, at most.
    pub const ROLES_MAX: usize = 255;
    /// The first protocol version in which a node answers questions for its clock.
    pub const PROTOCOL_CLOCK: u32 = 3;
    /// The first protocol version in which a node says which subscriptions a message is for
    /// ([`Subscribe::matches`](super::Subscribe::matches)), and changes filters ([`Change`](super::Change)).
    pub const PROTOCOL_MATCHES: u32 = 4;
    /// The first protocol version in which a client that reads batches knows of both lanes: one of before would drop what it
    /// is given of lane high.
    pub const PROTOCOL_LANES: u32 = 5;
}

/// Room for deliveries, as a stream begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// No room: the stream only publishes, or grants credit later.
    Nothing,
    /// The node's `credit_bytes`, given back by the node itself as the connection takes deliveries, until
    /// the client grants credit for the first time.
    Automatic,
    /// This many bytes; the client grants more as it consumes them.
    Bytes(u32),
}

/// A node's answer to Hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol version spoken from here on.
    pub protocol: u32,
    /// The node's name.
    pub node: String,
    /// Limits that the node holds its clients to.
    pub limits: Limits,
    /// The maps of the namespaces asked for, in that order.
    pub namespaces: Vec<NamedMap>,
    /// Nodes that the client may use. None: this one is alone.
    pub nodes: Nodes,
    /// The node says something on this stream at least this often. `None`: it does not say.
    pub alive: Option<Duration>,
}

/// A namespace's map, with the name that its users know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMap {
    /// The namespace's name.
    pub name: String,
    /// Its map; the namespace's id and epoch are in it.
    pub map: LogMap,
}

/// A node's answer to a question for maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    /// The maps of the namespaces that there are.
    pub found: Vec<NamedMap>,
    /// One error for each namespace that there is not.
    pub missing: Vec<Error>,
}
