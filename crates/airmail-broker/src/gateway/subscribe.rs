//! Subscriptions begin and end.
//!
//! Where one begins and ends depends on where its log ends, so that is asked of the tower before all else
//! (`located`); and then, for the earliest, a time, or a position that seems to lie beyond the end, what
//! the storage says. Then it goes live if there is nothing to be read first, waits at the tail if its
//! number is still to come, or is read for.

use super::behind::{Begin, Behind, BehindState};
use super::may_subscribe::Asked;
use super::parts::Parts;
use super::retired::retired_from;
use super::scope::Scope;
use super::subscription::Subscription;
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::catalog::{Crossing, Entry};
use crate::input::SessionId;
use crate::keys::{BehindKey, LogKey, SessionKey, SubKey};
use crate::link::{Answer, MemberId, Question, ToTower};
use crate::storage_refusals;
use airmail_log::{Bounds, Refusal};
use airmail_model::bug;
use airmail_model::frame::{
    GapReason, Generation, Lanes, Reply, Start, State, Subscribe, SubscriptionId, Until,
};
use airmail_model::position::LogPosition;
use airmail_model::{Error, ErrorCode, Lane, LogId, Position, Sequence, TopicHash};

/// Where a subscription begins.
struct Place {
    log: LogKey,
    begin: Begin,
    /// Its position, if that is in a log that is no more, with where that log ended; and those after it that are not either.
    retired: Vec<(LogPosition, Sequence)>,
    /// Its position is of a life of its log that was cut.
    crossing: Option<Crossing>,
}

impl Place {
    /// In a log that is there.
    fn within(log: LogKey, begin: Begin) -> Place {
        Place {
            log,
            begin,
            retired: Vec::new(),
            crossing: None,
        }
    }
}

impl Gateway {
    /// A client wants a subscription.
    pub(super) fn add(
        &mut self,
        session: SessionKey,
        wanted: Subscribe,
        out: &mut GatewayEffects,
    ) -> Result<(), Error> {
        let (entry, asked) = self.may_add(session, &wanted)?;
        let is_wanted = |lane: &Lane| match wanted.lanes {
            Lanes::Only(only) => only == *lane,
            Lanes::Each | Lanes::HighFrom(_) => true,
        };
        let lanes = Lane::ALL.into_iter().filter(is_wanted);
        let lanes = lanes.filter(|lane| entry.has_lane(*lane));
        let places = lanes.map(|lane| self.place_of(&entry, (&wanted, asked.in_maps()), lane));
        let places: Parts<Place> = places.collect::<Result<_, Error>>()?;
        let Some(first) = places.first() else {
            return Err(Error::new(ErrorCode::SubscriptionInvalid)
                .field("lane")
                .value(Lane::High)
                .limit("a lane of the namespace"));
        };
        let tail = self.logs[first.log].at;
        let (id, generation) = (wanted.subscription, wanted.generation);
        let scope = match asked {
            Asked::Topic(topic) => Scope::Topic(topic),
            Asked::Selection(logs, selector) => {
                Scope::Selected(self.subs.selectors.add(logs, selector))
            }
        };
        let sub = Subscription::new(scope, id, generation, session, tail);
        let sub = self.subs.insert(sub);
        self.sessions[session].put(&self.subs, sub);
        self.sessions[session].wants_headers_only(wanted.headers_only);
        self.sessions[session].filters(wanted.filter.is_some());
        self.sessions[session].selects(scope.selection().is_some());
        self.sessions[session].wants_matches(wanted.matches);
        if !wanted.matches && (wanted.filter.is_some() || scope.selection().is_some()) {
            self.subs.keep_alone(sub);
        }
        if let Some(filter) = wanted.filter {
            let place = scope.filtered_place();
            self.subs.filters.add(sub, place, filter);
        }
        if wanted.tell_expired {
            self.subs.tell_of_expiry(sub);
        }
        let is_position = matches!(wanted.start, Start::Position(_));
        for place in places {
            let lane = self.logs[place.log].id.lane;
            let until = match wanted.until {
                // A number is one of lane normal, unless it is another lane that is asked for.
                Some(Until::Sequence(_)) if !wanted.lanes.are_numbered_in(lane) => Some(Until::Now),
                until => until,
            };
            self.begin_at_place(sub, place, (until, is_position), out);
        }
        Ok(())
    }

