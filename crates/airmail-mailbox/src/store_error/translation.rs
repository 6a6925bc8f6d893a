//! The translation of the stores' errors to the one table that users see.

use super::{
    CreateQueueRefusal, DeleteRefusal, Entity, LeaseEnded, NameTaken, NotEmpty, NotForReader,
    NotFound, StoreError, StoreFailure, StoreStartError, URL_SETTING, WAITING_SETTING,
};
use airmail_model::{Error, ErrorCode};
use std::time::Duration;

/// The delay after which a request that met a full queue is to be repeated.
const FULL_QUEUE_RETRY: Duration = Duration::from_millis(100);
/// The delay after which a request that lost against another transaction is to be repeated.
const CONFLICT_RETRY: Duration = Duration::from_secs(1);

impl<R: Into<Error>> From<StoreError<R>> for Error {
    fn from(error: StoreError<R>) -> Error {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::Failed(failure) => failure.into(),
        }
    }
}

impl From<StoreFailure> for Error {
    fn from(failure: StoreFailure) -> Error {
        match failure {
            StoreFailure::Away {
                reason,
                expected,
                retry_after,
            } => Error::new(ErrorCode::MailboxesAway)
                .field(URL_SETTING)
                .value(reason)
                .limit(expected.unwrap_or_default())
                .retry_after(retry_after),
            StoreFailure::Unusable { found, expected } => Error::new(ErrorCode::MailboxesUnusable)
                .field(URL_SETTING)
                .value(found)
                .limit(expected),
            StoreFailure::QueueFull {
                waiting,
                waiting_max,
            } => Error::new(ErrorCode::Overloaded)
                .field(WAITING_SETTING)
                .value(waiting)
                .limit(waiting_max)
                .retry_after(FULL_QUEUE_RETRY),
            StoreFailure::Conflict { reason } => Error::new(ErrorCode::Overloaded)
                .value(reason)
                .retry_after(CONFLICT_RETRY),
            StoreFailure::DiskFull { reason } => Error::new(ErrorCode::StorageFull)
                .field(URL_SETTING)
                .value(reason),
            StoreFailure::Closed => Error::new(ErrorCode::ShuttingDown),
            StoreFailure::OutcomeUnknown => Error::new(ErrorCode::OutcomeUnknown),
            StoreFailure::Internal { reason } => Error::new(ErrorCode::Internal).value(reason),
        }
    }
}

impl From<StoreStartError> for Error {
    fn from(error: StoreStartError) -> Error {
        match error {
            StoreStartError::InvalidSetting {
                setting,
                found,
                expected,
            } => Error::new(ErrorCode::InvalidArgument)
                .field(setting)
                .value(found)
                .limit(expected),
            StoreStartError::Failed(failure) => failure.into(),
        }
    }
}

impl From<NotFound> for Error {
    fn from(refusal: NotFound) -> Error {
        let code = match refusal.entity {
            Entity::Account => ErrorCode::AccountNotFound,
            Entity::Queue => ErrorCode::QueueNotFound,
        };
        Error::new(code)
            .field(refusal.argument)
            .value(refusal.value)
    }
}

impl From<NameTaken> for Error {
    fn from(refusal: NameTaken) -> Error {
        let code = match refusal.entity {
            Entity::Account => ErrorCode::AccountNameExists,
            Entity::Queue => ErrorCode::QueueNameExists,
        };
        Error::new(code).field("name").value(refusal.name)
    }
}

impl From<NotEmpty> for Error {
    fn from(refusal: NotEmpty) -> Error {
        let code = match refusal.entity {
            Entity::Account => ErrorCode::AccountNotEmpty,
            Entity::Queue => ErrorCode::QueueNotEmpty,
        };
        Error::new(code)
            .field(refusal.entity.to_string())
            .value(refusal.value)
    }
}

impl From<CreateQueueRefusal> for Error {
    fn from(refusal: CreateQueueRefusal) -> Error {
        match refusal {
            CreateQueueRefusal::NameTaken(refusal) => refusal.into(),
            CreateQueueRefusal::DeadLettersNotFound(refusal) => refusal.into(),
        }
    }
}

impl From<DeleteRefusal> for Error {
    fn from(refusal: DeleteRefusal) -> Error {
        match refusal {
            DeleteRefusal::NotFound(refusal) => refusal.into(),
            DeleteRefusal::NotEmpty(refusal) => refusal.into(),
        }
    }
}

impl From<NotForReader> for Error {
    fn from(refusal: NotForReader) -> Error {
        Error::new(ErrorCode::NoPermissionToRead)
            .field("message")
            .value(refusal.message)
    }
}

impl From<LeaseEnded> for Error {
    fn from(refusal: LeaseEnded) -> Error {
        Error::new(ErrorCode::LeaseEnded)
            .field("message")
            .value(refusal.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MessageId;

    #[test]
    fn a_failure_names_the_setting_that_may_be_wrong_or_none() {
        let reason = || "why".to_owned();
        let away = StoreFailure::Away {
            reason: reason(),
            expected: None,
            retry_after: CONFLICT_RETRY,
        };
        let unusable = StoreFailure::Unusable {
            found: reason(),
            expected: reason(),
        };
        let full = StoreFailure::QueueFull {
            waiting: 2,
            waiting_max: 2,
        };
        for (failure, code, field) in [
            (away, ErrorCode::MailboxesAway, URL_SETTING),
            (unusable, ErrorCode::MailboxesUnusable, URL_SETTING),
            (full, ErrorCode::Overloaded, WAITING_SETTING),
            (
                StoreFailure::Conflict { reason: reason() },
                ErrorCode::Overloaded,
                "",
            ),
            (
                StoreFailure::DiskFull { reason: reason() },
                ErrorCode::StorageFull,
                URL_SETTING,
            ),
            (StoreFailure::Closed, ErrorCode::ShuttingDown, ""),
            (StoreFailure::OutcomeUnknown, ErrorCode::OutcomeUnknown, ""),
            (
                StoreFailure::Internal { reason: reason() },
                ErrorCode::Internal,
                "",
            ),
        ] {
            let error = Error::from(failure);
            assert_eq!((error.code(), error.field_name()), (code, field));
        }
    }

    #[test]
    fn a_refusal_names_the_argument_and_what_was_given() {
        let message = MessageId(7);
        for (error, code, field, value) in [
            (
                Error::from(NotFound::account("from", 3)),
                ErrorCode::AccountNotFound,
                "from",
                "3",
            ),
            (
                Error::from(DeleteRefusal::from(NotFound::queue(4))),
                ErrorCode::QueueNotFound,
                "queue",
                "4",
            ),
            (
                Error::from(StoreError::Refused(LeaseEnded { message })),
                ErrorCode::LeaseEnded,
                "message",
                "7",
            ),
        ] {
            assert_eq!(error.code(), code);
            assert_eq!((error.field_name(), error.found()), (field, value));
        }
    }
}
