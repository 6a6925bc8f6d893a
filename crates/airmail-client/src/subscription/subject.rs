//! The subject of one stream's subscriptions: topics, or a selection of a namespace's topics.

use super::driver::Choices;
use crate::core::SubscriptionSpec;
use crate::named_topic::{NamedTopic, TopicNames, topic_name};
use airmail_model::batch::Record;
use airmail_model::frame::{Start, Wanted};
use airmail_model::selector::Selector;
use airmail_model::{Error, Lane, LogMap};
use std::sync::Arc;

/// A topic, and where its subscription starts.
#[derive(Debug)]
pub(super) struct TopicStart {
    pub(super) named: Arc<NamedTopic>,
    pub(super) start: Start,
}

/// Topics that a stream's subscriptions are for.
#[derive(Debug)]
pub(super) enum Subject {
    /// These, each once, with a subscription each.
    Topics(Vec<TopicStart>),
    /// Those that a selector selects, with a subscription for each log of the namespace.
    Selection(Selection),
}

/// Topics that a selector selects, and where their subscription starts.
#[derive(Debug)]
pub(super) struct Selection {
    selector: Arc<Selector>,
    start: Start,
    /// Name under which its subscriptions are requested: that of the namespace, and none of a topic.
    nameless: NamedTopic,
    names: TopicNames,
}

impl Subject {
    /// Makes a single topic the subject.
    pub(super) fn topic(named: Arc<NamedTopic>, start: Start) -> Subject {
        Subject::Topics(vec![TopicStart { named, start }])
    }

    /// Makes a selection of a namespace's topics the subject.
    pub(super) fn selection(namespace: Arc<str>, selector: Selector, start: Start) -> Subject {
        Subject::Selection(Selection {
            selector: Arc::new(selector),
            start,
            nameless: NamedTopic {
                namespace: Arc::clone(&namespace),
                topic: "".into(),
            },
            names: TopicNames::new(namespace),
        })
    }

    /// Lists the topics that were named: none of a selection.
    pub(super) fn topics(&self) -> &[TopicStart] {
        match self {
            Subject::Topics(topics) => topics,
            Subject::Selection(_) => &[],
        }
    }

    /// Tells whether it is a selection.
    pub(super) fn is_selection(&self) -> bool {
        matches!(self, Subject::Selection(_))
    }

    /// Gives the names under which the subscription with this number is requested.
    pub(super) fn named(&self, index: usize) -> Option<&NamedTopic> {
        match self {
            Subject::Topics(topics) => topics.get(index).map(|topic| &*topic.named),
            Subject::Selection(selection) => Some(&selection.nameless),
        }
    }

    /// Gives the name of the topic of a message that came for the subscription with this number.
    pub(super) fn name_of(&mut self, index: usize, record: &Record<'_>) -> Option<Arc<NamedTopic>> {
        match self {
            Subject::Topics(topics) => topics.get(index).map(|topic| Arc::clone(&topic.named)),
            Subject::Selection(selection) => Some(selection.names.of(record)),
        }
    }

    /// Makes the subscriptions, in order of number.
    pub(super) fn specs(
        &self,
        map: &LogMap,
        choices: &Choices,
    ) -> Result<Vec<SubscriptionSpec>, Error> {
        let spec = |wanted, start: &Start| SubscriptionSpec {
            namespace: map.namespace,
            wanted,
            start: start.clone(),
            until: None,
            tell_expired: choices.tell_expired,
            filter: choices.filter.clone(),
            headers_only: choices.headers_only,
        };
        match self {
            Subject::Topics(topics) => {
                let specs = topics.iter().map(|topic| {
                    let hash = topic_name(&topic.named.topic)?.hash(map.namespace);
                    Ok(spec(Wanted::Topic(hash), &topic.start))
                });
                specs.collect()
            }
            Subject::Selection(Selection {
                selector, start, ..
            }) => {
                let wanted = selected(map, selector);
                Ok(wanted.map(|wanted| spec(wanted, start)).collect())
            }
        }
    }
}

/// Lists what a selection's subscriptions want: one in each log of the namespace.
pub(super) fn selected(map: &LogMap, selector: &Arc<Selector>) -> impl Iterator<Item = Wanted> {
    let places = (0u16..).zip(map.logs(Lane::Normal));
    places.map(|(place, _)| Wanted::Selected {
        log: Some(place),
        selector: Arc::clone(selector),
    })
}
