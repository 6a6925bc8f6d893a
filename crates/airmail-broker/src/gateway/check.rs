//! Invariants of the gateway, asserted whatever clients do and the tower tells. Each line names its
//! invariant, as the documentation of the module above does.

use super::Gateway;
use super::behind::{Behind, BehindState};
use super::log::{GatewayLog, LogState};
use super::matching_turns::Source;
use super::publish_gate::PublishGate;
use super::session::Session;
use super::subscription::Subscription;
use super::tail_lane::Pace;
use crate::keys::{BehindKey, LogKey, SessionKey, SubKey};
use crate::link::Interest;
use airmail_flow::Ticket;
use airmail_model::Lane;
use std::collections::BTreeMap;

/// Counts of a session's subscriptions: all, those that wait for credit, those that the tower reads for.
#[derive(Default)]
struct SessionCounts {
    all: usize,
    parked: usize,
    following: u64,
}

/// Counts of a log's subscriptions: the live ones of each session, those that wait at the tail, those that hold
/// their topic, those that came with a position of its present life.
#[derive(Default)]
struct LogCounts {
    live: BTreeMap<SessionKey, u32>,
    waiting: usize,
    holds: usize,
    returned: usize,
}

/// Counts of all subscriptions, to be compared with what is known of them elsewhere.
#[derive(Default)]
struct Counts {
    sessions: BTreeMap<SessionKey, SessionCounts>,
    logs: BTreeMap<LogKey, LogCounts>,
    /// Subscriptions with filters.
    filtered: usize,
    /// Subscriptions that are selections.
    selections: usize,
}

