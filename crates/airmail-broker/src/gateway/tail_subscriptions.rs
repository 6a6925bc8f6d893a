//! Tails: where the live subscriptions of an index's logs meet, of which each lane has one.
//!
//! Both lanes carry the same topics, for one map says where a topic lives. So who is live on a topic is kept
//! once, in one list, however many lanes he is live in; which those are, his record says. What is each lane's
//! own is kept with its log, as a [`super::tail_lane::TailLane`].
//!
//! Invariants:
//!
//! - `tails`: a log belongs to the tail of its index, which knows it as that of its lane.

use super::subscription::Subscriptions;
use crate::keys::{LogKey, SubKey, TailKey};
use airmail_model::{Lane, LogId, LogIndex, NamespaceId, TopicHash};
use hashbrown::HashTable;
use slab::Slab;
use std::collections::BTreeMap;

/// Topics of the logs of one index, and who is live on each.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The logs, by lane, as far as they are known.
    logs: [Option<LogKey>; Lane::ALL.len()],
    /// The first subscription of each topic's list.
    topics: HashTable<SubKey>,
}

/// A topic's hash is evenly distributed already; the top twelve bits chose the log.
fn hash(topic: TopicHash) -> u64 {
    (topic.0 & u128::from(u64::MAX)) as u64
}

impl Tail {
    /// The log of a lane.
    pub(crate) fn log(&self, lane: Lane) -> Option<LogKey> {
        self.logs[lane as usize]
    }

    /// Puts a subscription at the head of its topic's list, where it is not yet.
    pub(crate) fn link(&mut self, subs: &mut Subscriptions, key: SubKey) {
        let topic = subs[key].topic();
        let found = self
            .topics
            .find_mut(hash(topic), |head| subs[*head].is_of(topic));
        if let Some(head) = found {
            let after = std::mem::replace(head, key);
            subs[key].after = after;
            subs[after].before = key;
        } else {
            let rehash = |head: &SubKey| hash(subs[*head].topic());
            self.topics.insert_unique(hash(topic), key, rehash);
        }
    }

    /// Takes a subscription out of its topic's list.
    pub(crate) fn unlink(&mut self, subs: &mut Subscriptions, key: SubKey) {
        let sub = subs[key];
        if sub.after != SubKey::NONE {
            subs[sub.after].before = sub.before;
        }
        if sub.before == SubKey::NONE {
            let found = self
                .topics
                .find_entry(hash(sub.topic()), |head| *head == key);
            if let Ok(mut entry) = found {
                if sub.after == SubKey::NONE {
                    entry.remove();
                } else {
                    *entry.get_mut() = sub.after;
                }
            }
        } else {
            subs[sub.before].after = sub.after;
        }
        (subs[key].before, subs[key].after) = (SubKey::NONE, SubKey::NONE);
    }

    /// The subscriptions on a topic's list, newest first, in whichever lanes they are live.
    pub(crate) fn listed<'a>(
        &self,
        subs: &'a Subscriptions,
        topic: TopicHash,
    ) -> impl Iterator<Item = SubKey> + use<'a> {
        let found = self
            .topics
            .find(hash(topic), |head| subs[*head].is_of(topic));
        let first = found.copied().filter(|key| *key != SubKey::NONE);
        std::iter::successors(first, |key| {
            Some(subs[*key].after).filter(|key| *key != SubKey::NONE)
        })
    }

    /// Every topic that has a list.
    fn topics(&self, subs: &Subscriptions) -> Vec<TopicHash> {
        self.topics.iter().map(|head| subs[*head].topic()).collect()
    }
}

/// A lane of a tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneOfTail<'a> {
    pub(crate) tail: &'a Tail,
    pub(crate) lane: Lane,
}

impl LaneOfTail<'_> {
    /// The live subscriptions of a topic, newest first.
    pub(crate) fn subscribers<'s>(
        self,
        subs: &'s Subscriptions,
        topic: TopicHash,
    ) -> impl Iterator<Item = SubKey> + use<'s> {
        let (listed, lane) = (self.tail.listed(subs, topic), self.lane);
        listed.filter(move |key| subs[*key].is_live_in(lane))
    }

    /// Whether a topic has live subscriptions.
    pub(crate) fn has_live(self, subs: &Subscriptions, topic: TopicHash) -> bool {
        self.subscribers(subs, topic).next().is_some()
    }

    /// Every topic with live subscriptions.
    pub(crate) fn live_topics(self, subs: &Subscriptions) -> Vec<TopicHash> {
        let mut topics = self.tail.topics(subs);
        topics.retain(|topic| self.has_live(subs, *topic));
        topics
    }

    /// Every live subscription, in order of key.
    pub(crate) fn everyone(self, subs: &Subscriptions) -> Vec<SubKey> {
        let topics = self.tail.topics(subs).into_iter();
        let mut all: Vec<SubKey> = topics
            .flat_map(|topic| self.subscribers(subs, topic))
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
