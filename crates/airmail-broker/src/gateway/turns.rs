//! Turns are taken: what waits for those with filters is held against these, and given to whom it is for.

use super::fanout::{Fanout, SessionPart};
use super::matched::{OfSession, Recipient, Recipients};
use super::matching_turns::{BatchTurn, Source, Turn};
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::keys::{LogKey, SessionKey, SubKey};
use airmail_log::Stored;
use airmail_model::frame::GapReason;
use airmail_model::{Extent, Sequence};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Units of work that it takes to give a session its part of a piece, about: one is a step of an index of filters.
const DELIVERY_UNITS: u32 = 32;

/// Work that is left in a turn of the gateway, and the logs that have to wait for the next.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) units: u32,
    /// Logs with something that has not had its turn.
    pub(super) logs: BTreeSet<LogKey>,
    /// The log that had the last turn: the next one is that of the log after it.
    last: Option<LogKey>,
}

impl Work {
    /// Uses up units, or all that are left.
    pub(super) fn spend(&mut self, units: u32) {
        self.units = self.units.saturating_sub(units);
    }

    /// Takes out the logs with something that waits, in the order in which they have their turns.
    fn take_logs(&mut self) -> Vec<LogKey> {
        let logs = std::mem::take(&mut self.logs).into_iter();
        let (before, after): (Vec<LogKey>, Vec<LogKey>) =
            logs.partition(|log| Some(*log) <= self.last);
        after.into_iter().chain(before).collect()
    }
}

impl Gateway {
    /// Something has come of a log, which is to be held against the filters of whoever is there.
    pub(super) fn await_turn(
        &mut self,
        key: LogKey,
        turn: impl FnOnce() -> Turn,
        out: &mut GatewayEffects,
    ) {
        let tail = &mut self.logs[key].tail;
        if tail.of(Pace::InTurns).is_idle() {
            return self.rest_turns(key, out);
        }
        let turn = turn();
        let extent = turn.extent();
        let has_room = tail.turns.bytes() <= self.config.matching_bytes / 2;
        match tail.turns.source {
            Source::Tail => {}
            Source::Storage { next, ticket: None } if next == extent.first && has_room => {
                // Everything before it has been read.
                tail.turns.source = Source::Tail;
            }
            // It is read from the storage.
            Source::Storage { .. } => return,
        }
        tail.turns.push(turn);
        if tail.turns.bytes() > self.config.matching_bytes {
            self.leave_to_storage(key, extent.next());
        }
        self.live.work.logs.insert(key);
    }

    /// Lets the logs in which something waits have their turns, as far as there is work left in this step.
    pub(super) fn take_turns(&mut self, out: &mut GatewayEffects) {
        let is_untended = self
            .subs
            .filters
            .tend((self.config.matching_units / 4).max(1));
        self.make_changes(out);
        if self.live.work.logs.is_empty() {
            self.timers.turns = is_untended.then_some(self.now.mono);
            return;
        }
        self.live.work.units = self.config.matching_units;
        for key in self.live.work.take_logs() {
            if self.logs.get_mut(key).is_none() {
                // Input: a log that was deleted meanwhile.
                continue;
            }
            if self.live.work.units > 0 {
                self.live.work.last = Some(key);
            }
            if !self.take_turns_of(key, out) {
                self.live.work.logs.insert(key);
            }
        }
        let goes_on = is_untended || !self.live.work.logs.is_empty();
        self.timers.turns = goes_on.then_some(self.now.mono);
    }

    /// Lets everything have its turn that waits in a log, however much it is: nothing more comes of its present life.
    pub(super) fn finish_turns(&mut self, key: LogKey, out: &mut GatewayEffects) {
        if self.logs[key].tail.turns.are_at_tail() {
            return;
        }
        loop {
            self.live.work.units = u32::MAX;
            if self.take_turns_of(key, out) {
                break;
            }
        }
        if self.logs[key].tail.turns.source != Source::Tail {
            self.disperse(key, out);
        }
    }

    /// Takes turns of a log until no work is left; whether nothing waits any more.
    fn take_turns_of(&mut self, key: LogKey, out: &mut GatewayEffects) -> bool {
        while self.live.work.units > 0 {
            if let Some(batch) = self.logs[key].tail.turns.batch.take() {
                self.go_on_with(key, batch, out);
                continue;
            }
            match self.logs[key].tail.turns.first().cloned() {
                Some(Turn::Batch(stored)) => self.begin_turn(key, stored, out),
                Some(Turn::Gap(extent, why)) => self.turn_gap(key, extent, why, out),
                None => break,
            }
        }
        self.read_for_turns(key, out);
        // Who is matched by nothing is told how far it has got, however long that takes.
        self.mark_later();
        if self.logs[key].tail.turns.is_done() {
            self.rest_turns(key, out);
            self.leave_ended(key, out);
        }
        self.rest_tail(key, out);
        self.logs[key].tail.turns.is_done()
    }

