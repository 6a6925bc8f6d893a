//! The reasons for which a text is no filter.

use super::{BYTES_MAX, CONJUNCTIONS_MAX, DEPTH_MAX, TESTS_MAX};
use crate::error::{Error, ErrorCode};
use std::fmt;

/// Characters of a text that an error shows.
const SHOWN_MAX: usize = 40;

/// The reason for which a text is refused as a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// The text is not as the grammar says.
    Invalid {
        /// The line of the fault, from 1.
        line: u32,
        /// The column of the fault in its line, in characters, from 1.
        column: u32,
        /// The text found there, at most 40 characters of it, in back quotes; or a description, as `the end`.
        found: String,
        /// The words that would do there.
        expected: String,
    },
    /// The filter exceeds a bound.
    TooComplex {
        /// The bound.
        bound: Bound,
        /// The number found, or the one at which counting ended.
        found: usize,
    },
}

/// Bounds of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bytes of its text, as written and as shown: [`BYTES_MAX`].
    Bytes,
    /// Tests: [`TESTS_MAX`].
    Tests,
    /// Parentheses and `not`s around a test: [`DEPTH_MAX`].
    Depth,
    /// Conjunctions of its normal form: [`CONJUNCTIONS_MAX`].
    Conjunctions,
}

impl Bound {
    /// The greatest number that is allowed.
    #[must_use]
    pub const fn limit(self) -> usize {
        match self {
            Bound::Bytes => BYTES_MAX,
            Bound::Tests => TESTS_MAX,
            Bound::Depth => DEPTH_MAX,
            Bound::Conjunctions => CONJUNCTIONS_MAX,
        }
    }

    /// The name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Bytes => "bytes",
            Bound::Tests => "tests",
            Bound::Depth => "depth",
            Bound::Conjunctions => "conjunctions",
        }
    }

    pub(super) fn exceeded_by(self, found: usize) -> FilterError {
        FilterError::TooComplex { bound: self, found }
    }
}

impl FilterError {
    /// The name by which other programs know the kind of error: upper case, for ever.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            FilterError::Invalid { .. } => "FILTER_INVALID",
            FilterError::TooComplex { .. } => "FILTER_TOO_COMPLEX",
        }
    }
}

/// An entry of the table; the field is `filter`.
impl From<FilterError> for Error {
    fn from(error: FilterError) -> Error {
        match error {
            FilterError::Invalid {
                line,
                column,
                found,
                expected,
            } => Error::new(ErrorCode::FilterInvalid)
                .field("filter")
                .value(format_args!("{found} in line {line}, column {column}"))
                .limit(expected),
            FilterError::TooComplex { bound, found } => Error::new(ErrorCode::FilterTooComplex)
                .field("filter")
                .value(format_args!("{found} {}", bound.name()))
                .limit(bound.limit()),
        }
    }
}

/// A text as an error shows it.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            FilterError::Invalid {
                line,
                column,
                found,
                expected,
            } => write!(
                f,
                "line {line}, column {column}: found {found}, expected {expected}"
            ),
            FilterError::TooComplex { bound, found } => {
                let (name, limit) = (bound.name(), bound.limit());
                write!(f, "{name}: {found}, limit: {limit}")
            }
        }
    }
}

impl std::error::Error for FilterError {}
