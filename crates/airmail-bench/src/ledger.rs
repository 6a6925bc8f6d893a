//! The ledger that one subscriber keeps of one topic: the messages that came, their number and
//! their order.
//!
//! A publisher's messages on a topic are numbered, so what is missing, doubled or late is seen at
//! once. Between publishers no order is known in advance, but all subscribers must see the same one:
//! each account holds a hash of the order, and those of one topic must agree.
//!
//! The next message in order costs a comparison; only one out of turn is looked up, among the
//! ranges that are missing so far.

use crate::stamp::Stamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ledger of one topic's messages to one subscriber.
#[derive(Clone, Debug)]
pub struct Ledger {
    topics: u64,
    publishers: Vec<Seen>,
    tally: Tally,
    order: u64,
}

/// The figures that accounts add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Messages that came for the first time.
    pub delivered: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Messages that came after a later one of their publisher and topic.
    pub reordered: u64,
    /// Messages of other runs.
    pub strange: u64,
}

/// Messages that came from one publisher.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// One more than the highest index that came.
    next: u64,
    /// Ranges below it that did not come: first index of each, and the one behind its last.
    missing: BTreeMap<u64, u64>,
}

impl Ledger {
    /// An empty account, in a run of `publishers` who use `topics` in turn.
    #[must_use]
    pub fn new(publishers: u32, topics: u32) -> Ledger {
        Ledger {
            topics: topics.into(),
            publishers: vec![Seen::default(); publishers as usize],
            tally: Tally::default(),
            order: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Enters a message. True if it came for the first time.
    pub fn enter(&mut self, stamp: &Stamp) -> bool {
        let alone = self.publishers.len() == 1;
        let Some(seen) = self.publishers.get_mut(stamp.publisher as usize) else {
            self.tally.strange += 1;
            return false;
        };
        let index = if self.topics == 1 {
            stamp.number
        } else {
            stamp.number / self.topics
        };
        if index == seen.next {
            seen.next += 1;
        } else if index > seen.next {
            seen.missing.insert(seen.next, index);
            seen.next = index + 1;
        } else if seen.find(index) {
            self.tally.reordered += 1;
        } else {
            self.tally.duplicates += 1;
            return false;
        }
        self.tally.delivered += 1;
        // The numbers of one publisher have but one order, which has just been looked at.
        if !alone {
            let word = stamp.number ^ (u64::from(stamp.publisher) << 48);
            self.order = (self.order ^ word)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(17);
        }
        true
    }

    /// Enters a payload that has no stamp of this run.
    pub fn enter_strange(&mut self) {
        self.tally.strange += 1;
    }

    /// The figures so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Messages that did not come although a later one of their publisher did.
    #[must_use]
    pub fn holes(&self) -> u64 {
        let ranges = self.publishers.iter().flat_map(|seen| &seen.missing);
        ranges.map(|(first, end)| end - first).sum()
    }

    /// Excuses everything before the first message: for a subscriber that joins late.
    pub fn forgive_the_past(&mut self) {
        for seen in &mut self.publishers {
            seen.missing.remove(&0);
        }
    }

    /// A number that is the same for two subscribers who saw the same messages in the same order.
    #[must_use]
    pub fn order(&self) -> u64 {
        self.order
    }
}

impl Tally {
    /// Adds another account's figures.
    pub fn add(&mut self, other: &Tally) {
        self.delivered += other.delivered;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.strange += other.strange;
    }
}

impl Seen {
    /// Takes an index out of the missing ones; false if it is not missing.
    fn find(&mut self, index: u64) -> bool {
        let Some((&first, &end)) = self.missing.range(..=index).next_back() else {
            return false;
        };
        if index >= end {
            return false;
        }
        self.missing.remove(&first);
        if first < index {
            self.missing.insert(first, index);
        }
        if index + 1 < end {
            self.missing.insert(index + 1, end);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn enter(numbers: &[u64]) -> Ledger {
        let mut ledger = Ledger::new(2, 2);
        for number in numbers {
            ledger.enter(&Stamp {
                run: 0,
                publisher: 0,
                number: *number,
                sent_us: 0,
            });
        }
        ledger
    }

    #[test]
    fn messages_in_order_are_delivered() {
        let tally = enter(&[0, 2, 4]).tally();
        let all = Tally {
            delivered: 3,
            ..Tally::default()
        };
        assert_eq!(tally, all);
    }

    #[test]
    fn another_order_is_another_number() {
        assert_ne!(enter(&[0, 4, 2]).order(), enter(&[0, 2, 4]).order());
        assert_eq!(enter(&[0, 2, 4]).order(), enter(&[0, 2, 4]).order());
    }

    #[test]
    fn a_publisher_that_there_is_not_is_strange() {
        let mut ledger = Ledger::new(1, 1);
        assert!(!ledger.enter(&Stamp {
            run: 0,
            publisher: 7,
            number: 0,
            sent_us: 0
        }));
        assert_eq!(ledger.tally().strange, 1);
    }

    #[test]
    fn who_joins_late_misses_nothing() {
        let mut ledger = enter(&[10, 12, 16]);
        assert_eq!(ledger.holes(), 6);
        ledger.forgive_the_past();
        assert_eq!(ledger.holes(), 1);
    }

    proptest! {
        /// The same figures as from a set of all that came.
        #[test]
        fn an_account_agrees_with_a_set(indexes in prop::collection::vec(0u64..40, 0..120)) {
            let numbers: Vec<u64> = indexes.iter().map(|index| index * 2).collect();
            let ledger = enter(&numbers);
            let (mut seen, mut expected) = (BTreeSet::new(), Tally::default());
            for index in &indexes {
                let late = seen.last().is_some_and(|last| index < last);
                if seen.insert(*index) {
                    expected.delivered += 1;
                    expected.reordered += u64::from(late);
                } else {
                    expected.duplicates += 1;
                }
            }
            prop_assert_eq!(ledger.tally(), expected);
            let below = seen.last().map_or(0, |last| last + 1);
            prop_assert_eq!(ledger.holes(), below - seen.len() as u64);
        }
    }
}
