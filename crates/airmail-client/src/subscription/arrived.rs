//! Events that have arrived and that the user has not been given.
//!
//! They are handed over high first, and while lane normal waits too it has a quarter of the bytes ([`LaneTurns`]). What is about
//! one lane alone waits in that lane, in order. A status of both lanes, or of a subscription as a whole, is a barrier:
//! it is handed over after all that came before it, and before all that came after it.
//!
//! Where a subscription goes on is before the first event of a lane that waits here (`places`), so what lane
//! high has overtaken is still to come.

use crate::core::{Event, SubscriptionKey};
use crate::lane_turns::LaneTurns;
use airmail_model::Lane;
use airmail_model::frame::DELIVERY_OVERHEAD_BYTES;
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
        match self.turns.next(self.first()) {
            Some(Lane::Normal) => self.main.pop_front(),
            Some(Lane::High) => self.high.pop_front().map(|(_, arrival)| arrival),
            None => {
                let barrier = self.main.pop_front()?;
                self.gone += 1;
                Some(barrier)
            }
        }
    }

    /// Tells whether it is worth a look at what arrives: something of lane high may overtake what goes next.
    pub(super) fn may_be_overtaken(&self) -> bool {
        self.has_high && self.has_room() && self.turns.peek(self.first()) == Some(Lane::Normal)
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
        let high = self.high.iter().map(|(_, arrival)| arrival);
        self.main.iter().chain(high)
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

    /// Gives the bytes of what may go next of each lane, before the next barrier.
    fn first(&self) -> [Option<usize>; 2] {
        let normal = self.main.front().map(|(_, event)| event);
        let normal = normal.filter(|event| lane_of(event).is_some());
        let high = self.high.front();
        let high = high.filter(|(barriers, _)| *barriers == self.gone);
        [
            normal.map(bytes_of),
            high.map(|(_, (_, event))| bytes_of(event)),
        ]
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
