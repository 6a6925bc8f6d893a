//! Deliveries: which subscriptions a batch is for, what of it is new to each, and how they share
//! its cost.

use super::live_ranges::{Fit, fit};
use super::received_batch::{Owners, ReceivedBatch, Share, Shares};
use super::subscription_slot::PartMode;
use super::{Event, ExpiredSeen, Gathering, Subscriber, SubscriberOutput, SubscriptionKey};
use airmail_model::bug;
use airmail_model::frame::{
    Channel, Delivery, Expired, Generation, Matches, SubscriptionId, Wanted,
};
use airmail_model::verdict::ClockReading;
use airmail_model::{AppendTime, Batch, Checked, Incarnation, Lane, LogId, Sequence};
use std::sync::Arc;

/// A delivery whose batch has been decoded.
struct DecodedDelivery {
    log: LogId,
    previous: Sequence,
    last: Sequence,
    base: Sequence,
    appended: AppendTime,
    /// The clock of the log by the client's own; where messages of it expire.
    clock: Option<ClockReading>,
    batch: Checked<Batch>,
    /// The subscriptions that each message is for, where the node says so.
    matches: Option<Arc<Matches>>,
    cost: u32,
}

impl From<Delivery> for DecodedDelivery {
    fn from(delivery: Delivery) -> DecodedDelivery {
        DecodedDelivery {
            log: delivery.log,
            previous: delivery.previous,
            last: delivery.last,
            base: delivery.base,
            appended: delivery.appended,
            clock: delivery.clock,
            cost: delivery.cost(),
            matches: delivery.matches,
            batch: delivery.body.into_batch(),
        }
    }
}

/// A subscription that a delivery is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipient {
    pub(super) index: u32,
    /// Place of its topic in the batch; `None` if it is a selection, which the node has made of all that is there.
    pub(super) topic: Option<u16>,
    /// First number that is new to it.
    pub(super) from: Sequence,
}

impl Subscriber {
    /// Takes a delivery, whose clock is by the client's own.
    pub(super) fn delivery(&mut self, delivery: Delivery, out: &mut SubscriberOutput) {
        let channel = delivery.channel;
        let delivery = DecodedDelivery::from(delivery);
        #[cfg(feature = "sabotage")]
        let delivery = DecodedDelivery {
            clock: delivery
                .clock
                .filter(|_| self.config.bug != Some(crate::sabotage::Bug::NotJudgedAgain)),
            ..delivery
        };
        if let (Channel::Live, Some(matches)) = (channel, &delivery.matches) {
            let owners = self.owners_of(&delivery, matches);
            return self.emit_named(&delivery, owners, out);
        }
        let mut recipients = std::mem::take(&mut self.recipients);
        match channel {
            Channel::Live => self.live_delivery(&delivery, &mut recipients),
            Channel::Detached(id, generation) => {
                recipients.extend(self.detached_delivery((id, generation), &delivery));
            }
        }
        self.emit_messages(delivery, &recipients, out);
        recipients.clear();
        self.recipients = recipients;
    }

    /// Takes note of messages that have expired.
    pub(super) fn expired(&mut self, expired: Expired, out: &mut SubscriberOutput) {
        let cost = expired.cost();
        let Some(index) = self.in_force(expired.subscription, expired.generation) else {
            // Input: word of a subscription that has ended, or was requested anew, meanwhile.
            self.credit.returnable += cost;
            return;
        };
        self.credit.with_users += cost;
        let seen = ExpiredSeen {
            log: expired.log,
            numbers: expired.numbers,
            cost,
        };
        out.events.push((self.key(index), Event::Expired(seen)));
    }

    /// Advances a live range; gives the first number of the delivery that is new there. `None`: nothing is.
    fn advance_live(&mut self, delivery: &DecodedDelivery) -> Option<Sequence> {
        let (previous, last) = (delivery.previous, delivery.last);
        // Input: a node that has sent it before it heard that nobody is live there any more.
        let range = self.live.ranges.get_mut(&delivery.log)?;
        let next = range.next;
        match fit(next, previous, last) {
            Fit::Duplicate => None,
            Fit::Hole => {
                self.resubscribe_live(delivery.log);
                None
            }
            Fit::New => {
                range.next = last.plus(1);
                Some(next)
            }
        }
    }

