//! Sessions: one for each client's stream, with its budget.
//!
//! Credit is in bytes and may be overdrawn by one delivery in each lane ([`super::lane_credit`]). A session that has none gets no
//! deliveries: its live subscriptions are detached as messages for them come, and what is behind
//! stays parked here until there is credit again. So a client that does not read costs the node
//! nothing but what it has been promised, and that is at most [`CREDIT_BYTES_MAX`] (`credit`).

use super::lane_credit::{LaneCredit, Late};
use super::reading_turns::ReadingTurns;
use super::streams::Streams;
use super::subscription::Subscriptions;
use super::subscriptions_by_number::SubscriptionsByNumber;
use super::tail_lane::Pace;
use crate::access::Principal;
use crate::input::SessionId;
use crate::keys::{LogKey, SessionKey, SubKey};
use airmail_flow::Share;
use airmail_model::frame::{DELIVERY_OVERHEAD_BYTES, RequestId, SubscriptionId};
use airmail_model::verdict::Roles;
use airmail_model::{Batch, Checked, Lane, Mono, NamespaceId};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

/// A client's stream.
#[derive(Debug)]
pub(crate) struct Session {
    /// By which it is known outside.
    pub(crate) id: SessionId,
    /// The client at its other end.
    pub(crate) principal: Principal,
    /// Logs at whose tails it has a range.
    pub(crate) logs: Vec<LogKey>,
    /// Subscriptions that are behind, by lane: those that the tower reads for, and those that wait for it.
    turns: [ReadingTurns; Lane::ALL.len()],
    /// Publishes that wait for admission.
    pub(crate) publishes: Publishes,
    /// Places of its stream's producers, where these are to be kept.
    pub(crate) streams: Streams,
    /// Deliveries that its connection has not taken, in bytes.
    pub(crate) share: Share,
    credit: LaneCredit,
    /// Whether its deliveries have no payloads; `None` before its first subscription.
    headers_only: Option<bool>,
    /// Whether its subscriptions have filters; `None` before its first one.
    filtered: Option<bool>,
    /// Whether its subscriptions are selections; `None` before its first one.
    selects: Option<bool>,
    /// Whether its live deliveries name the subscriptions that they are for; `None` before its first one.
    matches: Option<bool>,
    /// Roles by namespace, where there are any.
    roles: Vec<(NamespaceId, Roles)>,
    by_number: SubscriptionsByNumber,
}

/// Publishes of one session that wait for admission, in order.
#[derive(Debug, Default)]
pub(crate) struct Publishes {
    pub(crate) queue: VecDeque<(RequestId, Checked<Batch>)>,
    /// Bytes in the queue.
    pub(crate) bytes: usize,
    /// When the first may be tried again; there is one if the queue is not empty.
    pub(crate) wake: Mono,
}

impl Session {
    /// Its subscriptions that are behind in a lane.
    pub(crate) fn turns(&self, lane: Lane) -> &ReadingTurns {
        &self.turns[lane as usize]
    }

    /// The same, to be changed.
    pub(crate) fn turns_mut(&mut self, lane: Lane) -> &mut ReadingTurns {
        &mut self.turns[lane as usize]
    }

    /// Number of its subscriptions that are read for.
    pub(crate) fn following(&self) -> u64 {
        self.turns.iter().map(ReadingTurns::following).sum()
    }

    /// Lanes in which somebody is behind.
    fn late(&self) -> Late {
        let [normal, high] = &self.turns;
        Late {
            normal: !normal.is_nobody_behind(),
            high: !high.is_nobody_behind(),
        }
    }

    /// Whether a delivery may be sent in a lane.
    pub(crate) fn has_credit(&self, lane: Lane) -> bool {
        self.credit(lane) > 0
    }

    /// Takes what is sent in a lane off its credit, which is overdrawn if it is less.
    pub(crate) fn charge(&mut self, lane: Lane, cost: u32) {
        self.credit.charge(lane, cost, self.late());
    }

