//! Filters: which messages somebody wants, by their attributes.
//!
//! `region = 'eu' and price between 10 and 20.5 or has urgent` is a filter. [`Filter::parse`] checks the
//! text and keeps it compiled, as one piece of memory: a namespace may have a hundred thousand of them,
//! and each is looked at for messages that come by the hundred thousand a second. [`Filter::matches`]
//! reads the record's attributes where they lie, without allocating; who asks many filters about one
//! record decodes it once ([`Facts`]) and asks [`Filter::matches_facts`].
//!
//! The language is made for an index: names, intervals and sets of values, `and`, `or`, `not`, and no
//! arithmetic. [`Filter::expression`] gives it back as a tree, and [`Expression::conjunctions`] as what
//! an index is made of. `docs/filters.md` has the grammar and the meaning; `vectors/filter.json` has
//! cases for every language.
//!
//! Invariants: what [`Filter`] shows ([`std::fmt::Display`]) parses to the same filter. A filter has
//! at most [`BYTES_MAX`], [`TESTS_MAX`], [`DEPTH_MAX`] and [`CONJUNCTIONS_MAX`]; what exceeds them
//! costs no more than they allow before it is refused.

mod code;
mod compare;
mod error;
mod eval;
mod expression;
mod facts;
mod lex;
mod normal;
mod parse;
#[cfg(test)]
mod tests;

pub use error::{Bound, FilterError};
pub use expression::{Check, Comparison, Expression, Test};
pub use facts::Facts;
pub use normal::{Conjunction, Literal};

use crate::batch::{Attributes, Record};
use std::fmt;

/// The longest text of a filter, in bytes: as it is written, and as a [`Filter`] shows itself.
pub const BYTES_MAX: usize = 4096;
/// Tests in a filter. Each value of a list counts as one.
pub const TESTS_MAX: usize = 256;
/// Parentheses and `not`s around a test.
pub const DEPTH_MAX: usize = 32;
/// Conjunctions of the filter's normal form, an `or` of `and`s.
pub const CONJUNCTIONS_MAX: usize = 64;

/// A filter that was checked and compiled.
///
/// ```
/// use airmail_model::filter::Filter;
/// let filter = Filter::parse("price < 20 AND NOT region IN ('eu', 'us')")?;
/// assert_eq!(filter.to_string(), "price < 20 and not region in ('eu', 'us')");
/// # Ok::<(), airmail_model::filter::FilterError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Filter {
    /// The tree, encoded: `code` has the format.
    code: Box<[u8]>,
}

impl Filter {
    /// Checks and compiles a text.
    ///
    /// # Errors
    /// The text is no filter, with the place, what was found there and what was expected; or it exceeds one
    /// of the bounds.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let expression = parse::parse(text)?;
        let shown = expression.to_string().len();
        if shown > BYTES_MAX {
            return Err(Bound::Bytes.exceeded_by(shown));
        }
        expression.conjunctions()?;
        Ok(Filter {
            code: code::encode(&expression),
        })
    }

    /// Whether a record is wanted. Its payload is not looked at.
    #[must_use]
    pub fn matches(&self, record: &Record<'_>) -> bool {
        self.matches_attributes(record.attributes)
    }

    /// Whether a record with these attributes is wanted.
    #[must_use]
    pub fn matches_attributes(&self, attributes: Attributes<'_>) -> bool {
        eval::holds(&self.code, &attributes)
    }

    /// Whether a record is wanted whose attributes were decoded before, once for many filters.
    #[must_use]
    pub fn matches_facts(&self, facts: &Facts<'_>) -> bool {
        eval::holds(&self.code, facts)
    }

    /// The filter as a tree.
    #[must_use]
    pub fn expression(&self) -> Expression {
        code::decode(&self.code)
    }

    /// Memory of its own behind this value, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.code.len()
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.expression(), f)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({self})")
    }
}

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        Filter::parse(text)
    }
}
