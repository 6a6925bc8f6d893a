//! Matched records of a piece: by the filters that they match, and then by the sessions that are to be given them.
//!
//! Both are kept in the order in which they came, so that nothing depends on a hash, and are found by key at the cost of a
//! look-up, however many there are.

use super::filters::FilterKey;
use crate::keys::{SessionKey, SubKey};
use airmail_model::frame::{Generation, SubscriptionId};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a filter is held against a record: at its topic, by the topic's place in the batch; or at the selections of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum MatchedAt {
    Topic(u16),
    Selections,
}

/// Places of records, ascending.
type Places = SmallVec<[u16; 12]>;

/// Records that each filter matches.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Places in the list: only looked up, never walked.
    by_filter: HashMap<(MatchedAt, FilterKey), u32>,
    list: Vec<(MatchedAt, FilterKey, Places)>,
    entries: usize,
}

impl Found {
    /// Whether nothing is left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of records and filters that were put in.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// A filter matches a record, which is not before those that it was found to match.
    pub(super) fn put(&mut self, at: (MatchedAt, FilterKey), record: u16) {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let place = *self.by_filter.entry(at).or_insert(next);
        if place == next {
            self.list.push((at.0, at.1, Places::new()));
        }
        let (_, _, places) = &mut self.list[place as usize];
        // It may have been begun anew, with other filters.
        if places.last() != Some(&record) {
            places.push(record);
            self.entries += 1;
        }
    }

    /// Takes out a filter, with the records that it matches.
    pub(super) fn pop(&mut self) -> Option<(MatchedAt, FilterKey, Arc<[u16]>)> {
        let (at, filter, places) = self.list.pop()?;
        Some((at, filter, Arc::from(&places[..])))
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.by_filter.clear();
        self.list.clear();
        self.entries = 0;
    }
}

/// A subscription that is to be given something of a piece. It may end, and its keys be used again, before that.
#[derive(Clone, Debug)]
pub(super) struct Recipient {
    pub(super) sub: SubKey,
    pub(super) id: SubscriptionId,
    pub(super) generation: Generation,
    /// The filter that it had.
    pub(super) filter: FilterKey,
    /// Places of the records that are for it, ascending. Whoever has the same filter has the same list.
    pub(super) places: Arc<[u16]>,
    /// Number of them that it has been given.
    pub(super) given: u16,
}

impl Recipient {
    /// Places of the records that it is still to be given.
    pub(super) fn left(&self) -> &[u16] {
        &self.places[usize::from(self.given)..]
    }

    /// Those of them before a place.
    pub(super) fn before(&self, cut: u16) -> &[u16] {
        let left = self.left();
        &left[..left.partition_point(|place| *place < cut)]
    }

    /// It has been given those before a place; tells whether there are more.
    pub(super) fn give(&mut self, cut: u16) -> bool {
        let given = self.places.partition_point(|place| *place < cut);
        self.given = u16::try_from(given).unwrap_or(u16::MAX);
        given < self.places.len()
    }
}

/// Subscriptions of one session.
pub(super) type OfSession = SmallVec<[Recipient; 1]>;

/// Subscriptions that are to be given something, by session.
#[derive(Debug, Default)]
pub(super) struct Recipients {
    /// Places in the list: only looked up, never walked.
    by_session: HashMap<SessionKey, u32>,
    list: Vec<(SessionKey, OfSession)>,
}

impl Recipients {
    /// Whether nobody is left.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Puts one in.
    pub(super) fn put(&mut self, session: SessionKey, recipient: Recipient) {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let place = *self.by_session.entry(session).or_insert(next);
        if place == next {
            self.list.push((session, OfSession::new()));
        }
        self.list[place as usize].1.push(recipient);
    }

    /// Puts back what is left for a session that was taken out.
    pub(super) fn put_back(&mut self, session: SessionKey, rest: OfSession) {
        if !rest.is_empty() {
            let place = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
            self.by_session.insert(session, place);
            self.list.push((session, rest));
        }
    }

    /// Takes out a session.
    pub(super) fn pop(&mut self) -> Option<(SessionKey, OfSession)> {
        let (session, of) = self.list.pop()?;
        self.by_session.remove(&session);
        Some((session, of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn each_filter_has_its_records_once_in_order_and_each_session_its_subscriptions(
            puts in prop::collection::vec((0_u16..3, 0_usize..4, 0_u16..9), 0..60),
        ) {
            let mut puts = puts;
            puts.sort_by_key(|(_, _, record)| *record);
            let (mut found, mut recipients) = (Found::default(), Recipients::default());
            let mut known: BTreeMap<(u16, usize), Vec<u16>> = BTreeMap::new();
            for (topic, filter, record) in puts {
                let key = (MatchedAt::Topic(topic), FilterKey::of(filter as u64));
                found.put(key, record);
                let of = known.entry((topic, filter)).or_default();
                if of.last() != Some(&record) {
                    of.push(record);
                }
            }
            prop_assert_eq!(found.entries(), known.values().map(Vec::len).sum::<usize>());
            let mut got = BTreeMap::new();
            while let Some((at, filter, places)) = found.pop() {
                let MatchedAt::Topic(topic) = at else { panic!("at a topic") };
                let filter = (0..4).find(|n| FilterKey::of(*n as u64) == filter).unwrap();
                got.insert((topic, filter), places.to_vec());
                let recipient = Recipient {
                    sub: SubKey::new(topic.into()),
                    id: SubscriptionId(topic.into()),
                    generation: Generation(1),
                    filter: FilterKey::default(),
                    places,
                    given: 0,
                };
                recipients.put(SessionKey::new(filter), recipient);
            }
            prop_assert_eq!(&got, &known);
            let mut given = BTreeMap::new();
            while let Some((session, of)) = recipients.pop() {
                for one in of {
                    given.insert((one.sub.place() as u16, session.place()), one.places.to_vec());
                }
            }
            prop_assert_eq!(given, known);
        }
    }
}
