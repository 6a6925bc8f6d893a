//! Topics by the names that a user gives them.

use airmail_model::{Error, Limits, TopicName};
use std::sync::Arc;

/// A topic as its user named it. All messages of the topic share one of these, so that each counts
/// one reference instead of two.
#[derive(Debug, PartialEq)]
pub(crate) struct NamedTopic {
    pub(crate) namespace: Arc<str>,
    pub(crate) topic: Arc<str>,
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
