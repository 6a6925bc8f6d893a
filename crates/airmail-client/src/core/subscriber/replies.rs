//! What a subscriber makes of each thing that the node says.

use super::arrived::{Share, Shares};
use super::range::{Fit, fit};
use super::slot::Mode;
use super::{Arrived, Event, GapSeen, Subscriber, SubscriberOutput, SubscriptionKey, Todo};
use airmail_model::bug;
use airmail_model::frame::{
    Channel, Delivery, GapReason, Generation, Reply, State, SubscriptionId,
};
use airmail_model::position::LogPosition;
use airmail_model::{
    AppendTime, Batch, Checked, Error, Extent, Incarnation, LogId, Mono, Sequence,
};

/// A delivery with its batch made whole.
struct Whole {
    log: LogId,
    previous: Sequence,
    last: Sequence,
    base: Sequence,
    appended: AppendTime,
    batch: Checked<Batch>,
    cost: u32,
}

impl From<Delivery> for Whole {
    fn from(delivery: Delivery) -> Whole {
        Whole {
            log: delivery.log,
            previous: delivery.previous,
            last: delivery.last,
            base: delivery.base,
            appended: delivery.appended,
            cost: delivery.body.cost(),
            batch: delivery.body.into_batch(),
        }
    }
}

/// What a reply takes of the credit.
fn cost_of(reply: &Reply) -> u32 {
    match reply {
        Reply::Delivery(delivery) => delivery.body.cost(),
        _ => 0,
    }
}

/// Who is told of a delivery: a subscription, its topic's place in the batch, and the first number
/// that is new to it.
pub(super) type Told = (u32, u16, Sequence);

impl Subscriber {
    /// Takes what the node says.
    pub fn reply(&mut self, now: Mono, reply: Reply, out: &mut SubscriberOutput) {
        let before = self.before(out);
        let cost = before.as_ref().map_or(0, |_| cost_of(&reply));
        self.take_reply(now, reply, out);
        self.after(before, cost.into(), out);
    }

