//! Tails: where the live subscriptions of an index's logs meet, of which each lane has one.
//!
//! Both lanes carry the same topics, for one map says where a topic lives. So who is live on a topic is kept
//! once, in one list, however many lanes he is live in; which those are, his record says. What is each lane's
//! own is kept with its log, as a [`super::tail_lane::TailLane`].
//!
//! Invariants:
//!
//! - `tails`: a log belongs to the tail of its index, which knows it as that of its lane.

use super::filters::FilterKey;
use super::scope::{Scope, Selection, SlotLogs};
use super::subscription::{Subscription, Subscriptions};
use crate::keys::{LogKey, SelectorKey, SubKey, TailKey};
use airmail_model::{Lane, LogId, LogIndex, NamespaceId, TopicHash, bug};
use hashbrown::{HashMap, HashTable};
use slab::Slab;
use std::collections::BTreeMap;

/// Topics of the logs of one index, and who is live on each.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The logs, by lane, as far as they are known.
    logs: [Option<LogKey>; Lane::ALL.len()],
    /// The first subscription of each topic's list.
    topics: HashTable<SubKey>,
    /// The first subscription of the list of each selection.
    selections: BTreeMap<SelectorKey, SubKey>,
    /// Those who have filters, apart: they are in no list of the above.
    filtered: BTreeMap<Scope, FilteredOf>,
}

/// Subscriptions to one topic, or with one selector, that have filters.
#[derive(Debug, Default)]
struct FilteredOf {
    count: usize,
    /// The first subscription of the list of each filter: where it is walked, no order counts.
    by_filter: HashMap<FilterKey, SubKey>,
}

/// A list of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListKey {
    pub(super) scope: Scope,
    pub(super) filter: Option<FilterKey>,
}

/// A topic's hash is evenly distributed already; the top twelve bits chose the log.
fn hash(topic: TopicHash) -> u64 {
    (topic.0 & u128::from(u64::MAX)) as u64
}

/// The topic of a subscription that is in the list of one.
fn topic_of(sub: &Subscription) -> TopicHash {
    sub.scope().in_maps()
}

impl Tail {
    /// The log of a lane.
    pub(crate) fn log(&self, lane: Lane) -> Option<LogKey> {
        self.logs[lane as usize]
    }

    /// Whether nobody has a selection here.
    pub(crate) fn is_without_selections(&self) -> bool {
        self.selections.is_empty()
    }

    /// Puts a subscription at the head of its list, where it is not yet.
    pub(crate) fn link(&mut self, subs: &mut Subscriptions, key: SubKey) {
        let ListKey { scope, filter } = subs.list_of(key);
        let after = match scope {
            _ if filter.is_some() => {
                let of = self.filtered.entry(scope).or_default();
                of.count += 1;
                filter.and_then(|filter| of.by_filter.insert(filter, key))
            }
            Scope::Topic(topic) => {
                let found = self
                    .topics
                    .find_mut(hash(topic), |head| subs[*head].is_of(scope));
                if let Some(head) = found {
                    Some(std::mem::replace(head, key))
                } else {
                    let rehash = |head: &SubKey| hash(topic_of(&subs[*head]));
                    self.topics.insert_unique(hash(topic), key, rehash);
                    None
                }
            }
            Scope::Selected(selection) => self.selections.insert(selection.selector, key),
        };
        if let Some(after) = after {
            subs[key].after = after;
            subs[after].before = key;
        }
    }

    /// Takes a subscription out of its list.
    pub(crate) fn unlink(&mut self, subs: &mut Subscriptions, key: SubKey) {
        let sub = subs[key];
        if sub.after != SubKey::NONE {
            subs[sub.after].before = sub.before;
        }
        if sub.before == SubKey::NONE {
            self.set_first(subs.list_of(key), key, sub.after);
        } else {
            subs[sub.before].after = sub.after;
        }
        if let ListKey {
            scope,
            filter: Some(_),
        } = subs.list_of(key)
            && let Some(of) = self.filtered.get_mut(&scope)
        {
            of.count -= 1;
            if of.count == 0 {
                self.filtered.remove(&scope);
            }
        }
        (subs[key].before, subs[key].after) = (SubKey::NONE, SubKey::NONE);
    }