    /// Finds the owners of each message of a live delivery: those whom it is for, by the node's word, and who have not had it.
    fn owners_of(&mut self, delivery: &DecodedDelivery, matches: &Matches) -> Owners {
        let mut owners = Owners::default();
        let Some(from) = self.advance_live(delivery) else {
            // Input: a delivery that brings nothing new, or leaves a hole.
            return owners;
        };
        let log = delivery.log;
        let is_owner = |id: &SubscriptionId, number: Sequence| {
            let slot = self.slots.get(id.0 as usize)?;
            let part = slot.part(log.lane)?;
            let is_live = part.mode == PartMode::Live && part.at.log == log;
            let is_in_time = slot.not_before.is_none_or(|at| delivery.appended >= at);
            let is_new = number >= part.at.next.max(from);
            (is_live && is_in_time && is_new).then(|| self.key(id.0))
        };
        for place in 0..delivery.batch.records() {
            let (index, _) = delivery.batch.head(place);
            let number = delivery.base.plus(index.into());
            let ids = matches.of(usize::from(place)).iter();
            owners.push(ids.filter_map(|id| is_owner(id, number)));
        }
        owners
    }

    /// Emits a delivery of which the node has said whom each message is for.
    fn emit_named(
        &mut self,
        delivery: &DecodedDelivery,
        owners: Owners,
        out: &mut SubscriberOutput,
    ) {
        let key = owners.any();
        let shares = Shares::Named(Arc::new(owners));
        let event = key.and_then(|key| Some((key, self.received(delivery, (key, shares))?)));
        match event {
            Some((key, Event::Messages(received))) => {
                self.credit.with_users += delivery.cost;
                let cost = delivery.cost;
                let received = ReceivedBatch { cost, ..received };
                out.events.push((key, Event::Messages(received)));
            }
            _ => self.credit.returnable += delivery.cost,
        }
    }

    /// Advances a live range; adds the subscriptions that the delivery is for.
    fn live_delivery(&mut self, delivery: &DecodedDelivery, recipients: &mut Vec<Recipient>) {
        let Some(next) = self.advance_live(delivery) else {
            // Input: a delivery that brings nothing new, or leaves a hole.
            return;
        };
        let Some(range) = self.live.ranges.get(&delivery.log) else {
            bug!("{} has no range, which has advanced", delivery.log);
            return;
        };
        let lane = delivery.log.lane;
        for index in range.selected() {
            let own = self.slots[*index as usize].next(lane);
            recipients.push(Recipient {
                index: *index,
                topic: None,
                from: own.max(next),
            });
        }
        for (topic, hash) in (0u16..).zip(delivery.batch.topic_hashes()) {
            for index in self.live.members(hash, lane) {
                // A topic's members may be on several logs of a lane while its log changes.
                let at = self.slots[*index as usize].place(lane);
                if let Some(at) = at.filter(|at| at.log == delivery.log) {
                    recipients.push(Recipient {
                        index: *index,
                        topic: Some(topic),
                        from: at.next.max(next),
                    });
                }
            }
        }
    }

    fn detached_delivery(
        &mut self,
        channel: (SubscriptionId, Generation),
        delivery: &DecodedDelivery,
    ) -> Option<Recipient> {
        let covers = (delivery.previous, delivery.last);
        let (index, from) = self.detached_range(channel, delivery.log.lane, covers)?;
        let topic = match self.slots[index as usize].wanted {
            Wanted::Topic(wanted) => {
                let mut topics = (0u16..).zip(delivery.batch.topic_hashes());
                Some(topics.find(|(_, hash)| *hash == wanted)?.0)
            }
            Wanted::Selected { .. } => None,
        };
        Some(Recipient { index, topic, from })
    }

