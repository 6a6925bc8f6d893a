//! Roles: names for whoever may receive what is addressed to them.
//!
//! A message has the numbers of the roles that it is for (its audience), so that it stays small, and what is in a log goes
//! on meaning the same: a number is never given twice. Which number belongs to which name is in log 0.

use crate::error::{Error, ErrorCode};
use crate::id::RoleId;

/// Bytes of a role's name, at most.
pub const ROLE_NAME_BYTES_MAX: usize = 255;
/// Roles that there are at once, at most: every node has all of them in memory.
pub const ROLES_MAX: usize = 65_536;

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its number, never given again.
    pub id: RoleId,
    /// Its name.
    pub name: String,
}

impl Role {
    /// Whether `name` may name a role.
    ///
    /// ```
    /// use airmail_model::Role;
    /// assert!(Role::check_name("sales/emea").is_ok());
    /// assert!(Role::check_name("").is_err());
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the name and what is wrong with it.
    pub fn check_name(name: &str) -> Result<(), Error> {
        let limit = if name.is_empty() || name.len() > ROLE_NAME_BYTES_MAX {
            "1 to 255 bytes"
        } else if name.chars().any(char::is_control) {
            "no control characters"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorCode::InvalidArgument)
            .field("role")
            .value(name.escape_debug())
            .limit(limit))
    }

    /// The error of a role that there is not, by its name or number.
    #[must_use]
    pub fn not_found(asked: impl std::fmt::Display) -> Error {
        Error::new(ErrorCode::RoleNotFound)
            .field("role")
            .value(asked)
    }
}
