//! Members of a set: what each is for, how it stands at the node, and which changes of its filter are under way.

use crate::core::{SubscriptionKey, SubscriptionSpec};
use crate::named_topic::{AskedTopics, NamedTopic, topic_name};
use airmail_model::filter::Filter;
use airmail_model::frame::{Places, Start, Wanted};
use airmail_model::position::LogPosition;
use airmail_model::selector::Selector;
use airmail_model::{Error, Lane, LogMap};
use std::collections::VecDeque;
use std::sync::Arc;

/// A member of a [`SubscriptionSet`](super::SubscriptionSet), to be added: topics, a filter on them, and where to start.
///
/// ```
/// use airmail_client::{SetMember, Start};
///
/// let cheap = SetMember::prefix("quotes/", "price < 10").from(Start::Earliest);
/// ```
#[derive(Debug)]
#[must_use = "nothing is subscribed to before it is added to a set"]
pub struct SetMember {
    topics: AskedTopics,
    filter: String,
    start: Start,
}

impl SetMember {
    fn new(topics: AskedTopics, filter: &str) -> SetMember {
        SetMember {
            topics,
            filter: filter.to_owned(),
            start: Start::Latest,
        }
    }

    /// Wants the messages of a topic that a filter matches.
    pub fn topic(topic: &str, filter: &str) -> SetMember {
        SetMember::new(AskedTopics::named(topic), filter)
    }

    /// Wants the messages that a filter matches, of every topic whose name begins with `prefix`.
    pub fn prefix(prefix: &str, filter: &str) -> SetMember {
        SetMember::new(AskedTopics::prefix(prefix), filter)
    }

    /// Wants the messages that a filter matches, of every topic whose name fits a pattern.
    pub fn pattern(pattern: &str, filter: &str) -> SetMember {
        SetMember::new(AskedTopics::pattern(pattern), filter)
    }

    /// Wants the messages that a filter matches, of every topic of the namespace.
    pub fn everything(filter: &str) -> SetMember {
        SetMember::new(AskedTopics::everything(), filter)
    }

    /// Sets where it starts. Default: after what is stored now.
    pub fn from(mut self, start: Start) -> SetMember {
        self.start = start;
        self
    }
}

/// Topics that a member is for.
#[derive(Debug)]
enum Topics {
    One(Arc<NamedTopic>),
    Selected(Arc<Selector>),
}

/// A change of a member's filter that not all of its logs have answered.
#[derive(Debug)]
struct Changing {
    filter: Arc<Filter>,
    /// Number of answers that are missing.
    left: usize,
    refused: Option<Error>,
    /// Where those stand that have changed.
    places: Vec<LogPosition>,
    /// True if the user has not asked for it: it takes back one that a part of the logs have refused.
    is_quiet: bool,
}

/// Outcome of a change that all logs have answered.
#[derive(Debug, PartialEq)]
pub(super) enum ChangeOutcome {
    /// In force from these places on.
    Changed(Vec<LogPosition>),
    /// Refused in some log; the filter that is to be in force again where it was not refused.
    Unchanged(Error, Option<Arc<Filter>>),
    /// Nothing that the user is told.
    Quiet,
}

/// A subscription of a member, in one log.
#[derive(Debug)]
struct PartOfMember {
    key: SubscriptionKey,
    is_told: bool,
    /// Number of changes that it has answered.
    answered: usize,
}

/// A member that has been added. See the module's documentation.
#[derive(Debug)]
pub(super) struct Member {
    topics: Topics,
    /// Filter in force.
    filter: Arc<Filter>,
    start: Start,
    /// One for each log, once these are known.
    parts: Vec<PartOfMember>,
    /// True if its user knows that a node has it.
    is_ready: bool,
    /// Number of changes that have been answered by all parts.
    answered: usize,
    changes: VecDeque<Changing>,
}

