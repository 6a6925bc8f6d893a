//! Matches: the subscriptions that each message of a delivery is for.
//!
//! A stream's subscriptions may overlap, and none but the node holds messages against their filters. So a delivery to a stream
//! that asks for it lists, for each message, the subscriptions that it is for. A client that changes a filter then needs
//! no filter by itself, and a message that several want crosses the wire once.

use super::SubscriptionId;

/// Subscriptions of each message of a delivery, by the message's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matches {
    /// For each message, where its subscriptions end in the list of all.
    ends: Box<[u32]>,
    subscriptions: Box<[SubscriptionId]>,
}

impl Matches {
    /// Makes them of the number of each message's subscriptions, and of all of these, message by message.
    ///
    /// `None` if the numbers do not add up, or if a message has none.
    #[must_use]
    pub fn new(counts: &[u32], subscriptions: Vec<SubscriptionId>) -> Option<Matches> {
        let mut end = 0_u32;
        let mut ends = Vec::with_capacity(counts.len());
        for count in counts {
            end = end.checked_add(*count).filter(|_| *count > 0)?;
            ends.push(end);
        }
        (end as usize == subscriptions.len()).then(|| Matches {
            ends: ends.into(),
            subscriptions: subscriptions.into(),
        })
    }

    /// Gives the number of messages.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.ends.len()
    }

    /// Lists the subscriptions that the message at this place is for: at least one. None where there is no such message.
    #[must_use]
    pub fn of(&self, place: usize) -> &[SubscriptionId] {
        let Some(end) = self.ends.get(place) else {
            // Input: a place beyond the last message.
            return &[];
        };
        let begin = match place {
            0 => 0,
            _ => self.ends[place - 1],
        };
        &self.subscriptions[begin as usize..*end as usize]
    }

    /// Iterates over the number of each message's subscriptions.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = u32> {
        (0..self.ends.len()).map(|place| self.of(place).len() as u32)
    }

    /// Lists all subscriptions, message by message.
    #[must_use]
    pub fn subscriptions(&self) -> &[SubscriptionId] {
        &self.subscriptions
    }

    /// Credit that it takes beside the messages, in bytes.
    #[must_use]
    pub fn cost(&self) -> u32 {
        let entries = self.ends.len() + self.subscriptions.len();
        u32::try_from(entries * size_of::<u32>()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u32]) -> Vec<SubscriptionId> {
        numbers.iter().copied().map(SubscriptionId).collect()
    }

    #[test]
    fn each_message_has_its_own() {
        let matches = Matches::new(&[1, 3, 1], ids(&[7, 0, 4, 9, 7])).unwrap();
        let of = |place| matches.of(place).iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(2)], [vec![7], vec![0, 4, 9], vec![7]]);
        assert!(of(3).is_empty());
        assert_eq!(matches.messages(), 3);
        assert_eq!(matches.counts().collect::<Vec<_>>(), [1, 3, 1]);
        assert_eq!(matches.subscriptions(), ids(&[7, 0, 4, 9, 7]));
        assert_eq!(matches.cost(), 32);
    }

    #[test]
    fn numbers_that_do_not_add_up_are_none() {
        let is_one = |counts: &[u32], all: &[u32]| Matches::new(counts, ids(all)).is_some();
        assert!(is_one(&[2], &[1, 2]));
        assert!(!is_one(&[1], &[1, 2]), "too many");
        assert!(!is_one(&[2, 1], &[1, 2]), "too few");
        assert!(!is_one(&[2, 0], &[1, 2]), "a message of nobody");
        assert!(!is_one(&[u32::MAX, 3], &[1, 2]), "more than can be counted");
    }
}
