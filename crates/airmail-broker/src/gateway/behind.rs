//! Subscriptions that are behind: where each stands, and what it waits for. One that is behind in two logs has a
//! record for each ([`super::parts`]).
//!
//! `at` is how far a subscription has really got, `told` how far its client knows. Between the two
//! there is nothing for it, so that the next delivery or gap covers from `told` on (`told`).

use super::scope::Scope;
use crate::catalog::Crossing;
use crate::keys::{BehindKey, LogKey, SessionKey, SubKey};
use crate::link::MemberId;
use airmail_model::frame::Until;
use airmail_model::position::LogPosition;
use airmail_model::{AppendTime, LogId, Sequence};
use hashbrown::HashMap;
use slab::Slab;
use std::collections::BTreeMap;

/// Reason for which a subscription that is behind waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BehindState {
    /// It goes from one of the others to another, within a step.
    Moving,
    /// The tower is asked where it begins, or for the new life of its log.
    Locating(Begin),
    /// It is known where it begins. It waits for the other part to be placed or told ([`super::placing`]).
    Placed {
        begin: Begin,
        /// Where its log ended when that was told.
        end: Sequence,
        /// The last attachment of its tail then, if nobody was there any more.
        unattended: Option<u64>,
    },
    /// Its log has ended, and the one that goes on with its topic is not known or not open here. It is to begin there.
    AwaitingSuccessor(Begin),
    /// Its session has no credit, or lets others go first.
    NoCredit,
    /// The tower reads for it, or is about to.
    Reading,
    /// It waits at the tail for its number or its time to come.
    AwaitingTail,
    /// It waits until the tower gives what it is for at the tail.
    AwaitingWant,
    /// It waits until its log's clock is known: what it is to be given next may have expired.
    AwaitingClock,
    /// It has been given all that it asked for, and stands here. Its subscription is complete when its other parts are.
    Complete(LogPosition),
}

/// Where a subscription is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// After what is stored now.
    Latest,
    /// With this number.
    At(Sequence),
    /// With the first number kept. `lost`: its position is of an earlier life of the log.
    First { lost: bool },
    /// With the first record appended at this time or later.
    Time(AppendTime),
    /// Where it stands, having been read for up to the tail as it was; at the tail as it is now, or read for on.
    Here,
    /// At a position of the log's present life: this number, unless it lies beyond the log's end.
    Position(Sequence),
}

/// End of what a subscription has asked for: before this number of this log, which may be a later one than it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) log: LogId,
    pub(crate) before: Sequence,
}

/// A subscription that is behind, in one log.
#[derive(Clone, Debug)]
pub(crate) struct Behind {
    pub(crate) sub: SubKey,
    pub(crate) session: SessionKey,
    pub(crate) log: LogKey,
    pub(crate) scope: Scope,
    /// The first number that its client has not been told of.
    pub(crate) told: Sequence,
    /// The first number that has not been looked at for it; never less than `told`.
    pub(crate) at: Sequence,
    /// The end that was asked for, until its number is known.
    pub(crate) asked_until: Option<Until>,
    /// Where it is complete. `None`: it goes live.
    pub(crate) until: Option<End>,
    /// Time before which appended records are not asked for. `None`, too, once none can come any more.
    pub(crate) not_before: Option<AppendTime>,
    /// Time from which appended records are not asked for. It is complete where none from before can come any
    /// more.
    pub(crate) not_after: Option<AppendTime>,
    /// Its client has been told that it is detached.
    pub(crate) shown: bool,
    /// It begins with what is stored later than it was asked for, wherever that is.
    pub(crate) is_latest: bool,
    /// It holds its topic: the tower is to give it at the tail.
    pub(crate) holds_want: bool,
    /// The attempt to read for it, or to locate it, that is under way: answers of the tower for
    /// another are dropped. Also the time at which it began to wait, in the order of all tickets.
    pub(crate) ticket: u64,
    pub(crate) state: BehindState,
}