    /// Bytes of deliveries that may be sent in a lane; less than none if it is overdrawn.
    pub(crate) fn credit(&self, lane: Lane) -> i64 {
        self.credit.of(lane, self.late())
    }

    /// Grants more, up to what a session can hold.
    pub(crate) fn grant(&mut self, bytes: u32) {
        self.credit.grant(bytes, self.late());
    }

    /// Number of subscriptions that may be read for in a lane: there is credit for a delivery to each. None: there is no credit.
    pub(crate) fn following_max(&self, lane: Lane) -> Option<u64> {
        let credit = self.credit(lane);
        let deliveries = credit.div_euclid(DELIVERY_OVERHEAD_BYTES.into()) + 1;
        let most = u64::try_from(deliveries).unwrap_or(0);
        (credit > 0).then_some(most)
    }

    /// Asserts that its credit and its turns are in order.
    pub(crate) fn check(&self) {
        self.credit.check();
        self.turns.iter().for_each(ReadingTurns::check);
    }

    /// A subscription has come that wants payloads, or none: the first decides for all.
    pub(crate) fn wants_headers_only(&mut self, wanted: bool) {
        self.headers_only.get_or_insert(wanted);
    }

    /// Whether its deliveries have no payloads.
    pub(crate) fn headers_only(&self) -> bool {
        self.headers_only == Some(true)
    }

    /// Whether a subscription may come that has a filter, or has none: as the first one.
    pub(crate) fn may_filter(&self, filtered: bool) -> bool {
        self.filtered.is_none_or(|of| of == filtered)
    }

    /// A subscription has come that has a filter, or has none: the first decides for all.
    pub(crate) fn filters(&mut self, filtered: bool) {
        self.filtered.get_or_insert(filtered);
    }

    /// Whether its subscriptions have filters.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filtered == Some(true)
    }

    /// Pace at which it is served at the tails.
    pub(crate) fn pace(&self) -> Pace {
        if self.is_filtered() {
            Pace::InTurns
        } else {
            Pace::AtOnce
        }
    }

    /// Whether a subscription may come that is a selection, or is none: as the first one; or any, if each message says which it
    /// is for.
    pub(crate) fn may_select(&self, selects: bool) -> bool {
        self.matches() || self.selects.is_none_or(|of| of == selects)
    }

    /// Whether a subscription may come that wants deliveries to name the subscriptions that they are for, or does not: as
    /// the first one.
    pub(crate) fn may_match(&self, matches: bool) -> bool {
        self.matches.is_none_or(|of| of == matches)
    }

    /// A subscription has come that wants deliveries to name the subscriptions that they are for, or does not: the first
    /// decides for all.
    pub(crate) fn wants_matches(&mut self, matches: bool) {
        self.matches.get_or_insert(matches);
    }

    /// Whether its live deliveries name the subscriptions that they are for, so that these may overlap.
    pub(crate) fn matches(&self) -> bool {
        self.matches == Some(true)
    }

    /// A subscription has come that is a selection, or is none: the first decides for all.
    pub(crate) fn selects(&mut self, selects: bool) {
        self.selects.get_or_insert(selects);
    }

    /// A subscription to something of a namespace was granted, with these roles: from here on they count for all that it
    /// has there.
    pub(crate) fn granted(&mut self, namespace: NamespaceId, roles: Roles) {
        self.roles.retain(|(of, _)| *of != namespace);
        if !roles.is_none() {
            self.roles.push((namespace, roles));
        }
    }

    /// The roles by which it gets what is addressed to some only.
    pub(crate) fn roles(&self, namespace: NamespaceId) -> &Roles {
        let mut roles = self.roles.iter();
        let found = roles.find(|(of, _)| *of == namespace);
        found.map_or(&Roles::NONE, |(_, roles)| roles)
    }

    /// The subscription of a number.
    pub(crate) fn find(&self, subs: &Subscriptions, id: SubscriptionId) -> Option<SubKey> {
        self.by_number.find(subs, id)
    }

    /// Takes over a subscription whose number is free.
    pub(crate) fn put(&mut self, subs: &Subscriptions, key: SubKey) {
        self.by_number.put(subs, key);
    }

    /// Gives up a subscription.
    pub(crate) fn take(&mut self, subs: &Subscriptions, key: SubKey) {
        self.by_number.take(subs, key);
    }

    /// Number of its subscriptions.
    pub(crate) fn subscriptions(&self) -> usize {
        self.by_number.len()
    }

    /// Whether its list of numbers is no longer than one with at most so many subscriptions has made it.
    pub(crate) fn is_list_short(&self, subscriptions_max: usize) -> bool {
        self.by_number.is_short(subscriptions_max)
    }

    /// Its subscriptions, in order of key.
    pub(crate) fn everything(&self) -> Vec<SubKey> {
        self.by_number.everything()
    }
}

