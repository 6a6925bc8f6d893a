//! Very many filters, and which of them a record matches.

use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::grid::AXES_MAX;
use crate::index::{Index, PLACES_BYTES, grid_bytes, list_bytes};
use crate::matching::Matching;
use crate::name_table::{NameId, NameTable};
use crate::slots::{FilterId, Slots};
use crate::tending::Tending;
use airmail_model::filter::{Facts, Filter};
use std::fmt;

/// Bytes that the allocator adds to a filter's own, about.
const ALLOCATION_BYTES: usize = 16;
/// Bytes of a filter's slot, about.
const SLOT_BYTES: usize = 32;

/// Bounds of a matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatcherLimits {
    /// Memory of filters and index, in bytes, as [`Matcher::bytes`] counts it and as it will be once the index was
    /// tended. Default 64 MiB. While the index is made anew, that takes as much again as the index.
    pub bytes: usize,
    /// Filters that say nothing which the index can use, as `a != 1` or `not has a`: every record is held against each
    /// of them. Default 1,024.
    pub residual: usize,
}

impl MatcherLimits {
    /// The defaults.
    pub const DEFAULT: MatcherLimits = MatcherLimits {
        bytes: 64 << 20,
        residual: 1024,
    };
}

impl Default for MatcherLimits {
    fn default() -> MatcherLimits {
        MatcherLimits::DEFAULT
    }
}

/// The bound for which a matcher refuses a filter. Users know it as `FILTER_TOO_COMPLEX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooComplex {
    /// With it the filters would take so many bytes; the limit.
    Bytes(usize, usize),
    /// There are as many filters of its kind as the limit allows, which say nothing that the index can use.
    Residual(usize),
    /// There are 65,535 names of attributes in use, and it has another.
    Names,
}

impl fmt::Display for TooComplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FILTER_TOO_COMPLEX: ")?;
        match self {
            TooComplex::Bytes(bytes, limit) => {
                write!(f, "bytes of all filters: {bytes}, limit: {limit}")
            }
            TooComplex::Residual(limit) => {
                write!(
                    f,
                    "filters without a bound or a value to look for, limit: {limit}"
                )
            }
            TooComplex::Names => f.write_str("names of attributes in all filters, limit: 65535"),
        }
    }
}

impl std::error::Error for TooComplex {}

/// Counts of a matcher's work since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatcherStats {
    /// Records that were done.
    pub records: u64,
    /// Conjunctions that were compared with a record.
    pub candidates: u64,
    /// Matches that were found; those of a record that was begun again for an index made anew count twice.
    pub matches: u64,
    /// Times that the index was made anew.
    pub rebuilds: u64,
}

/// Filters of one namespace or topic, indexed.
#[derive(Debug, Default)]
pub struct Matcher {
    limits: MatcherLimits,
    pub(crate) names: NameTable,
    pub(crate) slots: Slots,
    pub(crate) index: Index,
    pub(crate) tending: Tending,
    /// Counted up whenever the index is replaced.
    pub(crate) version: u64,
    shape: Shape,
    pub(crate) stats: MatcherStats,
}

/// Counts of the conditions of all filters, from which their memory follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shape {
    /// Conditions of intervals alone.
    spans: usize,
    /// Other conditions, and the lists that they stand in.
    listed: usize,
    lists: usize,
    /// Conditions that say nothing.
    residual: usize,
}

impl Shape {
    fn of(conditions: &[Condition]) -> Shape {
        let mut shape = Shape::default();
        for condition in conditions {
            if condition.is_span() {
                shape.spans += 1;
            } else {
                shape.listed += 1;
                shape.lists += condition.lists();
            }
            shape.residual += usize::from(condition.is_residual());
        }
        shape
    }

    fn add(&mut self, other: Shape) {
        self.spans += other.spans;
        self.listed += other.listed;
        self.lists += other.lists;
        self.residual += other.residual;
    }

    fn subtract(&mut self, other: Shape) {
        self.spans -= other.spans;
        self.listed -= other.listed;
        self.lists -= other.lists;
        self.residual -= other.residual;
    }