    /// Begins a part of a subscription where it was asked for.
    fn begin_at_place(
        &mut self,
        sub: SubKey,
        place: Place,
        (until, is_position): (Option<Until>, bool),
        out: &mut GatewayEffects,
    ) {
        let Place {
            log,
            begin,
            retired,
            crossing,
        } = place;
        let is_returned = is_position && retired.is_empty();
        if is_returned && crossing.is_none() && !self.logs[log].renewed {
            self.logs[log].tail.returned.insert(sub);
        }
        let behind = self.begin_part(sub, log, begin, until);
        self.behind.cross(behind, crossing);
        let is_retired = !retired.is_empty();
        for (retired, end) in retired {
            if retired.next < end {
                self.tell_retired(sub, retired, end, out);
            }
        }
        if is_retired {
            (self.behind[behind].told, self.behind[behind].at) = (Sequence::FIRST, Sequence::FIRST);
            self.tell_detached(behind, out);
        }
        if until.is_some() {
            self.ask_until(behind, begin, out);
        } else {
            self.ask_tower(behind, Question::End, out);
        }
    }

    /// Begins a part of a subscription, in a log that it has no part in. It is still to be located.
    pub(super) fn begin_part(
        &mut self,
        sub: SubKey,
        log: LogKey,
        begin: Begin,
        asked_until: Option<Until>,
    ) -> BehindKey {
        let of = &self.subs[sub];
        let ticket = self.behind.ticket();
        let part = self.behind.insert(Behind {
            sub,
            session: of.session,
            log,
            scope: of.scope(),
            told: Sequence(0),
            at: Sequence(0),
            asked_until,
            is_latest: false,
            holds_want: false,
            until: None,
            not_before: match begin {
                Begin::Time(time) => Some(time),
                _ => None,
            },
            not_after: None,
            shown: false,
            ticket,
            state: BehindState::Locating(begin),
        });
        self.put_late(sub, part);
        part
    }

    /// Asks the tower about the log of one that is to be located.
    pub(super) fn ask_tower(&self, key: BehindKey, question: Question, out: &mut GatewayEffects) {
        out.tell(ToTower::Ask {
            member: self.behind.member(key),
            log: self.logs[self.behind[key].log].id,
            question,
        });
    }

    /// The log of a lane in which a subscription begins, and where in it.
    fn place_of(
        &mut self,
        entry: &Entry,
        (wanted, topic): (&Subscribe, TopicHash),
        lane: Lane,
    ) -> Result<Place, Error> {
        let oldest = || entry.oldest_kept(lane).log(topic, lane);
        let (log, begin) = match &wanted.start {
            Start::Latest => (self.live_log(entry, topic, lane), Begin::Latest),
            Start::Earliest => (oldest(), Begin::First { lost: false }),
            Start::Sequence(_) if !wanted.lanes.are_numbered_in(lane) => {
                if let Lanes::HighFrom(place) = wanted.lanes {
                    let position = Position {
                        namespace: wanted.namespace,
                        epoch: entry.map.epoch,
                        logs: vec![place],
                    };
                    return self.place_of_position(entry, (topic, &position), lane);
                }
                (self.live_log(entry, topic, lane), Begin::Latest)
            }
            Start::Sequence(sequence) => {
                let at = (*sequence).max(Sequence::FIRST);
                (self.live_log(entry, topic, lane), Begin::At(at))
            }
            Start::Time(time) => (oldest(), Begin::Time(*time)),
            Start::Position(position) => {
                if position.namespace != wanted.namespace {
                    return Err(Error::new(ErrorCode::PositionInvalid)
                        .field("position.namespace")
                        .value(position.namespace)
                        .limit(wanted.namespace));
                }
                return self.place_of_position(entry, (topic, position), lane);
            }
        };
        let log = self.open_log(log)?;
        Ok(Place::within(log, begin))
    }

