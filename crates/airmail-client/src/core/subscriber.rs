//! The subscriber: tracks which numbers each of a stream's subscriptions has had, so that messages
//! come once and in order, and requests what is missing.
//!
//! A subscription is *unsent* or *requested*, and has a part for each lane, which is *live* or *detached* once the node has
//! said so. The live parts of a log share one range, and each detached one has its own ([`airmail_model::frame`] has the
//! rules): a message whose numbers all lie below `next` is a duplicate and dropped; one that leaves a hole is
//! dropped, and the subscription requested again from `next`, under a new generation. The position
//! of a live part is the later of where it began and the range's `next`, so a delivery
//! updates one number, however many subscriptions there are.
//!
//! Invariants, which [`Subscriber::check`] and its parts in `check.rs` assert after each step where
//! bugs panic, under the names that stand first here:
//!
//! - `events`: messages of a generation that is no longer in force are dropped; no event has an
//!   empty gap, says that a subscription was removed, or gives a status after the one that ended
//!   it.
//! - `position`: a position once known is never forgotten, and within a life of its log never goes
//!   back. After a lost connection each subscription is requested again from its position; only one
//!   that had not yet been answered, or waits for a number to come, keeps the start that its user
//!   gave.
//! - `credit`: the cost of every delivery is given back exactly once: by [`Subscriber::consumed`],
//!   or at once where nobody got an event.
//! - `ranges`: those on a live range, and on a topic's list of a lane or the range's list of selections, are exactly the live
//!   parts.
//! - `changes`: a filter that the node has not answered for is of a generation above the one in force; without a connection
//!   there is none. The user gets an answer to each change, in order.
//! - `requests`: a subscription that is to be requested is in line, one that was refused for now
//!   has a time, and without a connection none counts as requested. `numbers`: each is in use by
//!   one subscription, or free.

mod changes;
mod check;
mod deliveries;
mod events;
mod gaps;
mod live_ranges;
mod positions;
mod received_batch;
mod replies;
mod statuses;
mod stream_clock;
mod subscription_slot;
#[cfg(test)]
mod tests;

pub use events::{Event, ExpiredSeen, GapSeen, SubscriberOutput};
pub use received_batch::{Messages, ReceivedBatch};

use super::backoff::{Backoff, BackoffConfig};
use super::check_schedule::CheckSchedule;
use airmail_model::filter::Filter;
use airmail_model::frame::{
    Generation, Request, Start, State, Subscribe, SubscriptionId, Until, Wanted,
};
use airmail_model::{Error, LogMap, MapEpoch, Mono, NamespaceId};
use changes::Changes;
use live_ranges::LiveRanges;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use stream_clock::StreamClock;
use subscription_slot::{Mode, SubscriptionSlot};

/// Number of requests that one [`Subscriber::poll`] gives, at most.
const REQUESTS_A_POLL: usize = 4096;

/// Credit is given back as soon as this part of all is returnable, so that the node always has most
/// of it.
const CREDIT_PARTS: u32 = 4;

