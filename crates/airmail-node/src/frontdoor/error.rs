//! Errors of the border between front doors and the node: small, typed, each with its facts.
//!
//! Where one of them leaves the node it becomes an entry of the one table of errors that users see
//! (`airmail-model`'s `error.rs`), by the conversions at the end of this file and nowhere else.

use crate::config::cluster::Roles;
use airmail_model::frame::Hello;
use airmail_model::namespace::namespace_not_found;
use airmail_model::{Error, ErrorCode, Role};
use std::time::Duration;

/// Delay that a client is advised while the node is starting.
const STARTING: Duration = Duration::from_millis(500);

/// The node can be asked nothing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The node has not opened its logs yet.
    #[error("the node is starting")]
    Starting,
    /// The node stops: whatever has not been handed to it was not done.
    #[error("the node is stopping")]
    Stopping,
}

/// A request names a namespace that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no namespace is called {name}")]
pub struct NamespaceNotFound {
    /// The name that was asked for.
    pub name: String,
}

/// A rule of the session is broken, or the node ends it: nothing more can be asked on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The node takes no requests now.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The first request was not Hello, or a later one was.
    #[error("hello must come first, and only first: found {found}")]
    HelloExpected {
        /// The request that came instead.
        found: &'static str,
    },
    /// Hello names a namespace that does not exist.
    #[error(transparent)]
    NamespaceNotFound(#[from] NamespaceNotFound),
    /// Hello names roles that the client is not believed to have.
    #[error(transparent)]
    NotBelieved(#[from] RolesNotBelieved),
}

/// A client names roles that it is not believed to have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RolesNotBelieved {
    /// The node does not trust what clients say of themselves.
    #[error("the client says that it has role {role}, and is not trusted")]
    NotTrusted {
        /// The first role that it names.
        role: String,
    },
    /// There is no such role.
    #[error("no role is called {role}")]
    NotFound {
        /// Its name.
        role: String,
    },
    /// They are more than a client can have.
    #[error("the client names {roles} roles")]
    TooMany {
        /// Number of them.
        roles: usize,
    },
}

