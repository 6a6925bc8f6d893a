//! A record on its way through the index.

use crate::grid::Picks;
use crate::key::Key;
use crate::lists::ListKey;
use crate::name_table::NameId;
use crate::slots::{FilterId, Slot};

/// A record on its way through a [`Matcher`](crate::Matcher), and its matches so far. One is used for one record after
/// another, so that nothing is allocated; a matcher may have several.
#[derive(Debug, Default)]
pub struct Cursor {
    /// The record's values, by their names' numbers.
    pub(crate) keys: Vec<Key>,
    /// The names of `keys` that are not absent.
    named: Vec<NameId>,
    pub(crate) at: Progress,
    /// For each slot, the mark of the last record of which its filter was judged.
    judged: Vec<u32>,
    mark: u32,
    pub(crate) matches: Vec<FilterId>,
    /// The matcher's insertions when the record was begun.
    pub(crate) begun: u64,
    /// The version of the index that `at` is of.
    pub(crate) version: u64,
}

/// A place on the way: first all lists, then the blocks of the grid.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The lists of the record's attributes.
    pub(crate) lists: Vec<ListKey>,
    /// The list that is gone through.
    pub(crate) list: usize,
    /// Its entries that are not yet judged, from the front; `None`: all of them.
    pub(crate) left: Option<usize>,
    pub(crate) picks: Picks,
    /// The next block.
    pub(crate) block: usize,
}

impl Cursor {
    /// A cursor without a record.
    #[must_use]
    pub fn new() -> Cursor {
        Cursor::default()
    }

    /// Filters that the record matches, each once, in an order of the index's own; all of them when
    /// [`Matcher::advance`](crate::Matcher::advance) has said that it is done. One that was removed since is still
    /// there.
    #[must_use]
    pub fn matches(&self) -> &[FilterId] {
        &self.matches
    }

    /// Memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Key>()
            + self.named.capacity() * size_of::<NameId>()
            + self.at.lists.capacity() * size_of::<ListKey>()
            + self.judged.capacity() * size_of::<u32>()
            + self.matches.capacity() * size_of::<FilterId>()
    }

    /// Forgets the record before. There are so many names, and so many slots.
    pub(crate) fn clear(&mut self, names: usize, slots: usize) {
        for name in self.named.drain(..) {
            self.keys[name.index()] = Key::ABSENT;
        }
        self.keys.resize(names.max(self.keys.len()), Key::ABSENT);
        self.judged.resize(slots.max(self.judged.len()), self.mark);
        self.begin_again();
    }

    /// Forgets what was found, and judges all filters anew.
    pub(crate) fn begin_again(&mut self) {
        self.matches.clear();
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            // Marks come again: none may be taken for a new one.
            self.judged.fill(0);
            self.mark = 1;
        }
    }

    /// Sets a value of the record.
    #[inline]
    pub(crate) fn set(&mut self, name: NameId, key: Key) {
        self.keys[name.index()] = key;
        self.named.push(name);
    }

    /// Whether a filter was not yet judged; it is from now on.
    #[inline]
    pub(crate) fn is_first_look(&mut self, slot: Slot) -> bool {
        let Some(mark) = self.judged.get_mut(slot.index()) else {
            // Input: a filter that came after the record was begun, and is not asked about it.
            return false;
        };
        let is_first = *mark != self.mark;
        *mark = self.mark;
        is_first
    }
}