    fn bytes(&self, axes: usize) -> usize {
        let rows = list_bytes(0) * self.listed + (list_bytes(1) - list_bytes(0)) * self.lists;
        grid_bytes(axes) * self.spans + rows
    }
}

impl Matcher {
    /// A matcher without filters.
    #[must_use]
    pub fn new(limits: MatcherLimits) -> Matcher {
        Matcher {
            limits,
            ..Matcher::default()
        }
    }

    /// Whether there is room for a filter.
    ///
    /// # Errors
    /// It would exceed a bound.
    pub fn fits(&mut self, filter: &Filter) -> Result<(), TooComplex> {
        let numbered = self.numbered(filter)?;
        let fits = self.check_bounds(filter, &numbered.conditions, None);
        self.forget_unused(&numbered);
        fits
    }

    /// Adds a filter. Records that are under way do not find it.
    ///
    /// # Errors
    /// It would exceed a bound. Nothing is changed.
    pub fn insert(&mut self, filter: Filter) -> Result<FilterId, TooComplex> {
        let numbered = self.numbered(&filter)?;
        if let Err(refused) = self.check_bounds(&filter, &numbered.conditions, None) {
            self.forget_unused(&numbered);
            return Err(refused);
        }
        let id = self.slots.insert(filter);
        self.acquire(&numbered);
        self.index.insert(id, &numbered.conditions);
        self.tending.inserted(id, &numbered.conditions);
        Ok(id)
    }

    /// Takes a filter out, and gives it back; `None` if it is not there. Records under way do not find it from now on,
    /// and those that have found it show it still.
    pub fn remove(&mut self, id: FilterId) -> Option<Filter> {
        let filter = self.slots.remove(id)?;
        let conditions = Condition::known(&filter, &self.names);
        self.release(id, &conditions);
        Some(filter)
    }

    /// Puts another filter in the place of one, under the same id; gives the one that was there, `None` if there was
    /// none, and then nothing is changed. To records under way it is as if the one was removed and the other inserted.
    ///
    /// # Errors
    /// It would exceed a bound. Nothing is changed.
    pub fn change(&mut self, id: FilterId, filter: Filter) -> Result<Option<Filter>, TooComplex> {
        let Some(before) = self.slots.get(id).cloned() else {
            // Input: an id of a filter that was removed.
            return Ok(None);
        };
        let new = self.numbered(&filter)?;
        let old = Condition::known(&before, &self.names);
        let replaced = Some((&before, &*old));
        if let Err(refused) = self.check_bounds(&filter, &new.conditions, replaced) {
            self.forget_unused(&new);
            return Err(refused);
        }
        // In this order, so that a name that both have keeps its number.
        self.acquire(&new);
        self.release(id, &old);
        let before = self.slots.replace(id, filter);
        self.index.insert(id, &new.conditions);
        self.tending.inserted(id, &new.conditions);
        Ok(before)
    }

    /// The filter of an id; `None` if it was removed.
    #[must_use]
    pub fn get(&self, id: FilterId) -> Option<&Filter> {
        self.slots.get(id)
    }

