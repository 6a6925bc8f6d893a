//! States of a subscription that is behind: it is told its place, waits, is read for, goes live,
//! completes or ends.

use super::behind::BehindState;
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, LogKey, SessionKey, SubKey};
use crate::link::{Follow, ToTower};
use airmail_log::AppendClock;
use airmail_model::frame::{Channel, GapReason, Places, Reply, State};
use airmail_model::position::LogPosition;
use airmail_model::{AppendTime, Error, Lane, Sequence};

impl Gateway {
    /// Tells a subscription's client how it stands.
    pub(super) fn tell_status(&mut self, key: SubKey, state: State, out: &mut GatewayEffects) {
        let sub = &self.subs[key];
        let reply = Reply::Status {
            subscription: sub.id,
            generation: sub.generation,
            state,
        };
        out.reply(self.sessions[sub.session].id, reply);
    }

    /// Tells its client, once, that a part is behind, and where.
    pub(super) fn tell_detached(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        let life = self.behind.crossing(key).map(|of| of.life);
        let behind = &mut self.behind[key];
        if std::mem::replace(&mut behind.shown, true) {
            return;
        }
        let log = &self.logs[behind.log];
        let state = State::Detached {
            log: log.id,
            incarnation: life.unwrap_or(log.incarnation),
            next: behind.told,
            resumed: false,
            lost_before: None,
            beside: None,
        };
        let sub = behind.sub;
        self.tell_status(sub, state, out);
        self.begin_others(sub, out);
    }

    /// Tells a gap on a subscription's own channel; what lies between `told` and its beginning is
    /// told as unused.
    pub(super) fn tell_gap(
        &mut self,
        key: BehindKey,
        first: Sequence,
        last: Sequence,
        why: GapReason,
        out: &mut GatewayEffects,
    ) {
        if self.behind[key].told < first && why != GapReason::Unused {
            let told = self.behind[key].told;
            self.tell_gap(key, told, first.before(), GapReason::Unused, out);
        }
        let behind = &mut self.behind[key];
        let sub = &self.subs[behind.sub];
        let reply = Reply::Gap {
            channel: Channel::Detached(sub.id, sub.generation),
            log: self.logs[behind.log].id,
            previous: first.before(),
            last,
            why,
        };
        out.reply(self.sessions[behind.session].id, reply);
        behind.told = behind.told.max(last.plus(1));
        behind.at = behind.at.max(behind.told);
        self.stats.gap(why);
    }

    /// Tells its client all that there was nothing in, up to `next`.
    pub(super) fn tell_progress(
        &mut self,
        key: BehindKey,
        next: Sequence,
        out: &mut GatewayEffects,
    ) {
        let told = self.behind[key].told;
        if self.behind[key].shown && told < next {
            self.tell_gap(key, told, next.before(), GapReason::Unused, out);
        }
    }

    /// Takes one out of whatever it waits for. The tower is not told.
    pub(super) fn lift(&mut self, key: BehindKey) {
        let behind = &self.behind[key];
        let session = &mut self.sessions[behind.session];
        match behind.state {
            BehindState::Locating(_)
            | BehindState::Placed { .. }
            | BehindState::Moving
            | BehindState::AwaitingWant
            | BehindState::Complete(_) => {}
            BehindState::AwaitingSuccessor(_) => {
                self.logs[behind.log].waiting.remove(&key);
            }
            BehindState::AwaitingClock => {
                self.logs[behind.log].clock.waiting.remove(&key);
            }
            BehindState::NoCredit => {
                let lane = self.logs[behind.log].id.lane;
                session.turns_mut(lane).leave(behind.log, behind.ticket);
            }
            BehindState::Reading => {
                #[cfg(feature = "sabotage")]
                let is_kept = self.config.bug == Some(crate::sabotage::Bug::FollowingKept);
                #[cfg(not(feature = "sabotage"))]
                let is_kept = false;
                if !is_kept {
                    let lane = self.logs[behind.log].id.lane;
                    session.turns_mut(lane).end(behind.log);
                }
            }
            BehindState::AwaitingTail => {
                let served = self.logs[behind.log].tail.of_mut(session.pace());
                served.waiting.remove(&(behind.at, key));
                if let Some(time) = behind.not_before {
                    served.timed.remove(&(time, key));
                }
            }
        }
        self.behind[key].state = BehindState::Moving;
    }

