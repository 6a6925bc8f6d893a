//! The state of a subscription at a node, as its user sees it.

/// State of a subscription at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Looking for a node, or waiting for its answer.
    Connecting,
    /// Live, at the tail: messages come as soon as they are published.
    Live,
    /// Detached, behind the tail: stored messages come, at the pace at which they are read.
    Detached,
}
