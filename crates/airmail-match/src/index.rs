//! Where each filter's conjunctions are: the grid, and the lists.

use crate::condition::Condition;
use crate::grid::{Axis, Grid, GridRow};
use crate::lists::{ListKey, ListedRow, Lists};
use crate::row::Row;
use crate::slots::{FilterId, Slot};
use smallvec::SmallVec;

/// The longest list that is better than the grid, where a conjunction may have either.
const LIST_MAX: usize = 256;

/// A conjunction's place, in 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

/// The bit of a place that is a list's.
const LISTED: u32 = 1 << 31;

enum At {
    Grid(GridRow),
    Listed(ListedRow),
}

impl Place {
    fn at(self) -> At {
        if self.0 & LISTED == 0 {
            At::Grid(GridRow(self.0))
        } else {
            At::Listed(ListedRow(self.0 & !LISTED))
        }
    }
}

/// The places of one filter.
type Places = SmallVec<[Place; 4]>;

/// Filters' conjunctions, in the grid and in lists.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) grid: Grid,
    pub(crate) lists: Lists,
    places: Vec<Places>,
    /// Filters with more places than stand beside the others.
    many_bytes: usize,
}

impl Index {
    /// An index without filters, with these axes.
    pub(crate) fn new(axes: Vec<Axis>) -> Index {
        Index {
            grid: Grid::new(axes),
            ..Index::default()
        }
    }

    /// Puts the conditions of a filter in. It must not be in.
    pub(crate) fn insert(&mut self, id: FilterId, conditions: &[Condition]) {
        let slot = id.slot;
        let places: Places = conditions
            .iter()
            .map(|condition| self.place(Row::new(id, condition, conditions.len()), condition))
            .collect();
        if self.places.len() <= slot.index() {
            self.places.resize(slot.index() + 1, Places::new());
        }
        self.many_bytes += heap_bytes(&places);
        self.places[slot.index()] = places;
    }

    fn place(&mut self, row: Row, condition: &Condition) -> Place {
        let listed = |index: &mut Index, row: Row, lists: &[ListKey]| {
            Place(index.lists.insert(row, lists).0 | LISTED)
        };
        if condition.is_residual() {
            return listed(self, row, &[ListKey::RESIDUAL]);
        }
        let length =
            |lists: &[ListKey]| -> usize { lists.iter().map(|list| self.lists.len(*list)).sum() };
        let rarest = condition
            .equalities
            .iter()
            .min_by_key(|lists| length(lists));
        let has_axis = condition
            .bounds
            .iter()
            .any(|(name, _)| self.grid.has_axis(*name));
        match rarest {
            Some(lists) if !has_axis || length(lists) <= LIST_MAX => listed(self, row, lists),
            _ if has_axis => Place(self.grid.insert(row, &condition.bounds).0),
            _ => {
                let names = condition
                    .bounds
                    .iter()
                    .map(|(name, _)| ListKey::present(*name));
                let rarest = names.min_by_key(|list| self.lists.len(*list));
                listed(self, row, &[rarest.unwrap_or(ListKey::RESIDUAL)])
            }
        }
    }

    /// Takes a filter out, if it is in.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let Some(places) = self.places.get_mut(slot.index()) else {
            // Input: a filter that is not in.
            return;
        };
        let places = std::mem::take(places);
        self.many_bytes -= heap_bytes(&places);
        for place in places {
            match place.at() {
                At::Grid(row) => self.grid.remove(row),
                At::Listed(row) => self.lists.remove(row),
            }
        }
    }

    /// Whether a filter has a place in it. One that nothing matches has none.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.places
            .get(slot.index())
            .is_some_and(|places| !places.is_empty())
    }

    /// The rows of a filter.
    pub(crate) fn rows(&self, slot: Slot) -> impl Iterator<Item = &Row> {
        let places = self.places.get(slot.index()).into_iter().flatten();
        places.map(|place| match place.at() {
            At::Grid(row) => self.grid.row(row),
            At::Listed(row) => self.lists.row(row),
        })
    }

    /// Conjunctions in it.
    pub(crate) fn len(&self) -> usize {
        self.grid.rows() + self.lists.used()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.grid.bytes()
            + self.lists.bytes()
            + self.places.capacity() * size_of::<Places>()
            + self.many_bytes
    }
}

fn heap_bytes(places: &Places) -> usize {
    if places.spilled() {
        places.capacity() * size_of::<Place>()
    } else {
        0
    }
}

/// Bytes that a conjunction takes in the grid, with so many axes; in a list, with so many lists; and a filter beside
/// them.
pub(crate) const fn grid_bytes(axes: usize) -> usize {
    size_of::<Row>() + axes * 33
}

/// Bytes that a conjunction takes that stands in so many lists: its row, and for each list an entry in a table and
/// some memory of its own.
pub(crate) const fn list_bytes(lists: usize) -> usize {
    size_of::<Row>() + 24 + lists * 64
}

/// Bytes that a filter takes beside its conjunctions.
pub(crate) const PLACES_BYTES: usize = size_of::<Places>();
