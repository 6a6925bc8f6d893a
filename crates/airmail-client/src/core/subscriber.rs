//! Subscribing: one stream's subscriptions, their ranges, and going on where they were.
//!
//! A subscription is *unsent*, *asked for*, *live* or *detached*. Live ones share one range for
//! each log, detached ones have their own ([`airmail_model::frame`] has the rules): what lies below
//! `next` is a duplicate and dropped, what leaves a hole is dropped and asked for again from
//! `next`, under a new generation. A live subscription's own place is the later of where it began
//! and the range's `next`, so a delivery updates one number, however many subscriptions there are.
//!
//! Invariants, which [`Subscriber::check`] and its parts in `check.rs` assert after each step where bugs
//! panic, under the names that stand first here:
//!
//! - `told`: what a generation that is no longer in force says is dropped; nobody is told of a gap that
//!   is none, nor that it was removed, nor that it stands anywhere after its end.
//! - `place`: a place once known is never forgotten, and within a life of its log never goes back: after a
//!   lost connection each subscription is asked for again from its place, and only one that had not yet
//!   been answered, or waits for a number to come, keeps the start that its user gave.
//! - `credit`: the cost of every delivery is given back exactly once, by [`Subscriber::consumed`] or, where
//!   nobody was told of it, at once.
//! - `ranges`: those on a live range, and on a topic's list, are exactly the live subscriptions.
//! - `asking`: who is to be asked for is in line, who was refused for now has a time, and nobody counts as
//!   asked for without a connection. `numbers`: each is in use by one subscription, or free.

mod arrived;
mod check;
mod range;
mod replies;
mod slot;
#[cfg(test)]
mod tests;

