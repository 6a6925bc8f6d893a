//! Crossing: from an earlier life of a log into the present one, where the loss of the log's end was accepted.
//!
//! Everything before the cut is the same in both lives, and everything behind it is not: numbers are used again there, for
//! other messages. So whoever stands in the earlier life, at the tail, behind or by a position, is read for up to the cut
//! and no further, as in the life in which it stands. Then its client is told how far the earlier life is lost, and goes on
//! at the cut, in the present life. One that was further than the cut is told the same, and goes on there, too.
//!
//! - What was to be located is asked for anew: an answer that is under way counts in the earlier life.
//! - An end that is known is one of the earlier life. What stands behind the cut now was not there when it was asked for.
//! - A new life that the catalog does not explain is of a command that is not known here yet. Everybody is sent away for a
//!   moment: whoever comes again does so by a position of the earlier life.

use super::behind::{Begin, BehindState};
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::catalog::Crossing;
use crate::keys::{BehindKey, LogKey};
use crate::link::Question;
use airmail_model::frame::{GapReason, State};
use airmail_model::{Incarnation, LogId, bug};

impl Gateway {
    /// Whether a new life of a log may go on from further back than the one before: where many write to it, so that
    /// nobody can seal it.
    pub(super) fn goes_back(&self, log: LogId) -> bool {
        let entry = self.catalog().get(log.namespace);
        let name = entry.map(|entry| entry.namespace.spec.storage);
        let seals = match name.filter(|name| !name.is_first()) {
            Some(name) => self.config.storages.get(&name).map(|of| of.seal),
            None => Some(self.logs.never_goes_back),
        };
        seals == Some(false)
    }

    /// A log is in another life than before, and goes on from further back, maybe.
    pub(super) fn life_changed(
        &mut self,
        key: LogKey,
        incarnation: Incarnation,
        out: &mut GatewayEffects,
    ) {
        let log = &mut self.logs[key];
        let before = std::mem::replace(&mut log.incarnation, incarnation);
        log.clock.life_changed();
        log.tail.returned.clear();
        if self.crossing(key, before).is_none() {
            return self.send_away(key, out);
        }
        let mut crossing = Vec::new();
        for sub in self.logs.lane(key).everyone(&self.subs) {
            let next = self.logs[key].tail.next;
            let behind = self.take_off_quietly(sub, key, next);
            // Its client knows it as live.
            self.behind[behind].shown = false;
            crossing.push((behind, before));
        }
        for behind in self.behind.of_log(key) {
            let is_live = crossing.iter().any(|(live, _)| *live == behind);
            if !is_live && let Some(life) = self.leave_life(behind, before, out) {
                crossing.push((behind, life));
            }
        }
        self.forget_ranges(key);
        self.rest_tail(key, out);
        for (behind, life) in crossing {
            let crossing = self.crossing(key, life);
            self.behind.cross(behind, crossing);
            self.go_on_crossing(behind, out);
        }
    }

    fn crossing(&self, key: LogKey, life: Incarnation) -> Option<Crossing> {
        let log = self.logs[key].id;
        let entry = self.catalog().get(log.namespace)?;
        entry.crossing(log, life)
    }

    /// Takes one that is behind out of whatever it waits for in a life that is over. The life in which it stands; `None`:
    /// it did not stand anywhere, and is located anew.
    fn leave_life(
        &mut self,
        key: BehindKey,
        life: Incarnation,
        out: &mut GatewayEffects,
    ) -> Option<Incarnation> {
        let state = self.behind[key].state;
        self.leave(key, out);
        // Nobody is to keep the tail, which stands at a number of the life before.
        self.release_want(key);
        let behind = &mut self.behind[key];
        match state {
            BehindState::Locating(Begin::Position(next)) => {
                (behind.told, behind.at) = (next, next);
            }
            BehindState::Placed {
                begin: Begin::Position(_),
                ..
            } => {}
            BehindState::Locating(begin) | BehindState::Placed { begin, .. } if !behind.shown => {
                self.locate(key, begin, out);
                return None;
            }
            _ => {}
        }
        let stands = self.behind.crossing(key).map(|of| of.life);
        Some(stands.unwrap_or(life))
    }

    /// Asks where a log ends for one that is to begin there so.
    fn locate(&mut self, key: BehindKey, begin: Begin, out: &mut GatewayEffects) {
        let ticket = self.behind.ticket();
        let behind = &mut self.behind[key];
        behind.ticket = ticket;
        behind.state = BehindState::Locating(begin);
        if behind.asked_until.is_some() {
            self.ask_until(key, begin, out);
        } else {
            self.ask_tower(key, Question::End, out);
        }
    }

    /// Forgets what every session was told of a log's tail: nobody is there, and its numbers are used again.
    fn forget_ranges(&mut self, key: LogKey) {
        for pace in Pace::ALL {
            let served = self.logs[key].tail.of_mut(pace);
            for session in std::mem::take(&mut served.ranges).into_keys() {
                self.sessions[session].logs.retain(|log| *log != key);
            }
        }
    }

    /// Has one that stands in an earlier life read for up to the cut, or enter the present one if it is there.
    fn go_on_crossing(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        let log = self.logs[self.behind[key].log].id;
        let Some(crossing) = self.behind.crossing(key) else {
            bug!("{:?} crosses nothing", self.behind[key]);
            return;
        };
        let behind = &mut self.behind[key];
        if let Some(until) = behind.until.as_mut().filter(|until| until.log == log) {
            until.before = until.before.min(crossing.at);
        }
        if behind.at >= crossing.at {
            return self.enter_life(key, crossing, out);
        }
        self.tell_detached(key, out);
        self.follow(key, out);
    }

    /// Lets one that has been given all of an earlier life that there is go on in the present one. It waits for nothing.
    pub(super) fn enter_life(
        &mut self,
        key: BehindKey,
        crossing: Crossing,
        out: &mut GatewayEffects,
    ) {
        let Crossing { at, end, .. } = crossing;
        if self.behind[key].told < at {
            self.tell_detached(key, out);
            self.tell_progress(key, at, out);
        }
        self.release_want(key);
        self.behind.cross(key, None);
        let behind = &mut self.behind[key];
        (behind.told, behind.at) = (at, at);
        behind.shown = true;
        behind.is_latest = false;
        let (sub, log) = (behind.sub, &self.logs[behind.log]);
        let state = State::Detached {
            log: log.id,
            incarnation: log.incarnation,
            next: at,
            resumed: false,
            lost_before: Some(end),
            beside: None,
        };
        self.tell_status(sub, state, out);
        self.stats.gap(GapReason::Loss);
        match self.until_here(key) {
            Some(until) if until <= at => self.complete(key, at, out),
            _ => self.locate(key, Begin::Here, out),
        }
    }

    /// Has everybody come again who is on a log.
    fn send_away(&mut self, key: LogKey, out: &mut GatewayEffects) {
        let id = self.logs[key].id;
        let mut subs = self.logs.lane(key).everyone(&self.subs);
        let behind = self.behind.of_log(key).into_iter();
        subs.extend(behind.map(|key| self.behind[key].sub));
        for sub in subs {
            let error = self.busy("log").value(id);
            self.end_with(sub, error, out);
        }
        self.forget_ranges(key);
    }
}
