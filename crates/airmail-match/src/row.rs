//! A conjunction as it is compared with a record: up to four bounds, in one and a half cache lines.

use crate::condition::Condition;
use crate::key::{Interval, Key};
use crate::name_table::NameId;
use crate::slots::{FilterId, Slot};

/// Bounds that a row holds. Of a conjunction with more, the filter is asked.
const BOUNDS_MAX: usize = 4;

/// A conjunction of a filter, in 80 bytes.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    bounds: [Interval; BOUNDS_MAX],
    /// The bounds' names; `NONE` behind the last.
    names: [NameId; BOUNDS_MAX],
    /// The filter's slot and, in the upper bits, flags.
    slot: u32,
    life: u32,
}

/// Set if the bounds say all that the conjunction says, strictly inside of them.
const EXACT: u32 = 1 << 31;
/// Set if the filter has no other row.
const ONLY: u32 = 1 << 30;

/// The relation of a record to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does not fulfil the conjunction.
    No,
    /// The filter has to be asked.
    Maybe,
    /// It fulfils the conjunction, so it matches the filter.
    Yes,
}

impl Row {
    /// The row of no conjunction.
    pub(crate) const NONE: Row = Row {
        bounds: [Interval::UNBOUNDED; BOUNDS_MAX],
        names: [NameId::NONE; BOUNDS_MAX],
        slot: 0,
        life: 0,
    };

    /// The row of one of so many conditions of a filter.
    pub(crate) fn new(id: FilterId, condition: &Condition, conditions: usize) -> Row {
        let is_exact = condition.is_exact && condition.bounds.len() <= BOUNDS_MAX;
        // A thousand million filters do not fit any memory.
        debug_assert!(id.slot.0 < ONLY, "{id:?} reaches into the flags");
        let mut row = Row {
            slot: id.slot.0
                | if is_exact { EXACT } else { 0 }
                | if conditions == 1 { ONLY } else { 0 },
            life: id.life,
            ..Row::NONE
        };
        for (at, (name, interval)) in condition.bounds.iter().take(BOUNDS_MAX).enumerate() {
            (row.names[at], row.bounds[at]) = (*name, *interval);
        }
        row
    }

    /// The filter.
    #[inline]
    pub(crate) fn id(&self) -> FilterId {
        FilterId {
            slot: Slot(self.slot & !(EXACT | ONLY)),
            life: self.life,
        }
    }

    /// Whether the filter has no other row.
    #[inline]
    pub(crate) fn is_only(&self) -> bool {
        self.slot & ONLY != 0
    }

    /// The bound on a name, if it has one.
    pub(crate) fn bound(&self, name: NameId) -> Option<Interval> {
        let at = self.names.iter().position(|other| *other == name)?;
        Some(self.bounds[at])
    }

    /// Compares it with a record, whose keys stand at its names' numbers.
    #[inline]
    pub(crate) fn verdict(&self, keys: &[Key]) -> Verdict {
        let mut is_inside = self.slot & EXACT != 0;
        for (name, interval) in self.names.iter().zip(&self.bounds) {
            if *name == NameId::NONE {
                break;
            }
            let key = keys.get(name.index()).copied().unwrap_or(Key::ABSENT);
            if key < interval.low || key > interval.high {
                return Verdict::No;
            }
            is_inside &= interval.low < key && key < interval.high;
        }
        if is_inside {
            Verdict::Yes
        } else {
            Verdict::Maybe
        }
    }
}
