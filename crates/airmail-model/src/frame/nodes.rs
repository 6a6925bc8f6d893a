//! News of nodes: what a node tells the clients of its streams about itself and others, unasked.

use std::time::Duration;

/// Most nodes that a client is told of.
pub const NODES_TOLD_MAX: usize = 32;

/// A node that clients may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingNode {
    /// Its name, unique in its cluster.
    pub name: String,
    /// Where clients connect: `HOST:PORT`.
    pub address: String,
    /// Its zone. Empty: none was given.
    pub zone: String,
    /// Name of the machine that it runs on. Empty: not known.
    pub host: String,
    /// Connections of clients that it has, as far as that is known.
    pub connections: u32,
    /// It takes publishes.
    pub pilot: bool,
    /// It takes subscriptions, and answers questions about what is stored.
    pub copilot: bool,
}

/// The nodes that clients may use at present, at most [`NODES_TOLD_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// All of them, the one that tells among them if it may be used.
    pub nodes: Vec<ServingNode>,
    /// A request: the client is asked to go on at another of them: the node that tells is about to stop, or cannot
    /// serve at present.
    pub leave: bool,
}

/// Words of a node on a stream that no request asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It lives, and says something on this stream again within this time.
    Alive(Duration),
    /// There are other nodes than there were, or clients are spread otherwise.
    Nodes(Nodes),
}
