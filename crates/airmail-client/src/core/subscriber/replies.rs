//! The subscriber's answers to each reply of the node.

use super::subscription_slot::PartMode;
use super::{PendingRequest, Subscriber, SubscriberOutput, SubscriptionKey};
use airmail_model::frame::{Channel, GapReason, Generation, Reply, State, SubscriptionId};
use airmail_model::{Lane, LogId, Mono};

/// Gives the credit that a reply uses up.
fn cost_of(reply: &Reply) -> u32 {
    match reply {
        Reply::Delivery(delivery) => delivery.cost(),
        Reply::Expired(expired) => expired.cost(),
        _ => 0,
    }
}

impl Subscriber {
    /// Applies a reply of the node.
    pub fn reply(&mut self, now: Mono, reply: Reply, out: &mut SubscriberOutput) {
        let check = self.begin_check(out);
        let held = check.as_ref().map_or(0, |_| self.held_cost());
        let cost = check.as_ref().map_or(0, |_| u64::from(cost_of(&reply)));
        self.take_reply(now, reply, out);
        let held_now = check.as_ref().map_or(0, |_| self.held_cost());
        self.end_check(check, cost + held - held_now, out);
    }

    /// Applies a reply in its turn, and those that have waited for it.
    fn take_reply(&mut self, now: Mono, reply: Reply, out: &mut SubscriberOutput) {
        let mut next = match reply {
            Reply::Clock { asked, node } => {
                self.stream_clock.heard(now, asked, node);
                self.stream_clock.held.pop_front()
            }
            reply if self.stream_clock.held.is_empty() => Some(reply),
            reply => return self.stream_clock.held.push_back(reply),
        };
        while let Some(mut reply) = next {
            if !self.set_own_clock(now, &mut reply) {
                return self.stream_clock.held.push_front(reply);
            }
            self.apply_reply(now, reply, out);
            next = self.stream_clock.held.pop_front();
        }
    }

    /// Puts what the clock of its log shows by the client's own into a delivery whose messages expire; `false` if that is
    /// not known.
    fn set_own_clock(&mut self, now: Mono, reply: &mut Reply) -> bool {
        let Reply::Delivery(delivery) = reply else {
            // Input: a reply that brings no messages.
            return true;
        };
        let Some(of_log) = delivery.clock else {
            // Input: messages that never expire.
            return true;
        };
        let own = self.stream_clock.reading(now, of_log);
        delivery.clock = Some(own.unwrap_or(of_log));
        own.is_some()
    }

    /// Credit that replies use up which wait for the node's clock.
    fn held_cost(&self) -> u64 {
        let held = self.stream_clock.held.iter();
        held.map(|reply| u64::from(cost_of(reply))).sum()
    }

    fn apply_reply(&mut self, now: Mono, reply: Reply, out: &mut SubscriberOutput) {
        match reply {
            // The clock was heard at once.
            Reply::Acked { .. } | Reply::Clock { .. } => {}
            Reply::Delivery(delivery) => self.delivery(delivery, out),
            Reply::Expired(expired) => self.expired(expired, out),
            Reply::Gap {
                channel,
                log,
                previous,
                last,
                why,
            } => match channel {
                Channel::Live => self.live_gap(log, previous, last, why, out),
                Channel::Detached(id, generation) => {
                    let channel = (id, generation);
                    self.detached_gap(channel, log.lane, (previous, last), why, out);
                }
            },
            Reply::Mark {
                log,
                previous,
                next,
            } => self.live_gap(log, previous, next.before(), GapReason::Unused, out),
            Reply::Status {
                subscription,
                generation,
                state: State::Changed { places },
            } => self.change_answered((subscription, generation), Ok(places), out),
            Reply::Status {
                subscription,
                generation,
                state: State::Unchanged(error),
            } => self.change_answered((subscription, generation), Err(error), out),
            Reply::Status {
                subscription,
                generation,
                state,
            } => {
                if let Some(index) = self.in_force(subscription, generation) {
                    self.status(now, index, state, out);
                }
            }
        }
    }

    /// Finds the subscription that a number means, if the generation is the one in force.
    pub(super) fn in_force(&self, id: SubscriptionId, generation: Generation) -> Option<u32> {
        let slot = self.slots.get(id.0 as usize)?;
        (slot.is_requested() && slot.generation == generation.0).then_some(id.0)
    }

    pub(super) fn key(&self, index: u32) -> SubscriptionKey {
        SubscriptionKey::new(index, self.slots[index as usize].life)
    }

    /// Lists the live subscriptions of a log, by number.
    pub(super) fn live_on(&self, log: LogId) -> Vec<u32> {
        let slots = self.slots.iter().zip(0u32..);
        let on = slots.filter(|(slot, _)| {
            let part = slot.part(log.lane);
            part.is_some_and(|part| part.mode == PartMode::Live && part.at.log == log)
        });
        on.map(|(_, index)| index).collect()
    }

    /// Requests all subscriptions on a live range again, from where they are, because something of
    /// the range is missing.
    pub(super) fn resubscribe_live(&mut self, log: LogId) {
        for index in self.live_on(log) {
            self.resubscribe(index);
        }
    }

    /// Requests a subscription again, from where it is, under a new generation.
    pub(super) fn resubscribe(&mut self, index: u32) {
        self.leave_live(index);
        self.pending.push_back(PendingRequest::Remove(index));
        self.request_again(index);
    }

    /// Takes a subscription off its live ranges, as far as it is on any; its position stays.
    pub(super) fn leave_live(&mut self, index: u32) {
        for lane in Lane::ALL {
            self.leave_live_in(index, lane);
        }
    }

    /// Takes a subscription off its live range of a lane, if it is on one; its position stays.
    pub(super) fn leave_live_in(&mut self, index: u32, lane: Lane) {
        let slot = &mut self.slots[index as usize];
        let Some(part) = slot.part(lane).filter(|part| part.mode == PartMode::Live) else {
            // Input: a subscription that is not live there.
            return;
        };
        let at = part.at;
        let next = self.live.leave(at.log, &slot.wanted, index);
        slot.advance(lane, next.unwrap_or(at.next));
        slot.set_mode(lane, PartMode::Detached);
    }
}
