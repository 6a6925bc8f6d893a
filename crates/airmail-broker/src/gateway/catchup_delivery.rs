//! Parts that the tower reads for subscriptions that are behind, on their way to clients.
//!
//! The tower knows members and not clients: it gives the parts that a member asked for, and goes
//! on. A part for which a client has no credit is dropped here; then the member leaves, and its
//! subscription stands where the first dropped part begins. Parts that still come for it after that
//! belong to an attempt that is over.

use super::behind::{Begin, BehindState};
use super::judging::Left;
use super::live::reason;
use super::{Gateway, GatewayEffects};
use crate::keys::BehindKey;
use crate::link::{MemberId, Part, Question};
use airmail_log::GapWhy;
use airmail_model::bug;
#[cfg(feature = "sabotage")]
use airmail_model::frame::DELIVERY_OVERHEAD_BYTES;
use airmail_model::frame::{Channel, Delivered, Delivery, GapReason, Reply};
use airmail_model::{AppendTime, Extent, Sequence};

/// The same records without their payloads.
fn headers(body: Delivered) -> Delivered {
    let batch = body.into_batch();
    let all: Vec<u16> = (0..batch.records()).collect();
    let Some(slice) = batch.headers_of(&all) else {
        bug!("a delivery without a record");
        return Delivered::Whole(batch);
    };
    Delivered::Slice(slice)
}

impl Gateway {
    /// The subscription of a member, if it is read for in this attempt.
    fn find_member(&self, member: MemberId) -> Option<BehindKey> {
        let key = self.behind.find(member)?;
        let state = self.behind[key].state;
        if state != BehindState::Reading {
            bug!("{member:?} is read for, and is {state:?}");
            return None;
        }
        Some(key)
    }

    /// Gives one its part of a batch; one that may be given nothing leaves, and stands before it.
    pub(super) fn part(&mut self, member: MemberId, part: Part, out: &mut GatewayEffects) {
        if let Some(log) = member.behind.turns_log() {
            return self.turns_part(log, member.ticket, part, out);
        }
        let Some(key) = self.find_member(member) else {
            // Input: a member that has left since the tower sent this.
            return;
        };
        self.give_part(key, part, out);
    }

    /// Gives one that is behind a part of a batch; one that may be given nothing is read for, from before it.
    pub(super) fn give_part(&mut self, key: BehindKey, part: Part, out: &mut GatewayEffects) {
        let behind = &self.behind[key];
        let (session, sub, log) = (behind.session, behind.sub, behind.log);
        if !self.may_deliver(session, log) {
            self.leave(key, out);
            self.behind[key].at = part.first;
            self.follow(key, out);
            return;
        }
        let (body, clock) =
            match self.judge_part(log, (session, sub), part.body, part.base, part.appended) {
                Left::Some(body, clock, expired) => {
                    self.tell_expired(sub, log, &expired, out);
                    (body, clock)
                }
                Left::Nothing(expired) => {
                    self.tell_expired(sub, log, &expired, out);
                    return self.given_up_to(key, part.end, part.appended);
                }
                Left::Unknown => {
                    self.leave(key, out);
                    self.behind[key].at = part.first;
                    return self.await_clock(key, out);
                }
            };
        let body = if self.sessions[session].headers_only() {
            headers(body)
        } else {
            body
        };
        let cost = body.cost();
        #[cfg(feature = "sabotage")]
        let cost = match self.config.bug {
            Some(crate::sabotage::Bug::LateNotCharged) => DELIVERY_OVERHEAD_BYTES,
            _ => cost,
        };
        let lane = self.logs[log].id.lane;
        self.sessions[session].charge(lane, cost);
        self.stats.delivered(lane, &body);
        self.given(session, body.len());
        let behind = &self.behind[key];
        let sub = &self.subs[behind.sub];
        let delivery = Delivery {
            channel: Channel::Detached(sub.id, sub.generation),
            log: self.logs[behind.log].id,
            previous: behind.told.before(),
            last: part.end.before(),
            base: part.base,
            appended: part.appended,
            clock,
            body,
            matches: None,
        };
        out.reply(self.sessions[session].id, Reply::Delivery(delivery));
        self.behind[key].told = part.end;
        self.given_up_to(key, part.end, part.appended);
    }

    /// Takes note that one has been given all that is for it before `end`, the last of it appended at `appended`.
    fn given_up_to(&mut self, key: BehindKey, end: Sequence, appended: AppendTime) {
        let behind = &mut self.behind[key];
        behind.at = end;
        let clock = self.logs.clock;
        (behind.not_before).take_if(|time| clock.proof(*time) <= appended);
    }

    /// Tells one that numbers will not come.
    pub(super) fn part_gap(
        &mut self,
        member: MemberId,
        extent: Extent,
        why: GapWhy,
        out: &mut GatewayEffects,
    ) {
        if let Some(log) = member.behind.turns_log() {
            return self.turns_read_gap(log, member.ticket, (extent, why), out);
        }
        let Some(key) = self.find_member(member) else {
            // Input: a member that has left since the tower sent this.
            return;
        };
        let why = reason(why);
        if why != GapReason::Unused {
            self.tell_gap(key, extent.first, extent.last, why, out);
        }
    }

    /// Tells one how far it has got without a message; later, if it has no credit.
    pub(super) fn progress(&mut self, member: MemberId, next: Sequence, out: &mut GatewayEffects) {
        if let Some(log) = member.behind.turns_log() {
            return self.turns_read_to(log, member.ticket, next, out);
        }
        let Some(key) = self.find_member(member) else {
            // Input: a member that has left since the tower sent this.
            return;
        };
        let behind = &mut self.behind[key];
        behind.at = behind.at.max(next);
        let lane = self.logs[behind.log].id.lane;
        if self.sessions[behind.session].has_credit(lane) {
            self.tell_progress(key, next, out);
        } else {
            self.timers.withheld.insert(member);
        }
    }

    /// The tower has read for one up to its tail. It goes live, waits there, or is read for again if this
    /// side's tail has got further meanwhile. Where nobody is at the tail, the log may have got further than the
    /// tower knows, so that is asked first.
    pub(super) fn reached(
        &mut self,
        member: MemberId,
        next: Sequence,
        end: Sequence,
        out: &mut GatewayEffects,
    ) {
        if let Some(log) = member.behind.turns_log() {
            return self.turns_reached(log, member.ticket, next, out);
        }
        let Some(key) = self.find_member(member) else {
            // Input: a member that has left since the tower sent this.
            return;
        };
        self.lift(key);
        let behind = &mut self.behind[key];
        let session = behind.session;
        behind.at = behind.at.max(next);
        if self.logs[behind.log].tail.is_attached {
            self.go_on(key, end, out);
        } else {
            behind.state = BehindState::Locating(Begin::Here);
            self.ask_tower(key, Question::End, out);
        }
        self.unpark(session, out);
    }

    /// The tower has given one all that it asked for.
    pub(super) fn ended(&mut self, member: MemberId, next: Sequence, out: &mut GatewayEffects) {
        if let Some(log) = member.behind.turns_log() {
            return self.turns_reached(log, member.ticket, next, out);
        }
        let Some(key) = self.find_member(member) else {
            // Input: a member that has left since the tower sent this.
            return;
        };
        let behind = &mut self.behind[key];
        behind.at = behind.at.max(next);
        if self.is_done_with_log(key) {
            let session = self.behind[key].session;
            self.lift(key);
            self.go_on_behind(key, out);
            return self.unpark(session, out);
        }
        self.complete(key, next, out);
    }
}
