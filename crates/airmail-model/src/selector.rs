//! Selectors: of which topics of a namespace somebody wants the messages.
//!
//! A topic, a set of them, all whose names begin so, all whose names fit a pattern, or all. To decide is
//! one look for each distinct topic of a batch; whoever asks keeps the answer, as a topic's name never changes.

mod glob;

pub use glob::{Glob, GlobError, PATTERN_BYTES_MAX};

use crate::topic::TopicName;

/// The topics of a namespace that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// This one.
    One(TopicName),
    /// These.
    Set(TopicSet),
    /// Those whose names begin so. The empty text begins every name.
    Prefix(Box<str>),
    /// Those whose names fit the pattern.
    Pattern(Glob),
    /// Every one.
    All,
}

/// A set of topics, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSet(Box<[TopicName]>);

impl TopicSet {
    /// Topics in whatever order; one that comes twice is there once.
    #[must_use]
    pub fn new(mut topics: Vec<TopicName>) -> TopicSet {
        topics.sort_unstable();
        topics.dedup();
        TopicSet(topics.into_boxed_slice())
    }

    /// The topics, in order of name.
    #[must_use]
    pub fn topics(&self) -> &[TopicName] {
        &self.0
    }

    /// Whether a topic of this name is in it.
    #[must_use]
    pub fn contains(&self, topic: &str) -> bool {
        let found = self.0.binary_search_by(|other| other.as_str().cmp(topic));
        found.is_ok()
    }
}

impl Selector {
    /// Whether messages of a topic are wanted.
    #[must_use]
    pub fn selects(&self, topic: &str) -> bool {
        match self {
            Selector::One(name) => name.as_str() == topic,
            Selector::Set(set) => set.contains(topic),
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
            Selector::One(name) => name.as_str(),
            Selector::Prefix(start) => start,
            Selector::Pattern(pattern) => pattern.literal_prefix(),
            Selector::Set(_) | Selector::All => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn topic(name: &str) -> TopicName {
        TopicName::new(name, &Limits::DEFAULT).unwrap()
    }

    proptest! {
        #[test]
        fn a_selector_selects_what_its_kind_says(names in vec("[ab/]{1,4}", 1..6), asked in "[ab/]{1,4}") {
            let first = &names[0];
            let set = TopicSet::new(names.iter().map(|name| topic(name)).collect());
            prop_assert!(set.topics().is_sorted());
            prop_assert_eq!(Selector::Set(set).selects(&asked), names.contains(&asked));
            prop_assert_eq!(Selector::One(topic(first)).selects(&asked), *first == asked);
            let prefix = Selector::Prefix(first.as_str().into());
            prop_assert_eq!(prefix.selects(&asked), asked.starts_with(first.as_str()));
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
