//! Turns of a session's subscriptions that are behind in a lane: for which of them the tower reads, and which wait.
//!
//! A session has credit for so many deliveries, and about as many of its subscriptions are read for; the others wait,
//! and the oldest is next. A log may be out of reach, and those who are read for there get nothing and keep their turns
//! for as long. So each log has one turn that nobody can take from it: however many wait for other logs, one is read for.
//!
//! Invariants, which [`ReadingTurns::check`] asserts:
//!
//! - `following`: the sum is that of all logs.
//! - `parked`: the oldest of each log is known to be it, apart for logs for which one is read for, and no other is.

use crate::keys::{BehindKey, LogKey};
use airmail_model::bug;
use std::collections::{BTreeMap, BTreeSet};

/// Ticket of a subscription that waits: its place in the order of all.
type Place = (u64, LogKey);

/// Turns of one session. See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct ReadingTurns {
    /// Subscriptions that are read for, by log, where there are any.
    following: BTreeMap<LogKey, u64>,
    /// All of them.
    sum: u64,
    /// Subscriptions that wait, by log and ticket.
    parked: BTreeMap<LogKey, BTreeMap<u64, BehindKey>>,
    /// The oldest of each log that has somebody who is read for.
    oldest: BTreeSet<Place>,
    /// The oldest of each other log.
    oldest_of_unread: BTreeSet<Place>,
}

impl ReadingTurns {
    /// Number of subscriptions that are read for.
    pub(crate) fn following(&self) -> u64 {
        self.sum
    }

    /// Whether one more of this log may be read for, where so many of the session's may be.
    pub(crate) fn may_follow(&self, log: LogKey, most: u64) -> bool {
        self.sum < most || !self.following.contains_key(&log)
    }

    /// One of this log is read for from now on.
    pub(crate) fn begin(&mut self, log: LogKey) {
        self.sum += 1;
        let of_log = self.following.entry(log).or_default();
        *of_log += 1;
        if *of_log == 1 {
            self.note_oldest(log, self.oldest_of(log));
        }
    }

    /// One of this log is read for no longer.
    pub(crate) fn end(&mut self, log: LogKey) {
        let Some(of_log) = self.following.get_mut(&log) else {
            bug!("nobody is read for on {log:?}");
            return;
        };
        *of_log -= 1;
        self.sum -= 1;
        if *of_log == 0 {
            self.following.remove(&log);
            self.note_oldest(log, self.oldest_of(log));
        }
    }

    /// One of this log waits from now on.
    pub(crate) fn park(&mut self, log: LogKey, ticket: u64, key: BehindKey) {
        let before = self.oldest_of(log);
        self.parked.entry(log).or_default().insert(ticket, key);
        if before != self.oldest_of(log) {
            self.note_oldest(log, before);
        }
    }

    /// One of this log waits no longer; gives which.
    pub(crate) fn leave(&mut self, log: LogKey, ticket: u64) -> Option<BehindKey> {
        let before = self.oldest_of(log);
        let of_log = self.parked.get_mut(&log);
        let Some(key) = of_log.and_then(|of_log| of_log.remove(&ticket)) else {
            bug!("nobody waits for {log:?} with ticket {ticket}");
            return None;
        };
        if self.oldest_of(log).is_none() {
            self.parked.remove(&log);
        }
        if before != self.oldest_of(log) {
            self.note_oldest(log, before);
        }
        Some(key)
    }

    /// Takes out the one whose turn it is, where so many of the session's may be read for.
    pub(crate) fn pop_next(&mut self, most: u64) -> Option<BehindKey> {
        let unread = self.oldest_of_unread.first().copied();
        let all = unread.into_iter().chain(self.oldest.first().copied()).min();
        let (ticket, log) = if self.sum < most { all } else { unread }?;
        self.leave(log, ticket)
    }

    /// Whether nobody waits.
    pub(crate) fn is_nobody_parked(&self) -> bool {
        self.parked.is_empty()
    }

    /// The oldest who waits for a log.
    fn oldest_of(&self, log: LogKey) -> Option<Place> {
        let (ticket, _) = self.parked.get(&log)?.first_key_value()?;
        Some((*ticket, log))
    }

    /// Takes note of who is the oldest of a log now, and whether one is read for there.
    fn note_oldest(&mut self, log: LogKey, before: Option<Place>) {
        if let Some(before) = before {
            self.oldest.remove(&before);
            self.oldest_of_unread.remove(&before);
        }
        let now = self.oldest_of(log);
        if self.following.contains_key(&log) {
            self.oldest.extend(now);
        } else {
            self.oldest_of_unread.extend(now);
        }
    }

