//! The queue of members who wait for a reader: by log and ticket, and by place in the log.
//!
//! A log may be held, for one reason or several: none of its members is to begin, and those of other logs go before.
//!
//! Invariants: who waits is known by log, by ticket and by place; `fronts` has the oldest of each log that is
//! not held, and `ready` counts those who wait for such logs.

use crate::keys::{MemberKey, TowerLogKey};
use airmail_model::{Sequence, bug};
use std::collections::{BTreeMap, BTreeSet};

/// Reason for which no member of a log is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HeldFor {
    /// A reader of the log has failed; it is tried again later.
    Failure,
    /// A reader of the log gives nothing.
    Silence,
    /// A reader sweeps the log.
    Sweep,
}

/// Place of a member in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) log: TowerLogKey,
    pub(super) at: Sequence,
    pub(super) ticket: u64,
}

/// The queue. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Queue {
    tickets: u64,
    /// Those of each log, oldest first. None is empty.
    by_log: BTreeMap<TowerLogKey, BTreeMap<u64, MemberKey>>,
    by_place: BTreeSet<(TowerLogKey, Sequence, MemberKey)>,
    /// The ticket of the oldest of each log that is not held.
    fronts: BTreeSet<(u64, TowerLogKey)>,
    held: BTreeSet<(TowerLogKey, HeldFor)>,
    /// Number of members of logs that are not held.
    ready: usize,
}

impl Queue {
    /// A place at the end, for one who wants what is at `at`.
    pub(super) fn last(&mut self, log: TowerLogKey, at: Sequence) -> Waiting {
        self.tickets += 1;
        let ticket = self.tickets;
        Waiting { log, at, ticket }
    }

    /// Puts one in.
    pub(super) fn insert(&mut self, key: MemberKey, place: Waiting) {
        let Waiting { log, at, ticket } = place;
        let before = self.front(log);
        self.by_log.entry(log).or_default().insert(ticket, key);
        self.by_place.insert((log, at, key));
        self.ready += usize::from(!self.is_held(log));
        self.front_moved(log, before);
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, key: MemberKey, place: Waiting) {
        let Waiting { log, at, ticket } = place;
        let before = self.front(log);
        let Some(of_log) = self.by_log.get_mut(&log) else {
            bug!("{key:?} does not wait at {place:?}");
            return;
        };
        of_log.remove(&ticket);
        if of_log.is_empty() {
            self.by_log.remove(&log);
        }
        self.by_place.remove(&(log, at, key));
        self.ready -= usize::from(!self.is_held(log));
        self.front_moved(log, before);
    }

    /// Whether one waits there, by ticket and by place alike.
    pub(super) fn contains(&self, key: MemberKey, place: Waiting) -> bool {
        let Waiting { log, at, ticket } = place;
        let of_log = self.by_log.get(&log);
        of_log.is_some_and(|of_log| of_log.get(&ticket) == Some(&key))
            && self.by_place.contains(&(log, at, key))
    }

    /// Lets nobody of a log begin.
    pub(super) fn hold(&mut self, log: TowerLogKey, why: HeldFor) {
        let front = self.front(log);
        let was_held = self.is_held(log);
        self.held.insert((log, why));
        if !was_held {
            self.ready -= self.of_log(log);
            self.front_moved(log, front);
        }
    }

    /// Lets those of a log begin again, unless it is held for another reason.
    pub(super) fn release(&mut self, log: TowerLogKey, why: HeldFor) {
        if self.held.remove(&(log, why)) && !self.is_held(log) {
            self.ready += self.of_log(log);
            self.front_moved(log, None);
        }
    }

    /// The logs that are held for a reason.
    pub(super) fn held(&self, why: HeldFor) -> impl Iterator<Item = TowerLogKey> + '_ {
        let those = self.held.iter().filter(move |(_, held)| *held == why);
        those.map(|(log, _)| *log)
    }

    fn is_held(&self, log: TowerLogKey) -> bool {
        let reasons = (log, HeldFor::Failure)..=(log, HeldFor::Sweep);
        self.held.range(reasons).next().is_some()
    }

    /// Whether nobody of a log is to begin, for another reason than a sweep.
    pub(super) fn is_held_but_for_sweeps(&self, log: TowerLogKey) -> bool {
        let reasons = (log, HeldFor::Failure)..(log, HeldFor::Sweep);
        self.held.range(reasons).next().is_some()
    }

    /// The member that has waited longest, of those who may begin.
    pub(super) fn oldest(&self) -> Option<MemberKey> {
        let (ticket, log) = self.fronts.first()?;
        self.by_log.get(log)?.get(ticket).copied()
    }

    /// Number of members that wait.
    pub(super) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Number of members that wait and may begin.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// Those who wait within a stretch of a log, nearest first.
    pub(super) fn near(
        &self,
        log: TowerLogKey,
        from: Sequence,
        to: Sequence,
    ) -> impl Iterator<Item = MemberKey> + '_ {
        let low = (log, from, MemberKey::MIN);
        let high = (log, to, MemberKey::MAX);
        let stretch = self.by_place.range(low..=high);
        stretch.map(|(_, _, key)| *key)
    }

    /// Whether what is counted is what there is.
    pub(super) fn is_counted(&self) -> bool {
        let free = self.by_log.iter().filter(|(log, _)| !self.is_held(**log));
        let ready: usize = free.clone().map(|(_, of_log)| of_log.len()).sum();
        let all: usize = self.by_log.values().map(BTreeMap::len).sum();
        let mut fronts = free.filter_map(|(log, of_log)| Some((*of_log.keys().next()?, *log)));
        ready == self.ready
            && all == self.by_place.len()
            && fronts.all(|front| self.fronts.contains(&front))
    }

    /// Number of members of a log that wait.
    pub(super) fn of_log(&self, log: TowerLogKey) -> usize {
        self.by_log.get(&log).map_or(0, BTreeMap::len)
    }

    /// The ticket of the oldest of a log, unless that is held.
    fn front(&self, log: TowerLogKey) -> Option<u64> {
        let of_log = self.by_log.get(&log);
        let of_log = of_log.filter(|_| !self.is_held(log));
        of_log.and_then(|of_log| of_log.keys().next().copied())
    }

    fn front_moved(&mut self, log: TowerLogKey, before: Option<u64>) {
        let now = self.front(log);
        if now == before {
            return;
        }
        if let Some(before) = before {
            self.fronts.remove(&(before, log));
        }
        self.fronts.extend(now.map(|now| (now, log)));
    }
}
