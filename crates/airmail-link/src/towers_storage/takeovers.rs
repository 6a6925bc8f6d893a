//! Takeovers: logs move from one tower to another, in order and in their pace.

use super::TowersStorage;
use super::tails;
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use crate::tower_ranks::{TowerName, towers_of};
use airmail_log::{Completion, ReaderId};
use airmail_model::{LogId, Mono, bug};
use std::collections::{BTreeMap, BTreeSet};

/// Logs that are to move, or move.
#[derive(Debug, Default)]
pub(super) struct Takeovers {
    /// Logs that are to move because their active tower fails; to this tower, where it is chosen.
    pub(super) due: BTreeMap<LogId, Option<TowerName>>,
    /// Logs that have moved, and whose new tower has not answered yet.
    under_way: BTreeMap<LogId, TowerName>,
    /// Logs that move by choice, when no append to them is under way.
    pub(super) moving: BTreeSet<LogId>,
    pub(super) moved: u64,
    /// Something was asked of a link since it was polled.
    pub(super) has_asked: bool,
    /// When the ends of logs are asked for again, and after which log.
    pub(super) next_ask: Mono,
    pub(super) asked_up_to: Option<LogId>,
}

impl Takeovers {
    pub(super) fn forget(&mut self, log: LogId) {
        self.due.remove(&log);
        self.under_way.remove(&log);
        self.moving.remove(&log);
    }

    /// The tower that has taken a log over has answered, or cannot.
    pub(super) fn is_over(&mut self, log: LogId) {
        self.under_way.remove(&log);
    }

    fn under_way_at(&self, tower: &TowerName) -> usize {
        self.under_way.values().filter(|at| *at == tower).count()
    }
}

impl<P: Port<Out = ToHost, In = FromHost>> TowersStorage<P> {
    /// The tower that is to take over a log whose active one fails: the best of those that know everything, or else
    /// the best.
    pub(super) fn candidate(&mut self, log: LogId) -> Option<TowerName> {
        let ranked = towers_of(log, &self.live, self.live.len());
        let place = self.logs.get(&log)?;
        let active = place.active.clone();
        let mut usable: Vec<TowerName> = if place.is_known {
            let (live, others): (Vec<_>, Vec<_>) = place
                .standbys()
                .cloned()
                .partition(|name| ranked.contains(name));
            let live = ranked.into_iter().filter(|name| live.contains(name));
            live.chain(others).collect()
        } else {
            let others = ranked.into_iter().filter(|name| *name != active);
            others.filter(|name| self.may_use(log, name)).collect()
        };
        let level = usable
            .iter()
            .position(|name| self.wanted.are_level(log, name));
        (!usable.is_empty()).then(|| usable.swap_remove(level.unwrap_or(0)))
    }

    /// Moves logs that are due, those first that are farthest behind, as far as their pace allows.
    pub(super) fn take_over(&mut self) {
        if self.takeovers.due.is_empty() {
            return;
        }
        let logs: Vec<LogId> = self.takeovers.due.keys().copied().collect();
        let mut due: Vec<(u64, LogId)> = Vec::new();
        for log in logs {
            due.push((self.numbers_behind(log), log));
        }
        due.sort_unstable_by(|one, other| other.cmp(one));
        for (_, log) in due {
            self.take_over_log(log);
        }
    }

    fn take_over_log(&mut self, log: LogId) {
        let Some(place) = self.logs.get(&log) else {
            // Input: a log that was deleted meanwhile.
            self.takeovers.due.remove(&log);
            return;
        };
        let active = place.active.clone();
        let chosen = self.takeovers.due.get(&log).cloned().flatten();
        let chosen = chosen.filter(|chosen| self.may_use(log, chosen));
        let to = match chosen {
            Some(chosen) => Some(chosen),
            None if self.may_use(log, &active) => None,
            None => self.candidate(log),
        };
        let Some(to) = to else {
            // Input: an active tower that can be used again, or others that cannot either.
            self.takeovers.due.remove(&log);
            self.unsettled.insert(log);
            return;
        };
        // A standby that is not level will be soon, or is lost soon.
        let is_level = self.wanted.are_level(log, &to);
        if is_level && self.takeovers.under_way_at(&to) < self.limits.takeover_logs {
            self.takeovers.due.remove(&log);
            self.move_log(log, to);
        }
    }

    /// Numbers by which the readers of what is wanted of a log are behind what any tower has told.
    fn numbers_behind(&mut self, log: LogId) -> u64 {
        let place = self.logs.get(&log);
        let towers = place.into_iter().flat_map(|place| &place.attached);
        let end = towers.filter_map(|name| self.tails.end(log, name)).max();
        let Some(end) = end else {
            // Input: a log of which no tower has said anything yet.
            return 0;
        };
        let readers = self.wanted.of_log(log).into_iter();
        let next = readers.map(|r| self.next_of(log, r)).min();
        next.map_or(0, |next| end.0.saturating_sub(next.0))
    }

