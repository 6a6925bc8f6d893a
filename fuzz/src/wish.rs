//! Wishes of a subscription, by a number: a topic or a selection, and a filter or none.

use airmail_model::filter::Filter;
use airmail_model::frame::Wanted;
use airmail_model::selector::{Glob, Selector};
use airmail_model::{NamespaceId, TopicName};
use std::sync::Arc;

/// Messages that a subscription is for: of a topic, or of a selection.
#[must_use]
pub fn wanted(namespace: NamespaceId, topic: &TopicName, number: u8) -> Wanted {
    let selector = match number >> 2 & 7 {
        0 => Selector::All,
        1 => Selector::Prefix("t".into()),
        2 => Selector::Pattern(Glob::parse("*").expect("a pattern")),
        _ => return Wanted::Topic(topic.hash(namespace)),
    };
    Wanted::Selected {
        log: (number % 4).checked_sub(1).map(u16::from),
        selector: Arc::new(selector),
    }
}

/// A filter that matches each message without attributes, one that matches none, or no filter.
#[must_use]
pub fn filter(number: u8) -> Option<Arc<Filter>> {
    let text = match number >> 5 {
        0 => "has a",
        1 => "not has a",
        _ => return None,
    };
    Some(Arc::new(Filter::parse(text).expect("a filter")))
}
