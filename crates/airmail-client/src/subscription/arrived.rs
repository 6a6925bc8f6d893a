//! Events that have arrived and that the user has not been given.
//!
//! They are handed over high first, and while lane normal waits too it has a quarter of the bytes ([`LaneTurns`]). What is about
//! one lane alone waits in that lane, in order. A status of both lanes, or of a subscription as a whole, is a barrier:
//! it is handed over after all that came before it, and before all that came after it.
//!
//! Where a subscription goes on is before the first event of a lane that waits here (`places`), so what lane
//! high has overtaken is still to come.

use crate::core::{Event, SubscriptionKey};
use airmail_model::frame::DELIVERY_OVERHEAD_BYTES;
use airmail_model::{Lane, LaneTurns};
use std::collections::VecDeque;

/// Number of events from which on no more replies are applied before the user takes them.
const AT_ONCE: usize = 64;
/// The same from the first event of lane high on, which can overtake only what has been applied.
const AT_ONCE_BESIDE_HIGH: usize = 1024;

/// Event, and the subscription that it is for.
type Arrival = (SubscriptionKey, Event);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// Lane normal, and barriers.
    main: VecDeque<Arrival>,
    /// Lane high, each with the number of barriers that go before it.
    high: VecDeque<(u64, Arrival)>,
    /// Number of barriers that have come.
    come: u64,
    /// Number of barriers that have gone.
    gone: u64,
    /// Number of bytes of all that waits.
    bytes: usize,
    turns: LaneTurns,
    /// True from the first event of lane high on.
    has_high: bool,
}

impl Arrived {
    pub(super) fn extend(&mut self, arrivals: impl IntoIterator<Item = Arrival>) {
        for arrival in arrivals {
            self.push(arrival);
        }
    }

    pub(super) fn push(&mut self, arrival: Arrival) {
        self.bytes += bytes_of(&arrival.1);
        match lane_of(&arrival.1) {
            Some(Lane::High) => {
                self.has_high = true;
                self.high.push_back((self.come, arrival));
            }
            Some(Lane::Normal) => self.main.push_back(arrival),
            None => {
                self.come += 1;
                self.main.push_back(arrival);
            }
        }
    }

    /// Takes what is handed over next.
    pub(super) fn pop(&mut self) -> Option<Arrival> {
        let arrival = self.pop_by_turns()?;
        self.bytes -= bytes_of(&arrival.1);
        Some(arrival)
    }

    fn pop_by_turns(&mut self) -> Option<Arrival> {
        let waiting = self.waiting();
        let Some(lane) = self.turns.next(waiting) else {
            let barrier = self.main.pop_front()?;
            self.gone += 1;
            return Some(barrier);
        };
        let arrival = match lane {
            Lane::Normal => self.main.pop_front()?,
            Lane::High => self.high.pop_front()?.1,
        };
        let bytes = bytes_of(&arrival.1) as u64;
        let other_waits = waiting[lane.other() as usize];
        self.turns.took(lane, bytes, other_waits);
        Some(arrival)
    }

    /// Tells whether it is worth a look at what arrives: something of lane high may overtake what goes next. Not so where as
    /// much waits as a stream's credit allows, since each new stream has credit of its own, which it may use up though nothing of
    /// the last one was taken.
    pub(super) fn may_be_overtaken(&self, credit_bytes: usize) -> bool {
        self.has_high
            && self.has_room()
            && self.bytes < credit_bytes
            && self.turns.next(self.waiting()) == Some(Lane::Normal)
    }

    /// Tells whether more replies are to be applied before the user takes what there is.
    pub(super) fn has_room(&self) -> bool {
        let most = if self.has_high {
            AT_ONCE_BESIDE_HIGH
        } else {
            AT_ONCE
        };
        self.main.len() + self.high.len() < most
    }

    /// Lists all, so that those of a lane are in order.
    pub(super) fn by_lane(&self) -> impl DoubleEndedIterator<Item = &Arrival> {
        let [normal, high] = Lane::ALL.map(|lane| self.of_lane(lane));
        normal.chain(high)
    }

    /// Lists those of a lane in order; of lane normal with the barriers among them.
    pub(super) fn of_lane(&self, lane: Lane) -> impl DoubleEndedIterator<Item = &Arrival> {
        let (main, high) = match lane {
            Lane::Normal => (Some(&self.main), None),
            Lane::High => (None, Some(&self.high)),
        };
        let high = high.into_iter().flatten().map(|(_, arrival)| arrival);
        main.into_iter().flatten().chain(high)
    }

    /// Lists all, so that those of a lane are in order, and each barrier is behind what goes before it.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Arrival> {
        let (mut main, mut high) = (self.main.iter(), self.high.iter().peekable());
        let mut gone = self.gone;
        std::iter::from_fn(move || {
            if let Some((_, arrival)) = high.next_if(|(barriers, _)| *barriers == gone) {
                return Some(arrival);
            }
            let next = main.next()?;
            gone += u64::from(lane_of(&next.1).is_none());
            Some(next)
        })
    }

    /// Tells of each lane whether something of it may go next, before the next barrier.
    fn waiting(&self) -> [bool; 2] {
        let normal = self.main.front().map(|(_, event)| lane_of(event));
        let high = self.high.front().map(|(barriers, _)| *barriers);
        [normal.flatten().is_some(), high == Some(self.gone)]
    }
}

/// Gives the lane that an event alone is about; `None` for a barrier.
fn lane_of(event: &Event) -> Option<Lane> {
    match event {
        Event::Messages(received) => Some(received.log.lane),
        Event::Gap(gap) => Some(gap.log.lane),
        Event::Expired(seen) => Some(seen.log.lane),
        Event::Status(state) => state.lane(),
    }
}

/// Gives the bytes that count for the lanes' shares: what carries no messages has a little, too.
fn bytes_of(event: &Event) -> usize {
    let cost = match event {
        Event::Messages(received) => received.cost,
        Event::Expired(seen) => seen.cost,
        Event::Gap(_) | Event::Status(_) => 0,
    };
    cost.max(DELIVERY_OVERHEAD_BYTES) as usize
}

#[cfg(test)]
mod tests;
