//! The two ways in which a client ends before it has dealt with a message.

use airmail_model::{Error, ErrorCode};

/// The client has ended: it takes no message any more, or will never learn what became of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientEnded {
    /// It was closed: it takes no more messages.
    Closed,
    /// It was dropped without being closed: what was not settled by then stays unknown.
    Dropped,
}

impl From<ClientEnded> for Error {
    fn from(ended: ClientEnded) -> Error {
        let (code, how) = match ended {
            ClientEnded::Closed => (ErrorCode::ShuttingDown, "closed"),
            ClientEnded::Dropped => (ErrorCode::OutcomeUnknown, "dropped without close"),
        };
        Error::new(code).field("client").value(how)
    }
}
