//! Wanted readers: what each standby tower knows of what is wanted of a reader.
//!
//! Edits go to the active tower, which answers the owner, and to all standbys. A standby is *level* when it knows
//! everything that the owner has an answer for. A reader may go on at one that is level alone: there it gives at least
//! what its owner relies on, from the first number on.
//!
//! A standby that joins later knows nothing. Its owner is told that the list is lost, and names everything anew before
//! it polls again; that goes to everybody, and who knows it already learns nothing.
//!
//! Edits of a reader have rising numbers.

use crate::tower_ranks::TowerName;
use airmail_log::ReaderId;
use airmail_model::{LogId, Mono};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Looks after which the owner is asked to name everything, though it awaits answers.
const LOOKS_MAX: u8 = 100;

/// Knowledge of a standby.
#[derive(Debug)]
struct Standby {
    /// The edit with which it knows everything. `None`: the owner was just asked to say it.
    base: Option<u32>,
    /// The last edit that has taken effect there.
    effective: u32,
}

/// Wanted readers, by their ids and by log.
#[derive(Debug, Default)]
pub(super) struct WantedReaders {
    readers: BTreeMap<ReaderId, WantedReader>,
    of_logs: BTreeMap<LogId, BTreeSet<ReaderId>>,
    /// Readers whose owner was just asked to name everything.
    asked: BTreeSet<ReaderId>,
}

impl WantedReaders {
    pub(super) fn insert(&mut self, r: ReaderId, log: LogId) {
        self.readers.insert(r, WantedReader::new(log));
        self.of_logs.entry(log).or_default().insert(r);
    }

    pub(super) fn remove(&mut self, r: ReaderId) -> Option<WantedReader> {
        let reader = self.readers.remove(&r)?;
        if let Some(of_log) = self.of_logs.get_mut(&reader.log) {
            of_log.remove(&r);
            if of_log.is_empty() {
                self.of_logs.remove(&reader.log);
            }
        }
        Some(reader)
    }

    pub(super) fn get_mut(&mut self, r: ReaderId) -> Option<&mut WantedReader> {
        self.readers.get_mut(&r)
    }

    /// Readers of a log.
    pub(super) fn of_log(&self, log: LogId) -> Vec<ReaderId> {
        let of_log = self.of_logs.get(&log).into_iter().flatten();
        of_log.copied().collect()
    }

    /// Whether a tower knows everything of all readers of a log that it is to know anything of.
    pub(super) fn are_level(&self, log: LogId, tower: &TowerName) -> bool {
        let mut of_log = self.of_logs.get(&log).into_iter().flatten();
        of_log.all(|r| {
            let reader = self.readers.get(r);
            reader.is_none_or(|reader| reader.is_level(tower) || !reader.has(tower))
        })
    }

    /// Whether a tower knows everything of a reader.
    pub(super) fn is_level(&self, r: ReaderId, tower: &TowerName) -> bool {
        let reader = self.readers.get(&r);
        reader.is_some_and(|reader| reader.is_level(tower))
    }

    /// The owner was asked to name everything that is wanted of a reader.
    pub(super) fn ask(&mut self, r: ReaderId) {
        self.asked.insert(r);
    }

    /// The owner has done so for all that it was asked for: it polls again. Gives the logs of those.
    pub(super) fn all_named(&mut self) -> Vec<LogId> {
        let mut logs = Vec::new();
        for r in std::mem::take(&mut self.asked) {
            if let Some(reader) = self.readers.get_mut(&r) {
                reader.named();
                logs.push(reader.log);
            }
        }
        logs
    }
}

/// A reader of what is wanted. See the module's documentation.
#[derive(Debug)]
pub(super) struct WantedReader {
    pub(super) log: LogId,
    /// The last edit of the owner.
    last: u32,
    /// The last edit that the owner has an answer for.
    answered: u32,
    /// Edits that the owner awaits an answer for.
    unanswered: VecDeque<u32>,
    standbys: BTreeMap<TowerName, Standby>,
    /// When towers had no room for the list.
    refused: BTreeMap<TowerName, Mono>,
    /// Looks at it in which it was not the time to ask for everything.
    looks: u8,
    /// The active tower has forgotten the list, and the owner was not told: another tower may know it.
    pub(super) is_forgotten: bool,
}