    fn open_log(&mut self, log: LogId) -> Result<LogKey, Error> {
        if let Some(entry) = self.catalog().get(log.namespace)
            && let Some(loss) = entry.suspended(log)
        {
            let name = &entry.namespace.name;
            return Err(storage_refusals::suspended(log, name, loss));
        }
        match self.find_open(log) {
            Some(key) => Ok(key),
            None => Err(self.not_open(log)),
        }
    }

    /// The log of a position, and where in it; or where the log after it begins, if that is no more. A position that names a
    /// log of the other lane alone is from before there were lanes, or from before its lane held anything: it begins this one
    /// with the first.
    fn place_of_position(
        &mut self,
        entry: &Entry,
        (topic, position): (TopicHash, &Position),
        lane: Lane,
    ) -> Result<Place, Error> {
        let mut logs = entry.maps_in(lane).rev().map(|map| map.log(topic, lane));
        let found = logs.find_map(|log| position.logs.iter().find(|place| place.log == log));
        let Some(place) = found else {
            let mut others = entry.maps().map(|map| map.log(topic, lane.other()));
            if others.any(|log| position.logs.iter().any(|place| place.log == log)) {
                let log = self.open_log(entry.oldest_kept(lane).log(topic, lane))?;
                return Ok(Place::within(log, Begin::First { lost: false }));
            }
            let log = entry.map.log(topic, lane);
            return Err(Error::new(ErrorCode::PositionInvalid)
                .field("position.logs")
                .value(format_args!("{} logs", position.logs.len()))
                .limit(format_args!("log {log} among them")));
        };
        let (mut retired, next) = retired_from(entry, place.log, topic);
        if let (Some((first, _)), Some(next)) = (retired.first_mut(), next) {
            *first = *place;
            return Ok(Place {
                log: self.open_log(next)?,
                begin: Begin::At(Sequence::FIRST),
                retired,
                crossing: None,
            });
        }
        let log = self.open_log(place.log)?;
        let is_present = place.incarnation == self.logs[log].incarnation;
        let crossing = entry.crossing(place.log, place.incarnation);
        if is_present && crossing.is_some() {
            // Its new life is not known here yet.
            return Err(self.busy("log").value(place.log));
        }
        let begin = if is_present || crossing.is_some() {
            Begin::Position(place.next)
        } else {
            Begin::First { lost: true }
        };
        Ok(Place {
            crossing,
            ..Place::within(log, begin)
        })
    }

    /// The tower has answered what it was asked for one that is to be located.
    pub(super) fn answered(
        &mut self,
        member: MemberId,
        end: Sequence,
        answer: Answer,
        out: &mut GatewayEffects,
    ) {
        let Some(key) = self.behind.find(member) else {
            // Input: a subscription that has ended since it was asked for.
            return;
        };
        let BehindState::Locating(begin) = self.behind[key].state else {
            bug!("{answer:?} is for {:?}", self.behind[key]);
            return;
        };
        match (answer, begin) {
            (Answer::End, begin) => self.end_told(key, begin, end, out),
            (Answer::Bounds(bounds), Begin::First { lost }) => {
                self.first_found(key, lost, &bounds, end, out);
            }
            (Answer::Bounds(bounds), Begin::Position(next)) => {
                self.reach_found(key, next, &bounds, end, out);
            }
            (Answer::Time(at), Begin::Time(_)) => self.begin_at(key, at, end, out),
            (Answer::Refused(why), _) => self.not_found(key, &why, out),
            (answer, begin) => bug!("{answer:?} is for one that begins at {begin:?}"),
        }
    }

