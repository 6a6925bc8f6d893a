//! A session's subscriptions by number.
//!
//! Clients number from 0 up, mostly: such numbers are places in a list, four bytes each. A number
//! far above what the session has is kept in a hash table, so that no client can make the list
//! longer than twice the most that it has had, and a few (`numbers`). Where a number is kept is decided
//! when it comes in.

use super::subscription::Subscriptions;
use crate::keys::SubKey;
use airmail_model::frame::SubscriptionId;
use hashbrown::HashTable;

/// Numbers below this are always in the list.
const FEW: usize = 16;

/// Subscriptions of a session by their numbers.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionsByNumber {
    /// By number. The last is never `None`.
    dense: Vec<Option<SubKey>>,
    /// Those whose numbers were far above when they came.
    sparse: HashTable<SubKey>,
    len: usize,
}

/// Spreads numbers over the table.
fn hash(id: SubscriptionId) -> u64 {
    u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl SubscriptionsByNumber {
    /// The subscription of a number.
    pub(crate) fn find(&self, subs: &Subscriptions, id: SubscriptionId) -> Option<SubKey> {
        if let Some(Some(key)) = self.dense.get(id.0 as usize) {
            return Some(*key);
        }
        let found = self.sparse.find(hash(id), |key| subs[*key].id == id);
        found.copied()
    }

    /// Takes over a subscription whose number is free.
    pub(crate) fn put(&mut self, subs: &Subscriptions, key: SubKey) {
        let id = subs[key].id;
        let place = id.0 as usize;
        self.len += 1;
        if place >= 2 * self.len + FEW {
            let rehash = |key: &SubKey| hash(subs[*key].id);
            self.sparse.insert_unique(hash(id), key, rehash);
            return;
        }
        if place >= self.dense.len() {
            self.dense.resize(place + 1, None);
        }
        self.dense[place] = Some(key);
    }

    /// Gives up a subscription.
    pub(crate) fn take(&mut self, subs: &Subscriptions, key: SubKey) {
        let id = subs[key].id;
        let place = self.dense.get_mut(id.0 as usize);
        if let Some(place) = place.filter(|place| **place == Some(key)) {
            *place = None;
            self.shorten();
        } else if let Ok(entry) = self.sparse.find_entry(hash(id), |other| *other == key) {
            entry.remove();
        } else {
            return;
        }
        self.len -= 1;
    }

    fn shorten(&mut self) {
        while self.dense.last() == Some(&None) {
            self.dense.pop();
        }
        if self.dense.capacity() > 4 * self.dense.len() + FEW {
            self.dense.shrink_to(2 * self.dense.len());
        }
    }

    /// Whether the list is no longer than a session with at most so many subscriptions can have made it,
    /// and ends with one.
    pub(crate) fn is_short(&self, subscriptions_max: usize) -> bool {
        let length_max = 2 * subscriptions_max + FEW;
        self.dense.len() <= length_max && self.dense.last() != Some(&None)
    }

    /// Number of subscriptions.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All, in order of key.
    pub(crate) fn everything(&self) -> Vec<SubKey> {
        let dense = self.dense.iter().flatten();
        let mut all: Vec<SubKey> = dense.chain(&self.sparse).copied().collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::subscription::Subscription;
    use super::*;
    use crate::gateway::scope::Scope;
    use crate::keys::{SessionKey, TailKey};
    use airmail_model::TopicHash;
    use airmail_model::frame::Generation;

    fn put(numbers: &mut SubscriptionsByNumber, subs: &mut Subscriptions, id: u32) -> SubKey {
        let (session, tail) = (SessionKey::new(0), TailKey::new(0));
        let id = SubscriptionId(id);
        let sub = Subscription::new(Scope::Topic(TopicHash(7)), id, Generation(1), session, tail);
        let key = subs.insert(sub);
        numbers.put(subs, key);
        key
    }

    #[test]
    fn every_number_is_found_wherever_it_is_kept_and_no_other() {
        let (mut numbers, mut subs) = (SubscriptionsByNumber::default(), Subscriptions::default());
        let ids = [
            0,
            u32::MAX,
            1,
            40,
            2,
            3,
            1 << 20,
            4,
            5,
            6,
            7,
            8,
            9,
            10,
            11,
            12,
            41,
        ];
        let keys = ids.map(|id| put(&mut numbers, &mut subs, id));
        assert_eq!(numbers.len(), ids.len());
        assert_eq!(numbers.everything(), keys);
        for (n, (id, key)) in ids.into_iter().zip(keys).enumerate() {
            assert_eq!(numbers.find(&subs, SubscriptionId(id)), Some(key));
            numbers.take(&subs, key);
            assert_eq!(numbers.find(&subs, SubscriptionId(id)), None);
            assert_eq!(numbers.len(), ids.len() - n - 1);
        }
        assert!(numbers.dense.is_empty() && numbers.sparse.is_empty());
    }

    #[test]
    fn high_numbers_do_not_make_the_list_long() {
        let (mut numbers, mut subs) = (SubscriptionsByNumber::default(), Subscriptions::default());
        for id in (0..1_000).map(|n| u32::MAX - n * 1_000) {
            put(&mut numbers, &mut subs, id);
        }
        for id in 0..100_000 {
            let key = put(&mut numbers, &mut subs, id);
            numbers.take(&subs, key);
        }
        assert_eq!(numbers.len(), 1_000);
        assert!(numbers.dense.capacity() <= 4 * 1_000);
        assert!(numbers.is_short(1_001));
    }
}