    /// Takes one out of whatever it waits for, and out of the tower if that reads for it.
    pub(super) fn leave(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        if self.behind[key].state == BehindState::Reading {
            let member = self.behind.member(key);
            out.tell(ToTower::Leave { member });
        }
        self.lift(key);
    }

    /// Pace at which a subscription that is behind will be served at the tail.
    pub(super) fn pace_of(&self, key: BehindKey) -> Pace {
        self.sessions[self.behind[key].session].pace()
    }

    /// Goes to the tail if it has nothing to be read first, else is read for. `end` is where the log ends
    /// as the tower has just told.
    pub(super) fn go_on(&mut self, key: BehindKey, end: Sequence, out: &mut GatewayEffects) {
        if self.is_done_with_log(key) {
            return self.go_on_behind(key, out);
        }
        let behind = &self.behind[key];
        let (log, at, until) = (behind.log, behind.at, behind.until);
        let tail = &self.logs[log].tail;
        let is_attached = tail.is_attached;
        let next = tail.of(self.pace_of(key)).next;
        let here = if is_attached { next } else { end };
        if self.behind.crossing(key).is_some() || until.is_some() || at < here {
            self.tell_detached(key, out);
            self.follow(key, out);
            return;
        }
        if !is_attached {
            self.attach(log, end, out);
        }
        self.go_to_tail(key, Some(end), out);
    }

    /// Goes live if the tail is at its number, or waits there. The tail has not got further. `end` is
    /// where the log ends, if the tower has just told.
    fn go_to_tail(&mut self, key: BehindKey, end: Option<Sequence>, out: &mut GatewayEffects) {
        if self.is_done_with_log(key) {
            return self.go_on_behind(key, out);
        }
        if !self.is_given(key) {
            if self.behind[key].scope.topic().is_some() {
                return self.await_want(key);
            }
            self.want_everything(self.behind[key].log, out);
        }
        let (wall, pace) = (self.now.wall, self.pace_of(key));
        let behind = &mut self.behind[key];
        let at = behind.at;
        // What is appended from now on is as new as the clock says; what the tail has not given may be
        // older. Of clocks that are not this node's the wall clock says nothing.
        let is_own_clock = self.logs.clock == AppendClock::Monotone;
        let is_at_end = is_own_clock && end.is_some_and(|end| at >= end);
        let has_passed = |time: &mut AppendTime| is_at_end && time.0 <= wall.0;
        behind.not_before.take_if(has_passed);
        let (log, not_before) = (behind.log, behind.not_before);
        if let Some(time) = not_before {
            self.tell_detached(key, out);
            self.hold_want(key);
            self.behind[key].state = BehindState::AwaitingTail;
            self.logs[log].tail.of_mut(pace).timed.insert((time, key));
            return;
        }
        if end.is_some_and(|end| at > end) {
            self.tell_detached(key, out);
        }
        if at == self.logs[log].tail.of(pace).next {
            self.go_live(key, out);
        } else {
            if pace == Pace::InTurns && self.logs[log].tail.turns.are_behind() {
                // It may take a while until they get here.
                self.tell_detached(key, out);
            }
            self.hold_want(key);
            self.behind[key].state = BehindState::AwaitingTail;
            self.logs[log].tail.of_mut(pace).waiting.insert((at, key));
        }
    }

    /// Goes to the tail, which gives its topic from where it stands, or is read for up to there.
    pub(super) fn go_on_at_tail(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        let pace = self.pace_of(key);
        let behind = &mut self.behind[key];
        let next = self.logs[behind.log].tail.of(pace).next;
        if behind.is_latest && !behind.shown {
            // Its client has not been told where it begins.
            behind.at = behind.at.max(next);
            behind.told = behind.at;
        }
        let at = behind.at;
        if at != next {
            self.tell_detached(key, out);
        }
        if at < next {
            self.follow(key, out);
        } else {
            self.go_to_tail(key, None, out);
        }
    }