    /// It is known where the log ends, and so where a subscription does that has an end.
    fn end_told(&mut self, key: BehindKey, begin: Begin, end: Sequence, out: &mut GatewayEffects) {
        if self.behind[key].asked_until.is_some() {
            if !self.until_told(key, begin, end, out) {
                return;
            }
            let behind = &self.behind[key];
            let here = self.logs[behind.log].id;
            if behind.until.is_some_and(|until| until.log != here) {
                return self.ask_tower(key, Question::End, out);
            }
        }
        match begin {
            Begin::Latest if self.logs[self.behind[key].log].ended.is_some() => {
                self.behind[key].state = BehindState::Moving;
                self.go_to_successor(key, begin, out);
            }
            Begin::Latest => {
                self.behind[key].is_latest = true;
                let tail = &self.logs[self.behind[key].log].tail;
                let has_got_further = tail.is_attached && tail.next > end;
                let at = if has_got_further { tail.next } else { end };
                self.begin_at(key, at, end, out);
            }
            Begin::At(at) => self.begin_at(key, at, end, out),
            Begin::Here => {
                self.behind[key].state = BehindState::Moving;
                self.go_on(key, end, out);
            }
            Begin::First { .. } => self.ask_tower(key, Question::Bounds, out),
            Begin::Time(time) => self.ask_tower(key, Question::Time(time), out),
            Begin::Position(next) if next > end => self.ask_tower(key, Question::Bounds, out),
            Begin::Position(next) => self.begin_at(key, next.max(Sequence::FIRST), end, out),
        }
    }

    /// The storage has said what a log holds.
    fn first_found(
        &mut self,
        key: BehindKey,
        lost: bool,
        bounds: &Bounds,
        end: Sequence,
        out: &mut GatewayEffects,
    ) {
        if lost {
            // The client learns from the new incarnation that the old one's numbers are void; what
            // the new one no longer has is lost to it too.
            let behind = &mut self.behind[key];
            (behind.told, behind.at) = (Sequence::FIRST, Sequence::FIRST);
            self.tell_detached(key, out);
            if bounds.first > Sequence::FIRST {
                let last = bounds.first.before();
                self.tell_gap(key, Sequence::FIRST, last, GapReason::Loss, out);
            }
        }
        self.begin_at(key, bounds.first, end, out);
    }

    /// The storage cannot say where a subscription begins.
    pub(super) fn not_found(&mut self, key: BehindKey, why: &Refusal, out: &mut GatewayEffects) {
        let behind = &self.behind[key];
        let (sub, log) = (behind.sub, self.logs[behind.log].id);
        let error = storage_refusals::error(why, log, None).retry_after(self.config.retry_delay);
        self.end_with(sub, error, out);
    }

    /// A client ends a subscription.
    pub(super) fn remove(
        &mut self,
        session: SessionKey,
        id: SubscriptionId,
        out: &mut GatewayEffects,
    ) {
        let Some(sub) = self.sessions[session].find(&self.subs, id) else {
            let error = Error::new(ErrorCode::SubscriptionInvalid)
                .field("subscription")
                .value(id.0)
                .limit("a number in use");
            self.stats.refuse(error.code());
            let reply = Reply::Status {
                subscription: id,
                generation: Generation::default(),
                state: State::Failed(error),
            };
            out.reply(self.sessions[session].id, reply);
            // Input: a client that names a subscription that it does not have; it has been told.
            return;
        };
        self.tell_status(sub, State::Removed, out);
        self.forget(sub, out);
    }

    /// Forgets everything of a stream that has ended.
    pub(super) fn close(&mut self, id: SessionId, out: &mut GatewayEffects) {
        let Some(session) = self.sessions.find(id) else {
            // Input: a stream that is told to have ended twice.
            return;
        };
        self.drop_parked(session);
        for sub in self.sessions[session].everything() {
            self.forget(sub, out);
        }
        for log in std::mem::take(&mut self.sessions[session].logs) {
            if let Some(log) = self.logs.get_mut(log) {
                for pace in Pace::ALL {
                    log.tail.of_mut(pace).ranges.remove(&session);
                }
            }
        }
        if let Some(gate) = &mut self.delivery_gate {
            gate.forget(self.now.mono, self.sessions[session].share);
        }
        self.sessions.close(session);
    }
}
