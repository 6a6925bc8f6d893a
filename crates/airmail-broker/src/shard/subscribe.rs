//! Subscriptions begin and end.
//!
//! Where one begins is either known at once (the latest, a number, a position of this life of the
//! log) or asked of the storage (the earliest, a time). Then it goes live if there is nothing to be
//! read first, waits in the room if its number is still to come, or sets out from behind.

use super::Shard;
use crate::access::Action;
use crate::calls::Purpose;
use crate::input::{Effects, SessionId};
use crate::keys::{LateKey, LogKey, SessionKey};
use crate::late::{Late, Stand};
use crate::log_head::Openness;
use crate::refusal;
use crate::subscription::Subscription;
use airmail_log::{Bounds, Call, Refusal, Tag};
use airmail_model::frame::{GapReason, Start, State, Subscribe, SubscriptionId, Until};
use airmail_model::{Error, ErrorCode, Lane, LogId, Now, Position, Sequence};

/// Where a subscription begins, as far as it is known.
enum Begin {
    At(Sequence),
    /// The first number kept. `lost`: the position is of an earlier life of the log.
    First {
        lost: bool,
    },
    Time(airmail_model::AppendTime),
    /// At a position of this life of the log, that seems to lie beyond its end.
    Beyond(Sequence),
}

impl Shard {
    /// A client wants a subscription.
    pub(super) fn add(
        &mut self,
        _now: Now,
        session: SessionKey,
        wanted: Subscribe,
        out: &mut Effects,
    ) -> Result<(), Error> {
        let log = self.may_add(session, &wanted)?;
        let begin = self.begin_of(log, &wanted)?;
        let end = self.logs[log].end;
        let (until, not_after) = match wanted.until {
            None => (None, None),
            Some(Until::Now) => (Some(end), None),
            Some(Until::Sequence(before)) => (Some(before.min(end)), None),
            Some(Until::Time(time)) => (Some(end), Some(time)),
        };
        let not_before = match wanted.start {
            Start::Time(time) => Some(time),
            _ => None,
        };
        let (id, generation) = (wanted.subscription, wanted.generation);
        let sub = Subscription::new(wanted.topic, id, generation, session, log);
        let sub = self.subs.insert(sub);
        self.sessions[session].put(&self.subs, sub);
        if matches!(wanted.start, Start::Position(_)) && !self.logs[log].renewed {
            self.logs[log].room.returned.insert(sub);
        }
        let ticket = self.late.ticket();
        let late = self.late.insert(Late {
            sub,
            session,
            log,
            topic: wanted.topic,
            told: Sequence(0),
            at: Sequence(0),
            until,
            not_before,
            not_after,
            shown: false,
            ticket,
            stand: Stand::Locating,
        });
        self.subs[sub].set_late(Some(late));
        let id = self.logs[log].id;
        match begin {
            Begin::At(at) => self.begin_at(late, at, out),
            Begin::First { lost } => {
                let t = self.calls.tag(Purpose::First { late, ticket, lost });
                out.storage.push(Call::Bounds { t, log: id });
            }
            Begin::Beyond(next) => {
                let t = self.calls.tag(Purpose::End { late, ticket, next });
                out.storage.push(Call::Bounds { t, log: id });
            }
            Begin::Time(at) => {
                let t = self.calls.tag(Purpose::Find(late, ticket));
                out.storage.push(Call::FindTime { t, log: id, at });
            }
        }
        Ok(())
    }

    /// Whether a subscription may be made, and on which log.
    fn may_add(&mut self, session: SessionKey, wanted: &Subscribe) -> Result<LogKey, Error> {
        let id = wanted.namespace;
        if id == LogId::SYSTEM.namespace {
            return Err(Error::new(ErrorCode::NamespaceReserved)
                .field("namespace")
                .value(id)
                .limit("at least 1"));
        }
        let action = match wanted.until {
            None => Action::Subscribe(id, wanted.topic),
            Some(_) => Action::History(id, wanted.topic),
        };
        self.authorizer
            .authorize(&self.sessions[session].principal, action)?;
        if !self.ready() {
            return Err(self.busy("node"));
        }
        let invalid = |field: &str| Error::new(ErrorCode::SubscriptionInvalid).field(field);
        let mine = &self.sessions[session];
        if mine.find(&self.subs, wanted.subscription).is_some() {
            return Err(invalid("subscription")
                .value(wanted.subscription.0)
                .limit("a number not in use"));
        }
        let most = self.config.limits.subscriptions;
        if mine.subscriptions() >= most as usize {
            return Err(invalid("subscriptions")
                .value(mine.subscriptions() + 1)
                .limit(most));
        }
        let Some(entry) = self.catalog().get(id) else {
            return Err(Error::new(ErrorCode::NamespaceNotFound)
                .field("namespace")
                .value(id));
        };
        let log = entry.map.log(wanted.topic, Lane::Normal);
        let open = |key: &LogKey| self.logs[*key].openness == Openness::Open;
        match self.logs.find(log).filter(open) {
            Some(key) => Ok(key),
            None => Err(self.busy("log").value(log)),
        }
    }

