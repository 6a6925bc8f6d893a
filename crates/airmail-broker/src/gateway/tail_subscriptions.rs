//! A tail: where the live subscriptions of one log meet. What the tower gives of the log, once, goes to
//! every live subscription of every session.
//!
//! Ranges are kept for each (session, log) and not for each subscription. A session's range stays
//! when its last live subscription here ends, so that whichever side counts on, `previous` of the
//! next delivery is never beyond what the client has accounted for (`ranges`, and `tiling` in the
//! simulator).

use super::subscription::Subscriptions;
use super::wants::TailWants;
use crate::keys::{BehindKey, SessionKey, SubKey};
use airmail_log::AppendClock;
use airmail_model::{AppendTime, Sequence, TopicHash};
use hashbrown::{HashSet, HashTable};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

/// One session's live range of one log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// The first number not yet told.
    pub(crate) next: Sequence,
    /// Live subscriptions on it.
    pub(crate) live: u32,
}

/// The tail of a log, and who is there.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The tower gives the log from `next` on: somebody is there.
    pub(crate) is_attached: bool,
    /// Number of the attachment, counting all so far.
    pub(crate) generation: u64,
    /// The first number that the tower has not given. Means nothing while not attached.
    pub(crate) next: Sequence,
    /// Live subscriptions here.
    pub(crate) live: usize,
    /// Ranges, by session.
    pub(crate) ranges: BTreeMap<SessionKey, Range>,
    /// Subscriptions that go live when the tail gets to their number.
    pub(crate) waiting: BTreeSet<(Sequence, BehindKey)>,
    /// Subscriptions that go live with the first batch behind which nothing from before their time can come.
    pub(crate) timed: BTreeSet<(AppendTime, BehindKey)>,
    /// Subscriptions that began at a position of the log's present life, live or not, until it
    /// begins another: only looked up, never walked.
    pub(crate) returned: HashSet<SubKey>,
    /// Topics on their way to be wanted of the tower, and from it.
    pub(crate) wants: TailWants,
    /// The first subscription of each topic's list.
    topics: HashTable<SubKey>,
}

/// A topic's hash is evenly distributed already; the top twelve bits chose the log.
fn hash(topic: TopicHash) -> u64 {
    (topic.0 & u128::from(u64::MAX)) as u64
}

impl Tail {
    /// Whether nobody needs what the tower gives.
    pub(crate) fn is_idle(&self) -> bool {
        let nobody_waits = self.waiting.is_empty() && self.timed.is_empty();
        self.live == 0 && nobody_waits && self.wants.holds == 0
    }

    /// Puts a subscription at the head of its topic's list, and on its session's range; `true` if
    /// the session had none here before.
    pub(crate) fn link(&mut self, subs: &mut Subscriptions, key: SubKey) -> bool {
        let (topic, session) = (subs[key].topic(), subs[key].session);
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
        self.live += 1;
        match self.ranges.entry(session) {
            Entry::Occupied(mut range) => {
                range.get_mut().live += 1;
                false
            }
            Entry::Vacant(place) => {
                let next = self.next;
                place.insert(Range { next, live: 1 });
                true
            }
        }
    }

    /// Takes a subscription out of its topic's list and off its session's range.
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
        if let Some(range) = self.ranges.get_mut(&sub.session) {
            range.live -= 1;
        }
        self.live -= 1;
    }

    /// The live subscriptions of a topic, newest first.
    pub(crate) fn subscribers<'a>(
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

    /// Whether a topic has live subscriptions.
    pub(crate) fn has_live(&self, subs: &Subscriptions, topic: TopicHash) -> bool {
        self.subscribers(subs, topic).next().is_some()
    }

    /// Every topic with live subscriptions.
    pub(crate) fn live_topics(&self, subs: &Subscriptions) -> Vec<TopicHash> {
        self.topics.iter().map(|head| subs[*head].topic()).collect()
    }

    /// Every live subscription, in order of key.
    pub(crate) fn everyone(&self, subs: &Subscriptions) -> Vec<SubKey> {
        let topics = self.live_topics(subs);
        let mut all: Vec<SubKey> = topics
            .into_iter()
            .flat_map(|topic| self.subscribers(subs, topic))
            .collect();
        all.sort_unstable();
        all
    }

    /// Those who wait for a number up to `last`, off the tail.
    pub(crate) fn wake(&mut self, last: Sequence) -> Option<BehindKey> {
        let (at, behind) = *self.waiting.first()?;
        if at > last {
            return None;
        }
        self.waiting.pop_first();
        Some(behind)
    }

    /// Those who wait for a time before which nothing can come behind a batch of `appended`, off the tail.
    pub(crate) fn wake_by_time(
        &mut self,
        clock: AppendClock,
        appended: AppendTime,
    ) -> Option<BehindKey> {
        let (time, behind) = *self.timed.first()?;
        if clock.proof(time) > appended {
            return None;
        }
        self.timed.pop_first();
        Some(behind)
    }

    /// Those who wait for a time that `appended` is not before, and stay at the tail.
    pub(crate) fn timed_up_to(&self, appended: AppendTime) -> Vec<BehindKey> {
        let first = self.timed.first();
        if first.is_none_or(|(time, _)| *time > appended) {
            return Vec::new();
        }
        let timed = self.timed.iter();
        let past = timed.take_while(|(time, _)| *time <= appended);
        past.map(|(_, behind)| *behind).collect()
    }
}
