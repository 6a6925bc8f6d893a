//! What a subscriber always is, whatever a node says: its invariants, asserted.
//!
//! A step is compared with what was there before it; the rest is read off the state. Each line names the
//! invariant that it is of, as the documentation of the module above does.

use super::slot::{Mode, Slot};
use super::{Event, Subscriber, SubscriberOutput, SubscriptionKey, Todo};
use airmail_model::frame::{GapReason, Request, Start, State};
use airmail_model::position::LogPosition;
use airmail_model::{LogId, TopicHash};
use std::collections::{BTreeMap, BTreeSet};

/// What there was when a step began.
#[derive(Debug)]
pub(super) struct Before {
    /// Of each slot: which subscription has it, and where that stood.
    places: Vec<(u32, Option<LogPosition>)>,
    /// Credit of this connection that is not with the node.
    credit: u64,
    /// Credit that users have not given back.
    out: u32,
    events: usize,
    requests: usize,
}

impl Subscriber {
    /// Notes what there is, if the step that begins is to be looked at.
    #[inline]
    pub(super) fn before(&mut self, out: &SubscriberOutput) -> Option<Before> {
        self.check_schedule.begin_step().then(|| Before {
            places: self.places(),
            credit: self.credit_here(),
            out: self.credit.out,
            events: out.events.len(),
            requests: out.requests.len(),
        })
    }

    /// Asserts what a step may have done, in which a delivery of this `cost` came.
    #[inline]
    pub(super) fn after(&mut self, before: Option<Before>, cost: u64, out: &SubscriberOutput) {
        if let Some(before) = before {
            self.check_credit(&before, cost, out);
            self.check_places(&before);
            self.check_told(&out.events[before.events..]);
            let parts = self.check();
            self.check_schedule.checked(parts);
        }
    }

    /// As [`Subscriber::after`], where a connection has begun: what the last one delivered is of no use
    /// to it.
    pub(super) fn after_connecting(&mut self, before: Option<Before>) {
        let before = before.map(|before| Before {
            credit: 0,
            out: 0,
            ..before
        });
        self.after(before, 0, &SubscriberOutput::default());
    }

    /// Asserts the invariants of the state, and gives how many parts it has.
    ///
    /// It is called after each step where bugs panic (debug builds, the simulator, fuzz targets).
    ///
    /// # Panics
    /// If one does not hold; the message begins with its name.
    pub fn check(&self) -> usize {
        self.check_slots();
        self.check_asking();
        self.check_ranges();
        assert!(self.told.is_empty(), "told: {:?} are left over", self.told);
        self.slots.len() + self.todo.len()
    }

    /// Each number is in use or free, and has what its mode says.
    fn check_slots(&self) {
        let free: BTreeSet<u32> = self.free.iter().copied().collect();
        assert_eq!(free.len(), self.free.len(), "numbers: one is free twice");
        for (slot, index) in self.slots.iter().zip(0u32..) {
            let unused = slot.mode == Mode::Free;
            assert_eq!(unused, free.contains(&index), "numbers: {index}: {slot:?}");
            let start = slot.start.as_deref();
            let known = match (slot.place, start) {
                (Some(place), Some(Start::Sequence(wish))) => *wish == place.next,
                (Some(_), start) => start.is_none(),
                (None, start) => start.is_some() != unused,
            };
            assert!(known, "place: {index}: {slot:?}");
            let stands = matches!(slot.mode, Mode::Live | Mode::Detached);
            assert!(!stands || slot.place.is_some(), "place: {index}: {slot:?}");
        }
    }

    /// Whoever is to be asked for is in line, and whoever waits has a time.
    fn check_asking(&self) {
        let in_line = self.todo.iter().filter_map(|todo| match todo {
            Todo::Add(index) => Some(*index),
            Todo::Remove(_) => None,
        });
        let in_line: BTreeSet<u32> = in_line.collect();
        let mut waiting = 0;
        for (slot, index) in self.slots.iter().zip(0u32..) {
            match slot.mode {
                Mode::Unsent if self.connected => {
                    assert!(in_line.contains(&index), "asking: {index} is not in line");
                }
                Mode::Free | Mode::Unsent => {}
                Mode::Waiting(until) => {
                    waiting += 1;
                    let at = self.retries.contains(&(until, index));
                    assert!(at, "asking: {index} has no time to be asked for at");
                    assert!(self.connected, "asking: {index} waits without a stream");
                }
                Mode::Asked | Mode::Live | Mode::Detached => {
                    assert!(self.connected, "asking: {index} is asked without a stream");
                }
            }
        }
        assert_eq!(waiting, self.retries.len(), "asking: times of nobody");
    }