    /// A batch has its turn: whoever waits for it goes live, and it is held against the filters.
    fn begin_turn(&mut self, key: LogKey, stored: Stored, out: &mut GatewayEffects) {
        self.wake_timed((key, Pace::InTurns), &stored, out);
        self.wake((key, Pace::InTurns), stored.extent.last, out);
        let tail = &mut self.logs[key].tail;
        if tail.turns.is_done() {
            // Input: those who waited have left, and nobody else is there.
            return;
        }
        let next = stored.extent.next();
        let from = std::mem::replace(&mut tail.of_mut(Pace::InTurns).next, next);
        tail.turns.batch = Some(BatchTurn::new(stored, from));
        self.live.work.spend(1);
        self.wake((key, Pace::InTurns), next, out);
    }

    /// Goes on with a batch that has its turn, as far as there is work left.
    fn go_on_with(&mut self, key: LogKey, mut batch: BatchTurn, out: &mut GatewayEffects) {
        while self.live.work.units > 0 {
            if !self.is_sought(key, &batch) {
                self.seek(key, &mut batch);
            } else if !batch.found.is_empty() {
                self.find_recipients(key, &mut batch);
            } else if !batch.recipients.is_empty() {
                let Some(rest) = self.hand_over(key, batch, out) else {
                    // Input: somebody's detachment has given the whole tail up.
                    return;
                };
                batch = rest;
            } else if batch.is_found() {
                self.stats.filtered += batch.unmatched();
                self.logs[key].tail.turns.first_is_done();
                self.make_changes_of(key, out);
                return self.rest_tail(key, out);
            } else {
                self.stats.filtered += batch.unmatched();
                batch.begin_piece();
                self.logs[key].tail.turns.batch = Some(batch);
                self.make_changes_of(key, out);
                let Some(same) = self.logs[key].tail.turns.batch.take() else {
                    // Input: somebody's detachment has given the whole tail up.
                    return;
                };
                batch = same;
            }
        }
        self.logs[key].tail.turns.batch = Some(batch);
    }

    /// Gives sessions their parts of a piece, as far as there is work left. The batch, if it still has its turn.
    fn hand_over(
        &mut self,
        key: LogKey,
        mut batch: BatchTurn,
        out: &mut GatewayEffects,
    ) -> Option<BatchTurn> {
        let stored = batch.stored.clone();
        let (from, end) = (batch.from, batch.piece_end());
        let mut recipients = std::mem::take(&mut batch.recipients);
        // Known to the tail meanwhile: whoever is detached stands where its piece begins.
        self.logs[key].tail.turns.batch = Some(batch);
        self.hand_over_to((key, from, end), &stored, &mut recipients, out);
        let mut batch = self.logs[key].tail.turns.batch.take()?;
        batch.recipients = recipients;
        Some(batch)
    }

    fn hand_over_to(
        &mut self,
        (key, from, end): (LogKey, Sequence, Sequence),
        stored: &Stored,
        recipients: &mut Recipients,
        out: &mut GatewayEffects,
    ) {
        let judged = self.judge_live(key, stored);
        let Ok(judged) = judged else {
            // Input: a log whose clock was not asked for lately.
            while let Some((session, those)) = recipients.pop() {
                for of in self.there(session, those, (key, end)) {
                    let behind = self.take_off((of.sub, key), from, false, out);
                    self.await_clock(behind, out);
                }
            }
            return;
        };
        let mut fanout = Fanout::new(
            (key, self.logs[key].id),
            stored,
            judged,
            #[cfg(feature = "sabotage")]
            self.config.bug,
        );
        while self.live.work.units > 0 {
            let Some((session, those)) = recipients.pop() else {
                // Input: everybody has been served.
                return;
            };
            let there = self.there(session, those, (key, end));
            let subscriptions = u32::try_from(there.len()).unwrap_or(u32::MAX);
            self.live
                .work
                .spend(subscriptions.saturating_add(DELIVERY_UNITS));
            if there.is_empty() {
                // Input: those who were found have left since.
            } else if self.sessions[session].matches() {
                let rest = self.give_named((session, end), &mut fanout, there, out);
                recipients.put_back(session, rest);
            } else {
                self.give_matched((session, end), &mut fanout, &there, out);
            }
        }
    }