    /// Filters, with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (FilterId, &Filter)> {
        self.slots.iter()
    }

    /// Number of filters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.filters()
    }

    /// Whether there are no filters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory of filters and index, in bytes, without that of an index which is being made beside the one in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slots.bytes() + self.index.bytes() + self.names.bytes()
    }

    /// Counts of its work.
    #[must_use]
    pub fn stats(&self) -> MatcherStats {
        self.stats
    }

    /// Sets a cursor before a record.
    pub fn begin(&self, facts: &Facts<'_>, cursor: &mut Cursor) {
        self.matching().begin(facts, cursor);
    }

    /// Holds a cursor's record, of which these are the facts, against the filters, until it is done or no units are
    /// left; takes off the units used. Whether it is done: then the cursor has its matches. A unit is 64 bytes
    /// of the index, a conjunction that is compared, or a match. It stops at most 1,100 units late.
    pub fn advance(&mut self, facts: &Facts<'_>, cursor: &mut Cursor, units: &mut u32) -> bool {
        let done = self.matching().advance(facts, cursor, units);
        self.stats.candidates += done.candidates;
        self.stats.matches += done.matches;
        self.stats.records += u64::from(done.is_all);
        done.is_all
    }

    fn matching(&self) -> Matching<'_> {
        Matching {
            names: &self.names,
            slots: &self.slots,
            index: &self.index,
            version: self.version,
        }
    }

    /// The conditions of a filter, whose names are given numbers.
    fn numbered(&mut self, filter: &Filter) -> Result<Numbered, TooComplex> {
        let mut names = Vec::new();
        let table = &mut self.names;
        let conditions = Condition::all_of(filter, |name| {
            let id = table.find_or_add(name)?;
            names.push(id);
            Some(id)
        });
        let is_numbered = conditions.is_some();
        let numbered = Numbered {
            conditions: conditions.unwrap_or_default(),
            names,
        };
        if is_numbered {
            Ok(numbered)
        } else {
            self.forget_unused(&numbered);
            Err(TooComplex::Names)
        }
    }

    /// Gives up the numbers of names that no condition in the index has.
    fn forget_unused(&mut self, numbered: &Numbered) {
        numbered
            .names
            .iter()
            .for_each(|name| self.names.forget_unused(*name));
    }

    fn check_bounds(
        &self,
        filter: &Filter,
        conditions: &[Condition],
        replaced: Option<(&Filter, &[Condition])>,
    ) -> Result<(), TooComplex> {
        let axes = self.names.len().min(AXES_MAX);
        let own = Shape::of(conditions);
        let mut all = self.shape;
        let mut filters = self.len() + 1;
        let mut held = self.bytes() + filter.heap_bytes() + own.bytes(axes);
        let mut code = self.slots.code_bytes() + filter.heap_bytes();
        if let Some((before, conditions)) = replaced {
            let shape = Shape::of(conditions);
            all.subtract(shape);
            filters -= 1;
            code -= before.heap_bytes();
            held = held.saturating_sub(before.heap_bytes() + shape.bytes(axes));
        }
        if own.residual > 0 && all.residual >= self.limits.residual {
            return Err(TooComplex::Residual(self.limits.residual));
        }
        all.add(own);
        let each = PLACES_BYTES + SLOT_BYTES + ALLOCATION_BYTES;
        let tended = all.bytes(axes) + filters * each + code;
        let bytes = tended.max(held);
        if bytes > self.limits.bytes {
            return Err(TooComplex::Bytes(bytes, self.limits.bytes));
        }
        Ok(())
    }

    /// Counts the conditions of a filter, and their names.
    fn acquire(&mut self, numbered: &Numbered) {
        self.shape.add(Shape::of(&numbered.conditions));
        for condition in &numbered.conditions {
            for (name, _) in &condition.bounds {
                self.names.acquire(*name, condition.is_span());
            }
        }
        self.forget_unused(numbered);
    }

    /// Takes the conditions of a filter out of the index, and no longer counts them.
    fn release(&mut self, id: FilterId, conditions: &[Condition]) {
        self.index.remove(id.slot);
        self.tending.removed(id.slot);
        self.shape.subtract(Shape::of(conditions));
        for condition in conditions {
            for (name, _) in &condition.bounds {
                self.names.release(*name, condition.is_span());
            }
        }
        let names = conditions.iter().flat_map(|condition| &condition.bounds);
        names.for_each(|(name, _)| self.names.forget_unused(*name));
    }

    /// Asserts the invariants. For tests: it looks at everything.
    ///
    /// # Panics
    /// One does not hold.
    pub fn check(&self) {
        self.index.grid.check();
        let mut conditions = 0;
        for (id, filter) in self.slots.iter() {
            let rows = self.index.rows(id.slot);
            let rows = rows
                .inspect(|row| assert_eq!(row.id(), id, "{filter}"))
                .count();
            let known = Condition::known(filter, &self.names);
            assert_eq!(rows, known.len(), "rows of {filter}");
            conditions += rows;
        }
        assert_eq!(
            conditions,
            self.index.len(),
            "rows of filters that are not there"
        );
        assert_eq!(
            conditions,
            self.shape.spans + self.shape.listed,
            "conditions"
        );
    }
}

/// The conditions of a filter.
struct Numbered {
    conditions: Vec<Condition>,
    /// Names that were asked for their numbers. Not each is in a condition.
    names: Vec<NameId>,
}