    /// Goes live: it waits for nothing, and the tail has got to it.
    pub(super) fn go_live(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        if self.is_elsewhere(key) {
            let (sub, log) = (self.behind[key].sub, self.behind[key].log);
            let error = self.busy("log").value(self.logs[log].id);
            return self.end_with(sub, error, out);
        }
        // Its number may have been one of those that are never used.
        let behind = &self.behind[key];
        let next = self.logs[behind.log].tail.of(self.pace_of(key)).next;
        let at = behind.at.max(next);
        if at > behind.at {
            self.tell_detached(key, out);
        }
        self.tell_progress(key, at, out);
        let held = std::mem::take(&mut self.behind[key].holds_want);
        let behind = self.take_late(key);
        self.join_tail(behind.sub, behind.log);
        self.live_now(behind.log, behind.scope, held);
        let log = &self.logs[behind.log];
        let place = LogPosition {
            log: log.id,
            incarnation: log.incarnation,
            next: at,
        };
        self.stats.rejoined += u64::from(behind.shown);
        self.tell_live_at(behind.sub, place, out);
        self.begin_others(behind.sub, out);
    }

    /// Tells a subscription's client that it is live in a log; with what the client was told last, if that is the same
    /// of another log.
    fn tell_live_at(&mut self, key: SubKey, place: LogPosition, out: &mut GatewayEffects) {
        let sub = &self.subs[key];
        let id = self.sessions[sub.session].id;
        match out.replies.last_mut() {
            // Behind other replies it would come before these.
            Some((
                session,
                Reply::Status {
                    subscription,
                    generation,
                    state: State::Live { places },
                },
            )) if *session == id
                && (*subscription, *generation) == (sub.id, sub.generation)
                && places.iter().all(|told| told.log != place.log) =>
            {
                places.push(place);
                places.sort_unstable_by_key(|place| place.log);
            }
            _ => self.tell_status(key, State::live(place), out),
        }
    }

    /// Ends a part to which all has been given that it asked for, up to `next`; with the last one its subscription.
    pub(super) fn complete(&mut self, key: BehindKey, next: Sequence, out: &mut GatewayEffects) {
        self.lift(key);
        self.tell_progress(key, next, out);
        let life = self.behind.crossing(key).map(|of| of.life);
        let of = &self.logs[self.behind[key].log];
        let place = LogPosition {
            log: of.id,
            incarnation: life.unwrap_or(of.incarnation),
            next,
        };
        self.complete_at(key, place, out);
    }

    /// Ends a part where its log ended. Where its client was not told where it begins, nothing is left of it. If there is
    /// another part, the client hears of this one when both are complete: it is to ask for both again should it lose the
    /// connection before.
    pub(super) fn complete_at_end(
        &mut self,
        key: BehindKey,
        end: Sequence,
        out: &mut GatewayEffects,
    ) {
        let behind = &mut self.behind[key];
        if !behind.shown {
            (behind.told, behind.at) = (end, end);
            let sub = behind.sub;
            if self.late_parts(sub).into_iter().count() == 1 {
                self.tell_detached(key, out);
            }
        }
        self.complete(key, end, out);
    }

    /// Ends a part that waits for nothing at a place, before which its client has been told all.
    pub(super) fn complete_at(
        &mut self,
        key: BehindKey,
        place: LogPosition,
        out: &mut GatewayEffects,
    ) {
        let behind = &mut self.behind[key];
        let (sub, session, log) = (behind.sub, behind.session, behind.log);
        behind.state = BehindState::Complete(place);
        let parts = self.late_parts(sub);
        let complete = parts
            .iter()
            .filter_map(|part| match self.behind[*part].state {
                BehindState::Complete(place) => Some(place),
                _ => None,
            });
        let mut places: Places = complete.collect();
        if places.len() == parts.len() {
            places.sort_unstable_by_key(|place| place.log);
            self.tell_status(sub, State::Complete { places }, out);
            return self.forget(sub, out);
        }
        self.release_want(key);
        self.logs[log].tail.returned.remove(&sub);
        self.rest_tail(log, out);
        self.begin_others(sub, out);
        self.unpark(session, out);
    }

