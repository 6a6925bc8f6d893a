//! Filters: a subscription gets exactly the messages of its topic that its filter matches.
//!
//! In some runs messages have a number as an attribute, and some clients subscribe with filters. Whether one matches is
//! decided here by the number and the wish that the filter was made of, and not by what reads filters. Some of these clients have
//! subscriptions that overlap, and change their filters: then it is the wish in force at a message's place that decides.

use super::{Checked, Violation};
use crate::entropy::Entropy;
use crate::ledger::Entry;
use crate::message::MessageId;
use airmail_model::batch::AttributeValue;
use airmail_model::filter::Filter;
use airmail_model::{Sequence, TopicHash};
use std::collections::VecDeque;
use std::sync::Arc;

/// The attribute.
const NAME: &str = "n";
/// Values that it has.
const VALUES: u64 = 8;
/// Rate of runs that have filters, in parts of a million.
const ON: u32 = 250_000;
/// Clients beyond this number, which come to look after the others, have no filters.
pub(super) const CLIENTS: u32 = 100;

/// Facts of the run by which it is judged.
#[derive(Debug)]
pub struct Filters {
    chance: Entropy,
    is_on: bool,
}

/// Messages that a subscription wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Those whose number is less.
    Below(i64),
    /// Those with this number.
    Is(i64),
    /// Those without one.
    Without,
}

/// Wishes of a subscription, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// Each with the place from which it is in force, in the order in which they came into force.
    from: Vec<(Sequence, Wish)>,
    /// Those that are asked for.
    asked: VecDeque<Wish>,
}

impl Wishes {
    /// One that is in force from the beginning.
    #[must_use]
    pub fn new(wish: Wish) -> Wishes {
        Wishes {
            from: vec![(Sequence(0), wish)],
            asked: VecDeque::new(),
        }
    }

    /// Another one is asked for.
    pub fn ask(&mut self, wish: Wish) {
        self.asked.push_back(wish);
    }

    /// The next one that was asked for is in force from a place on; everywhere, if there is none. Whether one was.
    pub fn changed(&mut self, from: Option<Sequence>) -> bool {
        let Some(wish) = self.asked.pop_front() else {
            return false;
        };
        let from = from.unwrap_or(Sequence(0));
        self.from.retain(|(at, _)| *at < from);
        self.from.push((from, wish));
        true
    }

    /// The next one that was asked for is refused. Whether one was.
    pub fn unchanged(&mut self) -> bool {
        self.asked.pop_front().is_some()
    }

    /// Everything is read again, with the last one.
    pub fn begin_again(&mut self) {
        let last = self.from.pop();
        self.from = last
            .map(|(_, wish)| (Sequence(0), wish))
            .into_iter()
            .collect();
    }

    /// Whether a message at a place is wanted.
    #[must_use]
    pub fn want(&self, entry: &Entry, place: Sequence) -> bool {
        let mut from = self.from.iter().rev();
        let in_force = from.find(|(from, _)| *from <= place);
        in_force.is_some_and(|(_, wish)| wish.wants(entry))
    }
}

impl Filters {
    /// The facts of a run that has not begun.
    #[must_use]
    pub fn new(seed: u64) -> Filters {
        let mut chance = Entropy::new(seed ^ 0xf117_e125);
        Filters {
            is_on: chance.chance(ON),
            chance,
        }
    }

    /// The number that a new message has, if it has one.
    #[must_use]
    pub fn of_message(&self, id: MessageId) -> Option<i64> {
        // Drawn from the message alone, so that no other draw depends on it.
        let mut chance = Entropy::new(self.chance.clone().next() ^ id.0 << 11);
        let has_one = self.is_on && !chance.chance(100_000);
        has_one.then(|| chance.below(VALUES) as i64)
    }

    /// Whether the subscriptions of a client have filters, by the client's number.
    #[must_use]
    pub fn of_client(&self, number: u32) -> bool {
        let mut chance = Entropy::new(self.chance.clone().next() ^ u64::from(number) << 19);
        self.is_on && number < CLIENTS && chance.coin()
    }

    /// Whether the subscriptions of a client that has filters overlap, by the client's number.
    #[must_use]
    pub fn overlap_of(&self, number: u32) -> bool {
        let mut chance = Entropy::new(self.chance.clone().next() ^ u64::from(number) << 31);
        self.of_client(number) && chance.coin()
    }

    /// The wish of a client for a topic.
    #[must_use]
    pub fn of_subscription(&self, number: u32, topic: TopicHash) -> Wish {
        let of = self.chance.clone().next() ^ u64::from(number) << 23 ^ topic.0 as u64;
        Wish::of(&mut Entropy::new(of))
    }
}

/// Nobody has filters.
impl Default for Filters {
    fn default() -> Filters {
        Filters {
            is_on: false,
            ..Filters::new(0)
        }
    }
}

impl Wish {
    /// Any wish.
    #[must_use]
    pub fn of(chance: &mut Entropy) -> Wish {
        let value = chance.below(VALUES + 1) as i64;
        match chance.below(5) {
            0 | 1 => Wish::Below(value),
            2 | 3 => Wish::Is(value),
            _ => Wish::Without,
        }
    }

    /// The filter that says so.
    #[must_use]
    pub fn filter(self) -> Arc<Filter> {
        let text = match self {
            Wish::Below(value) => format!("{NAME} < {value}"),
            Wish::Is(value) => format!("{NAME} in ({value}, -1)"),
            Wish::Without => format!("not has {NAME}"),
        };
        let filter = Filter::parse(&text);
        Arc::new(filter.unwrap_or_else(|_| unreachable!("a fixed, legal filter")))
    }

    /// Whether a message is wanted.
    #[must_use]
    pub fn wants(self, entry: &Entry) -> bool {
        match (self, entry.number) {
            (Wish::Below(value), Some(number)) => number < value,
            (Wish::Is(value), Some(number)) => number == value,
            (Wish::Without, number) => number.is_none(),
            (_, None) => false,
        }
    }
}

/// The attributes of a message that has this number.
#[must_use]
pub fn attributes(number: Option<i64>) -> Vec<(String, AttributeValue)> {
    let number = number.into_iter();
    number
        .map(|number| (NAME.to_owned(), AttributeValue::Integer(number)))
        .collect()
}

/// A message at a place is given to somebody who has these wishes, or wants all.
///
/// # Errors
/// It is not wanted.
pub fn check_given(
    (id, entry): (MessageId, &Entry),
    place: Sequence,
    wishes: Option<&Wishes>,
    who: &str,
) -> Checked {
    if wishes.is_none_or(|wishes| wishes.want(entry, place)) {
        return Ok(());
    }
    let (number, id) = (entry.number, id.0);
    let detail =
        format!("{who}, who wants {wishes:?}, gets message {id} at {place} with {number:?}");
    Err(Violation::new(
        "filters: nothing comes that does not match",
        detail,
    ))
}
