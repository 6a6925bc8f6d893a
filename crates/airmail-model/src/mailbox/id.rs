//! Names and numbers of mailboxes, each of a type of its own.

use crate::{Error, ErrorCode};
use std::fmt;
use std::sync::Arc;

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

newtype!(
    /// An account, by the number that the store gave it: 1 or more, never reused.
    AccountId(i32)
);
newtype!(
    /// A queue, by the number that the store gave it: 1 or more, never reused.
    QueueId(i32)
);
newtype!(
    /// A message, by the number that the store gave it: 1 or more, never reused. One sent later, by
    /// a sender who knew of the first, has a higher one.
    MessageId(i64)
);
newtype!(
    /// A lease: one hand-out of a message. Never reused, for any message.
    LeaseId(i64)
);

/// The name of an account or queue: 1 to [`Name::CHARS_MAX`] characters, none of them a control
/// character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Characters that a name may have.
    pub const CHARS_MAX: usize = 255;

    /// Checks a name; `field` names it in the error.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an empty or a too long name, or a control character in it.
    pub fn new(field: &str, name: &str) -> Result<Name, Error> {
        let bad = |value: String, limit: String| {
            Err(Error::new(ErrorCode::InvalidArgument)
                .field(field)
                .value(value)
                .limit(limit))
        };
        let chars = name.chars().count();
        if chars == 0 {
            return bad("(empty)".into(), "at least 1 character".into());
        }
        if chars > Name::CHARS_MAX {
            let limit = format!("at most {} characters", Name::CHARS_MAX);
            return bad(format!("{chars} characters"), limit);
        }
        match name.chars().find(|c| c.is_control()) {
            Some(c) => bad(format!("{c:?} in it"), "no control characters".into()),
            None => Ok(Name(name.into())),
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_255_characters_none_of_control() {
        assert!(Name::new("name", &"ž".repeat(255)).is_ok());
        for bad in ["", "a\nb", &"ž".repeat(256)] {
            let error = Name::new("name", bad).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            assert_eq!(error.field_name(), "name");
        }
    }
}
