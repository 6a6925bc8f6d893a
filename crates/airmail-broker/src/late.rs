//! Subscriptions that are behind: where each stands, and who waits for a reader.
//!
//! `at` is how far a subscription has really got, `told` how far its client knows. Between the two
//! there is nothing for it, so that the next delivery or gap covers from `told` on.

use crate::keys::{CaravanKey, LateKey, LogKey, SessionKey, SubKey};
use airmail_model::{AppendTime, Sequence, TopicHash};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};

/// Where a subscription that is behind is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// The storage is asked where it begins.
    Locating,
    /// Its session has no credit, or lets others go first.
    Parked,
    /// It waits for a reader.
    Queued,
    /// It has one.
    Aboard(CaravanKey),
    /// It waits in the room for its number to come.
    InRoom,
}

/// A subscription that is behind.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    pub(crate) sub: SubKey,
    pub(crate) session: SessionKey,
    pub(crate) log: LogKey,
    pub(crate) topic: TopicHash,
    /// The first number that its client has not been told of.
    pub(crate) told: Sequence,
    /// The first number that has not been looked at for it; never less than `told`.
    pub(crate) at: Sequence,
    /// Where it is complete. `None`: it goes live.
    pub(crate) until: Option<Sequence>,
    /// What was appended before is not asked for.
    pub(crate) not_before: Option<AppendTime>,
    /// What was appended then or later is not asked for, and completes it.
    pub(crate) not_after: Option<AppendTime>,
    /// Its client has been told that it is detached.
    pub(crate) shown: bool,
    /// When it began to wait, in the order of all tickets; also tells it from an earlier record of
    /// the same key.
    pub(crate) ticket: u64,
    pub(crate) stand: Stand,
}

/// Every subscription that is behind, and the queue for readers.
#[derive(Debug, Default)]
pub(crate) struct LateTable {
    slab: Slab<Late>,
    tickets: u64,
    /// Who waits for a reader, oldest first.
    by_ticket: BTreeMap<u64, LateKey>,
    /// The same, by place in the log.
    by_place: BTreeSet<(LogKey, Sequence, LateKey)>,
}

impl LateTable {
    /// Puts one in.
    pub(crate) fn insert(&mut self, late: Late) -> LateKey {
        LateKey::new(self.slab.insert(late))
    }

    /// Takes one out; it stands nowhere any more.
    pub(crate) fn remove(&mut self, key: LateKey) -> Late {
        self.slab.remove(key.place())
    }

    /// The record of a key, if it is still the one of this ticket.
    pub(crate) fn of_ticket(&mut self, key: LateKey, ticket: u64) -> Option<&mut Late> {
        let late = self.slab.get_mut(key.place())?;
        (late.ticket == ticket).then_some(late)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Those of one log, in order of key.
    pub(crate) fn of_log(&self, log: LogKey) -> Vec<LateKey> {
        let mine = self.slab.iter().filter(|(_, late)| late.log == log);
        mine.map(|(place, _)| LateKey::new(place)).collect()
    }

    /// A ticket later than all before.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Puts one into the queue, under its ticket.
    pub(crate) fn enqueue(&mut self, key: LateKey) {
        let late = &mut self.slab[key.place()];
        late.stand = Stand::Queued;
        self.by_ticket.insert(late.ticket, key);
        self.by_place.insert((late.log, late.at, key));
    }

    /// Takes one out of the queue.
    pub(crate) fn dequeue(&mut self, key: LateKey) {
        let late = &self.slab[key.place()];
        self.by_ticket.remove(&late.ticket);
        self.by_place.remove(&(late.log, late.at, key));
    }

    /// Who has waited longest for a reader.
    pub(crate) fn oldest(&self) -> Option<LateKey> {
        self.by_ticket.values().next().copied()
    }

    /// How many wait for a reader.
    pub(crate) fn queued(&self) -> usize {
        self.by_ticket.len()
    }

    /// Those who wait within a stretch of a log, nearest first; at most `most`.
    pub(crate) fn near(
        &self,
        log: LogKey,
        from: Sequence,
        to: Sequence,
        most: usize,
    ) -> impl Iterator<Item = LateKey> + '_ {
        let low = (log, from, LateKey::MIN);
        let high = (log, to, LateKey::MAX);
        let stretch = self.by_place.range(low..=high);
        stretch.map(|(_, _, key)| *key).take(most)
    }
}

impl std::ops::Index<LateKey> for LateTable {
    type Output = Late;

    fn index(&self, key: LateKey) -> &Late {
        &self.slab[key.place()]
    }
}

impl std::ops::IndexMut<LateKey> for LateTable {
    fn index_mut(&mut self, key: LateKey) -> &mut Late {
        &mut self.slab[key.place()]
    }
}
