//! Members: those whom the tower reads for. Who waits for a reader is in the queue ([`super::queue`]).
//!
//! A member is an attempt of the gateway to get something of one topic of one log, or of all: from a number, to an end or
//! to the tail. Whose client it is, and what that has been told, the tower does not know.

use super::queue::{HeldFor, Queue, Waiting};
use crate::keys::{MemberKey, ReaderKey, TowerLogKey};
use crate::link::MemberId;
use airmail_model::{AppendTime, Sequence, TopicHash};
use slab::Slab;
use std::collections::BTreeMap;

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
    /// The topic that it is for. `None`: all.
    pub(crate) topic: Option<TopicHash>,
    /// The first number that it has not been given.
    pub(crate) at: Sequence,
    /// Where it ends. `None`: at the tail.
    pub(crate) until: Option<Sequence>,
    /// Time before which appended records are not for it.
    pub(crate) not_before: Option<AppendTime>,
    /// Time from which appended records are not for it. It ends where none from before can come any more.
    pub(crate) not_after: Option<AppendTime>,
    /// When it began to wait, in the order of all tickets.
    pub(crate) ticket: u64,
    pub(crate) place: Place,
}

impl Member {
    const fn waiting(&self) -> Waiting {
        Waiting {
            log: self.log,
            at: self.at,
            ticket: self.ticket,
        }
    }
}

/// Every member, and the queue for readers.
#[derive(Debug, Default)]
pub(crate) struct Members {
    slab: Slab<Member>,
    by_id: BTreeMap<MemberId, MemberKey>,
    queue: Queue,
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
        let member = &mut self.slab[key.place()];
        let place = self.queue.last(member.log, member.at);
        (member.ticket, member.place) = (place.ticket, Place::Queued);
        self.queue.insert(key, place);
    }

    /// Takes one out of the queue.
    pub(crate) fn dequeue(&mut self, key: MemberKey) {
        self.queue.remove(key, self[key].waiting());
    }

    /// Lets no member of a log begin to be read for.
    pub(crate) fn hold(&mut self, log: TowerLogKey, why: HeldFor) {
        self.queue.hold(log, why);
    }

    /// Lets the members of a log begin again, unless it is held for another reason.
    pub(crate) fn release(&mut self, log: TowerLogKey, why: HeldFor) {
        self.queue.release(log, why);
    }

    /// The logs of which no member is to begin, for this reason.
    pub(crate) fn held(&self, why: HeldFor) -> Vec<TowerLogKey> {
        self.queue.held(why).collect()
    }

    /// Whether no member of a log is to begin, for another reason than a sweep.
    pub(crate) fn is_held_but_for_sweeps(&self, log: TowerLogKey) -> bool {
        self.queue.is_held_but_for_sweeps(log)
    }

    /// The member that waits furthest behind in a log.
    pub(crate) fn rearmost(&self, log: TowerLogKey) -> Option<MemberKey> {
        self.near(log, Sequence(0), Sequence::MAX, 1).next()
    }

    /// Number of members of a log that wait for a reader.
    pub(crate) fn queued_of(&self, log: TowerLogKey) -> usize {
        self.queue.of_log(log)
    }

    /// The member that has waited longest for a reader, of those who may begin.
    pub(crate) fn oldest(&self) -> Option<MemberKey> {
        self.queue.oldest()
    }

    /// Number of members that wait for a reader.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Number of members that wait for a reader and may begin.
    pub(crate) fn ready(&self) -> usize {
        self.queue.ready()
    }

    /// Whether one waits for a reader, by ticket and by place alike.
    pub(crate) fn is_queued(&self, key: MemberKey) -> bool {
        self.queue.contains(key, self[key].waiting())
    }

    /// Number of members known by id.
    pub(crate) fn known(&self) -> usize {
        self.by_id.len()
    }

    /// Whether the queue has counted right.
    pub(crate) fn is_counted(&self) -> bool {
        self.queue.is_counted()
    }

    /// Those who wait within a stretch of a log, nearest first; at most `most`.
    pub(crate) fn near(
        &self,
        log: TowerLogKey,
        from: Sequence,
        to: Sequence,
        most: usize,
    ) -> impl Iterator<Item = MemberKey> + '_ {
        self.queue.near(log, from, to).take(most)
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
