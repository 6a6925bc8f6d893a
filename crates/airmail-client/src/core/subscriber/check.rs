//! Asserts the invariants of a subscriber, which hold whatever a node says.
//!
//! Some are about a step: its result is compared with the state before it. The others are read off
//! the state. Each assertion begins with the name that the documentation of [`super`] gives the
//! invariant.

use super::live_ranges::LiveRange;
use super::subscription_slot::{Mode, PartMode, SubscriptionSlot};
use super::{Event, PendingRequest, Subscriber, SubscriberOutput, SubscriptionKey};
use airmail_model::frame::{GapReason, Request, Start, State, Wanted};
use airmail_model::position::LogPosition;
use airmail_model::{Lane, LogId, TopicHash};
use std::collections::{BTreeMap, BTreeSet};

/// Places of a subscription, by lane.
type Places = [Option<LogPosition>; Lane::ALL.len()];

/// State before a step, which is compared with the state after it.
#[derive(Debug)]
pub(super) struct StateBefore {
    /// Life and places of the subscription of each slot.
    positions: Vec<(u32, Places)>,
    /// Number of bytes of this connection's credit that the node does not have.
    credit: u64,
    /// Number of bytes of it that users have not given back.
    with_users: u32,
    events: usize,
    requests: usize,
}

impl Subscriber {
    /// Notes the state before a step, if the step is to be checked.
    #[inline]
    pub(super) fn begin_check(&mut self, out: &SubscriberOutput) -> Option<StateBefore> {
        self.check_schedule.begin_step().then(|| StateBefore {
            positions: self.positions(),
            credit: self.credit_not_at_node(),
            with_users: self.credit.with_users,
            events: out.events.len(),
            requests: out.requests.len(),
        })
    }

    /// Asserts the invariants after a step in which a delivery of this `cost` came.
    #[inline]
    pub(super) fn end_check(
        &mut self,
        before: Option<StateBefore>,
        cost: u64,
        out: &SubscriberOutput,
    ) {
        if let Some(before) = before {
            self.check_credit(&before, cost, out);
            self.check_positions(&before);
            self.check_events(&out.events[before.events..]);
            let parts = self.check();
            self.check_schedule.checked(parts);
        }
    }

    /// Asserts the invariants after a step in which a connection has begun: what the last one
    /// delivered is no credit of the new one.
    pub(super) fn end_connecting_check(&mut self, before: Option<StateBefore>) {
        let before = before.map(|before| StateBefore {
            credit: 0,
            with_users: 0,
            ..before
        });
        self.end_check(before, 0, &SubscriberOutput::default());
    }

    /// Asserts the invariants of the state; returns how many parts it has.
    ///
    /// Called after each step where bugs panic (debug builds, the simulator, fuzz targets).
    ///
    /// # Panics
    /// If one does not hold; the message begins with its name.
    pub fn check(&self) -> usize {
        self.check_slots();
        self.check_requests();
        self.check_ranges();
        let left = &self.recipients;
        assert!(left.is_empty(), "events: {left:?} are left over");
        self.slots.len() + self.pending.len()
    }

    /// Asserts that each number is in use or free, and its slot has what its mode says.
    fn check_slots(&self) {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        assert_eq!(free.len(), self.free.len(), "numbers: one is free twice");
        for (slot, index) in self.slots.iter().zip(0u32..) {
            let unused = slot.mode == Mode::Free;
            assert_eq!(unused, free.contains(&index), "numbers: {index}: {slot:?}");
            let start = slot.start.as_deref();
            let known = match (slot.place(Lane::Normal), start) {
                (Some(at), Some(Start::Sequence(wanted))) => *wanted == at.next,
                (Some(_), start) => start.is_none(),
                (None, start) => start.is_some() != unused,
            };
            assert!(known, "position: {index}: {slot:?}");
            let mut parts = slot.parts.iter().flatten();
            let known = slot.is_requested() || parts.all(|part| part.mode == PartMode::Untold);
            assert!(known, "requests: {index}: {slot:?}");
            let mut lanes = Lane::ALL.into_iter();
            let is_at_home = |lane: Lane| slot.place(lane).is_none_or(|at| at.log.lane == lane);
            assert!(lanes.all(is_at_home), "position: {index}: {slot:?}");
        }
    }

    /// Asserts that a subscription that is to be requested is in line, and one that was refused has
    /// a time.
    fn check_requests(&self) {
        let in_line = self.pending.iter().filter_map(|pending| match pending {
            PendingRequest::Add(index) => Some(*index),
            PendingRequest::Remove(_) | PendingRequest::Change(..) => None,
        });
        let in_line: BTreeSet<u32> = in_line.collect();
        let mut waiting = 0;
        for (slot, index) in self.slots.iter().zip(0u32..) {
            match slot.mode {
                Mode::Unsent if self.connected => {
                    assert!(in_line.contains(&index), "requests: {index} is not in line");
                }
                Mode::Free | Mode::Unsent => {}
                Mode::RetryAt(until) => {
                    waiting += 1;
                    let at = self.retries.contains(&(until, index));
                    assert!(at, "requests: {index} has no time");
                    assert!(self.connected, "requests: {index} waits without a stream");
                }
                Mode::Requested => {
                    assert!(
                        self.connected,
                        "requests: {index} is requested without a stream"
                    );
                }
            }
        }
        assert_eq!(waiting, self.retries.len(), "requests: times of nobody");
        for (index, generation) in self.changes.asked() {
            let slot = &self.slots[index as usize];
            let is_above = slot.is_requested() && generation.0 != slot.generation;
            assert!(is_above, "changes: {generation:?} of {index}: {slot:?}");
        }
    }

