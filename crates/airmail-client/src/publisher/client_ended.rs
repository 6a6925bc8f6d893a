//! The two ways in which a client ends before a message has its result.

use airmail_model::{Error, ErrorCode};

/// The reason why a client accepts no message, or gives no result of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientEnded {
    /// Closed: it accepts no more messages.
    Closed,
    /// Dropped without being closed: results that had not come by then stay unknown.
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