    /// Moves a log to another tower, with all that was asked of it.
    fn move_log(&mut self, log: LogId, to: TowerName) {
        let Some(place) = self.logs.get_mut(&log) else {
            bug!("{log} is to move, and is not there");
            return;
        };
        let from = std::mem::replace(&mut place.active, to.clone());
        place.attached.insert(to.clone());
        place.left = Some((from.clone(), self.now));
        let held = place.moving.take();
        self.takeovers.moving.remove(&log);
        let known: BTreeSet<ReaderId> = {
            let readers = self.wanted.of_log(log).into_iter();
            readers.filter(|r| self.wanted.is_level(*r, &to)).collect()
        };
        let Some(left) = self.towers.get_mut(&from) else {
            bug!("{log} is at {from}, which is not there");
            return;
        };
        let (mut of_left, mut of_taking) = (Vec::new(), Vec::new());
        let link = left.link(log);
        let handed = link.hand_over(log, tails::is_question, &mut of_left);
        let was_open = link.spec_of(log).is_some();
        self.tails.forget(log, &from);
        if let Some(place) = self.logs.get_mut(&log).filter(|_| !was_open) {
            // It was asked to open the log, and will not do so any more.
            place.attached.remove(&from);
        }
        let Some(taking) = self.towers.get_mut(&to) else {
            bug!("{log} goes to {to}, which is not there");
            return;
        };
        let link = taking.link(log);
        link.take_over(handed, |r| known.contains(&r), &mut of_taking);
        for told in of_left {
            self.tower_told(&from, told);
        }
        for told in of_taking {
            match told {
                Completion::WantsLost { r } => self.tell_wants_lost(r),
                other => self.tower_told(&to, other),
            }
        }
        self.answer_edits(log, &to, &known);
        for call in held.into_iter().flat_map(|held| held.calls) {
            self.ask_tower(log, &to, call);
        }
        self.takeovers.moved += 1;
        self.takeovers.has_asked = true;
        self.takeovers.under_way.insert(log, to.clone());
        self.ask_end(log, &to);
        self.unsettled.insert(log);
    }

    /// Tells the owner of edits that have taken effect at the tower that takes over.
    fn answer_edits(&mut self, log: LogId, to: &TowerName, known: &BTreeSet<ReaderId>) {
        for r in self.wanted.of_log(log) {
            let next = self.next_of(log, r);
            let Some(reader) = self.wanted.get_mut(r) else {
                bug!("{r:?} of {log} is not there");
                continue;
            };
            if !known.contains(&r) {
                reader.end(to);
                continue;
            }
            for edit in reader.take_over(to) {
                let at = Some(next);
                self.told.push_back(Completion::Effective { r, edit, at });
            }
        }
    }

    /// Moves logs by choice to which no append is under way. One for which too much waits stays.
    pub(super) fn finish_moves(&mut self) {
        let moving: Vec<LogId> = self.takeovers.moving.iter().copied().collect();
        for log in moving {
            let Some(place) = self.logs.get(&log) else {
                // Input: a log that was deleted meanwhile.
                self.takeovers.moving.remove(&log);
                continue;
            };
            let (active, moving) = (place.active.clone(), &place.moving);
            let Some(moving) = moving else {
                bug!("{log} does not move");
                continue;
            };
            let (to, bytes) = (moving.to.clone(), moving.bytes);
            let may_go = self.may_use(log, &to) && self.wanted.are_level(log, &to);
            if !may_go || bytes > self.limits.moving_bytes {
                self.stay(log);
                self.rest(log, &to);
                continue;
            }
            let link = self.towers.get_mut(&active).map(|tower| tower.link(log));
            if link.is_none_or(|link| !link.has_appends(log)) {
                self.move_log(log, to);
            }
        }
    }

    /// A log does not move by choice to a tower for a while.
    fn rest(&mut self, log: LogId, tower: &TowerName) {
        if let Some(place) = self.logs.get_mut(&log) {
            place.left = Some((tower.clone(), self.now));
        }
        self.unsettled.insert(log);
    }

    /// Has a log stay where it is, if it was to move by choice.
    pub(super) fn stay(&mut self, log: LogId) {
        self.takeovers.moving.remove(&log);
        let place = self.logs.get_mut(&log);
        let Some((active, held)) =
            place.and_then(|place| Some((place.active.clone(), place.moving.take()?)))
        else {
            // Input: a log that does not move.
            return;
        };
        for call in held.calls {
            self.ask_tower(log, &active, call);
        }
        self.takeovers.has_asked = true;
    }
}
