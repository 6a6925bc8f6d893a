//! Invariants of every run. One invariant a file, named after the guarantee of the design that it
//! stands for; each defines its violation, and nothing else does.

pub mod audience;
pub mod bounded;
pub mod complete;
pub mod durable_first;
pub mod ends;
pub mod expiry;
pub mod filters;
pub mod gaps;
pub mod kept;
pub mod numbers;
pub mod one_node;
pub mod order;
pub mod places;
pub mod selections;
pub mod tiling;

use std::fmt;

/// A guarantee was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant, beginning with its guarantee.
    pub invariant: &'static str,
    /// Facts of the violation.
    pub detail: String,
}

impl Violation {
    /// A violation of `invariant`, as `detail` shows.
    #[must_use]
    pub fn new(invariant: &'static str, detail: impl Into<String>) -> Violation {
        Violation {
            invariant,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.detail)
    }
}

impl std::error::Error for Violation {}

/// Nothing, or the violation.
pub type Checked = Result<(), Violation>;