impl WantedReader {
    pub(super) fn new(log: LogId) -> WantedReader {
        WantedReader {
            log,
            last: 0,
            answered: 0,
            unanswered: VecDeque::new(),
            standbys: BTreeMap::new(),
            refused: BTreeMap::new(),
            looks: 0,
            is_forgotten: false,
        }
    }

    /// The owner changes what is wanted.
    pub(super) fn edit(&mut self, number: u32, more: bool) {
        self.last = number;
        if !more {
            self.unanswered.push_back(number);
        }
    }

    /// Whether the owner may be asked to name everything: best when it awaits no answer, for then it need not tell
    /// apart what took effect before and what after.
    pub(super) fn may_be_asked(&mut self) -> bool {
        let may = self.unanswered.is_empty() || self.looks >= LOOKS_MAX;
        self.looks = if may { 0 } else { self.looks + 1 };
        may
    }

    /// A standby is to know the list from now on: whether the owner has to be asked to name everything. One that is
    /// there from the beginning learns everything by itself.
    pub(super) fn begin(&mut self, tower: &TowerName) -> bool {
        let is_first = self.last == 0;
        let standby = Standby {
            base: is_first.then_some(0),
            effective: self.last,
        };
        self.standbys.insert(tower.clone(), standby);
        !is_first
    }

    /// The owner was asked to name everything, and has done so.
    pub(super) fn named(&mut self) {
        for standby in self.standbys.values_mut() {
            standby.base.get_or_insert(self.last);
        }
    }

    /// Towers that know, or will know, the list.
    pub(super) fn standbys(&self) -> impl Iterator<Item = &TowerName> {
        self.standbys.keys()
    }

    /// An edit has taken effect at a standby.
    pub(super) fn effective(&mut self, tower: &TowerName, edit: u32) {
        if let Some(standby) = self.standbys.get_mut(tower) {
            standby.effective = standby.effective.max(edit);
        }
    }

    /// A planted bug: every standby is believed to know everything.
    #[cfg(feature = "sabotage")]
    pub(super) fn all_effective(&mut self) {
        for standby in self.standbys.values_mut() {
            standby.effective = self.last;
        }
    }

    /// A standby knows nothing any more, or is none.
    pub(super) fn end(&mut self, tower: &TowerName) -> bool {
        self.standbys.remove(tower).is_some()
    }

    /// A standby has no room for the list.
    pub(super) fn refused(&mut self, tower: &TowerName, now: Mono) {
        self.standbys.remove(tower);
        self.refused.insert(tower.clone(), now);
    }

    /// Whether a tower had no room for the list so lately that it is not to be asked again yet.
    pub(super) fn is_refused(&self, tower: &TowerName, now: Mono, rest: Duration) -> bool {
        let refused = self.refused.get(tower);
        refused.is_some_and(|at| at.plus(rest) > now)
    }

    /// Whether a tower is a standby that knows, or will know, the list.
    pub(super) fn has(&self, tower: &TowerName) -> bool {
        self.standbys.contains_key(tower)
    }

    /// Whether a standby knows everything that the owner has an answer for.
    pub(super) fn is_level(&self, tower: &TowerName) -> bool {
        let standby = self.standbys.get(tower);
        standby.is_some_and(|standby| {
            let base = standby.base.map(|base| base.max(self.answered));
            base.is_some_and(|base| standby.effective >= base)
        })
    }

    /// The active tower has answered an edit: whether the owner awaits that.
    pub(super) fn answer(&mut self, edit: u32) -> bool {
        let is_awaited = self.unanswered.contains(&edit);
        while self
            .unanswered
            .pop_front_if(|first| *first <= edit)
            .is_some()
        {}
        self.answered = self.answered.max(edit);
        is_awaited
    }

    /// A standby takes over: edits that have taken effect there, and that the owner awaits an answer for.
    pub(super) fn take_over(&mut self, tower: &TowerName) -> Vec<u32> {
        self.is_forgotten = false;
        let effective = self.standbys.remove(tower).map(|standby| standby.effective);
        let mut answered = Vec::new();
        while let Some(edit) = self
            .unanswered
            .pop_front_if(|first| Some(*first) <= effective)
        {
            self.answered = self.answered.max(edit);
            answered.push(edit);
        }
        answered
    }

    /// The owner is told that the list is lost: it awaits no answer any more.
    pub(super) fn lose(&mut self) {
        self.is_forgotten = false;
        self.unanswered.clear();
    }
}