    /// Puts the next one, if there is one, at the head of a list in place of the one that is.
    fn set_first(&mut self, list: ListKey, first: SubKey, next: SubKey) {
        let is_last = next == SubKey::NONE;
        let ListKey { scope, filter } = list;
        if let Some(filter) = filter {
            let of = self.filtered.entry(scope).or_default();
            if is_last {
                of.by_filter.remove(&filter);
            } else {
                of.by_filter.insert(filter, next);
            }
            return;
        }
        match scope {
            Scope::Topic(topic) => {
                let found = self.topics.find_entry(hash(topic), |head| *head == first);
                let Ok(mut entry) = found else {
                    bug!("{first:?} is the first of {topic:?}, and its tail does not know it");
                    return;
                };
                if is_last {
                    entry.remove();
                } else {
                    *entry.get_mut() = next;
                }
            }
            Scope::Selected(selection) if is_last => {
                self.selections.remove(&selection.selector);
            }
            Scope::Selected(selection) => {
                self.selections.insert(selection.selector, next);
            }
        }
    }

    /// The subscriptions on a list, newest first, in whichever lanes they are live.
    pub(crate) fn listed<'a>(
        &self,
        subs: &'a Subscriptions,
        list: ListKey,
    ) -> impl Iterator<Item = SubKey> + use<'a> {
        let ListKey { scope, filter } = list;
        let found = match scope {
            _ if filter.is_some() => {
                let of = self.filtered.get(&scope);
                of.zip(filter)
                    .and_then(|(of, filter)| of.by_filter.get(&filter))
            }
            Scope::Topic(topic) => self
                .topics
                .find(hash(topic), |head| subs[*head].is_of(scope)),
            Scope::Selected(selection) => self.selections.get(&selection.selector),
        };
        let first = found.copied().filter(|key| *key != SubKey::NONE);
        std::iter::successors(first, |key| {
            Some(subs[*key].after).filter(|key| *key != SubKey::NONE)
        })
    }

    /// Number of subscriptions with filters to a topic, or with a selector, in whichever lanes they are live.
    pub(super) fn filtered_of(&self, scope: Scope) -> usize {
        self.filtered.get(&scope).map_or(0, |of| of.count)
    }

    /// Number of selections with a selector that have filters.
    pub(super) fn filtered_selecting(&self, selector: SelectorKey) -> usize {
        let logs = self.filtered_logs();
        logs.map_or(0, |logs| {
            self.filtered_of(Scope::Selected(Selection { logs, selector }))
        })
    }

    /// The logs of which somebody has a selection with a filter, if there is one: all here are of the same.
    pub(super) fn filtered_logs(&self) -> Option<SlotLogs> {
        // Selections come after topics.
        let (last, _) = self.filtered.last_key_value()?;
        last.selection().map(|selection| selection.logs)
    }

    /// Every list.
    fn lists(&self, subs: &Subscriptions) -> Vec<ListKey> {
        let filtered = self.filtered.values().flat_map(|of| of.by_filter.values());
        let heads = self.topics.iter().chain(self.selections.values());
        heads
            .chain(filtered)
            .map(|head| subs.list_of(*head))
            .collect()
    }
}

/// A lane of a tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneOfTail<'a> {
    pub(crate) tail: &'a Tail,
    pub(crate) lane: Lane,
}