/// The open sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    slab: Slab<Session>,
    by_id: BTreeMap<SessionId, SessionKey>,
}

impl Sessions {
    /// Opens a session; `false` if it is open already.
    pub(crate) fn open(&mut self, id: SessionId, principal: Principal, credit: u32) -> bool {
        if self.by_id.contains_key(&id) {
            return false;
        }
        let key = self.slab.insert(Session {
            id,
            principal,
            logs: Vec::new(),
            turns: Default::default(),
            publishes: Publishes::default(),
            streams: Streams::default(),
            share: Share::default(),
            credit: LaneCredit::new(credit),
            headers_only: None,
            filtered: None,
            selects: None,
            matches: None,
            roles: Vec::new(),
            by_number: SubscriptionsByNumber::default(),
        });
        self.by_id.insert(id, SessionKey::new(key));
        true
    }

    /// Where an open session is.
    pub(crate) fn find(&self, id: SessionId) -> Option<SessionKey> {
        self.by_id.get(&id).copied()
    }

    /// Takes a session out; nothing may refer to it any more.
    pub(crate) fn close(&mut self, key: SessionKey) {
        let session = self.slab.remove(key.place());
        self.by_id.remove(&session.id);
    }

    /// Every open session, in order of key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionKey, &Session)> {
        let all = self.slab.iter();
        all.map(|(place, session)| (SessionKey::new(place), session))
    }

    /// Number of open sessions.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }
}

impl std::ops::Index<SessionKey> for Sessions {
    type Output = Session;

    fn index(&self, key: SessionKey) -> &Session {
        &self.slab[key.place()]
    }
}

impl std::ops::IndexMut<SessionKey> for Sessions {
    fn index_mut(&mut self, key: SessionKey) -> &mut Session {
        &mut self.slab[key.place()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::limits::CREDIT_BYTES_MAX;

    #[test]
    fn a_session_holds_no_more_credit_than_its_bound_however_much_is_granted() {
        let mut sessions = Sessions::default();
        assert!(sessions.open(SessionId(1), Principal::default(), u32::MAX));
        let key = sessions.find(SessionId(1)).expect("open");
        let session = &mut sessions[key];
        for _ in 0..3 {
            session.grant(u32::MAX);
        }
        let mebibyte = 1_u32 << 20;
        let spend = || {
            let open = session.has_credit(Lane::Normal);
            session.charge(Lane::Normal, mebibyte + DELIVERY_OVERHEAD_BYTES);
            open
        };
        let sent = std::iter::repeat_with(spend)
            .take_while(|open| *open)
            .count();
        let most = (CREDIT_BYTES_MAX / mebibyte) as usize;
        assert!((most - 1..=most).contains(&sent), "{sent} MiB");
        session.grant(u32::MAX);
        assert!(
            session.has_credit(Lane::Normal),
            "what was overdrawn is made good"
        );
    }
}
