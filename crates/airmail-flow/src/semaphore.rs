//! One semaphore whose bound can be changed, and the queues of its waiters: a line for each lane.
//!
//! Invariants, which `tests/semaphore.rs` holds against a model:
//!
//! - Nothing is admitted that would bring the messages in flight above the bound that holds *now*.
//!   There is one count, so after a change there are never two bounds: a lower one is reached by
//!   admitting nobody until enough have left. (The paper replaces the semaphore and lets two count
//!   for a while.)
//! - A request larger than the bound goes alone, when nothing else is in flight; so it is neither
//!   refused for ever nor does it strand those behind it.
//! - After every call the waiter whose turn it is does not fit. Each call that can make room is therefore
//!   given a place for those it admits; none can be forgotten.
//! - Nobody overtakes in a lane. While waiters of both wait they go by [`LaneTurns`], by messages: high first, and
//!   a quarter is normal's.
//!
//! A [`Ticket`] can be neither copied nor made, so nothing leaves twice.

use crate::LaneTurns;
use airmail_model::{Lane, Mono};
use std::collections::VecDeque;

/// Permission to have a number of messages in flight, until it is handed back.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is in flight is counted until its ticket is handed back"]
pub struct Ticket {
    messages: u64,
    admitted: Mono,
}

impl Ticket {
    /// Number of messages that it admits.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// When it was given.
    #[must_use]
    pub fn admitted(&self) -> Mono {
        self.admitted
    }
}

/// Identifies a waiter for as long as it waits. Keys of one semaphore only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

/// Answer to a request for entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// Admitted.
    Go(Ticket),
    /// Waits in line; the waiter is handed back with its ticket when its turn comes.
    Waits(Key),
}

#[derive(Clone, Debug)]
struct Waiter<W> {
    key: Key,
    messages: u64,
    since: Mono,
    who: W,
}

/// The semaphore. `W` is whatever finds a waiter again.
#[derive(Clone, Debug)]
pub struct Semaphore<W> {
    bound: u64,
    in_flight: u64,
    /// Messages in line of each lane, by its number.
    waiting: [u64; 2],
    /// The line of each lane, by its number.
    lines: [VecDeque<Waiter<W>>; 2],
    turns: LaneTurns,
    next_key: u64,
}

impl<W> Semaphore<W> {
    /// Makes a semaphore with room for `bound` messages.
    #[must_use]
    pub fn new(bound: u64) -> Semaphore<W> {
        Semaphore {
            bound,
            in_flight: 0,
            waiting: [0; 2],
            lines: [VecDeque::new(), VecDeque::new()],
            turns: LaneTurns::default(),
            next_key: 0,
        }
    }

    /// The bound that holds now.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Messages in flight. Above the bound only after the bound was lowered, or for one that goes
    /// alone.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Messages in line.
    #[must_use]
    pub fn waiting_messages(&self) -> u64 {
        let [normal, high] = self.waiting;
        normal.saturating_add(high)
    }

    /// Messages in the line of a lane.
    #[must_use]
    pub fn waiting_messages_of(&self, lane: Lane) -> u64 {
        self.waiting[lane as usize]
    }

    /// Number of waiters.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    /// The waiter that has waited the longest, and the time since which it waits.
    #[must_use]
    pub fn longest(&self) -> Option<(Key, Mono)> {
        let fronts = self.lines.iter().filter_map(VecDeque::front);
        let longest = fronts.min_by_key(|waiter| waiter.key);
        longest.map(|waiter| (waiter.key, waiter.since))
    }

    /// The last waiter in line: of lane normal, if any waits there.
    #[must_use]
    pub fn last(&self) -> Option<Key> {
        let [normal, high] = &self.lines;
        let last = normal.back().or_else(|| high.back());
        last.map(|waiter| waiter.key)
    }

