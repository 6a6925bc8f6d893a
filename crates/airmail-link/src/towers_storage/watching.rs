//! Watching: all towers of logs that are used are asked where these end, so that a stale one is found out.

use super::TowersStorage;
use crate::message::{FromHost, ToHost};
use crate::port::Port;
use crate::tower_ranks::TowerName;
use airmail_log::{Call, Completion, Refusal, Tag};
use airmail_model::{LogId, Mono};
use std::ops::Bound;

impl<P: Port<Out = ToHost, In = FromHost>> TowersStorage<P> {
    /// Asks a tower where a log ends, unless it was asked already.
    pub(super) fn ask_end(&mut self, log: LogId, tower: &TowerName) {
        if let Some(t) = self.tails.ask(self.now, log, tower) {
            self.ask_tower(log, tower, Call::Bounds { t, log });
            self.takeovers.has_asked = true;
        }
    }

    /// A tower has said where a log ends.
    pub(super) fn question_answered(&mut self, t: Tag, answer: &Completion) {
        let end = match answer {
            Completion::Bounds { bounds, .. } => Some(bounds.next),
            _ => None,
        };
        let Some((log, tower)) = self.tails.answered(self.now, t, end) else {
            // Input: a question about a log that was deleted, or has left the tower.
            return;
        };
        if let Completion::Refused {
            why: Refusal::NoLog,
            ..
        } = answer
        {
            self.lost(log, &tower);
        }
        let Some(place) = self
            .logs
            .get_mut(&log)
            .filter(|place| place.active == tower)
        else {
            // Input: the answer of a standby.
            return;
        };
        self.takeovers.is_over(log);
        if let Completion::Bounds { bounds, .. } = answer {
            let life = Some(bounds.incarnation);
            let is_new_life = place.incarnation.replace(bounds.incarnation) != life;
            if std::mem::take(&mut place.is_lost) || is_new_life {
                let bounds = *bounds;
                self.told.push_back(Completion::Gained { log, bounds });
            }
        } else if place.is_lost {
            self.unsettled.insert(log);
        }
    }

    /// Asks all towers of logs that are used where these end, and has those move whose active tower is stale. When
    /// to do so again, if any have standbys.
    pub(super) fn watch_tails(&mut self) -> Option<Mono> {
        if self.takeovers.next_ask > self.now {
            return self.tails.is_watching().then_some(self.takeovers.next_ask);
        }
        self.takeovers.next_ask = self.now.plus(self.limits.ask_every);
        self.look_for_stale();
        let from = self.takeovers.asked_up_to.take();
        let from = from.map_or(Bound::Unbounded, Bound::Excluded);
        let mut asking: Vec<(LogId, Vec<TowerName>)> = Vec::new();
        for (log, place) in self.logs.range((from, Bound::Unbounded)) {
            if asking.len() >= self.limits.ask_logs {
                self.takeovers.asked_up_to = asking.last().map(|(log, _)| *log);
                break;
            }
            let has_standby = place.standbys().next().is_some();
            if !has_standby || !place.usable.contains(&place.active) {
                continue;
            }
            let link = self.towers.get_mut(&place.active);
            let has_appends = link.is_some_and(|tower| tower.link(*log).has_appends(*log));
            if has_appends || place.readers > 0 || place.calls > 0 {
                asking.push((*log, place.usable.iter().cloned().collect()));
            }
        }
        let is_watching = !asking.is_empty() || self.tails.is_watching();
        for (log, towers) in asking {
            for tower in towers {
                self.ask_end(log, &tower);
            }
        }
        is_watching.then_some(self.takeovers.next_ask)
    }

    fn look_for_stale(&mut self) {
        #[cfg(feature = "sabotage")]
        if self.limits.bug == Some(crate::sabotage::Bug::StandbyCounts) {
            return;
        }
        let (now, patience) = (self.now, self.limits.stale_after);
        for log in self.tails.logs() {
            let Some(place) = self.logs.get(&log) else {
                // Input: a log that was deleted meanwhile.
                continue;
            };
            let (active, rest) = (&place.active, self.limits.rest);
            let others = place.standbys();
            let better = self.tails.better(now, log, active, others, patience);
            // One that says nothing serves nobody, and one that was left is better than that.
            let better = better
                .filter(|(name, says_nothing)| *says_nothing || place.may_go_to(name, now, rest));
            if let Some((better, _)) = better {
                self.takeovers.due.insert(log, Some(better));
            }
        }
    }
}
