//! Filters: which messages of a topic a subscription wants, by their attributes.
//!
//! A filter that several subscriptions have, of whatever clients, is kept once, and a batch is held against it once. All
//! subscriptions of a stream have one, or none has: so a delivery is for whoever it names, and a message is never for one of a
//! stream's subscriptions to a topic and not for the other.
//!
//! Invariants: a filter is kept as long as somebody has it; a topic has few different ones, so that a batch is held against
//! few; no stream has two subscriptions with filters to one topic.

use super::scope::FilteredPlace;
use crate::keys::{SessionKey, SubKey};
use airmail_model::filter::Filter;
use airmail_model::{Error, ErrorCode};
use hashbrown::HashMap;
use slab::Slab;
use smallvec::SmallVec;
use std::sync::Arc;

/// Different filters of one topic, at most: each batch is held against all of them in one step.
const OF_PLACE_MAX: usize = 32;
/// Memory of all different filters of a shard, at most.
const BYTES_MAX: usize = 64 << 20;
/// Memory that one takes besides what it holds, about.
const OVERHEAD_BYTES: usize = 200;

/// A filter, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "sabotage", derive(Default))]
pub(super) struct FilterKey(usize);

/// A filter, and how many subscriptions have it.
#[derive(Debug)]
struct Kept {
    filter: Arc<Filter>,
    users: usize,
}

/// A filter of a topic, and how many subscriptions to the topic have it.
type OfPlace = (FilterKey, u32);

/// The filters of a gateway. See the module's documentation. Its maps are looked up, and never walked.
#[derive(Debug, Default)]
pub(super) struct Filters {
    kept: Slab<Kept>,
    by_filter: HashMap<Arc<Filter>, FilterKey>,
    of_subscription: HashMap<SubKey, FilterKey>,
    of_place: HashMap<FilteredPlace, SmallVec<[OfPlace; 1]>>,
    /// Subscriptions with filters, by their streams and topics.
    of_stream: HashMap<(SessionKey, FilteredPlace), SubKey>,
    /// Memory of the filters.
    bytes: usize,
}

fn bytes_of(filter: &Filter) -> usize {
    filter.heap_bytes() + OVERHEAD_BYTES
}

impl Filters {
    /// Whether a stream may have a subscription to a topic with this filter.
    pub(super) fn may_add(
        &self,
        (session, place): (SessionKey, FilteredPlace),
        filter: &Filter,
    ) -> Result<(), Error> {
        if self.of_stream.contains_key(&(session, place)) {
            return Err(Error::new(ErrorCode::SubscriptionInvalid)
                .field("filter")
                .value(filter)
                .limit("one subscription with a filter to a topic on a stream"));
        }
        let too_complex = |value: usize, limit: String| {
            let error = Error::new(ErrorCode::FilterTooComplex).field("filter");
            Err(error.value(value).limit(limit))
        };
        let known = self.by_filter.get(filter);
        let of_place = self.of_place.get(&place).map_or(&[][..], |of| &of[..]);
        let is_new = known.is_none_or(|key| of_place.iter().all(|(of, _)| of != key));
        if is_new && of_place.len() >= OF_PLACE_MAX {
            let limit = format!("{OF_PLACE_MAX} different filters of a topic");
            return too_complex(of_place.len() + 1, limit);
        }
        let bytes = self.bytes + bytes_of(filter);
        if known.is_none() && bytes > BYTES_MAX {
            let limit = format!("{BYTES_MAX} bytes of filters in a shard");
            return too_complex(bytes, limit);
        }
        Ok(())
    }

    /// Takes note of a subscription's filter, which it may have.
    pub(super) fn add(
        &mut self,
        sub: SubKey,
        (session, place): (SessionKey, FilteredPlace),
        filter: Arc<Filter>,
    ) {
        let key = match self.by_filter.get(&filter) {
            Some(key) => *key,
            None => {
                self.bytes += bytes_of(&filter);
                let users = 0;
                let kept = Kept {
                    filter: Arc::clone(&filter),
                    users,
                };
                let key = FilterKey(self.kept.insert(kept));
                self.by_filter.insert(filter, key);
                key
            }
        };
        self.kept[key.0].users += 1;
        self.of_subscription.insert(sub, key);
        self.of_stream.insert((session, place), sub);
        let of_place = self.of_place.entry(place).or_default();
        match of_place.iter_mut().find(|(of, _)| *of == key) {
            Some((_, users)) => *users += 1,
            None => of_place.push((key, 1)),
        }
    }

    /// Forgets the filter of a subscription that ends, if it has one.
    pub(super) fn remove(&mut self, sub: SubKey, (session, place): (SessionKey, FilteredPlace)) {
        let Some(key) = self.of_subscription.remove(&sub) else {
            // Input: a subscription without one.
            return;
        };
        self.of_stream.remove(&(session, place));
        if let Some(of_place) = self.of_place.get_mut(&place) {
            for (of, users) in of_place.iter_mut() {
                *users -= u32::from(*of == key);
            }
            of_place.retain(|(_, users)| *users > 0);
            if of_place.is_empty() {
                self.of_place.remove(&place);
            }
        }
        let kept = &mut self.kept[key.0];
        kept.users -= 1;
        if kept.users == 0 {
            let kept = self.kept.remove(key.0);
            self.by_filter.remove(&kept.filter);
            self.bytes -= bytes_of(&kept.filter);
        }
    }

    /// The filter of a subscription, if it has one.
    pub(super) fn of(&self, sub: SubKey) -> Option<FilterKey> {
        self.of_subscription.get(&sub).copied()
    }

    /// The filter of a key.
    pub(super) fn get(&self, key: FilterKey) -> &Arc<Filter> {
        &self.kept[key.0].filter
    }

    /// Number of subscriptions that have one.
    pub(super) fn users(&self) -> usize {
        self.of_subscription.len()
    }
}

#[cfg(test)]
mod tests;
