//! Settling: each log is open at the towers that it is to have, and these know what is wanted of its readers.

use super::place::Move;
use super::{Asked, TowersStorage};
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use crate::tower_ranks::{TowerName, towers_of};
use airmail_log::{Completion, LogSpec, ReaderId};
use airmail_model::{LogId, Sequence, bug};

impl<P: Port<Out = ToHost, In = FromHost>> TowersStorage<P> {
    /// Looks at the logs whose towers may not be as they should be. Those that have to wait are looked at again.
    pub(super) fn settle(&mut self) {
        for log in std::mem::take(&mut self.unsettled) {
            if !self.settle_log(log) {
                self.unsettled.insert(log);
            }
        }
    }

    /// Has a log's towers be as they should be; whether that is all for now.
    fn settle_log(&mut self, log: LogId) -> bool {
        let Some(place) = self.logs.get(&log) else {
            // Input: a log that was deleted meanwhile.
            return true;
        };
        let active = place.active.clone();
        let mut is_settled = true;
        if !self.may_use(log, &active) {
            self.stay(log);
            if self.candidate(log).is_some() {
                self.takeovers.due.insert(log, None);
                return true;
            }
            self.out_of_reach(log);
        } else {
            is_settled = self.in_reach(log, &active);
        }
        let Some(place) = self.logs.get(&log).filter(|place| place.is_known) else {
            // Input: a log that its owner has not opened yet.
            return !self.is_being_made(log);
        };
        let is_usable = place.usable.contains(&active);
        let wished = towers_of(log, &self.live, self.limits.towers_per_log);
        is_settled &= self.attach(log, &active, &wished);
        is_settled &= self.make_lists(log);
        if is_usable {
            is_settled &= self.go_home(log, &active, &wished);
            self.let_go(log, &wished);
        }
        is_settled
    }

    /// Whether a log can be used at a tower.
    pub(super) fn may_use(&mut self, log: LogId, tower: &TowerName) -> bool {
        match self.logs.get(&log) {
            Some(place) if place.is_known => place.usable.contains(tower),
            _ => {
                let tower = self.towers.get_mut(tower);
                tower.is_some_and(|tower| tower.link(log).is_connected())
            }
        }
    }

    /// Whether something of a log is asked that need not be open.
    fn is_being_made(&self, log: LogId) -> bool {
        let is_made = |asked: &Asked| matches!(asked, Asked::Open(_) | Asked::Provisions(_));
        let mut asked = self.asked.values();
        asked.any(|asked| asked.log() == log && is_made(asked))
    }

    /// None of a log's towers can use it.
    fn out_of_reach(&mut self, log: LogId) {
        if let Some(place) = self.logs.get_mut(&log)
            && place.is_known
            && !std::mem::replace(&mut place.is_lost, true)
        {
            self.told.push_back(Completion::Lost { log });
        }
        self.tell_forgotten(log);
    }

    /// The active tower can use a log; whether it is gained, or will be by an answer that is awaited.
    fn in_reach(&mut self, log: LogId, active: &TowerName) -> bool {
        let is_lost = self.logs.get(&log).is_some_and(|place| place.is_lost);
        if is_lost {
            self.ask_end(log, active);
        }
        self.tell_forgotten(log);
        !is_lost || self.tails.is_asked(log, active)
    }

    /// Nobody else knows what the active tower has forgotten.
    fn tell_forgotten(&mut self, log: LogId) {
        for r in self.wanted.of_log(log) {
            let reader = self.wanted.get_mut(r);
            if reader.is_some_and(|reader| reader.is_forgotten) {
                self.tell_wants_lost(r);
            }
        }
    }

    /// Opens a log at the towers that it is to have, in their pace; whether it is, or will be, open at all of them.
    fn attach(&mut self, log: LogId, active: &TowerName, wished: &[TowerName]) -> bool {
        for name in wished {
            let is_new = |storage: &Self| {
                let place = storage.logs.get(&log);
                place.is_some_and(|place| !place.attached.contains(name))
            };
            if !is_new(self) {
                continue;
            }
            let tower = self.towers.get_mut(active);
            let Some(spec) = tower
                .and_then(|tower| tower.link(log).spec_of(log))
                .copied()
            else {
                // Input: a log that its active tower has deleted, which will be told.
                return false;
            };
            if !self.paces.logs.take(self.now) {
                return false;
            }
            if let Some(place) = self.logs.get_mut(&log) {
                place.attached.insert(name.clone());
            }
            if let Some(tower) = self.towers.get_mut(name) {
                // Of a place before all others: it makes nothing known that is not known there.
                let as_of = Sequence(0);
                let spec = Box::new(LogSpec { as_of, ..spec });
                tower.link(log).open_too(log, spec);
                self.takeovers.has_asked = true;
            }
        }
        true
    }