    fn begin_of(&self, log: LogKey, wanted: &Subscribe) -> Result<Begin, Error> {
        Ok(match &wanted.start {
            Start::Latest => Begin::At(self.logs[log].end),
            Start::Earliest => Begin::First { lost: false },
            Start::Sequence(sequence) => Begin::At((*sequence).max(Sequence::FIRST)),
            Start::Time(time) => Begin::Time(*time),
            Start::Position(position) => self.begin_at_position(log, wanted, position)?,
        })
    }

    fn begin_at_position(
        &self,
        log: LogKey,
        wanted: &Subscribe,
        position: &Position,
    ) -> Result<Begin, Error> {
        let invalid = |field: &str| Error::new(ErrorCode::PositionInvalid).field(field);
        if position.namespace != wanted.namespace {
            return Err(invalid("position.namespace")
                .value(position.namespace)
                .limit(wanted.namespace));
        }
        let head = &self.logs[log];
        let mut places = position.logs.iter();
        let Some(place) = places.find(|place| place.log == head.id) else {
            return Err(invalid("position.logs")
                .value(format_args!("{} logs", position.logs.len()))
                .limit(format_args!("log {} among them", head.id)));
        };
        Ok(if place.incarnation != head.incarnation {
            Begin::First { lost: true }
        } else if place.next > head.end {
            Begin::Beyond(place.next)
        } else {
            Begin::At(place.next.max(Sequence::FIRST))
        })
    }

    /// It is known where a subscription begins. To one that waits beyond the end no more is told
    /// than there is: what it is told may come back as a position.
    pub(super) fn begin_at(&mut self, key: LateKey, at: Sequence, out: &mut Effects) {
        let late = &mut self.late[key];
        let end = self.logs[late.log].end;
        (late.told, late.at) = (late.told.max(at.min(end)), at);
        match late.until {
            Some(until) if until <= at => {
                self.show(key, out);
                self.complete(key, at, out);
            }
            _ => self.go_on(key, out),
        }
    }

    /// The storage has said what a log holds.
    pub(super) fn first_found(
        &mut self,
        late: LateKey,
        ticket: u64,
        lost: bool,
        bounds: Bounds,
        out: &mut Effects,
    ) {
        let Some(found) = self.late.of_ticket(late, ticket) else {
            return;
        };
        if lost {
            // The client learns from the new incarnation that the old one's numbers are void; what
            // the new one no longer has is lost to it too.
            (found.told, found.at) = (Sequence::FIRST, Sequence::FIRST);
            self.show(late, out);
            if bounds.first > Sequence::FIRST {
                let last = bounds.first.before();
                self.tell_gap(late, Sequence::FIRST, last, GapReason::Loss, out);
            }
        }
        self.begin_at(late, bounds.first, out);
    }

    /// The storage has said where a time begins.
    pub(super) fn time_found(&mut self, t: Tag, at: Sequence, out: &mut Effects) {
        let Some(Purpose::Find(late, ticket)) = self.calls.answered(t) else {
            return;
        };
        if self.late.of_ticket(late, ticket).is_some() {
            self.begin_at(late, at, out);
        }
    }

    /// The storage cannot say where a subscription begins.
    pub(super) fn not_found(
        &mut self,
        late: LateKey,
        ticket: u64,
        why: &Refusal,
        out: &mut Effects,
    ) {
        let Some(found) = self.late.of_ticket(late, ticket) else {
            return;
        };
        let sub = found.sub;
        let log = self.logs[found.log].id;
        let error = refusal::error(why, log, None).retry_after(self.config.retry_delay);
        self.stats.refuse(error.code());
        self.tell_status(sub, State::Failed(error), out);
        self.forget(sub, out);
    }

    /// A client ends a subscription.
    pub(super) fn remove(&mut self, session: SessionKey, id: SubscriptionId, out: &mut Effects) {
        let Some(sub) = self.sessions[session].find(&self.subs, id) else {
            let error = Error::new(ErrorCode::SubscriptionInvalid)
                .field("subscription")
                .value(id.0)
                .limit("a number in use");
            self.stats.refuse(error.code());
            let reply = airmail_model::frame::Reply::Status {
                subscription: id,
                generation: airmail_model::frame::Generation::default(),
                state: State::Failed(error),
            };
            out.replies.push((self.sessions[session].id, reply));
            return;
        };
        self.tell_status(sub, State::Removed, out);
        self.forget(sub, out);
    }

    /// A stream has ended: nothing of it is kept.
    pub(super) fn close(&mut self, id: SessionId, out: &mut Effects) {
        let Some(session) = self.sessions.find(id) else {
            return;
        };
        self.drop_parked(session);
        for sub in self.sessions[session].everything() {
            self.forget(sub, out);
        }
        for log in std::mem::take(&mut self.sessions[session].logs) {
            if let Some(head) = self.logs.get_mut(log) {
                head.room.ranges.remove(&session);
            }
        }
        if let Some(copilot) = &mut self.copilot {
            copilot.forget(self.mono, self.sessions[session].share);
        }
        self.sessions.close(session);
    }
}
