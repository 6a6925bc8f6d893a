//! What becomes of a subscription that is behind: it is told where it stands, waits, goes live,
//! completes or ends.

use super::Shard;
use crate::input::Effects;
use crate::keys::{LateKey, LogKey, SessionKey, SubKey};
use crate::late::Stand;
use airmail_model::frame::{Channel, GapReason, Reply, State};
use airmail_model::{AppendTime, Sequence};

impl Shard {
    /// Tells a subscription's client how it stands.
    pub(super) fn tell_status(&mut self, key: SubKey, state: State, out: &mut Effects) {
        let sub = &self.subs[key];
        let reply = Reply::Status {
            subscription: sub.id,
            generation: sub.generation,
            state,
        };
        out.replies.push((self.sessions[sub.session].id, reply));
    }

    /// Tells its client, once, that a subscription is behind, and where.
    pub(super) fn show(&mut self, key: LateKey, out: &mut Effects) {
        let late = &mut self.late[key];
        if std::mem::replace(&mut late.shown, true) {
            return;
        }
        let head = &self.logs[late.log];
        let state = State::Detached {
            log: head.id,
            incarnation: head.incarnation,
            next: late.told,
            resumed: false,
        };
        let sub = late.sub;
        self.tell_status(sub, state, out);
    }

    /// Tells a gap on a subscription's own channel; what lies between `told` and its beginning is
    /// told as unused.
    pub(super) fn tell_gap(
        &mut self,
        key: LateKey,
        first: Sequence,
        last: Sequence,
        why: GapReason,
        out: &mut Effects,
    ) {
        if self.late[key].told < first && why != GapReason::Unused {
            let told = self.late[key].told;
            self.tell_gap(key, told, first.before(), GapReason::Unused, out);
        }
        let late = &mut self.late[key];
        let sub = &self.subs[late.sub];
        let reply = Reply::Gap {
            channel: Channel::Detached(sub.id, sub.generation),
            log: self.logs[late.log].id,
            previous: first.before(),
            last,
            why,
        };
        out.replies.push((self.sessions[late.session].id, reply));
        late.told = late.told.max(last.plus(1));
        late.at = late.at.max(late.told);
        self.stats.gap(why);
    }

    /// Tells its client all that there was nothing in, up to `next`.
    pub(super) fn tell_progress(&mut self, key: LateKey, next: Sequence, out: &mut Effects) {
        let told = self.late[key].told;
        if self.late[key].shown && told < next {
            self.tell_gap(key, told, next.before(), GapReason::Unused, out);
        }
    }

    /// Takes one out of wherever it stands.
    pub(super) fn lift(&mut self, key: LateKey) {
        let late = self.late[key].clone();
        match late.stand {
            Stand::Locating => {}
            Stand::Parked => {
                self.sessions[late.session].parked.remove(&late.ticket);
            }
            Stand::Queued => {
                self.late.dequeue(key);
                self.sessions[late.session].travelling -= 1;
            }
            Stand::Aboard(caravan) => {
                let caravan = &mut self.caravans[caravan];
                caravan.members.remove(&(late.topic, key));
                if let Some(until) = late.until {
                    caravan.ends.remove(&(until, key));
                }
                if let Some(time) = late.not_after {
                    caravan.times.remove(&(time, key));
                }
                self.sessions[late.session].travelling -= 1;
            }
            Stand::InRoom => {
                let room = &mut self.logs[late.log].room;
                room.waiting.remove(&(late.at, key));
                if let Some(time) = late.not_before {
                    room.timed.remove(&(time, key));
                }
            }
        }
        self.late[key].stand = Stand::Locating;
    }

    /// Goes live, if the room has not got further, or has to be opened; `false` if there is
    /// something to be read first.
    pub(super) fn try_live(&mut self, key: LateKey, out: &mut Effects) -> bool {
        let (log, at) = (self.late[key].log, self.late[key].at);
        let head = &self.logs[log];
        let active = head.room.reader.is_some();
        let here = if active { head.room.next } else { head.end };
        if at < here {
            return false;
        }
        if !active {
            self.open_room(log, out);
        }
        let end = self.logs[log].end;
        // What is appended from now on is as new as the clock says; what the room has not given
        // may be older.
        let passed = |time: &mut AppendTime| at >= end && time.0 <= self.wall.0;
        self.late[key].not_before.take_if(passed);
        if let Some(time) = self.late[key].not_before {
            self.show(key, out);
            self.late[key].stand = Stand::InRoom;
            self.logs[log].room.timed.insert((time, key));
            return true;
        }
        if at > end {
            self.show(key, out);
        }
        if at == self.logs[log].room.next {
            self.activate(key, out);
        } else {
            self.late[key].stand = Stand::InRoom;
            self.logs[log].room.waiting.insert((at, key));
        }
        true
    }