impl LaneOfTail<'_> {
    /// Those who are live for a topic or a selection, newest first.
    pub(crate) fn subscribers<'s>(
        self,
        subs: &'s Subscriptions,
        list: ListKey,
    ) -> impl Iterator<Item = SubKey> + use<'s> {
        let (listed, lane) = (self.tail.listed(subs, list), self.lane);
        listed.filter(move |key| subs[*key].is_live_in(lane))
    }

    /// Those who are live for a topic, without filters, newest first.
    pub(crate) fn of_topic<'s>(
        self,
        subs: &'s Subscriptions,
        topic: TopicHash,
    ) -> impl Iterator<Item = SubKey> + use<'s> {
        let (scope, filter) = (Scope::Topic(topic), None);
        self.subscribers(subs, ListKey { scope, filter })
    }

    /// Those who are live with a selector and a filter, newest first.
    pub(super) fn selecting_filtered<'s>(
        self,
        subs: &'s Subscriptions,
        selector: SelectorKey,
        filter: FilterKey,
    ) -> impl Iterator<Item = SubKey> + use<'s> {
        let logs = self.tail.filtered_logs();
        let lists = logs.map(|logs| ListKey {
            scope: Scope::Selected(Selection { logs, selector }),
            filter: Some(filter),
        });
        let listed = lists.map(|list| self.subscribers(subs, list));
        listed.into_iter().flatten()
    }

    /// Those who are live with a selector, without filters, newest first.
    pub(crate) fn selecting<'s>(
        self,
        subs: &'s Subscriptions,
        selector: SelectorKey,
    ) -> impl Iterator<Item = SubKey> + use<'s> {
        let first = self.tail.selections.get(&selector);
        let list = first.map(|head| subs.list_of(*head));
        let listed = list.map(|list| self.subscribers(subs, list));
        listed.into_iter().flatten()
    }

    /// Whether a topic has live subscriptions of its own.
    pub(crate) fn has_live(self, subs: &Subscriptions, topic: TopicHash) -> bool {
        let is_live_in = |list| self.subscribers(subs, list).next().is_some();
        let scope = Scope::Topic(topic);
        let filter = None;
        if is_live_in(ListKey { scope, filter }) {
            return true;
        }
        let of = self.tail.filtered.get(&scope);
        let mut filters = of.into_iter().flat_map(|of| of.by_filter.keys());
        filters.any(|filter| {
            let filter = Some(*filter);
            is_live_in(ListKey { scope, filter })
        })
    }

    /// Every topic with live subscriptions of its own.
    pub(crate) fn live_topics(self, subs: &Subscriptions) -> Vec<TopicHash> {
        let lists = self.tail.lists(subs).into_iter();
        let mut topics: Vec<TopicHash> = lists.filter_map(|list| list.scope.topic()).collect();
        topics.sort_unstable();
        topics.dedup();
        topics.retain(|topic| self.has_live(subs, *topic));
        topics
    }

    /// Every live subscription, in order of key.
    pub(crate) fn everyone(self, subs: &Subscriptions) -> Vec<SubKey> {
        let lists = self.tail.lists(subs).into_iter();
        let mut all: Vec<SubKey> = lists
            .flat_map(|list| self.subscribers(subs, list))
            .collect();
        all.sort_unstable();
        all
    }
}

/// Every tail of which a log is known.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    slab: Slab<Tail>,
    by_index: BTreeMap<(NamespaceId, LogIndex), TailKey>,
}

impl Tails {
    /// Takes note of a log; its tail.
    pub(crate) fn put(&mut self, id: LogId, log: LogKey) -> TailKey {
        let slab = &mut self.slab;
        let key = *self
            .by_index
            .entry((id.namespace, id.index))
            .or_insert_with(|| TailKey::new(slab.insert(Tail::default())));
        self[key].logs[id.lane as usize] = Some(log);
        key
    }

    /// Forgets a log, at whose tail nobody is, and with the last one its tail.
    pub(crate) fn take(&mut self, id: LogId, key: TailKey) {
        let tail = &mut self[key];
        tail.logs[id.lane as usize] = None;
        if tail.logs.iter().all(Option::is_none) {
            self.by_index.remove(&(id.namespace, id.index));
            self.slab.remove(key.place());
        }
    }
}

impl std::ops::Index<TailKey> for Tails {
    type Output = Tail;

    fn index(&self, key: TailKey) -> &Tail {
        &self.slab[key.place()]
    }
}

impl std::ops::IndexMut<TailKey> for Tails {
    fn index_mut(&mut self, key: TailKey) -> &mut Tail {
        &mut self.slab[key.place()]
    }
}
