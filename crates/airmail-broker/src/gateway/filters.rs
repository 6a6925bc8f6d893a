//! Filters: which messages of a topic a subscription wants, by their attributes.
//!
//! A filter that several subscriptions have, of whatever clients, is kept once, and a batch is held against it once. Where a
//! place has many, an index finds those that match ([`at_place`]).
//!
//! Invariants: a filter is kept as long as somebody has it.

mod at_place;

use super::scope::FilteredPlace;
use crate::keys::SubKey;
use airmail_match::TooComplex;
use airmail_model::batch::Record;
use airmail_model::filter::Filter;
use airmail_model::{Error, ErrorCode, bug};
use at_place::FiltersAt;
pub(super) use at_place::Looked;
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

/// Memory of all different filters of a shard, at most.
const BYTES_MAX: usize = 64 << 20;
/// Memory that one takes besides what it holds, about.
const OVERHEAD_BYTES: usize = 200;
/// Memory of all indexes of a shard, at most.
const INDEX_BYTES_MAX: usize = 64 << 20;

/// A filter, by the order in which they have come. Never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FilterKey(u64);

#[cfg(test)]
impl FilterKey {
    pub(super) fn of(number: u64) -> FilterKey {
        FilterKey(number)
    }
}

/// A filter, and how many subscriptions have it.
#[derive(Debug)]
struct Kept {
    filter: Arc<Filter>,
    users: usize,
}

/// The filters of a gateway. See the module's documentation. Its maps are looked up, and never walked.
#[derive(Debug, Default)]
pub(super) struct Filters {
    kept: BTreeMap<FilterKey, Kept>,
    /// Number of filters that have come.
    keys: u64,
    /// Filters of a place that are asked one after the other, at most.
    few: usize,
    by_filter: HashMap<Arc<Filter>, FilterKey>,
    of_subscription: HashMap<SubKey, FilterKey>,
    of_place: HashMap<FilteredPlace, FiltersAt>,
    /// Places whose indexes are to be looked after.
    untended: BTreeSet<FilteredPlace>,
    /// Memory of the indexes.
    index_bytes: usize,
    /// Memory of the filters.
    bytes: usize,
}

fn bytes_of(filter: &Filter) -> usize {
    filter.heap_bytes() + OVERHEAD_BYTES
}

impl Filters {
    /// None yet. So many at a place are asked one after the other; where there are more, an index finds those that match.
    pub(super) fn new(few: usize) -> Filters {
        Filters {
            few,
            ..Filters::default()
        }
    }

    /// Whether there is room for a subscription with this filter.
    pub(super) fn may_add(&mut self, place: FilteredPlace, filter: &Filter) -> Result<(), Error> {
        let too_complex = |value: usize, limit: String| {
            let error = Error::new(ErrorCode::FilterTooComplex).field("filter");
            Err(error.value(value).limit(limit))
        };
        let known = self.by_filter.get(filter).copied();
        match self.at(place, |of_place| of_place.may_add(known, filter)) {
            None | Some(Ok(())) => {}
            Some(Err(TooComplex::Bytes(bytes, limit))) => {
                return too_complex(bytes, format!("{limit} bytes of filters at a topic"));
            }
            Some(Err(TooComplex::Residual(limit))) => {
                let what = "filters at a topic that no value has to be looked up for";
                return too_complex(limit + 1, format!("{limit} {what}"));
            }
            Some(Err(TooComplex::Names)) => {
                let limit = usize::from(u16::MAX);
                let what = "names of attributes in the filters at a topic";
                return too_complex(limit + 1, format!("{limit} {what}"));
            }
        }
        if self.index_bytes > INDEX_BYTES_MAX {
            let limit = format!("{INDEX_BYTES_MAX} bytes of indexes of filters in a shard");
            return too_complex(self.index_bytes, limit);
        }
        let bytes = self.bytes + bytes_of(filter);
        if known.is_none() && bytes > BYTES_MAX {
            let limit = format!("{BYTES_MAX} bytes of filters in a shard");
            return too_complex(bytes, limit);
        }
        Ok(())
    }

