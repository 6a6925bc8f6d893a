//! Invariants of the gateway, asserted whatever clients do and the tower tells. Each line names its
//! invariant, as the documentation of the module above does.

use super::Gateway;
use super::behind::{Behind, BehindState};
use super::log::{GatewayLog, LogState};
use super::publish_gate::PublishGate;
use crate::keys::{BehindKey, LogKey, SessionKey, SubKey};
use airmail_model::limits::CREDIT_BYTES_MAX;
use std::collections::BTreeMap;

/// Sums over the records of subscriptions that are behind, for one session.
#[derive(Default)]
struct Waits {
    parked: usize,
    following: u64,
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
            live += self.logs[key].tail.live;
        }
        let (behind, all) = (self.behind.len(), self.subs.len());
        assert_eq!(live + behind, all, "one_state: live and behind, of all");
        for (key, sub) in self.subs.iter() {
            match sub.behind() {
                Some(behind) => assert_eq!(self.behind[behind].sub, key, "one_state: {sub:?}"),
                None => self.check_live(key),
            }
        }
        self.check_sessions();
        self.check_gates();
    }

    /// Asserts that a live subscription is linked with its neighbours, and counted.
    fn check_live(&self, key: SubKey) {
        let sub = self.subs[key];
        let (before, after) = (sub.before, sub.after);
        assert!(
            before == SubKey::NONE || self.subs[before].after == key,
            "one_state: {sub:?} comes after one that does not know"
        );
        assert!(
            after == SubKey::NONE || self.subs[after].before == key,
            "one_state: {sub:?} comes before one that does not know"
        );
        let tail = &self.logs[sub.log].tail;
        let range = tail.ranges.get(&sub.session);
        assert!(
            range.is_some_and(|range| range.live > 0),
            "ranges: {sub:?} is live, on {range:?}"
        );
    }

    fn check_sessions(&self) {
        let mut waits: BTreeMap<SessionKey, Waits> = BTreeMap::new();
        for (key, behind) in self.behind.iter() {
            self.check_behind(key, behind);
            let waits = waits.entry(behind.session).or_default();
            waits.parked += usize::from(behind.state == BehindState::NoCredit);
            waits.following += u64::from(behind.state == BehindState::Reading);
        }
        for (key, session) in self.sessions.iter() {
            let waits = waits.remove(&key).unwrap_or_default();
            let parked = session.parked.len();
            assert_eq!(parked, waits.parked, "parked: of {:?}", session.id);
            let following = session.following;
            assert_eq!(following, waits.following, "following: {:?}", session.id);
            assert!(
                session.credit() <= CREDIT_BYTES_MAX.into(),
                "credit: {:?} has {}",
                session.id,
                session.credit()
            );
            let publishes = &session.publishes;
            let asked_again = self.timers.admission.contains(&(publishes.wake, key));
            assert!(
                publishes.queue.is_empty() || asked_again,
                "admission: {:?} waits for ever",
                session.id
            );
        }
        assert!(waits.is_empty(), "one_state: records without a session");
    }

    fn check_behind(&self, key: BehindKey, behind: &Behind) {
        let sub = &self.subs[behind.sub];
        assert_eq!(sub.behind(), Some(key), "one_state: {behind:?}");
        assert!(behind.told <= behind.at, "told: {behind:?}");
        let tail = &self.logs[behind.log].tail;
        match behind.state {
            BehindState::Moving => panic!("one_state: {behind:?} waits for nothing"),
            BehindState::NoCredit => {
                let parked = &self.sessions[behind.session].parked;
                assert_eq!(parked.get(&behind.ticket), Some(&key), "parked: {behind:?}");
            }
            BehindState::AwaitingTail => {
                let is_there = match behind.not_before {
                    Some(time) => tail.timed.contains(&(time, key)),
                    None => tail.waiting.contains(&(behind.at, key)) && behind.at > tail.next,
                };
                assert!(
                    is_there && behind.until.is_none() && tail.is_attached,
                    "waiting: {behind:?} at {}",
                    tail.next
                );
            }
            BehindState::Locating(_) | BehindState::Reading => {}
        }
    }

    fn check_tail(&self, key: LogKey) {
        let log = &self.logs[key];
        let (id, tail) = (log.id, &log.tail);
        let is_needed = !tail.is_idle();
        assert_eq!(tail.is_attached, is_needed, "attached: the tail of {id}");
        assert!(
            log.state == LogState::Open || !is_needed && self.behind.of_log(key).is_empty(),
            "attached: {id} is closed, and not left"
        );
        let mut live = 0;
        for (session, range) in &tail.ranges {
            live += range.live as usize;
            assert!(
                range.next <= tail.next,
                "ranges: {range:?} of {id} is beyond {}",
                tail.next
            );
            let logs = &self.sessions[*session].logs;
            assert!(logs.contains(&key), "ranges: {session:?} knows no {id}");
        }
        assert_eq!(live, tail.live, "ranges: live subscriptions of {id}");
    }

    fn check_order(&self, log: &GatewayLog) {
        let first = log.publishes.iter().next();
        assert!(
            first.is_none_or(|first| first.result.is_none()),
            "order: {first:?} of {} is not given its answer",
            log.id
        );
        for pending in log.publishes.iter() {
            assert!(
                pending.in_flight || pending.result.is_some(),
                "order: {pending:?} of {} waits for nothing",
                log.id
            );
        }
    }

    fn check_gates(&self) {
        let logs = self.logs.keys().map(|key| &self.logs[key]);
        let pending = logs.flat_map(|log| log.publishes.iter());
        let in_flight = pending.filter(|pending| pending.in_flight).count() as u64;
        let counted = self.stats.appends_in_flight;
        assert_eq!(counted, in_flight, "order: publishes in flight");
        let settled = self.publish_gate.as_ref().map(PublishGate::is_settled);
        assert_ne!(settled, Some(false), "gates: somebody's turn was missed");
        let waiting = self.publish_gate.as_ref().map(PublishGate::waiting_bytes);
        let (waiting, most) = (waiting.unwrap_or(0), self.config.publish_waiting_bytes);
        assert!(waiting <= most, "gates: {waiting} bytes wait, of {most}");
        let (listings, most) = (self.listings.len(), self.config.listings);
        assert!(listings <= most, "gates: {listings} listings, of {most}");
    }
}
