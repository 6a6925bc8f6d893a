//! Filters that are held against the same messages: those of one topic, or of all selections of a log.
//!
//! A few are asked one after the other, up to `few`. As soon as there are more, an index finds those that a message matches;
//! it is given up again when half of `few` are left.

use super::FilterKey;
use airmail_match::{Cursor, FilterId, Matcher, MatcherLimits, TooComplex};
use airmail_model::batch::Record;
use airmail_model::bug;
use airmail_model::filter::{Facts, Filter};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Units of work that it takes to ask a filter about a record, about: many of those of an index.
const FILTER_UNITS: u32 = 4;

/// Filters of a place, and how many subscriptions there have each.
#[derive(Debug, Default)]
pub(super) struct FiltersAt {
    users: BTreeMap<FilterKey, u32>,
    index: Option<Box<Index>>,
    /// Counted up when an index is made, or given up.
    life: u64,
}

/// A look at a record: which of a place's filters it matches, as far as that is known.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Looked {
    cursor: Cursor,
    /// The life of the place's filters in which it was begun; none before it was.
    life: Option<u64>,
    is_done: bool,
    /// Those that match; all of them, once it is done.
    found: Vec<FilterKey>,
    /// Number of those that have been taken.
    taken: usize,
}

impl Looked {
    fn is_of(&self, life: u64) -> bool {
        self.life == Some(life)
    }

    /// Whether it was begun, and has not ended.
    pub(in crate::gateway) fn is_begun(&self) -> bool {
        self.life.is_some()
    }

    /// Whether it is known which match.
    pub(in crate::gateway) fn is_done(&self) -> bool {
        self.is_done
    }

    fn begin(&mut self, life: u64) {
        self.end();
        self.life = Some(life);
    }

    /// Forgets the record.
    pub(in crate::gateway) fn end(&mut self) {
        self.life = None;
        self.is_done = false;
        self.found.clear();
        self.taken = 0;
    }

    /// Takes the next that match, at most so many; none when all have been.
    pub(in crate::gateway) fn take(&mut self, most: usize) -> &[FilterKey] {
        let from = self.taken;
        self.taken = self.found.len().min(from.saturating_add(most));
        &self.found[from..self.taken]
    }
}

/// Index of a place's filters.
#[derive(Debug, Default)]
struct Index {
    matcher: Matcher,
    /// Never walked.
    keys: HashMap<FilterId, FilterKey>,
    /// Never walked.
    ids: HashMap<FilterKey, FilterId>,
}

impl Index {
    fn insert(&mut self, key: FilterKey, filter: &Filter) {
        match self.matcher.insert(filter.clone()) {
            Ok(id) => {
                self.keys.insert(id, key);
                self.ids.insert(key, id);
            }
            Err(why) => bug!("{filter:?} was found to fit, and does not: {why}"),
        }
    }
}

impl FiltersAt {
    /// Whether nobody has a filter here.
    pub(super) fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Whether an index finds those that match.
    pub(super) fn is_indexed(&self) -> bool {
        self.index.is_some()
    }

    /// Memory of the index.
    pub(super) fn bytes(&self) -> usize {
        let index = self.index.as_ref();
        index.map_or(0, |index| index.matcher.bytes())
    }

    /// Whether there is room for a filter, of this key if it is kept already.
    ///
    /// # Errors
    /// The bound that it would exceed.
    pub(super) fn may_add(
        &mut self,
        key: Option<FilterKey>,
        filter: &Filter,
    ) -> Result<(), TooComplex> {
        let is_known = key.is_some_and(|key| self.users.contains_key(&key));
        match &mut self.index {
            Some(index) if !is_known => index.matcher.fits(filter),
            _ => Ok(()),
        }
    }

    /// One more subscription has a filter here, for which there is room; `get` knows those that are kept.
    pub(super) fn add<'f>(
        &mut self,
        key: FilterKey,
        get: impl Fn(FilterKey) -> Option<&'f Filter>,
        few: usize,
    ) {
        let users = self.users.entry(key).or_default();
        *users += 1;
        if *users > 1 {
            return;
        }
        if let Some(index) = &mut self.index {
            if let Some(filter) = get(key) {
                index.insert(key, filter);
            }
        } else if self.users.len() > few {
            let mut index = Box::new(Index {
                matcher: Matcher::new(MatcherLimits::DEFAULT),
                ..Index::default()
            });
            for key in self.users.keys() {
                if let Some(filter) = get(*key) {
                    index.insert(*key, filter);
                }
            }
            self.index = Some(index);
            self.life += 1;
        }
    }

    /// One subscription less has a filter here.
    pub(super) fn remove(&mut self, key: FilterKey, few: usize) {
        let Entry::Occupied(mut users) = self.users.entry(key) else {
            bug!("{key:?} is given up where nobody has it");
            return;
        };
        *users.get_mut() -= 1;
        if *users.get() > 0 {
            return;
        }
        users.remove();
        if let Some(index) = &mut self.index
            && let Some(id) = index.ids.remove(&key)
        {
            index.matcher.remove(id);
            index.keys.remove(&id);
        }
        if self.users.len() <= few / 2 && self.index.take().is_some() {
            self.life += 1;
        }
    }

    /// Holds a record against the filters, from where that was left, as far as the units go; takes off those that it used.
    /// Whether it is done: then `looked` has those that match.
    pub(super) fn look<'f>(
        &mut self,
        record: &Record<'_>,
        looked: &mut Looked,
        units: &mut u32,
        get: impl Fn(FilterKey) -> Option<&'f Filter>,
    ) -> bool {
        if !looked.is_of(self.life) {
            looked.begin(self.life);
            if let Some(index) = &self.index {
                let facts = Facts::read(record.attributes);
                index.matcher.begin(&facts, &mut looked.cursor);
            }
        }
        if looked.is_done {
            return true;
        }
        let Some(index) = &mut self.index else {
            // Input: few filters, which are asked at once.
            let matches = |key: &FilterKey| get(*key).is_some_and(|filter| filter.matches(record));
            let filters = u32::try_from(self.users.len()).unwrap_or(u32::MAX);
            *units = units.saturating_sub(filters.saturating_mul(FILTER_UNITS));
            looked
                .found
                .extend(self.users.keys().copied().filter(matches));
            looked.is_done = true;
            return true;
        };
        let facts = Facts::read(record.attributes);
        if !index.matcher.advance(&facts, &mut looked.cursor, units) {
            return false;
        }
        let ids = looked.cursor.matches().iter();
        let found = ids.filter_map(|id| index.keys.get(id).copied());
        looked.found.extend(found);
        *units = units.saturating_sub(u32::try_from(looked.found.len()).unwrap_or(u32::MAX));
        looked.is_done = true;
        true
    }

    /// All filters match what was looked at, if one does: a planted bug.
    #[cfg(feature = "sabotage")]
    pub(super) fn match_all(&self, looked: &mut Looked) {
        if !looked.found.is_empty() {
            looked.found = self.users.keys().copied().collect();
        }
    }

    /// Makes the index anew where it is time to, as far as the units go; whether there is more to do.
    pub(super) fn tend(&mut self, units: u32) -> bool {
        let index = self.index.as_mut();
        index.is_some_and(|index| index.matcher.tend(units))
    }
}