    /// Takes note of a subscription's filter, which it may have.
    pub(super) fn add(&mut self, sub: SubKey, place: FilteredPlace, filter: Arc<Filter>) {
        let key = match self.by_filter.get(&filter) {
            Some(key) => *key,
            None => {
                self.bytes += bytes_of(&filter);
                let users = 0;
                let kept = Kept {
                    filter: Arc::clone(&filter),
                    users,
                };
                let key = FilterKey(self.keys);
                self.keys += 1;
                self.kept.insert(key, kept);
                self.by_filter.insert(filter, key);
                key
            }
        };
        if let Some(kept) = self.kept.get_mut(&key) {
            kept.users += 1;
        }
        self.of_subscription.insert(sub, key);
        let kept = &self.kept;
        let of_place = self.of_place.entry(place).or_default();
        let before = of_place.bytes();
        let get = |key| kept.get(&key).map(|kept| &*kept.filter);
        of_place.add(key, get, self.few);
        self.index_bytes = self.index_bytes + of_place.bytes() - before;
        self.untended.insert(place);
    }

    /// Forgets the filter of a subscription that ends, if it has one.
    pub(super) fn remove(&mut self, sub: SubKey, place: FilteredPlace) {
        let Some(key) = self.of_subscription.remove(&sub) else {
            // Input: a subscription without one.
            return;
        };
        let few = self.few;
        let is_empty = self.at(place, |of_place| {
            of_place.remove(key, few);
            of_place.is_empty()
        });
        if is_empty == Some(true) {
            self.of_place.remove(&place);
        } else {
            self.untended.insert(place);
        }
        let Entry::Occupied(mut kept) = self.kept.entry(key) else {
            bug!("{key:?} is of {sub:?}, and is not kept");
            return;
        };
        kept.get_mut().users -= 1;
        if kept.get().users == 0 {
            let kept = kept.remove();
            self.by_filter.remove(&kept.filter);
            self.bytes -= bytes_of(&kept.filter);
        }
    }

    /// The filter of a subscription, if it has one.
    pub(super) fn of(&self, sub: SubKey) -> Option<FilterKey> {
        self.of_subscription.get(&sub).copied()
    }

    /// The filter of a subscription itself, if it has one.
    pub(super) fn filter_of(&self, sub: SubKey) -> Option<&Arc<Filter>> {
        let kept = self.kept.get(&self.of(sub)?)?;
        Some(&kept.filter)
    }

    /// Holds a record against the filters at a place, from where that was left, as far as the units go; takes off those that
    /// it used. Whether it is done: then `looked` has those that match.
    pub(super) fn look(
        &mut self,
        place: FilteredPlace,
        record: &Record<'_>,
        (looked, units): (&mut Looked, &mut u32),
        #[cfg(feature = "sabotage")] bug: Option<crate::sabotage::Bug>,
    ) -> bool {
        let kept = &self.kept;
        let Some(of_place) = self.of_place.get_mut(&place) else {
            // Input: filters that have been given up since somebody was found to have them here.
            looked.end();
            return true;
        };
        if of_place.is_indexed() {
            self.untended.insert(place);
        }
        let get = |key| kept.get(&key).map(|kept| &*kept.filter);
        let is_done = of_place.look(record, looked, units, get);
        #[cfg(feature = "sabotage")]
        if bug == Some(crate::sabotage::Bug::UnmatchedOfTopic) && is_done {
            of_place.match_all(looked);
        }
        is_done
    }

    /// Does something with the filters at a place, if there are any, and takes note of how much memory they have then.
    fn at<T>(
        &mut self,
        place: FilteredPlace,
        change: impl FnOnce(&mut FiltersAt) -> T,
    ) -> Option<T> {
        let of_place = self.of_place.get_mut(&place)?;
        let before = of_place.bytes();
        let result = change(of_place);
        self.index_bytes = self.index_bytes + of_place.bytes() - before;
        Some(result)
    }

    /// Memory of the indexes, counted anew.
    #[cfg(test)]
    fn count_index_bytes(&self) -> usize {
        self.of_place.values().map(FiltersAt::bytes).sum()
    }

    /// Looks after indexes, as far as the units go. Whether there is more to do.
    pub(super) fn tend(&mut self, units: u32) -> bool {
        while let Some(place) = self.untended.pop_first() {
            let Some(is_unfinished) = self.at(place, |of_place| of_place.tend(units)) else {
                // Input: filters that have been given up.
                continue;
            };
            if is_unfinished {
                self.untended.insert(place);
                return true;
            }
        }
        false
    }

    /// Number of subscriptions that have one.
    pub(super) fn users(&self) -> usize {
        self.of_subscription.len()
    }
}

#[cfg(test)]
mod tests;
