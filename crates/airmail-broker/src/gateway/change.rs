//! Changes of filters: a subscription has another filter from a number on.
//!
//! For each message it is the filter in force at its number that says whether it is given. So where a piece of a batch is being
//! held against filters, whoever is live there gets another one when that has been handed over; a piece is bounded work.
//! Who is behind gets it where he stands. Either way everything before that place has been given, or left out, by the filter
//! before, and the answer that names the place comes behind it.
//!
//! Where too many wait, or somebody is live in several lanes, nothing is waited for: he is read for from before the piece.
//! Changes of a subscription are made in the order in which they were asked for.

use super::behind::{Begin, BehindState};
use super::tail_lane::Pace;
use super::{Gateway, GatewayEffects};
use crate::input::SessionId;
use crate::keys::{LogKey, SessionKey, SubKey};
use airmail_model::frame::{Change, Places, Reply, State};
use airmail_model::position::LogPosition;
use airmail_model::{Error, ErrorCode};
use std::collections::{BTreeMap, VecDeque};

/// Changes that wait until a piece of a log is handed over, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct WaitingChanges(BTreeMap<LogKey, VecDeque<(SessionId, Change)>>);

impl WaitingChanges {
    /// Number of those of a log.
    fn len(&self, log: LogKey) -> usize {
        self.0.get(&log).map_or(0, VecDeque::len)
    }

    /// The log for which a change of this subscription waits.
    fn log_of(&self, (session, change): (SessionId, &Change)) -> Option<LogKey> {
        let id = change.subscription;
        let has =
            |(of, waiting): &(SessionId, Change)| (*of, waiting.subscription) == (session, id);
        let mut logs = self.0.iter();
        logs.find_map(|(log, waiting)| waiting.iter().any(has).then_some(*log))
    }

    fn push(&mut self, log: LogKey, change: (SessionId, Change)) {
        self.0.entry(log).or_default().push_back(change);
    }
}

impl Gateway {
    /// A client wants another filter for a subscription.
    pub(super) fn change(&mut self, session: SessionId, change: Change, out: &mut GatewayEffects) {
        // Those of a subscription are made in order.
        let with_others = self.live.changes.log_of((session, &change));
        let busy = with_others.or_else(|| self.busy_log(session, &change));
        match busy {
            Some(log) if self.live.changes.len(log) < self.config.changes_max => {
                self.live.changes.push(log, (session, change));
            }
            Some(log) => {
                self.make_changes_of(log, out);
                self.make_change((session, change), out);
            }
            None => self.make_change((session, change), out),
        }
    }

    /// The log for whose piece under way a change has to wait.
    fn busy_log(&self, session: SessionId, change: &Change) -> Option<LogKey> {
        let key = self.sessions.find(session)?;
        let sub = self.sessions[key].find(&self.subs, change.subscription)?;
        let mut live = self.live_parts(sub).into_iter();
        live.find(|log| self.logs[*log].tail.turns.is_under_way())
    }

    /// Makes the changes that wait, but for those of logs where a piece is still under way.
    pub(super) fn make_changes(&mut self, out: &mut GatewayEffects) {
        let logs: Vec<LogKey> = self.live.changes.0.keys().copied().collect();
        for log in logs {
            let of = self.logs.get_mut(log);
            if !of.is_some_and(|of| of.tail.turns.is_under_way()) {
                self.make_changes_of(log, out);
            }
        }
    }

    /// Makes the changes that wait for a log.
    pub(super) fn make_changes_of(&mut self, log: LogKey, out: &mut GatewayEffects) {
        let waiting = self.live.changes.0.remove(&log);
        for change in waiting.into_iter().flatten() {
            self.make_change(change, out);
        }
    }

    /// Gives a subscription another filter, and says from which places on; or refuses it.
    fn make_change(&mut self, (session, change): (SessionId, Change), out: &mut GatewayEffects) {
        let Some(key) = self.sessions.find(session) else {
            // Input: a stream that has ended meanwhile.
            return;
        };
        let (subscription, generation) = (change.subscription, change.generation);
        let state = match self.may_change(key, &change) {
            Ok(sub) => {
                let places = self.changed(sub, change, out);
                State::Changed { places }
            }
            Err(error) => {
                self.stats.refuse(error.code());
                State::Unchanged(error)
            }
        };
        let reply = Reply::Status {
            subscription,
            generation,
            state,
        };
        out.reply(session, reply);
    }

    /// Whether a subscription may have another filter; which it is.
    fn may_change(&mut self, session: SessionKey, change: &Change) -> Result<SubKey, Error> {
        let invalid = |field: &str| Error::new(ErrorCode::SubscriptionInvalid).field(field);
        let id = change.subscription;
        let Some(sub) = self.sessions[session].find(&self.subs, id) else {
            let in_use = invalid("subscription").value(id.0);
            return Err(in_use.limit("a number in use"));
        };
        if !self.sessions[session].matches() {
            let of_add = invalid("matches").value(false);
            return Err(of_add.limit("true, as the first subscription of its stream said"));
        }
        let before = self.subs[sub].generation;
        if change.generation <= before {
            let limit = format_args!("more than {}", before.0);
            return Err(invalid("generation")
                .value(change.generation.0)
                .limit(limit));
        }
        let place = self.subs[sub].scope().filtered_place();
        self.subs.filters.may_add(place, &change.filter)?;
        Ok(sub)
    }

    /// Gives a subscription another filter; the places from which on it is in force.
    fn changed(&mut self, sub: SubKey, change: Change, out: &mut GatewayEffects) -> Places {
        for log in self.live_parts(sub) {
            let tail = &self.logs[log].tail;
            if tail.turns.is_under_way() {
                let next = tail.of(Pace::InTurns).next;
                self.detach(sub, log, next, out);
            }
        }
        let place = self.subs[sub].scope().filtered_place();
        let tail = self.subs[sub].tail();
        let is_live = self.subs[sub].is_live();
        if is_live {
            self.logs.tails[tail].unlink(&mut self.subs, sub);
        }
        self.subs.filters.remove(sub, place);
        self.subs.filters.add(sub, place, change.filter);
        self.subs[sub].generation = change.generation;
        if is_live {
            self.logs.tails[tail].link(&mut self.subs, sub);
        }
        self.places_of(sub)
    }

    /// Where a subscription stands in each of its logs, as far as that is known.
    fn places_of(&self, key: SubKey) -> Places {
        let live = self.live_parts(key).into_iter();
        let live = live.map(|log| (log, self.logs[log].tail.told_to(Pace::InTurns)));
        let late = self.late_parts(key).into_iter();
        let located = late.filter_map(|behind| {
            let behind = &self.behind[behind];
            let is_known = match behind.state {
                BehindState::Locating(begin) | BehindState::AwaitingSuccessor(begin) => {
                    begin == Begin::Here
                }
                _ => true,
            };
            is_known.then_some((behind.log, behind.at))
        });
        let mut places: Places = live
            .chain(located)
            .map(|(log, next)| LogPosition {
                log: self.logs[log].id,
                incarnation: self.logs[log].incarnation,
                next,
            })
            .collect();
        places.sort_unstable_by_key(|place| place.log);
        places
    }
}