impl Gateway {
    /// About how much there is to look at.
    pub(crate) fn size(&self) -> usize {
        self.subs.len() + self.sessions.len()
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    /// If one does not hold; the message begins with its name.
    pub(crate) fn check(&self) {
        let mut live = 0;
        for key in self.logs.keys() {
            self.check_tail(key);
            self.check_order(&self.logs[key]);
            live += self.logs[key].tail.live();
        }
        self.check_parts(live);
        let mut counts = Counts::default();
        for (key, sub) in self.subs.iter() {
            self.check_subscription(key, sub, &mut counts);
        }
        for (key, behind) in self.behind.iter() {
            self.check_behind(key, behind);
            let of_log = counts.logs.entry(behind.log).or_default();
            of_log.waiting += usize::from(behind.state == BehindState::AwaitingTail);
            of_log.holds += usize::from(behind.holds_want);
            let of_session = counts.sessions.entry(behind.session).or_default();
            of_session.parked += usize::from(behind.state == BehindState::NoCredit);
            of_session.following += u64::from(behind.state == BehindState::Reading);
        }
        let known = self.subs.filters.users();
        assert_eq!(known, counts.filtered, "filters: of all subscriptions");
        let known = self.subs.selectors.users();
        assert_eq!(known, counts.selections, "selectors: of all subscriptions");
        self.check_counts(&counts.logs);
        self.check_sessions(counts.sessions);
        self.check_in_flight();
        self.check_gates();
    }

    /// Asserts that each subscription has a part, and that there are no others than theirs.
    fn check_parts(&self, live: usize) {
        let (mut found, mut with_records) = ((0, 0), 0);
        for (key, sub) in self.subs.iter() {
            let (at_tails, behind) = (self.live_parts(key).len(), self.late_parts(key).len());
            assert!(at_tails + behind > 0, "one_state: {sub:?} has no part");
            found = (found.0 + at_tails, found.1 + behind);
            with_records += usize::from(behind > 0);
        }
        let known = (live, self.behind.len());
        assert_eq!(known, found, "one_state: live and behind, of all");
        let known = self.behind.subscriptions;
        assert_eq!(known, with_records, "one_state: subscriptions behind");
    }

    /// Asserts that a subscription is where it belongs, and counts it.
    fn check_subscription(&self, key: SubKey, sub: &Subscription, counts: &mut Counts) {
        let session = &self.sessions[sub.session];
        let found = session.find(&self.subs, sub.id);
        assert_eq!(found, Some(key), "numbers: {sub:?} of {:?}", session.id);
        counts.sessions.entry(sub.session).or_default().all += 1;
        let has_filter = self.subs.filters.of(key).is_some();
        assert_eq!(
            has_filter,
            session.is_filtered(),
            "filters: of {sub:?}, on its stream"
        );
        counts.filtered += usize::from(has_filter);
        let is_selection = sub.scope().selection().is_some();
        assert!(
            session.may_select(is_selection),
            "selectors: {sub:?}, on its stream"
        );
        counts.selections += usize::from(is_selection);
        let mut logs = self.live_parts(key);
        for log in &logs {
            let live = &mut counts.logs.entry(*log).or_default().live;
            *live.entry(sub.session).or_default() += 1;
            let range = self.logs[*log]
                .tail
                .of(session.pace())
                .ranges
                .get(&sub.session);
            assert!(
                range.is_some_and(|range| range.live > 0),
                "ranges: {sub:?} is live, on {range:?}"
            );
            let interest = self.logs[*log].tail.wants.interest;
            assert!(
                !is_selection || interest == Interest::All || self.gives_wanted_alone(),
                "wanted: {sub:?} is live, and the tower gives {interest:?}"
            );
        }
        if sub.is_live() {
            self.check_listed(key, sub);
        }
        for part in self.late_parts(key) {
            let behind = &self.behind[part];
            assert_eq!(behind.sub, key, "one_state: {sub:?}");
            logs.extend((!behind.is_complete()).then_some(behind.log));
        }
        for (n, log) in logs.iter().enumerate() {
            assert!(!logs[..n].contains(log), "one_state: {sub:?} on {logs:?}");
            let is_returned = self.logs[*log].tail.returned.contains(&key);
            counts.logs.entry(*log).or_default().returned += usize::from(is_returned);
        }
    }

    /// A bug is planted with which a selection is live where not everything is given.
    fn gives_wanted_alone(&self) -> bool {
        #[cfg(feature = "sabotage")]
        return self.config.bug == Some(crate::sabotage::Bug::SelectionOfWanted);
        #[cfg(not(feature = "sabotage"))]
        false
    }

    /// Asserts that a live subscription is in its list at its tail.
    fn check_listed(&self, key: SubKey, sub: &Subscription) {
        let (list, tail) = (self.subs.list_of(key), &self.logs.tails[sub.tail()]);
        let (before, after) = (self.neighbour(sub.before), self.neighbour(sub.after));
        let is_in_list = |other: SubKey| {
            let of = &self.subs[other];
            of.is_live() && of.tail() == sub.tail() && self.subs.list_of(other) == list
        };
        assert!(
            before.is_none_or(|other| other.after == key && is_in_list(sub.before)),
            "one_state: {sub:?} comes after {before:?}"
        );
        assert!(
            after.is_none_or(|other| other.before == key && is_in_list(sub.after)),
            "one_state: {sub:?} comes before {after:?}"
        );
        let first = tail.listed(&self.subs, list).next();
        assert!(
            before.is_some() || first == Some(key),
            "one_state: {sub:?} is the first of its list, and the tail has {first:?}"
        );
    }

    fn neighbour(&self, key: SubKey) -> Option<&Subscription> {
        (key != SubKey::NONE).then(|| &self.subs[key])
    }

    /// Asserts that what the tails know of their subscriptions is what there is.
    fn check_counts(&self, counted: &BTreeMap<LogKey, LogCounts>) {
        let none = LogCounts::default();
        for key in self.logs.keys() {
            let (id, tail) = (self.logs[key].id, &self.logs[key].tail);
            let counted = counted.get(&key).unwrap_or(&none);
            let waiting = Pace::ALL.map(|pace| {
                let served = tail.of(pace);
                served.waiting.len() + served.timed.len()
            });
            let waiting: usize = waiting.iter().sum();
            assert_eq!(waiting, counted.waiting, "waiting: at the tail of {id}");
            let holds = (tail.wants.holds, tail.wants.count_holds());
            let wanted = (counted.holds, counted.holds);
            assert_eq!(holds, wanted, "wanted: holds on topics of {id}");
            let returned = tail.returned.len();
            assert_eq!(returned, counted.returned, "returned: to {id}");
            let ranges = Pace::ALL.into_iter().flat_map(|pace| &tail.of(pace).ranges);
            for (session, range) in ranges {
                let live = counted.live.get(session).copied().unwrap_or(0);
                assert_eq!(range.live, live, "ranges: of {session:?} on {id}");
            }
        }
    }

    fn check_sessions(&self, mut counted: BTreeMap<SessionKey, SessionCounts>) {
        for (key, session) in self.sessions.iter() {
            let counted = counted.remove(&key).unwrap_or_default();
            let all = session.subscriptions();
            assert_eq!(all, counted.all, "numbers: of {:?}", session.id);
            let most = self.config.limits.subscriptions as usize;
            assert!(
                all <= most && session.is_list_short(most),
                "numbers: {all} of {:?}, of {most}",
                session.id
            );
            session.check();
            let turns = Lane::ALL.map(|lane| session.turns(lane));
            let parked: usize = turns.iter().map(|turns| turns.parked()).sum();
            assert_eq!(parked, counted.parked, "parked: of {:?}", session.id);
            let following: u64 = turns.iter().map(|turns| turns.following()).sum();
            assert_eq!(following, counted.following, "following: {:?}", session.id);
            self.check_admission(key, session);
        }
        let wait = |(_, one): &(SessionKey, &Session)| !one.publishes.queue.is_empty();
        let (waiting, asked) = (self.sessions.iter().filter(wait), &self.timers.admission);
        assert_eq!(asked.len(), waiting.count(), "admission: {asked:?}");
        assert!(counted.is_empty(), "one_state: records without a session");
    }

    fn check_admission(&self, key: SessionKey, session: &Session) {
        let (id, publishes) = (session.id, &session.publishes);
        let asked_again = self.timers.admission.contains(&(publishes.wake, key));
        assert!(
            publishes.queue.is_empty() || asked_again,
            "admission: {id:?} waits for ever"
        );
        let batches = publishes.queue.iter().map(|(_, batch)| batch);
        let bytes: usize = batches.map(|batch| batch.bytes().len()).sum();
        assert_eq!(publishes.bytes, bytes, "admission: bytes of {id:?}");
        let most = self.config.parked_bytes;
        assert!(
            bytes <= most || publishes.queue.len() == 1,
            "admission: {bytes} bytes of {id:?} wait, of {most}"
        );
    }

    fn check_behind(&self, key: BehindKey, behind: &Behind) {
        let sub = &self.subs[behind.sub];
        assert!(
            sub.behind() == Some(key) || self.behind.aside(behind.sub) == Some(key),
            "one_state: {behind:?}"
        );
        assert!(behind.told <= behind.at, "told: {behind:?}");
        let is_located = !matches!(
            behind.state,
            BehindState::Locating(_) | BehindState::AwaitingSuccessor(_)
        );
        assert!(
            !is_located || behind.asked_until.is_none(),
            "located: the end of {behind:?} was not found"
        );
        if behind.is_complete() {
            let mut parts = self.late_parts(behind.sub).into_iter();
            let goes_on = parts.any(|part| !self.behind[part].is_complete());
            assert!(goes_on, "one_state: {behind:?}, and the last one");
            return;
        }
        let tail = &self.logs[behind.log].tail;
        match behind.state {
            BehindState::Moving => panic!("one_state: {behind:?} waits for nothing"),
            BehindState::NoCredit => {
                let lane = self.logs[behind.log].id.lane;
                let turns = self.sessions[behind.session].turns(lane);
                let found = turns.waiting(behind.log, behind.ticket);
                assert_eq!(found, Some(key), "parked: {behind:?}");
            }
            BehindState::AwaitingTail => {
                let served = tail.of(self.pace_of(key));
                let is_there = match behind.not_before {
                    Some(time) => served.timed.contains(&(time, key)),
                    None => served.waiting.contains(&(behind.at, key)) && behind.at > served.next,
                };
                assert!(
                    is_there && behind.until.is_none() && tail.is_attached,
                    "waiting: {behind:?} at {}",
                    tail.next
                );
            }
            BehindState::AwaitingWant => {
                let topic = behind.scope.topic();
                let waits = topic.is_some_and(|topic| tail.wants.waits(topic, key));
                assert!(behind.holds_want && waits, "wanted: {behind:?}");
            }
            BehindState::AwaitingClock => {
                let clock = &self.logs[behind.log].clock;
                let is_known = clock.waiting.contains(&key);
                assert!(is_known && clock.is_asked(), "clocks: {behind:?}");
            }
            BehindState::AwaitingSuccessor(_) => {
                let log = &self.logs[behind.log];
                let is_known = log.waiting.contains(&key);
                let is_looked_for = self.logs.with_waiting.contains(&behind.log);
                // Its end may be sought in a later log, which was known to have ended before its own.
                let is_due = log.ended.is_some() || behind.asked_until.is_some();
                assert!(
                    is_due && is_known && is_looked_for,
                    "succession: {behind:?} of {}",
                    log.id
                );
            }
            BehindState::Placed { .. } => {
                let waits = self.waits_for_others(behind.sub);
                assert!(waits, "placed: {behind:?} waits for nobody");
            }
            BehindState::Locating(_) | BehindState::Reading | BehindState::Complete(_) => {}
        }
    }

    fn check_tail(&self, key: LogKey) {
        let log = &self.logs[key];
        let (id, tail) = (log.id, &log.tail);
        let of_lane = self.logs.tails[log.at].log(id.lane);
        assert_eq!(of_lane, Some(key), "tails: of {id}");
        let is_needed = !tail.is_idle();
        assert_eq!(tail.is_attached, is_needed, "attached: the tail of {id}");
        assert!(
            log.state == LogState::Open || !is_needed && self.behind.of_log(key).is_empty(),
            "attached: {id} is closed, and not left"
        );
        for pace in Pace::ALL {
            self.check_served(key, pace);
        }
        let has_turns = self.live.work.logs.contains(&key);
        assert!(
            tail.turns.is_done() || has_turns && !tail.of(Pace::InTurns).is_idle(),
            "turns: what waits in {id} is forgotten, or for nobody"
        );
        let is_forgotten = matches!(
            tail.turns.source,
            Source::Storage { next, ticket: None } if next <= tail.next
        );
        assert!(
            !is_forgotten || !tail.turns.is_done() || has_turns,
            "turns: nobody reads for {id}: {:?}, {}",
            tail.turns.source,
            tail.next
        );
        assert!(
            !tail.turns.are_at_tail()
                || !tail.is_attached
                || tail.of(Pace::InTurns).next == tail.next,
            "turns: nothing waits in {id} behind {}",
            tail.of(Pace::InTurns).next
        );
    }

    /// Asserts that those of a pace are where they belong at a tail.
    fn check_served(&self, key: LogKey, pace: Pace) {
        let log = &self.logs[key];
        let (id, tail, served) = (log.id, &log.tail, log.tail.of(pace));
        let is_at_end = log.ended.is_some_and(|end| tail.told_to(pace) >= end);
        assert!(
            served.live == 0 || !is_at_end,
            "succession: {} are live at the end of {id}",
            served.live
        );
        assert!(
            !tail.is_attached || served.next <= tail.next,
            "ranges: {served:?} of {id} is beyond {}",
            tail.next
        );
        let mut live = 0;
        for (session, range) in &served.ranges {
            live += range.live as usize;
            assert!(
                range.next <= served.next,
                "ranges: {range:?} of {id} is beyond {}",
                served.next
            );
            let of = &self.sessions[*session];
            assert!(of.logs.contains(&key), "ranges: {session:?} knows no {id}");
            assert_eq!(of.pace(), pace, "ranges: of {session:?} on {id}");
        }
        assert_eq!(live, served.live, "ranges: live subscriptions of {id}");
    }

    fn check_order(&self, log: &GatewayLog) {
        for first in log.publishes.fronts() {
            assert!(
                first.result.is_none(),
                "order: {first:?} of {} is not given its answer",
                log.id
            );
        }
        for pending in log.publishes.iter() {
            assert!(
                pending.in_flight || pending.result.is_some(),
                "order: {pending:?} of {} waits for nothing",
                log.id
            );
        }
    }

    /// Asserts that what is in flight, to the storage and to clients, is what was counted.
    fn check_in_flight(&self) {
        let (mut appends, mut bytes, mut messages) = (0, 0, 0);
        for key in self.logs.keys() {
            for pending in self.logs[key].publishes.iter() {
                let is_in_flight = u64::from(pending.in_flight);
                appends += is_in_flight;
                bytes += is_in_flight * pending.bytes as u64;
                messages += pending.ticket.as_ref().map_or(0, Ticket::messages);
            }
        }
        let counted = self.stats.appends_in_flight;
        assert_eq!(counted, appends, "order: publishes in flight");
        let counted = self.stats.appends_in_flight_bytes;
        assert_eq!(counted, bytes, "order: bytes in flight");
        let counted = self.publishes().map_or(0, |gate| gate.in_flight);
        assert_eq!(counted, messages, "gates: messages in flight");
        let shares = self.sessions.iter().map(|(_, one)| one.share.in_flight());
        let counted = self.deliveries().map_or(0, |gate| gate.in_flight);
        assert_eq!(counted, shares.sum::<u64>(), "gates: bytes to clients");
    }

    fn check_gates(&self) {
        let settled = self.publish_gate.as_ref().map(PublishGate::is_settled);
        assert_ne!(settled, Some(false), "gates: somebody's turn was missed");
        let waiting = self.publish_gate.as_ref().map(PublishGate::waiting_bytes);
        let (waiting, most) = (
            waiting.unwrap_or_default(),
            self.config.publish_waiting_bytes,
        );
        assert!(
            waiting.counted(most) <= most,
            "gates: {waiting:?} bytes wait, of {most}"
        );
        let waiting = self.publishes().map_or(0, |gate| gate.waiting);
        let gate = self.config.publish_gate;
        let most = gate.map_or(0, |gate| gate.waiting_messages_max);
        let most = most + most / 8;
        assert!(waiting <= most, "gates: {waiting} messages wait, of {most}");
        let (listings, most) = (self.listings.len(), self.config.listings);
        assert!(listings <= most, "gates: {listings} listings, of {most}");
    }
}
