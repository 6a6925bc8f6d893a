//! Errors of statements, by what becomes of the requests in them.

use super::raised::Raised;
use crate::store_error::{StoreError, StoreFailure};
use std::error::Error;
use std::time::Duration;

/// SQLSTATE: a lock was not to be had in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// SQLSTATE: the statement took longer than it may, or somebody has cancelled it.
const QUERY_CANCELED: &str = "57014";
/// SQLSTATE: a statement before, in the same transaction, has failed.
const IN_FAILED_TRANSACTION: &str = "25P02";
/// First characters of the SQLSTATEs of a server that goes down: the connection ends behind them.
const OPERATOR_INTERVENTION: &str = "57P";
/// First characters of the SQLSTATEs of a transaction that lost against another: a deadlock, or a
/// change at the same time.
const TRANSACTION_ROLLBACK: &str = "40";
/// First characters of the SQLSTATEs of a server that lacks memory, disk or connections.
const INSUFFICIENT_RESOURCES: &str = "53";

const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The error of a statement.
#[derive(Debug)]
pub(super) enum StatementError {
    /// A function of the schema raised one of its errors. Nothing was done.
    Raised(Raised),
    /// The statement failed. Nothing was done.
    Refused(StoreFailure),
    /// The statement waited for too long, for a lock or for its own end, and was rolled back. It may be
    /// tried again: the obstacle is not its own.
    TimedOut(StoreFailure),
    /// The connection ended while the statement was under way.
    ConnectionLost,
}

impl StatementError {
    /// Converts the error of a request that changes something and is not refused.
    pub(super) fn into_failure(self) -> StoreFailure {
        match self {
            StatementError::Raised(raised) => raised.into_failure(),
            StatementError::Refused(failure) | StatementError::TimedOut(failure) => failure,
            StatementError::ConnectionLost => StoreFailure::OutcomeUnknown,
        }
    }
}

impl From<StatementError> for StoreError<Raised> {
    fn from(error: StatementError) -> StoreError<Raised> {
        match error {
            StatementError::Raised(raised) => StoreError::Refused(raised),
            other => StoreError::Failed(other.into_failure()),
        }
    }
}

impl From<tokio_postgres::Error> for StatementError {
    fn from(error: tokio_postgres::Error) -> StatementError {
        let Some(told) = error.as_db_error() else {
            let is_lost = error.is_closed()
                || error
                    .source()
                    .is_some_and(|source| source.is::<std::io::Error>());
            return if is_lost {
                StatementError::ConnectionLost
            } else {
                StatementError::Refused(internal(&error))
            };
        };
        if let Some(raised) = Raised::read(told) {
            return StatementError::Raised(raised);
        }
        let (code, reason) = (told.code().code(), told.message());
        if code.starts_with(OPERATOR_INTERVENTION) {
            return StatementError::ConnectionLost;
        }
        if let LOCK_NOT_AVAILABLE | QUERY_CANCELED = code {
            return StatementError::TimedOut(away(reason));
        }
        let reason = reason.to_owned();
        StatementError::Refused(if code == IN_FAILED_TRANSACTION {
            // The error of the statement before is the one that is logged and answered.
            StoreFailure::Internal { reason }
        } else if code.starts_with(TRANSACTION_ROLLBACK) {
            StoreFailure::Conflict { reason }
        } else if code.starts_with(INSUFFICIENT_RESOURCES) {
            away(reason)
        } else {
            internal(told)
        })
    }
}

/// The failure of a request while the database is not there, or has no time. Nothing was done.
pub(super) fn away(reason: impl std::fmt::Display) -> StoreFailure {
    StoreFailure::Away {
        reason: reason.to_string(),
        expected: None,
        retry_after: RETRY_AFTER,
    }
}

/// The failure of a statement that should not fail. The log has the error whole; the user sees the
/// database's words.
fn internal(error: &dyn Error) -> StoreFailure {
    tracing::error!(error = %error, "the database refused a statement");
    StoreFailure::Internal {
        reason: error.to_string(),
    }
}