    /// Admits `messages` if nobody waits who goes before them, and there is room.
    pub fn try_enter(&mut self, now: Mono, lane: Lane, messages: u64) -> Option<Ticket> {
        if !self.lines[lane as usize].is_empty() || !self.fits(messages) {
            return None;
        }
        let mut waiting = self.waiting_lanes();
        waiting[lane as usize] = true;
        (self.turns.next(waiting) == Some(lane)).then(|| self.admit(now, lane, messages))
    }

    /// Admits `messages`, or puts `who` at the end of its lane's line. The line has no end of its own: the
    /// [`Gate`](crate::Gate) refuses before it is too long.
    pub fn enter(&mut self, now: Mono, lane: Lane, messages: u64, who: W) -> Entry {
        if let Some(ticket) = self.try_enter(now, lane, messages) {
            return Entry::Go(ticket);
        }
        let key = Key(self.next_key);
        self.next_key += 1;
        self.add_waiting(lane, messages);
        self.lines[lane as usize].push_back(Waiter {
            key,
            messages,
            since: now,
            who,
        });
        Entry::Waits(key)
    }

    /// Takes a ticket back, and admits the waiters that fit now.
    pub fn leave(&mut self, now: Mono, ticket: Ticket, admitted: &mut impl Extend<(W, Ticket)>) {
        // Tickets are made here alone, but there may be two semaphores.
        self.in_flight = self.in_flight.saturating_sub(ticket.messages);
        self.advance(now, admitted);
    }

    /// Changes the bound, and admits the waiters that fit now.
    pub fn resize(&mut self, now: Mono, bound: u64, admitted: &mut impl Extend<(W, Ticket)>) {
        self.bound = bound;
        self.advance(now, admitted);
    }

    /// Takes a waiter out of the line, and admits those that it held up. `None` if it does not
    /// wait.
    pub fn withdraw(
        &mut self,
        now: Mono,
        key: Key,
        admitted: &mut impl Extend<(W, Ticket)>,
    ) -> Option<W> {
        let (lane, waiter) = Lane::ALL.into_iter().find_map(|lane| {
            let line = &mut self.lines[lane as usize];
            let place = line.binary_search_by_key(&key, |waiter| waiter.key).ok()?;
            Some((lane, line.remove(place)?))
        })?;
        self.take_waiting(lane, waiter.messages);
        self.advance(now, admitted);
        Some(waiter.who)
    }

    fn advance(&mut self, now: Mono, admitted: &mut impl Extend<(W, Ticket)>) {
        while let Some(lane) = self.turns.next(self.waiting_lanes()) {
            let is_next = |next: &mut Waiter<W>| {
                self.in_flight == 0 || self.in_flight.saturating_add(next.messages) <= self.bound
            };
            let Some(next) = self.lines[lane as usize].pop_front_if(is_next) else {
                return;
            };
            self.take_waiting(lane, next.messages);
            let ticket = self.admit(now, lane, next.messages);
            admitted.extend([(next.who, ticket)]);
        }
    }

    /// Whether anybody waits, by lane.
    fn waiting_lanes(&self) -> [bool; 2] {
        [0, 1].map(|lane| !self.lines[lane].is_empty())
    }

    fn add_waiting(&mut self, lane: Lane, messages: u64) {
        let waiting = &mut self.waiting[lane as usize];
        *waiting = waiting.saturating_add(messages);
    }

    fn take_waiting(&mut self, lane: Lane, messages: u64) {
        let waiting = &mut self.waiting[lane as usize];
        *waiting = waiting.saturating_sub(messages);
    }

    fn fits(&self, messages: u64) -> bool {
        self.in_flight == 0 || self.in_flight.saturating_add(messages) <= self.bound
    }

    fn admit(&mut self, now: Mono, lane: Lane, messages: u64) -> Ticket {
        let other_waits = !self.lines[lane.other() as usize].is_empty();
        self.turns.took(lane, messages, other_waits);
        self.in_flight = self.in_flight.saturating_add(messages);
        Ticket {
            messages,
            admitted: now,
        }
    }
}
