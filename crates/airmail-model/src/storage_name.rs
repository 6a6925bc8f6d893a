//! The names of a node's storages, by which a namespace says where its logs are.
//!
//! A node's first storage has no name: it holds log 0, and the logs of every namespace that names none. A name is
//! kept inline and is cheap to copy, so that it can stand in a log's settings and go with them over a link.

use crate::error::{Error, ErrorCode};
use std::fmt;
use std::str::FromStr;

/// The longest name of a storage, in bytes.
pub const STORAGE_NAME_BYTES_MAX: usize = 32;

/// Name of a storage: 1 to [`STORAGE_NAME_BYTES_MAX`] of `a-z 0-9 -`; or none, for a node's first.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageName {
    /// The name, with zeros behind it: no name has one.
    bytes: [u8; STORAGE_NAME_BYTES_MAX],
}

impl StorageName {
    /// The first storage, which has no name.
    pub const FIRST: StorageName = StorageName {
        bytes: [0; STORAGE_NAME_BYTES_MAX],
    };
    /// Description of a name, for errors.
    pub const EXPECTED: &str = "1 to 32 of a-z, 0-9 and -";

    /// Reads a name; `None` for what cannot be one, the empty text among that.
    #[must_use]
    pub fn new(name: &str) -> Option<StorageName> {
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || !name.bytes().all(letters) {
            return None;
        }
        let mut bytes = [0; STORAGE_NAME_BYTES_MAX];
        bytes
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
        Some(StorageName { bytes })
    }

    /// Reads a name as requests carry it: the empty text is the first storage.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with `field` for what cannot be a name.
    pub fn or_first(name: &str, field: &str) -> Result<StorageName, Error> {
        if name.is_empty() {
            return Ok(StorageName::FIRST);
        }
        StorageName::new(name).ok_or_else(|| {
            Error::new(ErrorCode::InvalidArgument)
                .field(field)
                .value(name.escape_debug())
                .limit(StorageName::EXPECTED)
        })
    }

    /// Whether it is the first storage's: none.
    #[must_use]
    pub fn is_first(self) -> bool {
        self == StorageName::FIRST
    }

    /// The name; empty for the first storage.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|b| *b == 0);
        let name = &self.bytes[..end.unwrap_or(STORAGE_NAME_BYTES_MAX)];
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl FromStr for StorageName {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<StorageName, &'static str> {
        StorageName::new(name).ok_or(StorageName::EXPECTED)
    }
}

impl fmt::Display for StorageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for StorageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageName({:?})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let longest = "x".repeat(STORAGE_NAME_BYTES_MAX);
        for name in ["a", "fast", "tier-2", "0", &longest] {
            let read = StorageName::new(name).expect(name);
            assert_eq!((read.as_str(), read.is_first()), (name, false));
            assert_eq!(name.parse(), Ok(read));
        }
        assert_eq!(StorageName::FIRST.as_str(), "");
        assert_eq!(StorageName::default(), StorageName::FIRST);
    }

    #[test]
    fn what_can_be_no_name_is_refused_with_what_it_has_to_be() {
        let long = "x".repeat(STORAGE_NAME_BYTES_MAX + 1);
        for name in ["Fast", "a b", "a_b", "a.b", "ä", "a\0", &long] {
            assert_eq!(StorageName::new(name), None, "{name}");
            let error = StorageName::or_first(name, "namespace.storage").unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            assert_eq!(error.expected(), StorageName::EXPECTED);
        }
        assert_eq!(StorageName::new(""), None);
        assert_eq!(StorageName::or_first("", "x"), Ok(StorageName::FIRST));
    }
}