    /// Asserts that the live subscriptions, and no others, are on their log's range, and on their
    /// topic's list or the range's list of selections, once.
    fn check_ranges(&self) {
        let mut logs: BTreeMap<LogId, usize> = BTreeMap::new();
        let mut topics: BTreeMap<(Lane, TopicHash), usize> = BTreeMap::new();
        let mut selected: BTreeMap<LogId, usize> = BTreeMap::new();
        for (slot, index) in self.slots.iter().zip(0u32..) {
            let parts = slot.parts.iter().flatten();
            for part in parts.filter(|part| part.mode == PartMode::Live) {
                let log = part.at.log;
                *logs.entry(log).or_default() += 1;
                let listed = match slot.wanted {
                    Wanted::Topic(topic) => {
                        *topics.entry((log.lane, topic)).or_default() += 1;
                        self.live.members(topic, log.lane)
                    }
                    Wanted::Selected { .. } => {
                        *selected.entry(log).or_default() += 1;
                        let range = self.live.ranges.get(&log);
                        range.map_or(&[][..], LiveRange::selected)
                    }
                };
                let times = listed.iter().filter(|member| **member == index).count();
                assert_eq!(times, 1, "ranges: {index} on its list");
            }
        }
        let ranges = self.live.ranges.iter();
        let ranges: BTreeMap<LogId, usize> =
            ranges.map(|(log, range)| (*log, range.members())).collect();
        assert_eq!(ranges, logs, "ranges: members counted, and there");
        for (log, range) in &self.live.ranges {
            let there = selected.get(log).copied().unwrap_or(0);
            let listed = range.selected().len();
            assert_eq!(listed, there, "ranges: live selections of {log}");
        }
        let listed = Lane::ALL.map(|lane| self.live.topics(lane));
        let listed: usize = listed.into_iter().sum();
        assert_eq!(listed, topics.len(), "ranges: topics listed");
        for ((lane, topic), count) in topics {
            let listed = self.live.members(topic, lane).len();
            assert_eq!(listed, count, "ranges: live subscriptions of {topic:?}");
        }
    }

    /// Asserts that what was delivered in this step is with users or returnable, and that no credit
    /// comes or goes otherwise.
    fn check_credit(&self, before: &StateBefore, cost: u64, out: &SubscriberOutput) {
        let given_back = out.requests.iter().skip(before.requests);
        let given_back: u64 = given_back.map(credit_of).sum();
        let (was, is) = (before.credit + cost, self.credit_not_at_node() + given_back);
        assert_eq!(was, is, "credit: before a step, and after");
        let given = out.events.iter().skip(before.events);
        let given: u64 = given.map(|(_, event)| cost_of(event)).sum();
        let more = u64::from(self.credit.with_users.saturating_sub(before.with_users));
        assert_eq!(more, given, "credit: with users, and given to them");
    }

    /// Asserts that no event is one that never comes, and that none comes after the last one.
    fn check_events(&self, events: &[(SubscriptionKey, Event)]) {
        for (key, event) in events {
            let allowed = match event {
                Event::Messages(received) => received.seek(0).is_some(),
                Event::Gap(gap) => {
                    gap.why != GapReason::Unused && gap.extent.first <= gap.extent.last
                }
                Event::Expired(expired) => {
                    !expired.numbers.is_empty() && expired.numbers.is_sorted()
                }
                Event::Status(State::Removed) => false,
                Event::Status(State::Complete { .. } | State::Failed(_)) => {
                    self.slot(*key).is_none()
                }
                Event::Status(
                    State::Live { .. }
                    | State::Detached { .. }
                    | State::Changed { .. }
                    | State::Unchanged(_),
                ) => true,
            };
            assert!(allowed, "events: {key:?} gets {event:?}");
        }
    }

    /// Asserts that positions are kept, and within a life of their log never go back.
    fn check_positions(&self, before: &StateBefore) {
        let now = self.positions();
        for (index, ((life, were), (lives, are))) in before.positions.iter().zip(now).enumerate() {
            // What has ended meanwhile has another life.
            for (was, is) in were.iter().zip(are).filter(|_| *life == lives) {
                let Some(was) = was else {
                    // Input: a part that has not been told before.
                    continue;
                };
                let same =
                    |is: &LogPosition| is.log == was.log && is.incarnation == was.incarnation;
                let kept = is.is_some_and(|is| !same(&is) || is.next >= was.next);
                assert!(
                    kept,
                    "position: {index} stood at {was:?}, and stands at {is:?}"
                );
            }
        }
    }

    fn credit_not_at_node(&self) -> u64 {
        u64::from(self.credit.returnable) + u64::from(self.credit.with_users)
    }

    fn positions(&self) -> Vec<(u32, Places)> {
        let slots = self.slots.iter();
        slots
            .map(|slot| (slot.life, self.places_of(slot)))
            .collect()
    }

    fn places_of(&self, slot: &SubscriptionSlot) -> Places {
        slot.parts.map(|part| {
            part.map(|part| LogPosition {
                next: self.next_of(&part),
                ..part.at
            })
        })
    }
}

fn credit_of(request: &Request) -> u64 {
    match request {
        Request::Credit { bytes } => u64::from(*bytes),
        _ => 0,
    }
}

fn cost_of(event: &Event) -> u64 {
    match event {
        Event::Messages(received) => u64::from(received.cost),
        Event::Expired(expired) => u64::from(expired.cost),
        Event::Gap(_) | Event::Status(_) => 0,
    }
}