    fn take_reply(&mut self, now: Mono, reply: Reply, out: &mut SubscriberOutput) {
        match reply {
            Reply::Acked { .. } => {}
            Reply::Delivery(delivery) => {
                let channel = delivery.channel;
                let delivery = Whole::from(delivery);
                let mut told = std::mem::take(&mut self.told);
                match channel {
                    Channel::Live => self.live_delivery(&delivery, &mut told),
                    Channel::Detached(id, generation) => {
                        told.extend(self.detached_delivery((id, generation), &delivery));
                    }
                }
                self.tell(delivery, &told, out);
                told.clear();
                self.told = told;
            }
            Reply::Gap {
                channel,
                log,
                previous,
                last,
                why,
            } => match channel {
                Channel::Live => self.live_gap(log, previous, last, why, out),
                Channel::Detached(id, generation) => {
                    self.detached_gap((id, generation), previous, last, why, out);
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
                state,
            } => {
                if let Some(index) = self.in_force(subscription, generation) {
                    self.status(now, index, state, out);
                }
            }
        }
    }

    /// The subscription that a number means, if the generation is the one in force.
    fn in_force(&self, id: SubscriptionId, generation: Generation) -> Option<u32> {
        let slot = self.slots.get(id.0 as usize)?;
        (slot.is_asked() && slot.generation == generation.0).then_some(id.0)
    }

    fn key(&self, index: u32) -> SubscriptionKey {
        SubscriptionKey::new(index, self.slots[index as usize].life)
    }

    /// Advances a live range; adds who is concerned.
    fn live_delivery(&mut self, delivery: &Whole, told: &mut Vec<Told>) {
        let (previous, last) = (delivery.previous, delivery.last);
        let Some(range) = self.live.ranges.get_mut(&delivery.log) else {
            // Input: a node that has sent it before it heard that nobody is live there any more.
            return;
        };
        let next = range.next;
        match fit(next, previous, last) {
            Fit::Duplicate => return,
            Fit::Hole => return self.live_hole(delivery.log),
            Fit::Taken => range.next = last.plus(1),
        }
        for (topic, entry) in (0u16..).zip(delivery.batch.topics()) {
            for index in self.live.members(entry.hash) {
                // A topic's members may be on several logs while its log changes.
                let place = self.slots[*index as usize].place;
                if let Some(place) = place.filter(|place| place.log == delivery.log) {
                    told.push((*index, topic, place.next.max(next)));
                }
            }
        }
    }

    fn detached_delivery(
        &mut self,
        channel: (SubscriptionId, Generation),
        delivery: &Whole,
    ) -> Option<Told> {
        let (index, next) = self.detached_range(channel, delivery.previous, delivery.last)?;
        let wanted = self.slots[index as usize].topic;
        let mut topics = (0u16..).zip(delivery.batch.topics());
        let (topic, _) = topics.find(|(_, entry)| entry.hash == wanted)?;
        Some((index, topic, next))
    }

    /// Advances a detached subscription's range; gives it and where it stood.
    fn detached_range(
        &mut self,
        channel: (SubscriptionId, Generation),
        previous: Sequence,
        last: Sequence,
    ) -> Option<(u32, Sequence)> {
        let index = self.in_force(channel.0, channel.1)?;
        let slot = &mut self.slots[index as usize];
        let place = slot.place.filter(|_| slot.mode == Mode::Detached)?;
        let next = place.next;
        match fit(next, previous, last) {
            Fit::Duplicate => None,
            Fit::Hole => {
                self.renew(index);
                None
            }
            Fit::Taken => {
                slot.advance(last.plus(1));
                Some((index, next))
            }
        }
    }

    /// Tells a delivery to those concerned, and shares its cost among them.
    fn tell(&mut self, delivery: Whole, told: &[Told], out: &mut SubscriberOutput) {
        let before = out.events.len();
        let new = |(index, topic, from): &Told| {
            let early = self.slots[*index as usize].not_before;
            let owner = self.key(*index);
            let share = Share { owner, from: *from };
            early
                .is_none_or(|at| delivery.appended >= at)
                .then_some((*topic, share))
        };
        let mut new = told.iter().filter_map(new);
        if self.gathers && told.len() > 1 {
            let mut shares = vec![None; delivery.batch.topics().len()];
            new.for_each(|(topic, share)| shares[usize::from(topic)] = Some(share));
            let first = shares.iter().flatten().next().map(|share| share.owner);
            let arrived = self.arrived(&delivery, Shares::Many(shares.into()));
            out.events.extend(first.zip(arrived));
        } else {
            let each = new.by_ref().filter_map(|(topic, share)| {
                let arrived = self.arrived(&delivery, Shares::One(topic, share))?;
                Some((share.owner, arrived))
            });
            out.events.extend(each);
        }
        let events = &mut out.events[before..];
        let shares = u32::try_from(events.len()).unwrap_or(u32::MAX);
        if shares == 0 {
            self.credit.free += delivery.cost;
            #[cfg(feature = "sabotage")]
            if self.config.bug == Some(crate::sabotage::Bug::CreditTwice) {
                self.credit.free += delivery.cost;
            }
            return;
        }
        self.credit.out += delivery.cost;
        let mut rest = delivery.cost % shares;
        for (_, event) in events {
            if let Event::Messages(arrived) = event {
                arrived.cost = delivery.cost / shares + std::mem::take(&mut rest);
            }
        }
    }

    /// What of a delivery is in these shares; `None` if nothing.
    fn arrived(&self, delivery: &Whole, shares: Shares) -> Option<Event> {
        let of = match &shares {
            Shares::One(_, share) => Some(share),
            Shares::Many(shares) => shares.iter().flatten().next(),
        };
        let index = of?.owner.index();
        let place = self.slots[index as usize].place;
        if place.is_none() {
            bug!("{index} has no place, and is told of {}", delivery.last);
        }
        let arrived = Arrived {
            log: delivery.log,
            // The same for all who are on one range.
            incarnation: place.map_or(Incarnation(0), |place| place.incarnation),
            appended: delivery.appended,
            cost: 0,
            batch: delivery.batch.clone(),
            base: delivery.base,
            last: delivery.last,
            shares,
        };
        arrived
            .seek(0)
            .is_some()
            .then_some(Event::Messages(arrived))
    }

    fn live_gap(
        &mut self,
        log: LogId,
        previous: Sequence,
        last: Sequence,
        why: GapReason,
        out: &mut SubscriberOutput,
    ) {
        let Some(range) = self.live.ranges.get_mut(&log) else {
            // Input: a node that has sent it before it heard that nobody is live there any more.
            return;
        };
        let next = range.next;
        match fit(next, previous, last) {
            Fit::Duplicate => return,
            Fit::Hole => return self.live_hole(log),
            Fit::Taken => range.next = last.plus(1),
        }
        if why == GapReason::Unused {
            return;
        }
        for index in self.live_on(log) {
            let from = self.slots[index as usize].next().max(next);
            self.tell_gap(index, from, last, why, out);
        }
    }

    fn detached_gap(
        &mut self,
        channel: (SubscriptionId, Generation),
        previous: Sequence,
        last: Sequence,
        why: GapReason,
        out: &mut SubscriberOutput,
    ) {
        if let Some((index, next)) = self.detached_range(channel, previous, last) {
            self.tell_gap(index, next.max(previous.plus(1)), last, why, out);
        }
    }

    fn tell_gap(
        &self,
        index: u32,
        first: Sequence,
        last: Sequence,
        why: GapReason,
        out: &mut SubscriberOutput,
    ) {
        let Some(place) = self.slots[index as usize].place else {
            bug!("{index} has no place, and is told that {first} to {last} will not come");
            return;
        };
        if why == GapReason::Unused || first > last {
            return;
        }
        let gap = GapSeen {
            log: place.log,
            incarnation: place.incarnation,
            extent: Extent { first, last },
            why,
        };
        out.events.push((self.key(index), Event::Gap(gap)));
    }

    /// The live subscriptions of a log, by number.
    fn live_on(&self, log: LogId) -> Vec<u32> {
        let slots = self.slots.iter().zip(0u32..);
        let on = slots.filter(|(slot, _)| {
            slot.mode == Mode::Live && slot.place.is_some_and(|place| place.log == log)
        });
        on.map(|(_, index)| index).collect()
    }

    /// Something of a live range is missing: all on it are asked for again from where they are.
    fn live_hole(&mut self, log: LogId) {
        for index in self.live_on(log) {
            self.renew(index);
        }
    }

    /// Asks for a subscription again, from where it is, under a new generation.
    fn renew(&mut self, index: u32) {
        self.leave_live(index);
        self.todo.push_back(Todo::Remove(index));
        self.ask_again(index);
    }

    /// Takes a subscription off its live range, if it is on one, and keeps its place.
    pub(super) fn leave_live(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.mode != Mode::Live {
            return;
        }
        match slot.place {
            Some(place) => {
                let next = self.live.leave(place.log, slot.topic, index);
                slot.advance(next.unwrap_or(place.next));
            }
            None => bug!("{index} is live and has no place"),
        }
        slot.mode = Mode::Detached;
    }

    fn status(&mut self, now: Mono, index: u32, state: State, out: &mut SubscriberOutput) {
        match state {
            State::Live {
                log,
                incarnation,
                next,
            } => {
                if self.slots[index as usize].mode == Mode::Live {
                    return;
                }
                let place = LogPosition {
                    log,
                    incarnation,
                    next,
                };
                if self.arrive(index, place, false, out) < next {
                    // What lies between was never told.
                    return self.renew(index);
                }
                self.settle_above(log, next);
                let slot = &mut self.slots[index as usize];
                slot.mode = Mode::Live;
                self.live.join(log, incarnation, next, slot.topic, index);
            }
            State::Detached {
                log,
                incarnation,
                next,
                resumed,
            } => {
                let place = LogPosition {
                    log,
                    incarnation,
                    next,
                };
                self.leave_live(index);
                self.arrive(index, place, resumed, out);
                self.slots[index as usize].mode = Mode::Detached;
            }
            State::Complete { .. } => {
                out.events.push((self.key(index), Event::Status(state)));
                self.free_slot(index);
                return;
            }
            State::Failed(error) => return self.failed(now, index, error, out),
            State::Removed => return,
        }
        self.backoff.reset();
        out.events.push((self.key(index), Event::Status(state)));
    }

    /// A newcomer at `next` sets a log's live range back: whoever is on it keeps what it has.
    fn settle_above(&mut self, log: LogId, next: Sequence) {
        let stands = self.live.next(log, next);
        if stands == next {
            return;
        }
        for index in self.live_on(log) {
            self.slots[index as usize].advance(stands);
        }
    }

    /// Takes where the node says that a subscription stands; gives where it stands by its own
    /// account, which it keeps within a life of the log. If the log has begun a new life, and the
    /// subscription has not `resumed` in it, what it did not get of the old one is told as lost.
    fn arrive(
        &mut self,
        index: u32,
        told: LogPosition,
        resumed: bool,
        out: &mut SubscriberOutput,
    ) -> Sequence {
        let slot = &mut self.slots[index as usize];
        let old = slot.earlier_life(told.log, told.incarnation);
        let own = match old {
            Some(old) if resumed => Some(old.next),
            Some(old) => {
                slot.place = Some(old);
                self.tell_gap(index, old.next, Sequence::MAX, GapReason::Loss, out);
                self.slots[index as usize].expected(told.log, told.incarnation)
            }
            None => slot.expected(told.log, told.incarnation),
        };
        let own = own.unwrap_or(told.next);
        self.slots[index as usize].settle(told, own);
        own
    }

    fn failed(&mut self, now: Mono, index: u32, error: Error, out: &mut SubscriberOutput) {
        if error.code().waited_for() {
            self.leave_live(index);
            let until = now.plus(self.backoff.delay_for(&error));
            self.refused = Some(error);
            self.slots[index as usize].mode = Mode::Waiting(until);
            self.retries.insert((until, index));
            return;
        }
        let event = Event::Status(State::Failed(error));
        out.events.push((self.key(index), event));
        self.free_slot(index);
    }
}
