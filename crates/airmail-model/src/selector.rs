//! Selectors: of which topics of a namespace somebody wants the messages.
//!
//! All whose names begin so, all whose names fit a pattern, or all. Whoever wants one topic, or a few, names them instead.
//! To decide is one look for each distinct topic of a batch; whoever asks may keep the answer, as a topic's name never
//! changes.

mod glob;

pub use glob::{Glob, GlobError, PATTERN_BYTES_MAX};

use std::fmt;

/// The topics of a namespace that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// Those whose names begin so. The empty text begins every name.
    Prefix(Box<str>),
    /// Those whose names fit the pattern.
    Pattern(Glob),
    /// Every one.
    All,
}

impl Selector {
    /// Whether messages of a topic are wanted.
    #[must_use]
    pub fn selects(&self, topic: &str) -> bool {
        match self {
            Selector::Prefix(start) => topic.starts_with(&**start),
            Selector::Pattern(pattern) => pattern.matches(topic),
            Selector::All => true,
        }
    }

    /// The text with which the name of every selected topic begins; empty where there is none. Only names that
    /// begin so need be asked about.
    #[must_use]
    pub fn literal_prefix(&self) -> &str {
        match self {
            Selector::Prefix(start) => start,
            Selector::Pattern(pattern) => pattern.literal_prefix(),
            Selector::All => "",
        }
    }

    /// Memory of its own behind this value, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Selector::Prefix(start) => start.len(),
            Selector::Pattern(pattern) => pattern.heap_bytes(),
            Selector::All => 0,
        }
    }
}

/// Shown as a user would write it: `prefix a/`, `pattern a/*`, `everything`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Prefix(start) => write!(f, "prefix {start}"),
            Selector::Pattern(pattern) => write!(f, "pattern {pattern}"),
            Selector::All => f.write_str("everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_selector_selects_what_its_kind_says(begins in "[ab/]{0,3}", asked in "[ab/]{1,4}") {
            let prefix = Selector::Prefix(begins.as_str().into());
            prop_assert_eq!(prefix.selects(&asked), asked.starts_with(&begins));
            prop_assert!(Selector::All.selects(&asked));
        }

        #[test]
        fn every_selected_name_begins_with_the_literal_prefix(pattern in "[ab/*]{1,6}", asked in "[ab/]{1,6}") {
            let Ok(glob) = Glob::parse(&pattern) else { return Ok(()) };
            let selector = Selector::Pattern(glob);
            if selector.selects(&asked) {
                prop_assert!(asked.starts_with(selector.literal_prefix()));
            }
        }
    }
}