    /// Advances the range of a subscription that is detached in a lane; gives its number, and where it stood before.
    pub(super) fn detached_range(
        &mut self,
        channel: (SubscriptionId, Generation),
        lane: Lane,
        (previous, last): (Sequence, Sequence),
    ) -> Option<(u32, Sequence)> {
        let index = self.in_force(channel.0, channel.1)?;
        let slot = &mut self.slots[index as usize];
        let part = slot.part(lane);
        let next = part.filter(|part| part.mode == PartMode::Detached)?.at.next;
        match fit(next, previous, last) {
            Fit::Duplicate => None,
            Fit::Hole => {
                self.resubscribe(index);
                None
            }
            Fit::New => {
                slot.advance(lane, last.plus(1));
                Some((index, next))
            }
        }
    }

    /// Emits a delivery to its recipients, and shares its cost among them.
    fn emit_messages(
        &mut self,
        delivery: DecodedDelivery,
        recipients: &[Recipient],
        out: &mut SubscriberOutput,
    ) {
        let before = out.events.len();
        let share_of = |recipient: &Recipient| {
            let not_before = self.slots[recipient.index as usize].not_before;
            let owner = self.key(recipient.index);
            let share = Share {
                owner,
                from: recipient.from,
            };
            not_before
                .is_none_or(|at| delivery.appended >= at)
                .then_some((recipient.topic, share))
        };
        let mut new = recipients.iter().filter_map(share_of);
        // Selections come first, and have all topics: there is nothing to gather.
        let is_by_topic = |first: &Recipient| first.topic.is_some();
        if self.gathering == Gathering::ByTopic
            && recipients.len() > 1
            && recipients.first().is_some_and(is_by_topic)
        {
            let mut shares = vec![None; delivery.batch.topics().len()];
            for (topic, share) in new {
                if let Some(topic) = topic {
                    shares[usize::from(topic)] = Some(share);
                }
            }
            let first = shares.iter().flatten().next().map(|share| share.owner);
            let received = first.and_then(|owner| {
                let shares = Shares::ByTopic(shares.into());
                self.received(&delivery, (owner, shares))
            });
            out.events.extend(first.zip(received));
        } else {
            let each = new.by_ref().filter_map(|(topic, share)| {
                let shares = topic.map_or(Shares::All(share), |topic| Shares::One(topic, share));
                let received = self.received(&delivery, (share.owner, shares))?;
                Some((share.owner, received))
            });
            out.events.extend(each);
        }
        let events = &mut out.events[before..];
        let shares = u32::try_from(events.len()).unwrap_or(u32::MAX);
        if shares == 0 {
            self.credit.returnable += delivery.cost;
            #[cfg(feature = "sabotage")]
            if self.config.bug == Some(crate::sabotage::Bug::CreditTwice) {
                self.credit.returnable += delivery.cost;
            }
            return;
        }
        self.credit.with_users += delivery.cost;
        let mut rest = delivery.cost % shares;
        for (_, event) in events {
            if let Event::Messages(received) = event {
                received.cost = delivery.cost / shares + std::mem::take(&mut rest);
            }
        }
    }

    /// Makes the event that gives these shares of a delivery to their owners, of whom one is named; `None` if there is no
    /// message in them.
    fn received(
        &self,
        delivery: &DecodedDelivery,
        (owner, shares): (SubscriptionKey, Shares),
    ) -> Option<Event> {
        let index = owner.index();
        let at = self.slots[index as usize].place(delivery.log.lane);
        if at.is_none() {
            bug!(
                "{index} has no position, and is given what ends at {}",
                delivery.last
            );
        }
        let received = ReceivedBatch {
            log: delivery.log,
            // The same for all who are on one range.
            incarnation: at.map_or(Incarnation(0), |at| at.incarnation),
            appended: delivery.appended,
            clock: delivery.clock,
            cost: 0,
            batch: delivery.batch.clone(),
            base: delivery.base,
            last: delivery.last,
            shares,
        };
        received
            .seek(0)
            .is_some()
            .then_some(Event::Messages(received))
    }
}
