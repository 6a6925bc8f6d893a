//! Catch-up readers: each serves the members who want what lies a little ahead of it.

use super::member::Member;
use crate::keys::{MemberKey, ReaderKey, TowerLogKey};
use airmail_log::ReaderId;
use airmail_model::{AppendTime, Mono, Sequence, TopicHash};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A reader and its members.
#[derive(Debug)]
pub(crate) struct CatchUpReader {
    pub(crate) log: TowerLogKey,
    pub(crate) reader: ReaderId,
    /// The first number that the reader has not given.
    pub(crate) position: Sequence,
    /// The only topic that the reader gives. `None`: all.
    pub(crate) topic: Option<TopicHash>,
    /// Its members.
    pub(crate) members: BTreeSet<(Option<TopicHash>, MemberKey)>,
    /// Members that have an end.
    pub(crate) ends: BTreeSet<(Sequence, MemberKey)>,
    /// Members that have an end in time.
    pub(crate) times: BTreeSet<(AppendTime, MemberKey)>,
    /// Bytes that the reader may still give.
    pub(crate) granted: i64,
    /// When it gave something last, or was given leave to.
    pub(crate) heard_at: Mono,
    /// Bytes that it has given since it began or last had its turn.
    pub(crate) used: u64,
    /// Numbers that it has passed, and how many of them it has read.
    pub(crate) passed: Passed,
}

/// Numbers that a reader has passed. One of one topic leaves batches out, but what it reads, it reads whole,
/// with the records of other topics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    numbers: u64,
    read: u64,
}

impl Passed {
    /// The reader has come from `position` to `next`, and read this of it.
    pub(crate) fn add(&mut self, position: Sequence, next: Sequence, read: u64) {
        self.numbers += next.0.saturating_sub(position.0);
        self.read += read;
    }

    /// Lets what was before count for half.
    pub(crate) fn age(&mut self) {
        self.numbers /= 2;
        self.read /= 2;
    }

    /// Multiple of what it has read that there would be without leaving anything out; unknown at first.
    pub(crate) fn times_as_much(self) -> Option<u64> {
        (self.read > 0).then(|| self.numbers.div_ceil(self.read).max(1))
    }
}

impl CatchUpReader {
    /// When it will have given nothing for so long although it may. `None`: it may not.
    pub(crate) fn silent_at(&self, after: Duration) -> Option<Mono> {
        (self.granted > 0).then(|| self.heard_at.plus(after))
    }

    /// Takes a member in.
    pub(crate) fn insert(&mut self, key: MemberKey, member: &Member) {
        self.members.insert((member.topic, key));
        self.ends.extend(member.until.map(|until| (until, key)));
        let time = member.not_after;
        self.times.extend(time.map(|time| (time, key)));
    }

    /// Lets a member go.
    pub(crate) fn remove(&mut self, key: MemberKey, member: &Member) {
        self.members.remove(&(member.topic, key));
        if let Some(until) = member.until {
            self.ends.remove(&(until, key));
        }
        if let Some(time) = member.not_after {
            self.times.remove(&(time, key));
        }
    }

    /// The members for a topic alone, or for all, in order of key.
    pub(crate) fn of_topic(
        &self,
        topic: Option<TopicHash>,
    ) -> impl Iterator<Item = MemberKey> + '_ {
        let stretch = (topic, MemberKey::MIN)..=(topic, MemberKey::MAX);
        self.members.range(stretch).map(|(_, member)| *member)
    }

    /// Every member, by topic.
    pub(crate) fn everyone(&self) -> Vec<MemberKey> {
        self.members.iter().map(|(_, key)| *key).collect()
    }

    /// The topic that all members want, if it is the same.
    pub(crate) fn only_topic(&self) -> Option<TopicHash> {
        let (first, _) = self.members.first()?;
        let (last, _) = self.members.last()?;
        first.filter(|_| first == last)
    }
}

/// The readers under way. Those that are silent do not count against the settings' bound
/// ([`super::silence`]).
#[derive(Debug, Default)]
pub(crate) struct Readers {
    slab: Slab<CatchUpReader>,
    /// Those that are not silent.
    active: BTreeSet<ReaderKey>,
    /// The silent one of a log.
    silent: BTreeMap<TowerLogKey, ReaderKey>,
}

impl Readers {
    /// Puts one in.
    pub(crate) fn insert(&mut self, reader: CatchUpReader) -> ReaderKey {
        let key = ReaderKey::new(self.slab.insert(reader));
        self.active.insert(key);
        key
    }

    /// Takes one out, which is not silent.
    pub(crate) fn remove(&mut self, key: ReaderKey) -> CatchUpReader {
        let was_active = self.active.remove(&key);
        assert!(was_active, "silent: {key:?} ends");
        self.slab.remove(key.place())
    }

    /// One is silent from now on. No other of its log is.
    pub(crate) fn fall_silent(&mut self, key: ReaderKey) {
        self.active.remove(&key);
        self.silent.insert(self[key].log, key);
    }

    /// One is silent no more; whether it was.
    pub(crate) fn wake(&mut self, key: ReaderKey) -> bool {
        let was_silent = self.active.insert(key);
        if was_silent {
            let log = self[key].log;
            self.silent.remove(&log);
        }
        was_silent
    }

    /// The reader, if it is still under way.
    pub(crate) fn get(&self, key: ReaderKey) -> Option<&CatchUpReader> {
        self.slab.get(key.place())
    }

    /// Number of catch-up readers.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Number of those that are not silent.
    pub(crate) fn active(&self) -> usize {
        self.active.len()
    }

    /// The key of each that is not silent, in order.
    pub(crate) fn active_keys(&self) -> Vec<ReaderKey> {
        self.active.iter().copied().collect()
    }

    /// Each that is not silent, with its key, in order.
    pub(crate) fn active_readers(&self) -> impl Iterator<Item = (ReaderKey, &CatchUpReader)> {
        self.active.iter().map(|key| (*key, &self[*key]))
    }

    /// The silent one of each log that has one.
    pub(crate) fn silent(&self) -> &BTreeMap<TowerLogKey, ReaderKey> {
        &self.silent
    }

    /// The key of each, in order.
    pub(crate) fn keys(&self) -> Vec<ReaderKey> {
        self.iter().map(|(key, _)| key).collect()
    }

    /// Each with its key, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ReaderKey, &CatchUpReader)> {
        let all = self.slab.iter();
        all.map(|(place, reader)| (ReaderKey::new(place), reader))
    }
}

impl std::ops::Index<ReaderKey> for Readers {
    type Output = CatchUpReader;

    fn index(&self, key: ReaderKey) -> &CatchUpReader {
        &self.slab[key.place()]
    }
}

impl std::ops::IndexMut<ReaderKey> for Readers {
    fn index_mut(&mut self, key: ReaderKey) -> &mut CatchUpReader {
        &mut self.slab[key.place()]
    }
}
