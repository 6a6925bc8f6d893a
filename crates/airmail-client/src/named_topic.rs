//! Topics by the names that a user gives them, by what selects them, and by the names that messages bring.

use airmail_model::batch::Record;
use airmail_model::selector::{Glob, Selector};
use airmail_model::{Error, ErrorCode, Limits, TopicHash, TopicName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of topics whose names a [`TopicNames`] keeps, at most.
const NAMES_KEPT: usize = 1024;

/// A topic as its user named it. All messages of the topic share one of these, so that each counts
/// one reference instead of two.
#[derive(Debug, PartialEq)]
pub(crate) struct NamedTopic {
    pub(crate) namespace: Arc<str>,
    pub(crate) topic: Arc<str>,
}

/// Names of topics that nobody has named, as their messages bring them: for those of a selection.
///
/// Messages of a topic share a name as long as it is kept. When there are too many, all are let go of, since to know the one
/// that is used least would cost each message more: then each topic costs one new name, and no message does.
#[derive(Debug)]
pub(crate) struct TopicNames {
    namespace: Arc<str>,
    kept: BTreeMap<TopicHash, Arc<NamedTopic>>,
}

impl TopicNames {
    pub(crate) fn new(namespace: Arc<str>) -> TopicNames {
        TopicNames {
            namespace,
            kept: BTreeMap::new(),
        }
    }

    /// Gives the name of a message's topic.
    pub(crate) fn of(&mut self, record: &Record<'_>) -> Arc<NamedTopic> {
        let kept = self.kept.get(&record.topic_hash);
        if let Some(named) = kept.filter(|named| *named.topic == *record.topic_name) {
            return Arc::clone(named);
        }
        if self.kept.len() >= NAMES_KEPT {
            self.kept.clear();
        }
        let named = Arc::new(NamedTopic {
            namespace: Arc::clone(&self.namespace),
            topic: record.topic_name.into(),
        });
        self.kept.insert(record.topic_hash, Arc::clone(&named));
        named
    }
}

/// Topics that a user asks for.
#[derive(Debug)]
pub(crate) enum AskedTopics {
    /// The one of this name, which is not checked yet.
    Named(Arc<str>),
    /// Those of this selector; or the error that a text gives which selects none.
    Selected(Result<Selector, Error>),
}

impl AskedTopics {
    /// Asks for the topic of this name.
    pub(crate) fn named(name: &str) -> AskedTopics {
        AskedTopics::Named(name.into())
    }

    /// Asks for all topics whose names begin so.
    pub(crate) fn prefix(prefix: &str) -> AskedTopics {
        AskedTopics::Selected(Ok(Selector::Prefix(prefix.into())))
    }

    /// Asks for all topics whose names fit this pattern.
    pub(crate) fn pattern(text: &str) -> AskedTopics {
        AskedTopics::Selected(pattern(text))
    }

    /// Asks for all topics of a namespace.
    pub(crate) fn everything() -> AskedTopics {
        AskedTopics::Selected(Ok(Selector::All))
    }
}

/// Checks a topic's name, but for its length: that is checked against the node's limits when the
/// message is encoded.
pub(crate) fn topic_name(name: &str) -> Result<TopicName, Error> {
    let unlimited = Limits {
        topic_bytes: u32::MAX,
        ..Limits::DEFAULT
    };
    TopicName::new(name, &unlimited)
}

/// Reads a pattern of topics' names.
fn pattern(text: &str) -> Result<Selector, Error> {
    let glob = Glob::parse(text).map_err(|why| {
        Error::new(ErrorCode::SubscriptionInvalid)
            .field("pattern")
            .value(text)
            .limit(why)
    });
    Ok(Selector::Pattern(glob?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_batch::batch_in;
    use airmail_model::{Lane, LogId, LogIndex, NamespaceId};

    const LOG: LogId = LogId {
        namespace: NamespaceId(1),
        lane: Lane::Normal,
        index: LogIndex(0),
    };

    #[test]
    fn messages_of_a_topic_share_its_name_also_over_batches() {
        let mut names = TopicNames::new("default".into());
        let batch = batch_in(LOG, ["a", "b", "a"]);
        let mut given = Vec::new();
        for _ in 0..2 {
            given.extend(batch.iter().map(|record| names.of(&record)));
        }
        let texts: Vec<&str> = given.iter().map(|named| &*named.topic).collect();
        assert_eq!(texts, ["a", "b", "a", "a", "b", "a"]);
        for (one, other) in [(0, 2), (0, 3), (0, 5), (1, 4)] {
            assert!(Arc::ptr_eq(&given[one], &given[other]), "{one} and {other}");
        }
    }

    #[test]
    fn no_more_names_are_kept_than_that_and_each_is_right() {
        let mut names = TopicNames::new("default".into());
        let topic = |number: u16| format!("topic/{number}");
        for round in (0..3_000).step_by(250).chain([0]) {
            let many = batch_in(LOG, (round..round + 250).map(topic));
            for (number, record) in (round..).zip(many.iter()) {
                assert_eq!(*names.of(&record).topic, *topic(number));
                assert!(names.kept.len() <= NAMES_KEPT);
            }
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_refused_with_its_fault() {
        assert!(pattern("a/*").is_ok());
        for text in ["", "a\\"] {
            let error = pattern(text).expect_err("it is none");
            assert_eq!(error.code(), ErrorCode::SubscriptionInvalid);
            assert_eq!(error.field_name(), "pattern");
        }
    }
}