    /// Whether nobody waits, and nobody is read for.
    pub(crate) fn is_nobody_behind(&self) -> bool {
        self.sum == 0 && self.parked.is_empty()
    }

    /// Number of subscriptions that wait.
    pub(crate) fn parked(&self) -> usize {
        self.parked.values().map(BTreeMap::len).sum()
    }

    /// The one that waits with this ticket.
    pub(crate) fn waiting(&self, log: LogKey, ticket: u64) -> Option<BehindKey> {
        self.parked.get(&log)?.get(&ticket).copied()
    }

    /// Asserts the invariants of the module's documentation.
    pub(crate) fn check(&self) {
        let sum: u64 = self.following.values().sum();
        assert_eq!(self.sum, sum, "following: {self:?}");
        let oldest = self.parked.keys().filter_map(|log| self.oldest_of(*log));
        let is_read = |place: &Place| self.following.contains_key(&place.1);
        let (read, unread): (BTreeSet<Place>, _) = oldest.partition(is_read);
        assert_eq!(self.oldest, read, "parked: {self:?}");
        assert_eq!(self.oldest_of_unread, unread, "parked: {self:?}");
    }

    /// A broken state, for whoever tests that it is found: one more is read for than are.
    #[cfg(test)]
    pub(crate) fn count_one_more(&mut self) {
        self.sum += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    fn of_log(log: usize) -> LogKey {
        LogKey::new(log)
    }

    #[test]
    fn the_oldest_is_next_whatever_its_log() {
        let mut turns = ReadingTurns::default();
        for (ticket, log) in [(3, 1), (1, 0), (2, 1), (4, 0)] {
            turns.park(of_log(log), ticket, BehindKey::new(ticket as usize));
        }
        let mut order = Vec::new();
        while let Some(key) = turns.pop_next(1) {
            order.push(key.place());
            turns.check();
        }
        assert_eq!(order, [1, 2, 3, 4]);
    }

    #[test]
    fn those_who_get_nothing_keep_the_turns_of_no_other_log() {
        let mut turns = ReadingTurns::default();
        for ticket in 0..9 {
            assert_eq!(turns.may_follow(of_log(0), 4), ticket < 4);
            if ticket < 4 {
                turns.begin(of_log(0));
            } else {
                turns.park(of_log(0), ticket, BehindKey::new(ticket as usize));
            }
        }
        assert!(turns.may_follow(of_log(1), 4));
        turns.park(of_log(1), 9, BehindKey::new(9));
        assert_eq!(turns.pop_next(4), Some(BehindKey::new(9)));
        turns.begin(of_log(1));
        assert!(!turns.may_follow(of_log(1), 4));
        assert_eq!(turns.pop_next(4), None);
        turns.check();
    }

    #[test]
    fn turns_are_those_of_a_list_that_is_looked_through() {
        for seed in 0..300 {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut turns = ReadingTurns::default();
            let mut waiting: Vec<(u64, LogKey)> = Vec::new();
            let mut read: Vec<LogKey> = Vec::new();
            for ticket in 0..200 {
                let (log, most) = (of_log(random.random_range(0..4)), random.random_range(0..6));
                match random.random_range(0..5) {
                    0 | 1 => {
                        turns.park(log, ticket, BehindKey::new(ticket as usize));
                        waiting.push((ticket, log));
                    }
                    2 => {
                        turns.begin(log);
                        read.push(log);
                    }
                    3 => {
                        if let Some(at) = read.iter().position(|one| *one == log) {
                            read.swap_remove(at);
                            turns.end(log);
                        }
                    }
                    _ => {
                        let has_turn = |(_, log): &&(u64, LogKey)| {
                            (read.len() as u64) < most || !read.contains(log)
                        };
                        let expected = waiting.iter().find(has_turn).copied();
                        let found = turns.pop_next(most);
                        let key = |(ticket, _): (u64, LogKey)| BehindKey::new(ticket as usize);
                        assert_eq!(found, expected.map(key), "seed {seed}");
                        waiting.retain(|one| Some(*one) != expected);
                    }
                }
                turns.check();
                assert_eq!(turns.parked(), waiting.len(), "seed {seed}");
                assert_eq!(turns.following(), read.len() as u64, "seed {seed}");
            }
        }
    }
}
