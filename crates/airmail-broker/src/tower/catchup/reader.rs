//! Catch-up readers: each serves the members who want what lies a little ahead of it.

use super::member::Member;
use crate::keys::{MemberKey, ReaderKey, TowerLogKey};
use airmail_log::ReaderId;
use airmail_model::{AppendTime, Sequence, TopicHash};
use slab::Slab;
use std::collections::BTreeSet;

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
    pub(crate) members: BTreeSet<(TopicHash, MemberKey)>,
    /// Members that have an end.
    pub(crate) ends: BTreeSet<(Sequence, MemberKey)>,
    /// Members that have an end in time.
    pub(crate) times: BTreeSet<(AppendTime, MemberKey)>,
    /// Bytes that the reader may still give.
    pub(crate) granted: i64,
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

    /// The members for a topic, in order of key.
    pub(crate) fn of_topic(&self, topic: TopicHash) -> impl Iterator<Item = MemberKey> + '_ {
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
        (first == last).then_some(*first)
    }
}

/// The readers under way: at most as many as the settings say.
#[derive(Debug, Default)]
pub(crate) struct Readers(Slab<CatchUpReader>);

impl Readers {
    /// Puts one in.
    pub(crate) fn insert(&mut self, reader: CatchUpReader) -> ReaderKey {
        ReaderKey::new(self.0.insert(reader))
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, key: ReaderKey) -> CatchUpReader {
        self.0.remove(key.place())
    }

    /// The reader, if it is still under way.
    pub(crate) fn get(&self, key: ReaderKey) -> Option<&CatchUpReader> {
        self.0.get(key.place())
    }

    /// Number of catch-up readers.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The key of each, in order.
    pub(crate) fn keys(&self) -> Vec<ReaderKey> {
        let all = self.0.iter();
        all.map(|(place, _)| ReaderKey::new(place)).collect()
    }

    /// Each with its key, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ReaderKey, &CatchUpReader)> {
        let all = self.0.iter();
        all.map(|(place, reader)| (ReaderKey::new(place), reader))
    }
}

impl std::ops::Index<ReaderKey> for Readers {
    type Output = CatchUpReader;

    fn index(&self, key: ReaderKey) -> &CatchUpReader {
        &self.0[key.place()]
    }
}

impl std::ops::IndexMut<ReaderKey> for Readers {
    fn index_mut(&mut self, key: ReaderKey) -> &mut CatchUpReader {
        &mut self.0[key.place()]
    }
}