    /// Whoever is live is on its log's range and on its topic's list, once, and nobody else is.
    fn check_ranges(&self) {
        let mut logs: BTreeMap<LogId, usize> = BTreeMap::new();
        let mut topics: BTreeMap<TopicHash, usize> = BTreeMap::new();
        for (slot, index) in self.slots.iter().zip(0u32..) {
            let (Mode::Live, Some(place)) = (slot.mode, slot.place) else {
                // Input: subscriptions that are not live, which have no part in this.
                continue;
            };
            *logs.entry(place.log).or_default() += 1;
            *topics.entry(slot.topic).or_default() += 1;
            let listed = self.live.members(slot.topic).iter();
            let times = listed.filter(|member| **member == index).count();
            assert_eq!(times, 1, "ranges: {index} on its topic's list");
        }
        let ranges = self.live.ranges.iter();
        let ranges: BTreeMap<LogId, usize> =
            ranges.map(|(log, range)| (*log, range.members())).collect();
        assert_eq!(ranges, logs, "ranges: members counted, and there");
        assert_eq!(self.live.topics(), topics.len(), "ranges: topics listed");
        for (topic, count) in topics {
            let listed = self.live.members(topic).len();
            assert_eq!(listed, count, "ranges: live subscriptions of {topic:?}");
        }
    }

    /// What was delivered in this step is with users or free, and no credit comes or goes otherwise.
    fn check_credit(&self, before: &Before, cost: u64, out: &SubscriberOutput) {
        let given_back = out.requests.iter().skip(before.requests);
        let given_back: u64 = given_back.map(credit_of).sum();
        let (was, is) = (before.credit + cost, self.credit_here() + given_back);
        assert_eq!(was, is, "credit: before a step, and after");
        let told = out.events.iter().skip(before.events);
        let told: u64 = told.map(|(_, event)| cost_of(event)).sum();
        let more = u64::from(self.credit.out.saturating_sub(before.out));
        assert_eq!(more, told, "credit: with users, and told to them");
    }

    /// Nothing is told that is said never to be, and nothing after the end.
    fn check_told(&self, events: &[(SubscriptionKey, Event)]) {
        for (key, event) in events {
            let allowed = match event {
                Event::Messages(arrived) => arrived.seek(0).is_some(),
                Event::Gap(gap) => {
                    gap.why != GapReason::Unused && gap.extent.first <= gap.extent.last
                }
                Event::Status(State::Removed) => false,
                Event::Status(State::Complete { .. } | State::Failed(_)) => {
                    self.slot(*key).is_none()
                }
                Event::Status(State::Live { .. } | State::Detached { .. }) => true,
            };
            assert!(allowed, "told: {key:?} of {event:?}");
        }
    }

    /// A place is kept, and within a life of its log never goes back.
    fn check_places(&self, before: &Before) {
        let now = self.places();
        for (index, ((life, was), (lives, is))) in before.places.iter().zip(now).enumerate() {
            let (true, Some(was)) = (*life == lives, was) else {
                // Input: one that has ended meanwhile, or has not been answered before.
                continue;
            };
            let same = |is: &LogPosition| is.log == was.log && is.incarnation == was.incarnation;
            let kept = is.is_some_and(|is| !same(&is) || is.next >= was.next);
            assert!(
                kept,
                "place: {index} stood at {was:?}, and stands at {is:?}"
            );
        }
    }

    fn credit_here(&self) -> u64 {
        u64::from(self.credit.free) + u64::from(self.credit.out)
    }

    fn places(&self) -> Vec<(u32, Option<LogPosition>)> {
        let slots = self.slots.iter();
        slots.map(|slot| (slot.life, self.stands(slot))).collect()
    }

    fn stands(&self, slot: &Slot) -> Option<LogPosition> {
        let place = slot.place?;
        let next = match slot.mode {
            Mode::Live => self.live.next(place.log, place.next),
            _ => place.next,
        };
        Some(LogPosition { next, ..place })
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
        Event::Messages(arrived) => u64::from(arrived.cost),
        _ => 0,
    }
}