use super::backoff::{Backoff, BackoffConfig};
use super::check_schedule::CheckSchedule;
use airmail_model::frame::{
    GapReason, Generation, Request, Start, State, Subscribe, SubscriptionId, Until,
};
use airmail_model::{
    Error, Extent, Incarnation, LogId, LogMap, MapEpoch, Mono, NamespaceId, Position, TopicHash,
};
pub use arrived::{Arrived, Messages};
use range::Live;
use slot::{Mode, Slot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Requests that one [`Subscriber::poll`] gives at most.
const REQUESTS_A_POLL: usize = 4096;

/// Credit goes back in this part of all, so that most of it is always with the node.
const CREDIT_PARTS: u32 = 4;

/// Bounds and patience of a [`Subscriber`].
#[derive(Clone, Copy, Debug)]
pub struct SubscriberConfig {
    /// Bytes of deliveries that the client has room for, as told to the node in Hello. Default
    /// 1 MiB.
    pub credit_bytes: u32,
    /// Delays after refusals that may pass.
    pub backoff: BackoffConfig,
    /// Of the delays' jitter.
    pub seed: u64,
    /// A bug to plant.
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

/// A subscription, for its whole life: reconnecting does not change it, and it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionKey(u64);

impl SubscriptionKey {
    fn new(index: u32, life: u32) -> SubscriptionKey {
        SubscriptionKey(u64::from(life) << 32 | u64::from(index))
    }

    /// Its place: dense from 0, and given again when a subscription has ended.
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
pub struct Wanted {
    /// The namespace.
    pub namespace: NamespaceId,
    /// The topic.
    pub topic: TopicHash,
    /// Where to begin.
    pub start: Start,
    /// Where to end; `None`: never. If the connection is lost meanwhile, [`Until::Now`] is the end
    /// as it is when asked for again.
    pub until: Option<Until>,
}

/// Numbers that a subscription will not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapSeen {
    /// The log.
    pub log: LogId,
    /// The log's life that the numbers count in.
    pub incarnation: Incarnation,
    /// Which. Up to `Sequence::MAX` where the log has begun a new life: all the rest of the old.
    pub extent: Extent,
    /// Why; never [`GapReason::Unused`].
    pub why: GapReason,
}

/// What a subscription's user is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// Messages.
    Messages(Arrived),
    /// Something will not come.
    Gap(GapSeen),
    /// How it stands. After [`State::Complete`] and [`State::Failed`] there is nothing more, and
    /// the key is void. [`State::Removed`] is never told.
    Status(State),
}

/// What a subscriber wants done.
#[derive(Debug, Default)]
pub struct SubscriberOutput {
    /// To be sent to the node, in order.
    pub requests: Vec<Request>,
    /// To be told to the users, in order.
    pub events: Vec<(SubscriptionKey, Event)>,
}

/// Something to be sent, in order.
#[derive(Clone, Copy, Debug)]
enum Todo {
    Add(u32),
    Remove(u32),
}

/// Deliveries' bytes on their way back to the node as credit.
#[derive(Debug, Default)]
struct Credit {
    /// Dealt with, not yet told to the node.
    free: u32,
    /// Told to users of this connection's subscriptions, not yet dealt with.
    out: u32,
    /// As `out`, of earlier connections: dealt with first, and of no use to this one.
    stale: u32,
}

/// One stream's subscriptions.
#[derive(Debug)]
pub struct Subscriber {
    config: SubscriberConfig,
    connected: bool,
    epochs: BTreeMap<NamespaceId, MapEpoch>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    live: Live,
    todo: VecDeque<Todo>,
    retries: BTreeSet<(Mono, u32)>,
    credit: Credit,
    backoff: Backoff,
    /// The last refusal that is waited for.
    refused: Option<Error>,
    /// A delivery is told once, for all whom it concerns.
    gathers: bool,
    /// Who is told of the delivery at hand: empty, but for its memory.
    told: Vec<replies::Told>,
    check_schedule: CheckSchedule,
}

impl Subscriber {
    /// A subscriber that is not connected.
    #[must_use]
    pub fn new(config: SubscriberConfig) -> Subscriber {
        Subscriber {
            backoff: Backoff::new(config.backoff, config.seed),
            config,
            connected: false,
            epochs: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            live: Live::default(),
            todo: VecDeque::new(),
            retries: BTreeSet::new(),
            credit: Credit::default(),
            refused: None,
            gathers: false,
            told: Vec::new(),
            check_schedule: CheckSchedule::default(),
        }
    }

    /// The same, for one user of all subscriptions, each of a topic of its own: what arrives in one
    /// batch is told once, under the key of one of those concerned ([`Arrived::owner`] knows whose
    /// each message is), instead of once for each.
    #[must_use]
    pub fn gathering(mut self) -> Subscriber {
        self.gathers = true;
        self
    }

    /// Why a subscription was refused last that is asked for again: for who gives up waiting.
    #[must_use]
    pub fn refused(&self) -> Option<&Error> {
        self.refused.as_ref()
    }

    /// Takes a namespace's map, whose epoch positions carry.
    pub fn set_map(&mut self, map: &LogMap) {
        self.epochs.insert(map.namespace, map.epoch);
    }

    /// Begins a subscription; it is sent by the next [`Subscriber::poll`].
    pub fn add(&mut self, wanted: Wanted) -> SubscriptionKey {
        let nothing = SubscriberOutput::default();
        let before = self.before(&nothing);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[index as usize];
        slot.begin(wanted);
        let key = SubscriptionKey::new(index, slot.life);
        if self.connected {
            self.todo.push_back(Todo::Add(index));
        }
        self.after(before, 0, &nothing);
        key
    }

    /// Ends a subscription. Nothing more is told of it.
    pub fn remove(&mut self, key: SubscriptionKey) {
        let nothing = SubscriberOutput::default();
        let before = self.before(&nothing);
        let Some(slot) = self.slot(key) else {
            // Input: a key whose subscription has ended by itself.
            return;
        };
        if slot.is_asked() {
            self.todo.push_back(Todo::Remove(key.index()));
        }
        self.free_slot(key.index());
        self.after(before, 0, &nothing);
    }

    fn slot(&self, key: SubscriptionKey) -> Option<&Slot> {
        let slot = self.slots.get(key.index() as usize)?;
        (slot.life == key.life() && slot.mode != Mode::Free).then_some(slot)
    }

    fn free_slot(&mut self, index: u32) {
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::EndedStaysLive) {
            self.slots[index as usize].mode = Mode::Detached;
        }
        self.leave_live(index);
        let slot = &mut self.slots[index as usize];
        if let Mode::Waiting(until) = slot.mode {
            self.retries.remove(&(until, index));
        }
        slot.end();
        self.free.push(index);
    }

    /// A stream to a node is open, with the configured credit. Every subscription is asked for
    /// again, from where it is, by [`Subscriber::poll`].
    pub fn connected(&mut self) {
        let before = self.before(&SubscriberOutput::default());
        self.disconnected();
        self.connected = true;
        self.credit = Credit {
            free: 0,
            out: 0,
            stale: self.credit.stale + self.credit.out,
        };
        let used = self.slots.iter().zip(0u32..);
        let used = used.filter(|(slot, _)| slot.mode != Mode::Free);
        self.todo = used.map(|(_, index)| Todo::Add(index)).collect();
        self.after_connecting(before);
    }

    /// The stream has ended.
    pub fn disconnected(&mut self) {
        let nothing = SubscriberOutput::default();
        let before = self.before(&nothing);
        self.connected = false;
        for index in 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX) {
            self.leave_live(index);
            let slot = &mut self.slots[index as usize];
            if slot.mode != Mode::Free {
                slot.mode = Mode::Unsent;
            }
        }
        self.todo.clear();
        self.retries.clear();
        self.after(before, 0, &nothing);
    }

    /// Bytes of deliveries have been dealt with: the sum of their [`Arrived::cost`].
    pub fn consumed(&mut self, bytes: u32) {
        let nothing = SubscriberOutput::default();
        let before = self.before(&nothing);
        let stale = bytes.min(self.credit.stale);
        self.credit.stale -= stale;
        let fresh = (bytes - stale).min(self.credit.out);
        self.credit.out -= fresh;
        self.credit.free += fresh;
        self.after(before, 0, &nothing);
    }

    /// Whether [`Subscriber::poll`] has anything to do, now or later.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let waiting = !self.todo.is_empty() || !self.retries.is_empty();
        self.connected && (waiting || self.owes_credit())
    }

    /// Whether so much credit is free that it is worth a message.
    fn owes_credit(&self) -> bool {
        self.credit.free > 0 && self.credit.free >= self.config.credit_bytes / CREDIT_PARTS
    }

    /// Appends what is to be sent now, some thousands of requests at most; returns when to come
    /// back (at once, if there is more).
    pub fn poll(&mut self, now: Mono, out: &mut SubscriberOutput) -> Option<Mono> {
        if !self.connected {
            return None;
        }
        let before = self.before(out);
        self.ask(now, out);
        self.after(before, 0, out);
        if self.todo.is_empty() {
            self.retries.first().map(|(until, _)| *until)
        } else {
            Some(now)
        }
    }

    /// Sends what is due.
    fn ask(&mut self, now: Mono, out: &mut SubscriberOutput) {
        while let Some((until, index)) = self.retries.first().copied() {
            if until > now {
                break;
            }
            self.retries.pop_first();
            self.ask_again(index);
        }
        for _ in 0..REQUESTS_A_POLL {
            let Some(todo) = self.todo.pop_front() else {
                break;
            };
            out.requests.extend(self.request(todo));
        }
        if self.owes_credit() {
            let bytes = std::mem::take(&mut self.credit.free);
            out.requests.push(Request::Credit { bytes });
        }
    }

    fn ask_again(&mut self, index: u32) {
        self.slots[index as usize].mode = Mode::Unsent;
        self.todo.push_back(Todo::Add(index));
    }

    fn request(&mut self, todo: Todo) -> Option<Request> {
        let index = match todo {
            Todo::Remove(index) => {
                let subscription = SubscriptionId(index);
                return Some(Request::Remove { subscription });
            }
            Todo::Add(index) => index,
        };
        let slot = &mut self.slots[index as usize];
        if slot.mode != Mode::Unsent {
            return None;
        }
        slot.mode = Mode::Asked;
        slot.generation = slot.generation.wrapping_add(1);
        let epoch = self.epochs.get(&slot.namespace).copied();
        Some(Request::Add(Subscribe {
            subscription: SubscriptionId(index),
            generation: Generation(slot.generation),
            namespace: slot.namespace,
            topic: slot.topic,
            start: slot.start(epoch.unwrap_or(MapEpoch(1))),
            until: slot.until,
        }))
    }

    /// Where a subscription stands: all before it has been told by events. `None` until it is
    /// known, or when the key is void.
    #[must_use]
    pub fn position(&self, key: SubscriptionKey) -> Option<Position> {
        let slot = self.slot(key)?;
        let epoch = self.epochs.get(&slot.namespace).copied();
        let next = match (slot.mode, slot.place) {
            (Mode::Live, Some(place)) => self.live.next(place.log, place.next),
            _ => slot.next(),
        };
        slot.position(epoch.unwrap_or(MapEpoch(1)), next)
    }
}