    /// Those of a session's subscriptions that were found who are still there, if the session has not been given this.
    fn there(
        &self,
        session: SessionKey,
        mut those: OfSession,
        (key, end): (LogKey, Sequence),
    ) -> OfSession {
        let of = &self.logs[key];
        let (lane, tail) = (of.id.lane, of.at);
        let range = of.tail.of(Pace::InTurns).ranges.get(&session);
        if range.is_none_or(|range| range.next >= end) {
            // Input: a session that has ended, or come, meanwhile.
            return OfSession::new();
        }
        let is_there = |of: &mut Recipient| {
            let is_same = self.subs.get(of.sub).is_some_and(|sub| {
                let is = (sub.session, sub.id, sub.generation);
                is == (session, of.id, of.generation) && sub.is_live_in(lane) && sub.tail() == tail
            });
            is_same && self.subs.filters.of(of.sub) == Some(of.filter)
        };
        those.retain(is_there);
        those
    }

    /// Gives a session its part of a piece, or detaches those whom it concerns.
    fn give_matched(
        &mut self,
        (session, end): (SessionKey, Sequence),
        fanout: &mut Fanout<'_>,
        those: &[Recipient],
        out: &mut GatewayEffects,
    ) {
        if !self.may_deliver(session, fanout.log) {
            for of in those {
                self.detach(of.sub, fanout.log, end, out);
            }
            return;
        }
        let of = &self.sessions[session];
        let roles = of.roles(fanout.id.namespace);
        let wants = (of.headers_only(), fanout.roles_that_count(roles));
        let places = those.iter().map(|of| Arc::clone(&of.places));
        let part: SessionPart = fanout.matched_part(places.collect(), wants);
        if let Some(left_out) = &part.left_out {
            for of in those {
                let (forbidden, expired) = left_out.among(&of.places);
                self.stats.forbidden += forbidden;
                self.tell_expired(of.sub, fanout.log, &expired, out);
            }
        }
        if let Some(body) = part.body {
            let clock = fanout.judged.as_ref().and_then(|of| of.clock);
            let range = (fanout.log, Pace::InTurns, end.before());
            self.give_live(session, range, fanout.stored, (clock, body, None), out);
        }
    }

    /// Numbers will not come, which those with filters are told in their turn.
    fn turn_gap(&mut self, key: LogKey, extent: Extent, why: GapReason, out: &mut GatewayEffects) {
        self.wake((key, Pace::InTurns), extent.last, out);
        self.tell_live((key, Pace::InTurns), extent, why, out);
        self.tell_timed((key, Pace::InTurns), extent, why, out);
        let tail = &mut self.logs[key].tail;
        if tail.turns.is_done() {
            // Input: those who waited have left, and nobody else is there.
            return;
        }
        let served = tail.of_mut(Pace::InTurns);
        served.next = served.next.max(extent.next());
        tail.turns.first_is_done();
        self.live.work.spend(1);
        self.wake((key, Pace::InTurns), extent.next(), out);
        self.rest_tail(key, out);
    }

    /// Turns that have fallen behind come to an end with the log's life: those who are served in turns are read for from where
    /// they stand, each by itself.
    fn disperse(&mut self, key: LogKey, out: &mut GatewayEffects) {
        let next = self.logs[key].tail.of(Pace::InTurns).next;
        for sub in self.logs.lane(key).everyone(&self.subs) {
            if self.pace(sub) == Pace::InTurns {
                self.detach(sub, key, next, out);
            }
        }
        let served = self.logs[key].tail.of(Pace::InTurns);
        let waiting = served.waiting.iter().map(|(_, behind)| *behind);
        let timed = served.timed.iter().map(|(_, behind)| *behind);
        for behind in waiting.chain(timed).collect::<Vec<_>>() {
            self.lift(behind);
            self.tell_detached(behind, out);
            self.follow(behind, out);
        }
        self.rest_tail(key, out);
    }

    /// Nothing waits any more, or nobody waits for it: whoever comes is served from where the tail stands.
    pub(super) fn rest_turns(&mut self, key: LogKey, out: &mut GatewayEffects) {
        if self.logs[key].tail.of(Pace::InTurns).is_idle() {
            self.stop_reading_for_turns(key, out);
            self.logs[key].tail.turns.clear();
        }
        let tail = &mut self.logs[key].tail;
        if tail.turns.are_at_tail() && tail.is_attached {
            let next = tail.next;
            tail.of_mut(Pace::InTurns).next = next;
            self.wake((key, Pace::InTurns), next, out);
        }
    }

    /// Pace at which a subscription is served at a tail.
    pub(super) fn pace(&self, sub: SubKey) -> Pace {
        self.sessions[self.subs[sub].session].pace()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_after_the_one_that_had_the_last_turn_has_the_next() {
        let mut work = Work::default();
        let logs = [0, 1, 2, 3].map(LogKey::new);
        let mut first = Vec::new();
        for _ in 0..5 {
            work.logs.extend(logs);
            let order = work.take_logs();
            assert!(work.logs.is_empty() && order.len() == logs.len());
            work.last = Some(order[0]);
            first.push(order[0]);
        }
        assert_eq!(first, [0, 1, 2, 3, 0].map(LogKey::new));
    }
}
