//! Events that wait for a connection, by lane.
//!
//! High goes first, but while normal waits too it gets its share of the bytes ([`LaneTurns`]). What is about one lane
//! alone ([`Reply::lane`]) waits in that lane. Anything else is a barrier: it goes after all that came before it and before
//! all that comes after it, so that a state of both lanes never comes before a delivery that it counts on.
//!
//! Lane normal and the barriers wait in one queue. Each event of lane high knows how many barriers are to go before it.
//! That queue alone is there until something of lane high comes: so a stream without it costs one queue, which is
//! taken whole. From then on turns are taken, and what had been taken whole is put back.
//!
//! Invariants, held by the tests: each lane's events leave in order; no event passes a barrier, nor the other
//! way round; normal has its share.

use super::Event;
use airmail_model::frame::{DELIVERY_OVERHEAD_BYTES, Reply};
use airmail_model::{Lane, LaneTurns, NormalShare};
use std::collections::VecDeque;

/// Bytes of a turn: what comes of lane high after one was taken waits for no more.
pub(super) const TURN_BYTES: u64 = 128 << 10;
/// Room for so many is kept when nothing waits.
const IDLE_ITEMS: usize = 64;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct LaneQueue {
    /// Lane normal, and barriers.
    main: VecDeque<Event>,
    /// Bytes of deliveries of both lanes.
    bytes: usize,
    /// From the first event of lane high on.
    high: Option<Box<HighLane>>,
}

/// Lane high, and what is counted only beside it.
#[derive(Debug)]
struct HighLane {
    /// Each with the number of barriers that go before it.
    queue: VecDeque<(i64, Event)>,
    /// Barriers that have come, counted from some point on.
    come: i64,
    /// Barriers that have gone, counted from there; below 0 where those from before it were put back.
    gone: i64,
    turns: LaneTurns,
}

impl HighLane {
    /// Begins beside a queue of the other lane.
    fn beside(main: &VecDeque<Event>) -> HighLane {
        let barriers = main.iter().filter(|event| is_barrier(event)).count();
        HighLane {
            queue: VecDeque::new(),
            come: barriers as i64,
            gone: 0,
            turns: LaneTurns::new(NormalShare::DEFAULT),
        }
    }

    fn push(&mut self, event: Event) {
        let last = self.queue.back_mut();
        let last = last.filter(|(barriers, _)| *barriers == self.come);
        if !joined(last.map(|(_, last)| last), &event) {
            self.queue.push_back((self.come, event));
        }
    }
}

impl LaneQueue {
    /// Adds an event.
    pub(super) fn push(&mut self, event: Event) {
        self.bytes += size_of_delivery(&event);
        let lane = lane_of(&event);
        if lane == Some(Lane::High) {
            let high = self.high.take();
            let high = high.unwrap_or_else(|| Box::new(HighLane::beside(&self.main)));
            return self.high.insert(high).push(event);
        }
        if let Some(high) = &mut self.high {
            high.come += i64::from(lane.is_none());
        }
        if !joined(self.main.back_mut(), &event) {
            self.main.push_back(event);
        }
    }

    /// Takes everything that waits, or a turn of it, into `into`, which is empty.
    pub(super) fn take(&mut self, into: &mut VecDeque<Event>) {
        if !self.has_lanes() {
            std::mem::swap(&mut self.main, into);
            self.bytes = 0;
            return;
        }
        let mut bytes = 0;
        while bytes < TURN_BYTES {
            let Some(event) = self.pop() else {
                // Input: less waits than a turn.
                return;
            };
            bytes += weight_of(&event);
            into.push_back(event);
        }
    }

    /// Takes what goes next.
    fn pop(&mut self) -> Option<Event> {
        let event = self.pop_by_turns()?;
        self.bytes -= size_of_delivery(&event);
        Some(event)
    }

