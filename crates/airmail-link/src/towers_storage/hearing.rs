//! Hearing: what towers tell, and what of it the owner is told.

use super::{Asked, TowersStorage, tails};
use crate::link_storage::MutedNews;
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use crate::tower_ranks::TowerName;
use airmail_log::{Bounds, Completion, ReaderId, Tag};
use airmail_model::LogId;

impl<P: Port<Out = ToHost, In = FromHost>> TowersStorage<P> {
    /// Takes what a tower tells.
    pub(super) fn tower_told(&mut self, tower: &TowerName, told: Completion) {
        match told {
            Completion::Gained { log, bounds } => self.gained(log, tower, &bounds),
            Completion::Lost { log } => self.lost(log, tower),
            Completion::WantsLost { r } => self.wants_lost(r, tower),
            Completion::Effective { r, edit, at } => {
                let Some(reader) = self.wanted.get_mut(r) else {
                    // Input: a reader that its owner has stopped.
                    return;
                };
                if reader.answer(edit) {
                    self.told.push_back(Completion::Effective { r, edit, at });
                }
            }
            Completion::Ended { r, .. } => {
                self.reader_ended(r);
                self.told.push_back(told);
            }
            other => match other.tag() {
                Some(t) if tails::is_question(t) => self.question_answered(t, &other),
                Some(t) => self.answered(t, tower, other),
                None => self.told.push_back(other),
            },
        }
    }

    /// A tower answers the owner.
    pub(super) fn answered(&mut self, t: Tag, tower: &TowerName, answer: Completion) {
        let asked = self.asked.remove(&t);
        let place = asked.and_then(|asked| self.logs.get_mut(&asked.log()));
        if let Some(place) = place {
            place.calls = place.calls.saturating_sub(1);
        }
        match (asked, &answer) {
            (Some(Asked::Open(log)), Completion::Opened { bounds, .. }) => {
                let place = self.place(log);
                place.is_known = true;
                place.usable.insert(tower.clone());
                place.incarnation = Some(bounds.incarnation);
                self.unsettled.insert(log);
            }
            (Some(Asked::Delete(log)), Completion::Done { .. }) => self.deleted(log),
            (Some(Asked::Provisions(log)), _) => self.forget_unopened(log),
            _ => {}
        }
        self.told.push_back(answer);
    }

    /// Forgets the place of a log of which nothing is asked any more, and which was never opened: it may never be.
    fn forget_unopened(&mut self, log: LogId) {
        let place = self.logs.get(&log);
        if place.is_some_and(|place| !place.is_known && place.calls == 0 && place.readers == 0) {
            self.deleted(log);
        }
    }

    /// A log can be used at a tower.
    pub(super) fn gained(&mut self, log: LogId, tower: &TowerName, bounds: &Bounds) {
        let Some(place) = self.logs.get_mut(&log) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        self.unsettled.insert(log);
        place.usable.insert(tower.clone());
        if *tower != place.active {
            return;
        }
        let is_new_life = place.incarnation.replace(bounds.incarnation) != Some(bounds.incarnation);
        if std::mem::take(&mut place.is_lost) || is_new_life {
            let bounds = *bounds;
            self.told.push_back(Completion::Gained { log, bounds });
        }
    }

    /// A log cannot be used at a tower.
    pub(super) fn lost(&mut self, log: LogId, tower: &TowerName) {
        if let Some(place) = self.logs.get_mut(&log) {
            place.usable.remove(tower);
            if place.active == *tower {
                self.takeovers.is_over(log);
            }
            self.tails.forget(log, tower);
            self.unsettled.insert(log);
        }
    }

    /// The active tower does not know any more what is wanted of a reader. Another one may.
    pub(super) fn wants_lost(&mut self, r: ReaderId, tower: &TowerName) {
        let Some(reader) = self.wanted.get_mut(r) else {
            // Input: a reader that its owner has stopped.
            return;
        };
        let place = self.logs.get(&reader.log);
        if place.is_some_and(|place| place.active == *tower) {
            reader.is_forgotten = true;
            self.unsettled.insert(reader.log);
        }
    }

    /// The owner has to name everything that is wanted of a reader.
    pub(super) fn tell_wants_lost(&mut self, r: ReaderId) {
        if let Some(reader) = self.wanted.get_mut(r) {
            reader.lose();
            self.told.push_back(Completion::WantsLost { r });
        }
    }

    pub(super) fn reader_ended(&mut self, r: ReaderId) {
        let place = self
            .readers
            .remove(&r)
            .and_then(|log| self.logs.get_mut(&log));
        if let Some(place) = place {
            // Of a log that was deleted meanwhile, and made anew, none is counted.
            place.readers = place.readers.saturating_sub(1);
        }
        if let Some(reader) = self.wanted.remove(r) {
            for tower in self.towers.values_mut() {
                tower.link(reader.log).stop_muted(r);
            }
        }
    }

    pub(super) fn deleted(&mut self, log: LogId) {
        self.stay(log);
        self.takeovers.forget(log);
        self.unsettled.remove(&log);
        let Some(place) = self.logs.remove(&log) else {
            // Input: a log that was deleted twice.
            return;
        };
        for name in &place.attached {
            self.tails.forget(log, name);
            if let Some(tower) = self.towers.get_mut(name) {
                tower.link(log).forget_log(log);
            }
        }
    }

    /// Standbys tell how they follow.
    pub(super) fn standby_told(&mut self, tower: &TowerName, r: ReaderId, news: MutedNews) {
        let Some(reader) = self.wanted.get_mut(r) else {
            // Input: a reader that its owner has stopped.
            return;
        };
        match news {
            MutedNews::Effective(edit) => reader.effective(tower, edit),
            MutedNews::Refused => reader.refused(tower, self.now),
            MutedNews::Lost => _ = reader.end(tower),
        }
        self.unsettled.insert(reader.log);
    }
}
