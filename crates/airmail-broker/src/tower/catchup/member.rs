//! Members: those whom the tower reads for, and the queue of those who wait for a reader.
//!
//! A member is an attempt of the gateway to get something of one topic of one log: from a number, to an end or
//! to the tail. Whose client it is, and what that has been told, the tower does not know.

use crate::keys::{MemberKey, ReaderKey, TowerLogKey};
use crate::link::MemberId;
use airmail_model::{AppendTime, Sequence, TopicHash};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};

/// States of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It waits for a reader.
    Queued,
    /// It has one.
    Reading(ReaderKey),
}

/// Somebody for whom the tower reads, or is about to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) log: TowerLogKey,
    pub(crate) topic: TopicHash,
    /// The first number that it has not been given.
    pub(crate) at: Sequence,
    /// Where it ends. `None`: at the tail.
    pub(crate) until: Option<Sequence>,
    /// Time before which appended records are not for it.
    pub(crate) not_before: Option<AppendTime>,
    /// Time from which appended records are not for it; the first of them ends it.
    pub(crate) not_after: Option<AppendTime>,
    /// When it began to wait, in the order of all tickets.
    pub(crate) ticket: u64,
    pub(crate) place: Place,
}

/// Every member, and the queue for readers.
#[derive(Debug, Default)]
pub(crate) struct Members {
    slab: Slab<Member>,
    by_id: BTreeMap<MemberId, MemberKey>,
    tickets: u64,
    /// Those who wait for a reader, oldest first.
    by_ticket: BTreeMap<u64, MemberKey>,
    /// The same, by place in the log.
    by_place: BTreeSet<(TowerLogKey, Sequence, MemberKey)>,
}

impl Members {
    /// Puts one in who waits for nothing yet. One of the same id has left.
    pub(crate) fn insert(&mut self, member: Member) -> MemberKey {
        let id = member.id;
        let key = MemberKey::new(self.slab.insert(member));
        self.by_id.insert(id, key);
        key
    }

    /// Takes one out, who is not in the queue.
    pub(crate) fn remove(&mut self, key: MemberKey) -> Member {
        let member = self.slab.remove(key.place());
        self.by_id.remove(&member.id);
        member
    }

    /// Keeps the id of one who has left: a planted bug.
    #[cfg(feature = "sabotage")]
    pub(crate) fn keep_id(&mut self, id: MemberId, key: MemberKey) {
        self.by_id.insert(id, key);
    }

    /// The key of a member.
    pub(crate) fn find(&self, id: MemberId) -> Option<MemberKey> {
        self.by_id.get(&id).copied()
    }

    /// Those of one log, in order of key.
    pub(crate) fn of_log(&self, log: TowerLogKey) -> Vec<MemberKey> {
        let mine = self.iter().filter(|(_, member)| member.log == log);
        mine.map(|(key, _)| key).collect()
    }

    /// Every one, in order of key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemberKey, &Member)> {
        let all = self.slab.iter();
        all.map(|(place, member)| (MemberKey::new(place), member))
    }

    /// Puts one at the end of the queue.
    pub(crate) fn enqueue(&mut self, key: MemberKey) {
        self.tickets += 1;
        let member = &mut self.slab[key.place()];
        (member.ticket, member.place) = (self.tickets, Place::Queued);
        self.by_ticket.insert(member.ticket, key);
        self.by_place.insert((member.log, member.at, key));
    }

    /// Takes one out of the queue.
    pub(crate) fn dequeue(&mut self, key: MemberKey) {
        let member = &self.slab[key.place()];
        self.by_ticket.remove(&member.ticket);
        self.by_place.remove(&(member.log, member.at, key));
    }

    /// The member that has waited longest for a reader.
    pub(crate) fn oldest(&self) -> Option<MemberKey> {
        self.by_ticket.values().next().copied()
    }

    /// Number of members that wait for a reader.
    pub(crate) fn queued(&self) -> usize {
        self.by_ticket.len()
    }

    /// Whether one waits for a reader, by ticket and by place alike.
    pub(crate) fn is_queued(&self, key: MemberKey) -> bool {
        let member = &self[key];
        self.by_ticket.get(&member.ticket) == Some(&key)
            && self.by_place.contains(&(member.log, member.at, key))
    }

    /// Numbers of entries in the queue, by ticket and by place, and of members known by id.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.by_ticket.len(), self.by_place.len(), self.by_id.len())
    }

    /// Those who wait within a stretch of a log, nearest first; at most `most`.
    pub(crate) fn near(
        &self,
        log: TowerLogKey,
        from: Sequence,
        to: Sequence,
        most: usize,
    ) -> impl Iterator<Item = MemberKey> + '_ {
        let low = (log, from, MemberKey::MIN);
        let high = (log, to, MemberKey::MAX);
        let stretch = self.by_place.range(low..=high);
        stretch.map(|(_, _, key)| *key).take(most)
    }
}

impl std::ops::Index<MemberKey> for Members {
    type Output = Member;

    fn index(&self, key: MemberKey) -> &Member {
        &self.slab[key.place()]
    }
}

impl std::ops::IndexMut<MemberKey> for Members {
    fn index_mut(&mut self, key: MemberKey) -> &mut Member {
        &mut self.slab[key.place()]
    }
}
