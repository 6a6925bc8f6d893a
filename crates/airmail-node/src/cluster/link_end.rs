//! Ends of a link's connections.

use airmail_wire::Malformed;
use airmail_wire::handshake::{HandshakeError, Refusal};
use std::io;

/// Reason for which a connection has ended, or has not begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkEnd {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Handshake(#[from] HandshakeError),
    /// The other side has closed it.
    #[error("the other node closed the connection")]
    Closed,
    /// The other side says nothing.
    #[error("the other node does not answer")]
    Silent,
    /// The other node has not the same any more as when this one began to use it.
    #[error("{0}")]
    Changed(String),
    /// This node is stopping.
    #[error("stopping")]
    Stopping,
}

impl LinkEnd {
    /// The refusal of this side, which the other one is to be told.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            LinkEnd::Handshake(HandshakeError::Refusing(refusal)) => Some(refusal),
            _ => None,
        }
    }
}

impl From<Refusal> for LinkEnd {
    fn from(refusal: Refusal) -> LinkEnd {
        LinkEnd::Handshake(HandshakeError::Refusing(refusal))
    }
}
