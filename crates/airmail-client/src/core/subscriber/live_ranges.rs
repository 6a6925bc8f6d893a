//! The live ranges of a stream, one for each log, and the subscriptions on them.
//!
//! These are exactly the live subscriptions, which [`super::Subscriber::check`] asserts (`ranges`).

use airmail_model::bug;
use airmail_model::frame::Wanted;
use airmail_model::{Incarnation, Lane, LogId, Sequence, TopicHash};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Relation of a message that covers `(previous, last]` to a range that stands at `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// Duplicate: all its numbers are accounted for.
    Duplicate,
    /// Hole: numbers before it are missing.
    Hole,
    /// New: its numbers from `next` on are.
    New,
}

/// Applies the range rule of [`airmail_model::frame`].
pub(super) fn fit(next: Sequence, previous: Sequence, last: Sequence) -> Fit {
    // Above every number: no node says it, and nothing could follow it.
    if last < next || last == Sequence::MAX {
        Fit::Duplicate
    } else if previous >= next {
        Fit::Hole
    } else {
        Fit::New
    }
}

/// Hasher that passes a topic's hash through: it is evenly distributed already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopicHasher(u64);

impl Hasher for TopicHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

/// Live range of one log.
#[derive(Clone, Debug)]
pub(super) struct LiveRange {
    /// First number not yet accounted for.
    pub(super) next: Sequence,
    pub(super) incarnation: Incarnation,
    members: usize,
    /// Those of its subscriptions that are selections, oldest first: of each message here. A node makes it one at most.
    selected: Vec<u32>,
}

impl LiveRange {
    /// Counts the subscriptions on it.
    pub(super) fn members(&self) -> usize {
        self.members
    }

    /// Lists the subscriptions on it that are selections, oldest first.
    pub(super) fn selected(&self) -> &[u32] {
        &self.selected
    }
}

type MembersByTopic = HashMap<TopicHash, Vec<u32>, BuildHasherDefault<TopicHasher>>;

/// All live ranges and their subscriptions. The tables by topic are only looked up, never iterated,
/// so their order cannot influence an effect.
#[derive(Debug, Default)]
pub(super) struct LiveRanges {
    pub(super) ranges: BTreeMap<LogId, LiveRange>,
    /// By lane.
    topics: [MembersByTopic; Lane::ALL.len()],
}

impl LiveRanges {
    /// Adds a subscription that the range serves from `next` on.
    ///
    /// The range begins where the first of its members does: one that begins beyond the log's end
    /// must not hide from later members what comes before.
    pub(super) fn join(
        &mut self,
        log: LogId,
        incarnation: Incarnation,
        next: Sequence,
        wanted: &Wanted,
        index: u32,
    ) {
        let range = self.ranges.entry(log).or_insert(LiveRange {
            next,
            incarnation,
            members: 0,
            selected: Vec::new(),
        });
        range.next = range.next.min(next);
        range.incarnation = incarnation;
        range.members += 1;
        let members = match wanted {
            Wanted::Topic(topic) => {
                let topics = &mut self.topics[log.lane as usize];
                topics.entry(*topic).or_default()
            }
            Wanted::Selected { .. } => &mut range.selected,
        };
        members.push(index);
    }

    /// Removes a subscription; gives the range's `next`.
    pub(super) fn leave(&mut self, log: LogId, wanted: &Wanted, index: u32) -> Option<Sequence> {
        if let Wanted::Topic(topic) = wanted {
            self.leave_topic(log.lane, *topic, index);
        }
        let Some(range) = self.ranges.get_mut(&log) else {
            bug!("no range of {log}, which {index} leaves");
            return None;
        };
        range.members = range.members.saturating_sub(1);
        range.selected.retain(|member| *member != index);
        let next = range.next;
        if range.members == 0 {
            self.ranges.remove(&log);
        }
        Some(next)
    }

    fn leave_topic(&mut self, lane: Lane, topic: TopicHash, index: u32) {
        let topics = &mut self.topics[lane as usize];
        let Some(members) = topics.get_mut(&topic) else {
            bug!("no subscription of {topic:?} is live, and {index} leaves");
            return;
        };
        members.retain(|member| *member != index);
        if members.is_empty() {
            topics.remove(&topic);
        }
    }

    /// Counts the topics that have live subscriptions in a lane.
    pub(super) fn topics(&self, lane: Lane) -> usize {
        self.topics[lane as usize].len()
    }

    /// Lists the subscriptions of a topic that are live in a lane, oldest first.
    pub(super) fn members(&self, topic: TopicHash, lane: Lane) -> &[u32] {
        let members = self.topics[lane as usize].get(&topic);
        members.map_or(&[], Vec::as_slice)
    }

    /// Gives the position of a member that began at `own`.
    pub(super) fn next(&self, log: LogId, own: Sequence) -> Sequence {
        self.ranges.get(&log).map_or(own, |r| r.next.max(own))
    }
}