/// Bounds and patience of a [`Subscriber`].
#[derive(Clone, Copy, Debug)]
pub struct SubscriberConfig {
    /// Number of bytes of deliveries that the client has room for, as Hello tells the node. Default
    /// 1 MiB.
    pub credit_bytes: u32,
    /// Delays after refusals that are waited for.
    pub backoff: BackoffConfig,
    /// Seed of the delays' jitter.
    pub seed: u64,
    /// Bug to plant.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

impl Default for SubscriberConfig {
    fn default() -> SubscriberConfig {
        SubscriberConfig {
            credit_bytes: 1 << 20,
            backoff: BackoffConfig::default(),
            seed: 0,
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}

/// Key of a subscription for its whole life: reconnecting does not change it, and it is never used
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionKey(u64);

impl SubscriptionKey {
    fn new(index: u32, life: u32) -> SubscriptionKey {
        SubscriptionKey(u64::from(life) << 32 | u64::from(index))
    }

    /// Gives its number: dense from 0, and used again when the subscription has ended.
    #[must_use]
    pub fn index(self) -> u32 {
        (self.0 & u64::from(u32::MAX)) as u32
    }

    fn life(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A subscription as its user wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionSpec {
    /// Namespace of its topics.
    pub namespace: NamespaceId,
    /// Topic to read, or a selection of the topics of one log. A stream has topics alone, or selections alone, and of each
    /// log one selection; but for [`Subscriber::matching`].
    pub wanted: Wanted,
    /// Start of the subscription.
    pub start: Start,
    /// End of the subscription; `None` if it has none. If the connection is lost meanwhile,
    /// [`Until::Now`] is the end as it is when the subscription is requested again.
    pub until: Option<Until>,
    /// Whether its user is told of messages that have expired.
    pub tell_expired: bool,
    /// Messages that its user wants; `None`: all. With filters each topic of a stream has one subscription, and each of them
    /// has one; but for [`Subscriber::matching`].
    pub filter: Option<Arc<Filter>>,
    /// Whether its stream's deliveries come without payloads: the first subscription of a stream decides for all.
    pub headers_only: bool,
}

/// A request that is to be sent for the subscription with this number.
#[derive(Clone, Copy, Debug)]
enum PendingRequest {
    Add(u32),
    Remove(u32),
    /// A change, of this generation.
    Change(u32, Generation),
}

/// Bytes of deliveries on their way back to the node as credit.
#[derive(Debug, Default)]
struct Credit {
    /// Number of bytes that were consumed, and that the node has not got back yet.
    returnable: u32,
    /// Number of bytes that users have and have not consumed, of this connection's deliveries.
    with_users: u32,
    /// Number of bytes that users have and have not consumed, of earlier connections' deliveries.
    /// They are consumed first, and are no credit of this connection.
    stale: u32,
}

/// Subscriptions that one event of a delivery is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gathering {
    /// One: each recipient gets an event.
    #[default]
    Each,
    /// All, of which each has topics of its own.
    ByTopic,
    /// All, of which the node says whom each message is for.
    Named,
}

/// Refusals that are waited for.
#[derive(Debug)]
struct Refusals {
    backoff: Backoff,
    /// Error of the last one.
    last: Option<Error>,
}

/// The subscriptions of one stream.
#[derive(Debug)]
pub struct Subscriber {
    config: SubscriberConfig,
    connected: bool,
    epochs: BTreeMap<NamespaceId, MapEpoch>,
    slots: Vec<SubscriptionSlot>,
    free: Vec<u32>,
    live: LiveRanges,
    pending: VecDeque<PendingRequest>,
    retries: BTreeSet<(Mono, u32)>,
    credit: Credit,
    stream_clock: StreamClock,
    refusals: Refusals,
    gathering: Gathering,
    changes: Changes,
    /// Recipients of the delivery at hand. Empty between steps, and kept for its memory.
    recipients: Vec<deliveries::Recipient>,
    check_schedule: CheckSchedule,
}

impl Subscriber {
    /// Makes a subscriber that is not connected.
    #[must_use]
    pub fn new(config: SubscriberConfig) -> Subscriber {
        Subscriber {
            refusals: Refusals {
                backoff: Backoff::new(config.backoff, config.seed),
                last: None,
            },
            config,
            connected: false,
            epochs: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            live: LiveRanges::default(),
            pending: VecDeque::new(),
            retries: BTreeSet::new(),
            credit: Credit::default(),
            stream_clock: StreamClock::default(),
            gathering: Gathering::default(),
            changes: Changes::default(),
            recipients: Vec::new(),
            check_schedule: CheckSchedule::default(),
        }
    }

    /// Gives one event for each batch instead of one for each subscription, under the key of any of
    /// its recipients ([`ReceivedBatch::owner`] knows whose each message is). For one user of all
    /// subscriptions, each of which has a topic of its own, or is the selection of a log.
    #[must_use]
    pub fn gathering(mut self) -> Subscriber {
        self.gathering = Gathering::ByTopic;
        self
    }

    /// Has the node say which subscriptions each message is for, so that these may overlap as they like: topics beside
    /// selections, all with filters. A delivery gives one event, under the key of any of its recipients;
    /// [`ReceivedBatch::owners`] knows whose each message is.
    #[must_use]
    pub fn matching(mut self) -> Subscriber {
        self.gathering = Gathering::Named;
        self
    }

    /// Gives the error with which a subscription was refused last that is requested again: for a
    /// user who gives up waiting.
    #[must_use]
    pub fn refused(&self) -> Option<&Error> {
        self.refusals.last.as_ref()
    }

    /// Sets a namespace's map, whose epoch positions carry.
    pub fn set_map(&mut self, map: &LogMap) {
        self.epochs.insert(map.namespace, map.epoch);
    }

    /// Begins a subscription; it is sent by the next [`Subscriber::poll`].
    pub fn add(&mut self, spec: SubscriptionSpec) -> SubscriptionKey {
        let nothing = SubscriberOutput::default();
        let check = self.begin_check(&nothing);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(SubscriptionSlot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[index as usize];
        slot.begin(spec);
        let key = SubscriptionKey::new(index, slot.life);
        if self.connected {
            self.pending.push_back(PendingRequest::Add(index));
        }
        self.end_check(check, 0, &nothing);
        key
    }

    /// Ends a subscription. It has no more events.
    pub fn remove(&mut self, key: SubscriptionKey) {
        let nothing = SubscriberOutput::default();
        let check = self.begin_check(&nothing);
        let Some(slot) = self.slot(key) else {
            // Input: a key whose subscription has ended by itself.
            return;
        };
        if slot.is_requested() {
            self.pending.push_back(PendingRequest::Remove(key.index()));
        }
        self.free_slot(key.index());
        self.end_check(check, 0, &nothing);
    }

    fn slot(&self, key: SubscriptionKey) -> Option<&SubscriptionSlot> {
        let slot = self.slots.get(key.index() as usize)?;
        (slot.life == key.life() && slot.mode != Mode::Free).then_some(slot)
    }

    fn free_slot(&mut self, index: u32) {
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::EndedStaysLive) {
            for lane in airmail_model::Lane::ALL {
                let slot = &mut self.slots[index as usize];
                slot.set_mode(lane, subscription_slot::PartMode::Detached);
            }
        }
        self.leave_live(index);
        let slot = &mut self.slots[index as usize];
        if let Mode::RetryAt(until) = slot.mode {
            self.retries.remove(&(until, index));
        }
        slot.end();
        self.changes.end(index);
        self.free.push(index);
    }

    /// Takes note that a stream to a node is open, with the configured credit. [`Subscriber::poll`]
    /// requests every subscription again, from where it is.
    pub fn connected(&mut self) {
        let check = self.begin_check(&SubscriberOutput::default());
        self.disconnected();
        self.connected = true;
        self.credit = Credit {
            returnable: 0,
            with_users: 0,
            stale: self.credit.stale + self.credit.with_users,
        };
        let used = self.slots.iter().zip(0u32..);
        let used = used.filter(|(slot, _)| slot.mode != Mode::Free);
        self.pending = used.map(|(_, index)| PendingRequest::Add(index)).collect();
        self.end_connecting_check(check);
    }

    /// Takes note that the stream has ended.
    pub fn disconnected(&mut self) {
        let nothing = SubscriberOutput::default();
        let check = self.begin_check(&nothing);
        self.connected = false;
        self.stream_clock = StreamClock::default();
        for index in 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX) {
            self.leave_live(index);
            if self.slots[index as usize].mode != Mode::Free {
                self.set_untold(index, Mode::Unsent);
            }
        }
        self.pending.clear();
        self.retries.clear();
        self.end_check(check, 0, &nothing);
    }

    /// Gives back the credit of deliveries that were consumed: the sum of their
    /// [`ReceivedBatch::cost`].
    pub fn consumed(&mut self, bytes: u32) {
        let nothing = SubscriberOutput::default();
        let check = self.begin_check(&nothing);
        let stale = bytes.min(self.credit.stale);
        self.credit.stale -= stale;
        let fresh = (bytes - stale).min(self.credit.with_users);
        self.credit.with_users -= fresh;
        self.credit.returnable += fresh;
        self.end_check(check, 0, &nothing);
    }

    /// Tells whether [`Subscriber::poll`] has anything to do, now or later.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let waiting = !self.pending.is_empty() || !self.retries.is_empty();
        self.connected && (waiting || self.owes_credit() || self.stream_clock.is_due())
    }

    /// Tells whether so much credit is returnable that it is worth a message.
    fn owes_credit(&self) -> bool {
        self.credit.returnable > 0
            && self.credit.returnable >= self.config.credit_bytes / CREDIT_PARTS
    }

    /// Appends to `out` what is to be sent now, some thousands of requests at most; returns when to
    /// call again (at once, if there is more).
    pub fn poll(&mut self, now: Mono, out: &mut SubscriberOutput) -> Option<Mono> {
        if !self.connected {
            return None;
        }
        let check = self.begin_check(out);
        self.send_due(now, out);
        self.end_check(check, 0, out);
        if self.pending.is_empty() {
            self.retries.first().map(|(until, _)| *until)
        } else {
            Some(now)
        }
    }

    /// Sends what is due.
    fn send_due(&mut self, now: Mono, out: &mut SubscriberOutput) {
        out.requests.extend(self.stream_clock.question(now));
        while let Some((until, index)) = self.retries.first().copied() {
            if until > now {
                break;
            }
            self.retries.pop_first();
            self.request_again(index);
        }
        for _ in 0..REQUESTS_A_POLL {
            let Some(pending) = self.pending.pop_front() else {
                break;
            };
            let request = self.make_request(pending, out);
            out.requests.extend(request);
        }
        if self.owes_credit() {
            let bytes = std::mem::take(&mut self.credit.returnable);
            out.requests.push(Request::Credit { bytes });
        }
    }

    fn request_again(&mut self, index: u32) {
        self.set_untold(index, Mode::Unsent);
        self.pending.push_back(PendingRequest::Add(index));
    }

    /// Has a subscription wait to be requested. Filters that the node has not answered for are in force from where it goes on.
    fn set_untold(&mut self, index: u32, mode: Mode) {
        let slot = &mut self.slots[index as usize];
        slot.set_untold(mode);
        let overtaking = self.changes.overtake(index);
        #[cfg(feature = "sabotage")]
        let overtaking = overtaking
            .filter(|_| self.config.bug != Some(crate::sabotage::Bug::OvertakenForgotten));
        if let Some(filter) = overtaking {
            slot.filter = Some(filter);
        }
    }

    fn make_request(
        &mut self,
        pending: PendingRequest,
        out: &mut SubscriberOutput,
    ) -> Option<Request> {
        let index = match pending {
            PendingRequest::Remove(index) => {
                let subscription = SubscriptionId(index);
                return Some(Request::Remove { subscription });
            }
            PendingRequest::Change(index, generation) => {
                return self.changes.request(index, generation).map(Request::Change);
            }
            PendingRequest::Add(index) => index,
        };
        let slot = &mut self.slots[index as usize];
        if slot.mode != Mode::Unsent {
            return None;
        }
        slot.mode = Mode::Requested;
        slot.generation = slot.next_generation();
        for _ in 0..self.changes.take_overtaken(index) {
            let key = self.key(index);
            let places = self.places(key).collect();
            let changed = Event::Status(State::Changed { places });
            out.events.push((key, changed));
        }
        let slot = &self.slots[index as usize];
        let epoch = self.epochs.get(&slot.namespace).copied();
        Some(Request::Add(Subscribe {
            subscription: SubscriptionId(index),
            generation: Generation(slot.generation),
            namespace: slot.namespace,
            wanted: slot.wanted.clone(),
            start: slot.start(epoch.unwrap_or(MapEpoch(1))),
            until: slot.until,
            tell_expired: slot.tell_expired,
            filter: slot.filter.clone(),
            headers_only: slot.headers_only,
            matches: self.gathering == Gathering::Named,
            lanes: slot.lanes(),
        }))
    }
}
