//! Errors that the schema's own functions raise (`airmail.fail`), and the refusals that they stand for.
//!
//! Each arrives as an SQLSTATE `AM` with a number of the table of errors, and a detail
//! `argument: value`. Which of them a request may raise is in the contract; any other is a mistake of the
//! schema, and becomes an internal error.

use crate::store_error::{
    CreateQueueRefusal, DeleteRefusal, Entity, NameTaken, NotEmpty, NotFound, StoreFailure,
};
use airmail_model::ErrorCode;
use tokio_postgres::error::DbError;

/// Prefix of the SQLSTATE of an error that the schema's functions raise.
const PREFIX: &str = "AM";

/// An error that a function of the schema raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raised {
    code: ErrorCode,
    value: String,
}

impl Raised {
    /// Reads an error of the database, if a function of the schema raised it.
    pub(super) fn read(error: &DbError) -> Option<Raised> {
        let number = error.code().code().strip_prefix(PREFIX)?;
        let code = ErrorCode::from_u16(number.parse().ok()?)?;
        let detail = error.detail().unwrap_or_default();
        let (_argument, value) = detail.split_once(": ").unwrap_or((detail, ""));
        let value = value.to_owned();
        Some(Raised { code, value })
    }

    /// Converts an error that the request cannot be refused with.
    pub(super) fn into_failure(self) -> StoreFailure {
        let Raised { code, value } = self;
        let code = code.name();
        tracing::error!(code, value, "the database refused a statement unexpectedly");
        StoreFailure::Internal {
            reason: format!("unexpected {code}: {value}"),
        }
    }
}

impl TryFrom<Raised> for NotFound {
    type Error = Raised;

    fn try_from(raised: Raised) -> Result<NotFound, Raised> {
        match raised.code {
            ErrorCode::AccountNotFound => Ok(NotFound::account("account", raised.value)),
            ErrorCode::QueueNotFound => Ok(NotFound::queue(raised.value)),
            _ => Err(raised),
        }
    }
}

impl TryFrom<Raised> for NameTaken {
    type Error = Raised;

    fn try_from(raised: Raised) -> Result<NameTaken, Raised> {
        let entity = match raised.code {
            ErrorCode::AccountNameExists => Entity::Account,
            ErrorCode::QueueNameExists => Entity::Queue,
            _ => return Err(raised),
        };
        let name = raised.value;
        Ok(NameTaken { entity, name })
    }
}

impl TryFrom<Raised> for NotEmpty {
    type Error = Raised;

    fn try_from(raised: Raised) -> Result<NotEmpty, Raised> {
        let entity = match raised.code {
            ErrorCode::AccountNotEmpty => Entity::Account,
            ErrorCode::QueueNotEmpty => Entity::Queue,
            _ => return Err(raised),
        };
        let value = raised.value;
        Ok(NotEmpty { entity, value })
    }
}

impl TryFrom<Raised> for CreateQueueRefusal {
    type Error = Raised;

    fn try_from(raised: Raised) -> Result<CreateQueueRefusal, Raised> {
        NameTaken::try_from(raised)
            .map(CreateQueueRefusal::from)
            .or_else(|raised| NotFound::try_from(raised).map(CreateQueueRefusal::from))
    }
}

impl TryFrom<Raised> for DeleteRefusal {
    type Error = Raised;

    fn try_from(raised: Raised) -> Result<DeleteRefusal, Raised> {
        NotFound::try_from(raised)
            .map(DeleteRefusal::from)
            .or_else(|raised| NotEmpty::try_from(raised).map(DeleteRefusal::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(code: ErrorCode) -> Raised {
        let value = "7".to_owned();
        Raised { code, value }
    }

    #[test]
    fn a_request_is_refused_only_with_what_its_signature_says() {
        let missing = raised(ErrorCode::QueueNotFound);
        let refusal = NotFound::queue(7);
        assert_eq!(NotFound::try_from(missing.clone()), Ok(refusal.clone()));
        assert_eq!(
            DeleteRefusal::try_from(missing.clone()),
            Ok(DeleteRefusal::NotFound(refusal))
        );
        assert_eq!(NameTaken::try_from(missing.clone()), Err(missing));
        let other = raised(ErrorCode::LeaseEnded);
        assert_eq!(CreateQueueRefusal::try_from(other.clone()), Err(other));
    }
}