    fn pop_by_turns(&mut self) -> Option<Event> {
        let Some(high) = &mut self.high else {
            // Input: a stream without lane high.
            return self.main.pop_front();
        };
        let next = self.main.front();
        let gone = high.gone;
        let high_waits = high.queue.front().is_some_and(|(after, _)| *after == gone);
        let normal_waits = next.is_some_and(|next| !is_barrier(next));
        match high.turns.next([normal_waits, high_waits]) {
            Some(Lane::High) => {
                let (_, event) = high.queue.pop_front()?;
                high.turns.took(Lane::High, weight_of(&event), normal_waits);
                Some(event)
            }
            Some(Lane::Normal) => {
                let event = self.main.pop_front()?;
                high.turns.took(Lane::Normal, weight_of(&event), high_waits);
                Some(event)
            }
            None => {
                let barrier = self.main.pop_front()?;
                high.gone += 1;
                Some(barrier)
            }
        }
    }

    /// Puts back what was taken and has not gone, before all else. Nothing is left in `taken`.
    pub(super) fn put_back(&mut self, taken: &mut VecDeque<Event>) {
        while let Some(event) = taken.pop_back() {
            self.bytes += size_of_delivery(&event);
            match (&mut self.high, lane_of(&event)) {
                (Some(high), Some(Lane::High)) => high.queue.push_front((high.gone, event)),
                (Some(high), None) => {
                    high.gone -= 1;
                    self.main.push_front(event);
                }
                _ => self.main.push_front(event),
            }
        }
    }

    /// Gives back room that is kept for nothing, here and in what was taken.
    pub(super) fn rest(&mut self, taken: &mut VecDeque<Event>) {
        for queue in [&mut self.main, taken] {
            if queue.capacity() > IDLE_ITEMS {
                *queue = VecDeque::new();
            }
        }
        if let Some(high) = &mut self.high
            && high.queue.capacity() > IDLE_ITEMS
        {
            high.queue = VecDeque::new();
        }
    }

    /// Drops everything that waits.
    pub(super) fn clear(&mut self) {
        self.main.clear();
        self.bytes = 0;
        if let Some(high) = &mut self.high {
            high.queue.clear();
            high.gone = high.come;
        }
    }

    /// Whether there was ever anything of lane high: turns are taken.
    pub(super) fn has_lanes(&self) -> bool {
        self.high.is_some()
    }

    /// Bytes of deliveries that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of events that wait.
    pub(super) fn len(&self) -> usize {
        self.main.len() + self.high.as_ref().map_or(0, |high| high.queue.len())
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The lane that an event alone is about; `None` for a barrier.
fn lane_of(event: &Event) -> Option<Lane> {
    match event {
        Event::Reply(reply) => reply.lane(),
        _ => None,
    }
}

fn is_barrier(event: &Event) -> bool {
    lane_of(event).is_none()
}

/// Bytes that count for the lanes' shares and for a turn: what carries no messages has a little, too.
fn weight_of(event: &Event) -> u64 {
    size_of_delivery(event) as u64 + u64::from(DELIVERY_OVERHEAD_BYTES)
}

/// Bytes of a delivery; 0 for all else.
pub(super) fn size_of_delivery(item: &Event) -> usize {
    match item {
        Event::Reply(Reply::Delivery(delivery)) => delivery.body.len(),
        _ => 0,
    }
}

/// Makes one of two marks, or of two gaps, where the second continues the first.
fn joined(before: Option<&mut Event>, item: &Event) -> bool {
    match (before, item) {
        (
            Some(Event::Reply(Reply::Mark { log, next, .. })),
            Event::Reply(Reply::Mark {
                log: same_log,
                previous,
                next: further,
            }),
        ) if log == same_log && previous.plus(1) == *next => {
            *next = *further;
            true
        }
        (
            Some(Event::Reply(Reply::Gap {
                channel,
                log,
                last,
                why,
                ..
            })),
            Event::Reply(Reply::Gap {
                channel: same_channel,
                log: same_log,
                previous,
                last: further,
                why: same_why,
            }),
        ) if (&*channel, &*log, &*why) == (same_channel, same_log, same_why)
            && *previous == *last =>
        {
            *last = *further;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
