//! Members of a set: what each is for, how it stands at the node, and which changes of its filter are under way.

use super::super::subject::selected;
use crate::core::{SubscriptionKey, SubscriptionSpec};
use crate::named_topic::{AskedTopics, NamedTopic, topic_name};
use airmail_model::filter::Filter;
use airmail_model::frame::{Places, Start, Wanted};
use airmail_model::position::LogPosition;
use airmail_model::selector::Selector;
use airmail_model::{Error, LogMap};
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
            Topics::Selected(selector) => selected(map, selector).collect(),
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
        let change = self.changes.pop_front_if(|change| change.left == 0)?;
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
                // The next one that was asked for is in all logs as it is.
                let is_divided = self.parts.len() > 1 && self.changes.is_empty();
                let back = is_divided.then(|| Arc::clone(&self.filter));
                Some(ChangeOutcome::Unchanged(error, back))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{Subscriber, SubscriberConfig};
    use airmail_model::{ErrorCode, LogIndex, MapEpoch, NamespaceId};

    fn filter(text: &str) -> Arc<Filter> {
        Arc::new(Filter::parse(text).unwrap())
    }

    /// A member for all topics of two logs, and its subscriptions there.
    fn divided() -> (Member, [SubscriptionKey; 2]) {
        let mut core = Subscriber::new(SubscriberConfig::default()).matching();
        let mut member = Member::new(SetMember::everything("a = 1"), &"default".into()).unwrap();
        let map = LogMap::even(NamespaceId(1), MapEpoch(1), LogIndex(0), 2);
        let begun = member.begin(&map, (false, false), |spec| core.add(spec));
        begun.unwrap();
        let keys: Vec<SubscriptionKey> = member.keys().collect();
        (member, keys.try_into().unwrap())
    }

    fn refusal() -> Error {
        Error::new(ErrorCode::FilterTooComplex)
    }

    #[test]
    fn a_change_that_a_part_refuses_is_taken_back_in_the_others() {
        let (mut member, [one, other]) = divided();
        member.change(filter("a = 2"), false);
        assert_eq!(member.change_answered(one, Ok(Places::new())), None);
        let outcome = member.change_answered(other, Err(refusal()));
        let back = Some(filter("a = 1"));
        assert_eq!(outcome, Some(ChangeOutcome::Unchanged(refusal(), back)));
        member.change(filter("a = 1"), true);
        assert_eq!(member.change_answered(other, Ok(Places::new())), None);
        let outcome = member.change_answered(one, Ok(Places::new()));
        assert_eq!(outcome, Some(ChangeOutcome::Quiet));
    }

    #[test]
    fn a_change_that_a_part_refuses_is_not_taken_back_where_another_one_follows() {
        let (mut member, [one, other]) = divided();
        member.change(filter("a = 2"), false);
        member.change(filter("a = 3"), false);
        // One is ahead of the other.
        for _ in 0..2 {
            assert_eq!(member.change_answered(one, Ok(Places::new())), None);
        }
        let outcome = member.change_answered(other, Err(refusal()));
        assert_eq!(outcome, Some(ChangeOutcome::Unchanged(refusal(), None)));
        let outcome = member.change_answered(other, Ok(Places::new()));
        assert_eq!(outcome, Some(ChangeOutcome::Changed(Vec::new())));
        // What is in force now is what a later refusal goes back to.
        member.change(filter("a = 4"), false);
        assert_eq!(member.change_answered(one, Ok(Places::new())), None);
        let outcome = member.change_answered(other, Err(refusal()));
        let back = Some(filter("a = 3"));
        assert_eq!(outcome, Some(ChangeOutcome::Unchanged(refusal(), back)));
    }
}