impl Behind {
    /// Whether it has been given all that it asked for.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.state, BehindState::Complete(_))
    }

    /// Whether it is known where it begins, and it has not gone on from there.
    pub(super) fn is_placed(&self) -> bool {
        matches!(self.state, BehindState::Placed { .. })
    }
}

/// Every subscription that is behind.
#[derive(Debug, Default)]
pub(crate) struct BehindTable {
    slab: Slab<Behind>,
    tickets: u64,
    /// Those that stand in an earlier life of their log, and are read for up to where that was cut.
    crossings: BTreeMap<BehindKey, Crossing>,
    /// Records that their subscriptions do not name, of those that are live or have another: only looked up, never
    /// walked.
    aside: HashMap<SubKey, BehindKey>,
    /// Number of subscriptions that have records.
    pub(super) subscriptions: usize,
}

impl BehindTable {
    /// Puts one in.
    pub(crate) fn insert(&mut self, behind: Behind) -> BehindKey {
        BehindKey::new(self.slab.insert(behind))
    }

    /// The record that a subscription does not name.
    pub(super) fn aside(&self, sub: SubKey) -> Option<BehindKey> {
        self.aside.get(&sub).copied()
    }

    /// Keeps a record that a subscription does not name; the one that it had so.
    pub(super) fn put_aside(&mut self, sub: SubKey, key: BehindKey) -> Option<BehindKey> {
        self.aside.insert(sub, key)
    }

    /// Takes out the record that a subscription does not name.
    pub(super) fn take_aside(&mut self, sub: SubKey) -> Option<BehindKey> {
        self.aside.remove(&sub)
    }

    /// Takes one out; it waits for nothing any more.
    pub(super) fn remove(&mut self, key: BehindKey) -> Behind {
        self.crossings.remove(&key);
        self.slab.remove(key.place())
    }

    /// Whether a record is there, and of this subscription.
    pub(crate) fn has(&self, key: BehindKey, sub: SubKey) -> bool {
        let behind = self.slab.get(key.place());
        behind.is_some_and(|behind| behind.sub == sub)
    }

    /// The key of a member, if it is still the same attempt.
    pub(crate) fn find(&self, member: MemberId) -> Option<BehindKey> {
        let behind = self.slab.get(member.behind.place())?;
        (behind.ticket == member.ticket).then_some(member.behind)
    }

    /// Id by which the tower knows a subscription.
    pub(crate) fn member(&self, key: BehindKey) -> MemberId {
        MemberId {
            behind: key,
            ticket: self[key].ticket,
        }
    }

    /// The way into the present life of its log, of one that stands in an earlier one.
    pub(crate) fn crossing(&self, key: BehindKey) -> Option<Crossing> {
        self.crossings.get(&key).copied()
    }

    /// Puts one in an earlier life of its log, or in the present one.
    pub(crate) fn cross(&mut self, key: BehindKey, crossing: Option<Crossing>) {
        match crossing {
            Some(crossing) => self.crossings.insert(key, crossing),
            None => self.crossings.remove(&key),
        };
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Every one, in order of key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (BehindKey, &Behind)> {
        let all = self.slab.iter();
        all.map(|(place, behind)| (BehindKey::new(place), behind))
    }

    /// Those of one log that are not complete, in order of key.
    pub(crate) fn of_log(&self, log: LogKey) -> Vec<BehindKey> {
        let mine = self.iter().filter(|(_, behind)| behind.log == log);
        let here = mine.filter(|(_, behind)| !behind.is_complete());
        here.map(|(key, _)| key).collect()
    }

    /// A ticket later than all before.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
}

impl std::ops::Index<BehindKey> for BehindTable {
    type Output = Behind;

    fn index(&self, key: BehindKey) -> &Behind {
        &self.slab[key.place()]
    }
}

impl std::ops::IndexMut<BehindKey> for BehindTable {
    fn index_mut(&mut self, key: BehindKey) -> &mut Behind {
        &mut self.slab[key.place()]
    }
}
