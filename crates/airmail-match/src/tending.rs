//! When the index is made anew, and the work of it.
//!
//! An index made for few filters is made anew when there are twice as many, or a quarter; or when records are held
//! against much that they do not match, and enough filters have changed that another index may be better. Each
//! of these pays for the work: none comes again before about as much has changed.

use crate::condition::Condition;
use crate::matcher::{Matcher, MatcherStats};
use crate::rebuild::{Rebuild, Sources};
use crate::slots::{FilterId, Slot};

/// Filters for which lists alone do: fewer are not worth bitmaps.
const FILTERS_MIN: usize = 64;
/// Candidates for each match that are taken for many.
const CANDIDATES_OF_MATCH: u64 = 4;
/// Candidates for each filter that pay for an index.
const CANDIDATES_OF_FILTER: u64 = 16;
/// A part of the filters, the eighth, that has to have changed.
const CHANGED_PART: usize = 8;

/// The index in use, as it was when it was made; and the one that is being made.
#[derive(Debug, Default)]
pub(crate) struct Tending {
    rebuild: Option<Rebuild>,
    /// Filters when it was made; 0 of lists alone.
    filters: usize,
    /// Filters that have come, gone or changed since.
    changes: usize,
    /// Counts when it was made.
    stats: MatcherStats,
}

impl Tending {
    pub(crate) fn inserted(&mut self, id: FilterId, conditions: &[Condition]) {
        self.changes += 1;
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.inserted(id, conditions);
        }
    }

    pub(crate) fn removed(&mut self, slot: Slot) {
        self.changes += 1;
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.removed(slot);
        }
    }

    fn is_due(&self, filters: usize, now: MatcherStats) -> bool {
        if filters < FILTERS_MIN {
            return self.filters > 0;
        }
        let candidates = now.candidates - self.stats.candidates;
        let matches = now.matches - self.stats.matches;
        let are_many = candidates > CANDIDATES_OF_MATCH * matches
            && candidates > CANDIDATES_OF_FILTER * filters as u64;
        let may_help = self.changes > filters / CHANGED_PART;
        filters >= 2 * self.filters || filters <= self.filters / 4 || (are_many && may_help)
    }
}

impl Matcher {
    /// Makes the index anew where it is time to, beside the one in use, as far as the units go. Whether there is more
    /// to do: then call it again, in a later turn. To be called now and then, always after many filters have come: as
    /// long as it has not been, filters stand in lists alone, and records are held against each that has one of their
    /// names. A unit is about the time of one in [`Matcher::advance`]; it stops at most some thousand units late.
    pub fn tend(&mut self, units: u32) -> bool {
        let mut units = units;
        let filters = self.len();
        let mut rebuild = match self.tending.rebuild.take() {
            Some(rebuild) => rebuild,
            None if self.tending.is_due(filters, self.stats) => {
                self.tending.changes = 0;
                Rebuild::new(&self.names, filters >= FILTERS_MIN)
            }
            None => return false,
        };
        let from = Sources {
            names: &self.names,
            slots: &self.slots,
            index: &self.index,
        };
        if !rebuild.advance(from, &mut units) {
            self.tending.rebuild = Some(rebuild);
            return true;
        }
        self.index = rebuild.index;
        self.version += 1;
        self.stats.rebuilds += 1;
        self.tending.filters = if filters < FILTERS_MIN { 0 } else { filters };
        self.tending.stats = self.stats;
        false
    }
}
