//! The account that one subscriber keeps of one topic: which messages came, how often, in which order.
//!
//! A publisher's messages on a topic are numbered, so what is missing, doubled or late is seen at
//! once. Between publishers no order is known in advance, but all subscribers must see the same one:
//! each account holds a hash of the order, and those of one topic must agree.

use crate::stamp::Stamp;

/// What came of one topic to one subscriber.
#[derive(Clone, Debug)]
pub struct Ledger {
    topics: u64,
    publishers: Vec<Seen>,
    tally: Tally,
    order: u64,
}

/// The figures that accounts add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages that came for the first time.
    pub delivered: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Messages that came after a later one of their publisher and topic.
    pub reordered: u64,
    /// Messages that are none of this run's.
    pub strange: u64,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    /// One bit for each message, by its index within (publisher, topic).
    bits: Vec<u64>,
    /// One more than the highest index that came.
    next: u64,
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
        let index = stamp.number / self.topics;
        let Some(seen) = self.publishers.get_mut(stamp.publisher as usize) else {
            self.tally.strange += 1;
            return false;
        };
        if !seen.mark(index) {
            self.tally.duplicates += 1;
            return false;
        }
        self.tally.delivered += 1;
        self.tally.reordered += u64::from(index < seen.next);
        seen.next = seen.next.max(index + 1);
        for word in [u64::from(stamp.publisher), stamp.number] {
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
    /// Notes an index; false if it was noted before.
    fn mark(&mut self, index: u64) -> bool {
        let (word, bit) = ((index / 64) as usize, 1u64 << (index % 64));
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(numbers: &[u64]) -> Ledger {
        let mut ledger = Ledger::new(1, 2);
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
        assert_eq!(
            tally,
            Tally {
                delivered: 3,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn a_message_that_comes_again_is_a_duplicate() {
        let tally = enter(&[0, 2, 0]).tally();
        assert_eq!(
            tally,
            Tally {
                delivered: 2,
                duplicates: 1,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn a_message_that_comes_late_is_reordered() {
        let tally = enter(&[0, 4, 2]).tally();
        assert_eq!(
            tally,
            Tally {
                delivered: 3,
                reordered: 1,
                ..Tally::default()
            }
        );
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
}