    /// Goes live: it stands nowhere, and the room has got to it.
    pub(super) fn activate(&mut self, key: LateKey, out: &mut Effects) {
        // Its number may have been one of those that are never used.
        let late = &self.late[key];
        let at = late.at.max(self.logs[late.log].room.next);
        if at > late.at {
            self.show(key, out);
        }
        self.tell_progress(key, at, out);
        let late = self.late.remove(key);
        self.subs[late.sub].set_late(None);
        let head = &mut self.logs[late.log];
        if head.room.link(&mut self.subs, late.sub) {
            self.sessions[late.session].logs.push(late.log);
        }
        let state = State::Live {
            log: head.id,
            incarnation: head.incarnation,
            next: at,
        };
        self.stats.rejoined += u64::from(late.shown);
        self.tell_status(late.sub, state, out);
    }

    /// All that was asked for up to `next` has been given: it ends.
    pub(super) fn complete(&mut self, key: LateKey, next: Sequence, out: &mut Effects) {
        self.lift(key);
        self.tell_progress(key, next, out);
        let sub = self.late[key].sub;
        self.tell_status(sub, State::Complete { next }, out);
        self.forget(sub, out);
    }

    /// Goes live if there is nothing to be read first, else sets out. It stands nowhere.
    pub(super) fn go_on(&mut self, key: LateKey, out: &mut Effects) {
        let ends = self.late[key].until.is_some();
        if ends || !self.try_live(key, out) {
            self.show(key, out);
            self.set_out(key);
        }
    }

    /// Waits for a reader, or for credit first. It stands nowhere.
    pub(super) fn set_out(&mut self, key: LateKey) {
        let ticket = self.late.ticket();
        self.late[key].ticket = ticket;
        let session = self.late[key].session;
        if !self.may_travel(session) {
            self.late[key].stand = Stand::Parked;
            self.sessions[session].parked.insert(ticket, key);
            return;
        }
        self.sessions[session].travelling += 1;
        if !self.board_passing(key) {
            self.late.enqueue(key);
        }
    }

    /// Lets those set out whom the session's credit allows to, oldest first.
    pub(super) fn unpark(&mut self, session: SessionKey, out: &mut Effects) {
        while !self.sessions[session].parked.is_empty() && self.may_travel(session) {
            let Some((_, key)) = self.sessions[session].parked.pop_first() else {
                return;
            };
            self.late[key].stand = Stand::Locating;
            self.go_on(key, out);
        }
    }

    /// Removes every trace of a subscription that nothing more is said of.
    pub(super) fn forget(&mut self, key: SubKey, out: &mut Effects) {
        let sub = self.subs[key];
        self.sessions[sub.session].take(&self.subs, key);
        self.logs[sub.log].room.returned.remove(&key);
        if let Some(late) = sub.late() {
            let stand = self.late[late].stand;
            self.lift(late);
            self.late.remove(late);
            if let Stand::Aboard(caravan) = stand {
                self.rest_caravan(caravan, out);
            }
        } else {
            self.logs[sub.log].room.unlink(&mut self.subs, key);
        }
        self.subs.remove(key);
        self.rest_room(sub.log, out);
        self.unpark(sub.session, out);
    }

    /// Ends every subscription of a log whose namespace is deleted.
    pub(super) fn fail_subscribers(
        &mut self,
        log: LogKey,
        namespace: airmail_model::NamespaceId,
        out: &mut Effects,
    ) {
        let mut subs = self.logs[log].room.everyone(&self.subs);
        subs.extend(
            self.late
                .of_log(log)
                .iter()
                .map(|late| self.late[*late].sub),
        );
        for key in subs {
            let error = super::orders::deleted(namespace);
            self.stats.refuse(error.code());
            self.tell_status(key, State::Failed(error), out);
            self.forget(key, out);
        }
    }
}