    /// Has the tower read for one that waits for nothing, or lets it wait for credit first.
    pub(super) fn follow(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        let ticket = self.behind.ticket();
        self.behind[key].ticket = ticket;
        let (session, log) = (self.behind[key].session, self.behind[key].log);
        let lane = self.logs[log].id.lane;
        let most = self.following_max(session, lane);
        let turns = self.sessions[session].turns_mut(lane);
        if !most.is_some_and(|most| turns.may_follow(log, most)) {
            turns.park(log, ticket, key);
            self.behind[key].state = BehindState::NoCredit;
            return;
        }
        turns.begin(log);
        self.behind[key].state = BehindState::Reading;
        let member = self.behind.member(key);
        let behind = &self.behind[key];
        out.tell(ToTower::Follow(Follow {
            member,
            log: self.logs[behind.log].id,
            topic: behind.scope.topic(),
            from: behind.at,
            until: self.until_here(key),
            not_before: behind.not_before,
            not_after: behind.not_after,
        }));
    }

    /// Has those read for whom the session's credit allows it in each lane, oldest first. The tower finds out which of
    /// them are at the end; that one is at the tail, as far as it is attached, is known here.
    pub(super) fn unpark(&mut self, session: SessionKey, out: &mut GatewayEffects) {
        for lane in [Lane::High, Lane::Normal] {
            self.unpark_in(session, lane, out);
        }
    }

    fn unpark_in(&mut self, session: SessionKey, lane: Lane, out: &mut GatewayEffects) {
        while !self.sessions[session].turns(lane).is_nobody_parked() {
            let most = self.following_max(session, lane);
            let turns = self.sessions[session].turns_mut(lane);
            let Some(key) = most.and_then(|most| turns.pop_next(most)) else {
                // Input: no credit for more.
                return;
            };
            let is_crossing = self.behind.crossing(key).is_some();
            let pace = self.pace_of(key);
            let behind = &mut self.behind[key];
            behind.state = BehindState::Moving;
            let tail = &self.logs[behind.log].tail;
            let is_unbounded =
                behind.until.is_none() && behind.not_before.is_none() && !is_crossing;
            if is_unbounded && tail.is_attached && behind.at >= tail.of(pace).next {
                self.go_to_tail(key, None, out);
            } else {
                self.follow(key, out);
            }
        }
    }

    /// Removes every trace of a subscription that nothing more is said of.
    pub(super) fn forget(&mut self, key: SubKey, out: &mut GatewayEffects) {
        let sub = self.subs[key];
        self.sessions[sub.session].take(&self.subs, key);
        let mut logs = self.live_parts(key);
        for log in &logs {
            self.leave_tail(key, *log);
            self.settle_want(*log, sub.scope());
        }
        for part in self.late_parts(key) {
            self.leave(part, out);
            self.release_want(part);
            logs.push(self.take_late(part).log);
        }
        self.subs.remove(key);
        for log in logs {
            // A part that was complete may have outlived its log.
            if let Some(of) = self.logs.get_mut(log) {
                of.tail.returned.remove(&key);
                self.rest_tail(log, out);
            }
        }
        self.unpark(sub.session, out);
    }

    /// Ends a subscription with an error.
    pub(super) fn end_with(&mut self, sub: SubKey, error: Error, out: &mut GatewayEffects) {
        self.stats.refuse(error.code());
        self.tell_status(sub, State::Failed(error), out);
        self.forget(sub, out);
    }

    /// Ends every subscription of a log whose namespace is deleted.
    pub(super) fn fail_subscribers(&mut self, log: LogKey, out: &mut GatewayEffects) {
        let namespace = self.logs[log].id.namespace;
        let mut subs = self.logs.lane(log).everyone(&self.subs);
        let behind = self.behind.of_log(log);
        subs.extend(behind.iter().map(|key| self.behind[*key].sub));
        for key in subs {
            self.end_with(key, super::deleted(namespace), out);
        }
    }
}