    /// Has the standbys know what is wanted of a log's readers, in their pace; whether they do, or will. One without
    /// room for that is left alone for a while.
    fn make_lists(&mut self, log: LogId) -> bool {
        let place = self.logs.get(&log);
        let standbys = place.into_iter().flat_map(|place| place.standbys());
        let standbys: Vec<TowerName> = standbys.cloned().collect();
        let (now, rest) = (self.now, self.limits.rest);
        let mut has_room = true;
        for r in self.wanted.of_log(log) {
            for name in &standbys {
                let reader = self.wanted.get_mut(r);
                let Some(reader) = reader.filter(|reader| !reader.has(name)) else {
                    // Input: a standby that knows the list, or will.
                    continue;
                };
                if reader.is_refused(name, now, rest) {
                    has_room = false;
                    continue;
                }
                if !reader.may_be_asked() || !self.paces.lists.take(now) {
                    return false;
                }
                let next = self.next_of(log, r);
                if self.mute(r, log, next, name) {
                    self.wanted.ask(r);
                    self.tell_wants_lost(r);
                }
            }
        }
        has_room
    }

    /// Has a standby keep what is wanted of a reader; whether its owner has to name everything.
    pub(super) fn mute(
        &mut self,
        r: ReaderId,
        log: LogId,
        from: Sequence,
        name: &TowerName,
    ) -> bool {
        let (Some(tower), Some(reader)) = (self.towers.get_mut(name), self.wanted.get_mut(r))
        else {
            // Input: a tower that was given up meanwhile.
            return false;
        };
        tower.link(log).mute(r, log, from);
        self.takeovers.has_asked = true;
        reader.begin(name)
    }

    /// Where a reader stands at the active tower's link.
    pub(super) fn next_of(&mut self, log: LogId, r: ReaderId) -> Sequence {
        let active = self.logs.get(&log).map(|place| &place.active);
        let tower = active.and_then(|active| self.towers.get_mut(active));
        let next = tower.and_then(|tower| tower.link(log).next_of(r));
        next.unwrap_or(Sequence::FIRST)
    }

    /// Lets a log begin to move to the first of its towers, if another has it; whether it need not wait for that.
    fn go_home(&mut self, log: LogId, active: &TowerName, wished: &[TowerName]) -> bool {
        let Some(home) = wished.first().filter(|home| *home != active) else {
            // Input: a log that is where it should be.
            return true;
        };
        let (now, rest) = (self.now, self.limits.rest);
        let is_level = self.wanted.are_level(log, home) && self.knows_all(log, home);
        let Some(place) = self.logs.get_mut(&log) else {
            bug!("{log} is settled, and is not there");
            return true;
        };
        if !place.usable.contains(home) || !is_level || place.moving.is_some() {
            // It is looked at again when that changes.
            return true;
        }
        if !place.may_go_to(home, now, rest) {
            return false;
        }
        // That it is connected says nothing of whether it serves.
        if !self
            .tails
            .has_answered(now, log, home, self.limits.stale_after)
        {
            self.ask_end(log, &home.clone());
            return false;
        }
        place.moving = Some(Move {
            to: home.clone(),
            calls: Vec::new(),
            bytes: 0,
        });
        self.takeovers.moving.insert(log);
        true
    }

    /// Whether a standby has a list for each reader of a log.
    fn knows_all(&mut self, log: LogId, tower: &TowerName) -> bool {
        let readers = self.wanted.of_log(log);
        let mut readers = readers.into_iter();
        readers.all(|r| {
            self.wanted
                .get_mut(r)
                .is_none_or(|reader| reader.has(tower))
        })
    }

    /// Gives a log up at standbys that it is not to have.
    fn let_go(&mut self, log: LogId, wished: &[TowerName]) {
        let Some(place) = self.logs.get_mut(&log) else {
            bug!("{log} is settled, and is not there");
            return;
        };
        let to = place.moving.as_ref().map(|moving| &moving.to);
        let is_kept =
            |name: &TowerName| wished.contains(name) || *name == place.active || Some(name) == to;
        let gone: Vec<TowerName> = place
            .attached
            .iter()
            .filter(|name| !is_kept(name))
            .cloned()
            .collect();
        for name in &gone {
            place.attached.remove(name);
            place.usable.remove(name);
        }
        for name in gone {
            self.tails.forget(log, &name);
            for r in self.wanted.of_log(log) {
                if let Some(reader) = self.wanted.get_mut(r) {
                    reader.end(&name);
                }
                if let Some(tower) = self.towers.get_mut(&name) {
                    tower.link(log).stop_muted(r);
                }
            }
            if let Some(tower) = self.towers.get_mut(&name) {
                tower.link(log).forget_log(log);
                self.takeovers.has_asked = true;
            }
        }
    }
}