/// A publish refused before any shard saw it. The session goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishRefusal {
    /// The batch, or a message of it, is not one that this node accepts; the error has the field.
    #[error(transparent)]
    Unacceptable(Error),
    /// Plain messages for a namespace that does not exist.
    #[error(transparent)]
    NamespaceNotFound(#[from] NamespaceNotFound),
    /// The request has neither a batch nor messages.
    #[error("the request has no body")]
    BodyAbsent,
    /// The node takes no publishes.
    #[error(transparent)]
    WrongRole(#[from] WrongRole),
}

/// A request for another role than this node has: another node takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this node has roles {roles}, and {needed} is needed")]
pub struct WrongRole {
    /// The node's roles.
    pub roles: Roles,
    /// The role that is needed.
    pub needed: &'static str,
}

/// A subscription refused before any shard saw it. The session goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeRefusal {
    /// The topic, the start or a reserved field is not one that this node accepts; the error has the field.
    #[error(transparent)]
    Unacceptable(Error),
    /// The namespace does not exist.
    #[error(transparent)]
    NamespaceNotFound(#[from] NamespaceNotFound),
    /// The node takes no subscriptions.
    #[error(transparent)]
    WrongRole(#[from] WrongRole),
}

impl From<WrongRole> for Error {
    fn from(wrong: WrongRole) -> Error {
        Error::new(ErrorCode::Elsewhere)
            .field("node.roles")
            .value(wrong.roles)
            .limit(format!("a node with role {}", wrong.needed))
    }
}

impl From<Unavailable> for Error {
    fn from(why: Unavailable) -> Error {
        match why {
            Unavailable::Starting => Error::new(ErrorCode::Overloaded)
                .field("node")
                .value("starting")
                .retry_after(STARTING),
            Unavailable::Stopping => Error::new(ErrorCode::ShuttingDown)
                .field("node")
                .value("stopping"),
        }
    }
}

impl From<NamespaceNotFound> for Error {
    fn from(missing: NamespaceNotFound) -> Error {
        namespace_not_found(&missing.name)
    }
}

impl From<SessionError> for Error {
    fn from(error: SessionError) -> Error {
        match error {
            SessionError::Unavailable(why) => why.into(),
            SessionError::HelloExpected { found } => Error::new(ErrorCode::HelloExpected)
                .field("kind")
                .value(found)
                .limit("hello first, and only first"),
            SessionError::NamespaceNotFound(missing) => missing.into(),
            SessionError::NotBelieved(why) => why.into(),
        }
    }
}

impl From<RolesNotBelieved> for Error {
    fn from(why: RolesNotBelieved) -> Error {
        match why {
            RolesNotBelieved::NotTrusted { role } => Error::new(ErrorCode::PermissionDenied)
                .field("roles")
                .value(role)
                .limit("none, without security.trust_roles on the node"),
            RolesNotBelieved::NotFound { role } => Role::not_found(role),
            RolesNotBelieved::TooMany { roles } => Error::new(ErrorCode::InvalidArgument)
                .field("roles")
                .value(roles)
                .limit(Hello::ROLES_MAX),
        }
    }
}

impl From<PublishRefusal> for Error {
    fn from(refusal: PublishRefusal) -> Error {
        match refusal {
            PublishRefusal::Unacceptable(error) => error,
            PublishRefusal::NamespaceNotFound(missing) => missing.into(),
            PublishRefusal::BodyAbsent => Error::new(ErrorCode::InvalidArgument)
                .field("body")
                .value("absent")
                .limit("batch or messages"),
            PublishRefusal::WrongRole(wrong) => wrong.into(),
        }
    }
}

impl From<SubscribeRefusal> for Error {
    fn from(refusal: SubscribeRefusal) -> Error {
        match refusal {
            SubscribeRefusal::Unacceptable(error) => error,
            SubscribeRefusal::NamespaceNotFound(missing) => missing.into(),
            SubscribeRefusal::WrongRole(wrong) => wrong.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_border_has_its_entry_in_the_table() {
        let nowhere = || NamespaceNotFound {
            name: "nowhere".into(),
        };
        let topic = Error::new(ErrorCode::TopicInvalid).field("topic");
        let wrong = || WrongRole {
            roles: "copilot".parse().unwrap(),
            needed: "pilot",
        };
        let table: [(Error, ErrorCode, &str); 10] = [
            (
                PublishRefusal::from(wrong()).into(),
                ErrorCode::Elsewhere,
                "node.roles",
            ),
            (
                SubscribeRefusal::from(wrong()).into(),
                ErrorCode::Elsewhere,
                "node.roles",
            ),
            (Unavailable::Starting.into(), ErrorCode::Overloaded, "node"),
            (
                Unavailable::Stopping.into(),
                ErrorCode::ShuttingDown,
                "node",
            ),
            (
                SessionError::HelloExpected { found: "add" }.into(),
                ErrorCode::HelloExpected,
                "kind",
            ),
            (
                SessionError::from(nowhere()).into(),
                ErrorCode::NamespaceNotFound,
                "namespace",
            ),
            (
                PublishRefusal::BodyAbsent.into(),
                ErrorCode::InvalidArgument,
                "body",
            ),
            (
                PublishRefusal::from(nowhere()).into(),
                ErrorCode::NamespaceNotFound,
                "namespace",
            ),
            (
                SubscribeRefusal::from(nowhere()).into(),
                ErrorCode::NamespaceNotFound,
                "namespace",
            ),
            (
                SubscribeRefusal::Unacceptable(topic).into(),
                ErrorCode::TopicInvalid,
                "topic",
            ),
        ];
        for (error, code, field) in table {
            assert_eq!((error.code(), error.field_name()), (code, field));
        }
    }

    #[test]
    fn roles_that_are_not_believed_have_their_entries_in_the_table() {
        let role = || "cook".to_owned();
        for (why, code, field) in [
            (
                RolesNotBelieved::NotTrusted { role: role() },
                ErrorCode::PermissionDenied,
                "roles",
            ),
            (
                RolesNotBelieved::NotFound { role: role() },
                ErrorCode::RoleNotFound,
                "role",
            ),
            (
                RolesNotBelieved::TooMany { roles: 256 },
                ErrorCode::InvalidArgument,
                "roles",
            ),
        ] {
            let error = Error::from(SessionError::from(why));
            assert_eq!((error.code(), error.field_name()), (code, field));
        }
    }
}
