//! What the database says went wrong, as errors of the table.

use airmail_model::{Error, ErrorCode};
use std::time::Duration;

/// A lock was not to be had in time.
const LOCKED: &str = "55P03";
/// The statement took longer than it may, or somebody has cancelled it.
const CANCELED: &str = "57014";
/// A statement before, in the same transaction, has failed.
const ABORTED: &str = "25P02";

const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What becomes of a request after an error of the database.
#[derive(Debug)]
pub(super) enum Fault {
    /// The statement failed, and so did nothing.
    Refused(Error),
    /// It waited for too long, for a lock or for its own end, and was rolled back: it may be tried
    /// again, and what stands in its way is not its own.
    Late(Error),
    /// The connection ended while the statement was under way.
    Lost,
}

impl Fault {
    /// The error of a request that changes something.
    pub(super) fn of_change(self) -> Error {
        match self {
            Fault::Refused(error) | Fault::Late(error) => error,
            Fault::Lost => Error::new(ErrorCode::OutcomeUnknown).field("database"),
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Fault {
        let Some(told) = error.as_db_error() else {
            return if error.is_closed()
                || std::error::Error::source(&error)
                    .is_some_and(|source| source.is::<std::io::Error>())
            {
                Fault::Lost
            } else {
                Fault::Refused(internal(&error))
            };
        };
        let code = told.code().code();
        // The server is going down, or was killed: the connection ends behind this.
        if code.starts_with("57P") {
            return Fault::Lost;
        }
        if let LOCKED | CANCELED = code {
            return Fault::Late(away(told.message()));
        }
        Fault::Refused(
            match code.strip_prefix("AM").and_then(|code| code.parse().ok()) {
                Some(number) => ours(number, told.detail().unwrap_or_default()),
                // What comes behind one that failed: that one's error is told.
                None if code == ABORTED => Error::new(ErrorCode::Internal)
                    .field("database")
                    .value(told.message()),
                // Another's transaction went before: a deadlock, or a change at the same time.
                None if code.starts_with("40") => Error::new(ErrorCode::Overloaded)
                    .field("database")
                    .value(told.message())
                    .retry_after(RETRY_AFTER),
                None if code.starts_with("53") => away(told.message()),
                None => internal(told),
            },
        )
    }
}

/// The database is not there, or has no time: nothing was done.
pub(super) fn away(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::MailboxesAway)
        .field("database")
        .value(why)
        .retry_after(RETRY_AFTER)
}

/// One that a function of the schema raised: the detail is `field: value`.
fn ours(number: u16, detail: &str) -> Error {
    let error = Error::new(ErrorCode::from_u16(number).unwrap_or(ErrorCode::Internal));
    match detail.split_once(": ") {
        Some((field, value)) => error.field(field).value(value),
        None => error.field(detail),
    }
}

/// Something that should not be. The log has it whole; the user sees the database's words.
pub(super) fn internal(error: &dyn std::error::Error) -> Error {
    tracing::error!(error = %error, "the database refused a statement");
    Error::new(ErrorCode::Internal)
        .field("database")
        .value(error)
}