impl Member {
    /// Makes one as it is asked for.
    pub(super) fn new(asked: SetMember, namespace: &Arc<str>) -> Result<Member, Error> {
        let topics = match asked.topics {
            AskedTopics::Named(topic) => {
                topic_name(&topic)?;
                let namespace = Arc::clone(namespace);
                Topics::One(Arc::new(NamedTopic { namespace, topic }))
            }
            AskedTopics::Selected(selector) => Topics::Selected(Arc::new(selector?)),
        };
        Ok(Member {
            topics,
            filter: Arc::new(Filter::parse(&asked.filter)?),
            start: asked.start,
            parts: Vec::new(),
            is_ready: false,
            answered: 0,
            changes: VecDeque::new(),
        })
    }

    /// Gives the topic, where it is for one alone.
    pub(super) fn named(&self) -> Option<&NamedTopic> {
        match &self.topics {
            Topics::One(named) => Some(named),
            Topics::Selected(_) => None,
        }
    }

    /// Lists its subscriptions.
    pub(super) fn keys(&self) -> impl Iterator<Item = SubscriptionKey> {
        self.parts.iter().map(|part| part.key)
    }

    /// Makes its subscriptions, as `add` does each.
    pub(super) fn begin(
        &mut self,
        map: &LogMap,
        (tell_expired, headers_only): (bool, bool),
        mut add: impl FnMut(SubscriptionSpec) -> SubscriptionKey,
    ) -> Result<(), Error> {
        let spec = |wanted| SubscriptionSpec {
            namespace: map.namespace,
            wanted,
            start: self.start.clone(),
            until: None,
            tell_expired,
            filter: Some(Arc::clone(&self.filter)),
            headers_only,
        };
        let wanted: Vec<Wanted> = match &self.topics {
            Topics::One(named) => {
                vec![Wanted::Topic(topic_name(&named.topic)?.hash(map.namespace))]
            }
            Topics::Selected(selector) => {
                let selected = |place| Wanted::Selected {
                    log: Some(place),
                    selector: Arc::clone(selector),
                };
                let places = (0u16..).zip(map.logs(Lane::Normal));
                places.map(|(place, _)| selected(place)).collect()
            }
        };
        let parts = wanted.into_iter().map(|wanted| PartOfMember {
            key: add(spec(wanted)),
            is_told: false,
            answered: 0,
        });
        self.parts = parts.collect();
        Ok(())
    }

    /// Takes note that a node has one of its subscriptions; tells whether it has all of them now, for the first time.
    pub(super) fn told(&mut self, key: SubscriptionKey) -> bool {
        if let Some(part) = self.parts.iter_mut().find(|part| part.key == key) {
            part.is_told = true;
        }
        let is_ready = self.parts.iter().all(|part| part.is_told);
        is_ready && !std::mem::replace(&mut self.is_ready, true)
    }

    /// Asks for another filter; the caller asks it of each of its subscriptions.
    pub(super) fn change(&mut self, filter: Arc<Filter>, is_quiet: bool) {
        self.changes.push_back(Changing {
            filter,
            left: self.parts.len(),
            refused: None,
            places: Vec::new(),
            is_quiet,
        });
    }

    /// Takes note that one of its subscriptions has answered its next change. An outcome, if it was the last of all.
    pub(super) fn change_answered(
        &mut self,
        key: SubscriptionKey,
        answer: Result<Places, Error>,
    ) -> Option<ChangeOutcome> {
        let part = self.parts.iter_mut().find(|part| part.key == key)?;
        let change = self.changes.get_mut(part.answered - self.answered)?;
        part.answered += 1;
        change.left -= 1;
        match answer {
            Ok(places) => change.places.extend(places),
            Err(error) => change.refused = change.refused.take().or(Some(error)),
        }
        let is_last = self.changes.front().is_some_and(|change| change.left == 0);
        let change = if is_last {
            self.changes.pop_front()?
        } else {
            return None;
        };
        self.answered += 1;
        match change.refused {
            None => {
                self.filter = change.filter;
                Some(if change.is_quiet {
                    ChangeOutcome::Quiet
                } else {
                    ChangeOutcome::Changed(change.places)
                })
            }
            Some(_) if change.is_quiet => Some(ChangeOutcome::Quiet),
            Some(error) => {
                let back = (self.parts.len() > 1).then(|| Arc::clone(&self.filter));
                Some(ChangeOutcome::Unchanged(error, back))
            }
        }
    }
}
