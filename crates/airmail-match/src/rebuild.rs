//! An index made anew, beside the one in use, in units.
//!
//! 1. *Sampling*: the axes are the names that most conditions of intervals use. Some thousand filters tell where the
//!    ends of their intervals lie.
//! 2. *Cutting*: each axis is cut at quantiles of these.
//! 3. *Ordering*: filters are sorted by where they begin on the axes on which intervals are narrowest: by sixteenths
//!    of the first of these that they name, and by buckets of the second. So the rows that are possible for a
//!    record lie in few blocks.
//! 4. *Placing*: they are put into the new index in that order.
//!
//! A filter that comes from the third step on is put into both at once; one that goes is taken out of both. So
//! when the last is placed, the new index has the filters that there are.

use crate::condition::Condition;
use crate::grid::{AXES_MAX, Axis};
use crate::index::Index;
use crate::key::Interval;
use crate::name_table::{NameId, NameTable};
use crate::row::Row;
use crate::slots::{FilterId, Slot, Slots};
use std::collections::BTreeMap;

/// Filters that are asked for the ends of their intervals, about.
const SAMPLE: usize = 8192;
/// Units of placing one filter, but for its axes: as long as that many lines take.
const PLACING_UNITS: u32 = 64;
const PLACING_AXIS_UNITS: u32 = 32;
/// Buckets of a part of the axis by which filters are sorted first.
const PART_BUCKETS: usize = Axis::BUCKETS / 16;
/// Units of sorting one end.
const ENDS_OF_UNIT: usize = 8;

/// An index that is being made.
#[derive(Debug)]
pub(crate) struct Rebuild {
    /// Complete when all steps are done.
    pub(crate) index: Index,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Sampling(Sample),
    Cutting(Sample, Vec<Axis>),
    Ordering(Order),
    Placing(std::vec::IntoIter<Slot>),
}

/// Intervals of some filters, by axis.
#[derive(Debug, Default)]
struct Sample {
    names: Vec<NameId>,
    intervals: Vec<Vec<Interval>>,
    /// Rows that were looked at.
    rows: usize,
    /// The next slot.
    slot: usize,
}

/// Filters by where they begin.
#[derive(Debug)]
struct Order {
    /// The axes, that with the narrowest intervals first.
    axes: Vec<usize>,
    groups: BTreeMap<Beginning, Vec<Slot>>,
    slot: usize,
}

/// Where a filter begins: an axis by its rank, a part of it, another axis, and a bucket of that.
type Beginning = (usize, usize, usize, usize);

/// The parts of a matcher that an index is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) names: &'a NameTable,
    pub(crate) slots: &'a Slots,
    pub(crate) index: &'a Index,
}

impl Rebuild {
    /// Begins. Without axes all filters come to stand in lists.
    pub(crate) fn new(names: &NameTable, has_axes: bool) -> Rebuild {
        let names = names.most_used(if has_axes { AXES_MAX } else { 0 });
        let sample = Sample {
            intervals: vec![Vec::new(); names.len()],
            names,
            rows: 0,
            slot: 0,
        };
        Rebuild {
            index: Index::default(),
            step: Step::Sampling(sample),
        }
    }

    /// Puts a filter in that has come meanwhile.
    pub(crate) fn inserted(&mut self, id: FilterId, conditions: &[Condition]) {
        if matches!(self.step, Step::Ordering(_) | Step::Placing(_)) {
            self.index.insert(id, conditions);
        }
    }

    /// Takes a filter out that has gone meanwhile.
    pub(crate) fn removed(&mut self, slot: Slot) {
        self.index.remove(slot);
    }

    /// Goes on until it is done or no units are left. Whether it is done.
    pub(crate) fn advance(&mut self, from: Sources<'_>, units: &mut u32) -> bool {
        while *units > 0 {
            match &mut self.step {
                Step::Sampling(sample) => {
                    if sample.advance(from, units) {
                        let sample = std::mem::take(sample);
                        self.step = Step::Cutting(sample, Vec::new());
                    }
                }
                Step::Cutting(sample, axes) => {
                    if sample.cut(axes, units) {
                        let order = Order::by(sample.narrowest(axes));
                        self.index = Index::new(std::mem::take(axes));
                        self.step = Step::Ordering(order);
                    }
                }
                Step::Ordering(order) => {
                    if order.advance(from, &self.index, units) {
                        let groups = std::mem::take(&mut order.groups).into_values();
                        let slots: Vec<Slot> = groups.flatten().collect();
                        self.step = Step::Placing(slots.into_iter());
                    }
                }
                Step::Placing(slots) => match slots.next() {
                    Some(slot) => place(&mut self.index, from, slot, units),
                    None => return true,
                },
            }
        }
        false
    }
}

impl Sample {
    fn advance(&mut self, from: Sources<'_>, units: &mut u32) -> bool {
        let stride = from.slots.count().div_ceil(SAMPLE).max(1);
        while *units > 0 {
            let Some(slot) = slot_at(from.slots, self.slot) else {
                // Input: no filters beyond these.
                return true;
            };
            self.slot += stride;
            *units -= 1;
            for row in from.index.rows(slot) {
                self.rows += 1;
                for (name, intervals) in self.names.iter().zip(&mut self.intervals) {
                    intervals.extend(row.bound(*name));
                }
            }
        }
        false
    }

    /// Cuts one axis more; whether it was the last.
    fn cut(&self, axes: &mut Vec<Axis>, units: &mut u32) -> bool {
        let Some(name) = self.names.get(axes.len()) else {
            // Input: no names beyond these.
            return true;
        };
        let intervals = &self.intervals[axes.len()];
        let ends = intervals.iter().flat_map(|interval| interval.ends());
        axes.push(Axis::new(*name, ends.collect()));
        let sorting = u32::try_from(intervals.len() / ENDS_OF_UNIT).unwrap_or(u32::MAX);
        *units = units.saturating_sub(1 + sorting);
        false
    }

    /// The axes in the order of the buckets that a row has on them, in the mean, the fewest first.
    fn narrowest(&self, axes: &[Axis]) -> Vec<usize> {
        let buckets = |at: &usize| -> usize {
            let (axis, intervals) = (&axes[*at], &self.intervals[*at]);
            let widths = intervals
                .iter()
                .map(|interval| axis.buckets(*interval).count());
            widths.sum::<usize>() + (self.rows - intervals.len()) * Axis::BUCKETS
        };
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_cached_key(buckets);
        order
    }
}

impl Order {
    fn by(axes: Vec<usize>) -> Order {
        Order {
            axes,
            groups: BTreeMap::new(),
            slot: 0,
        }
    }

    fn advance(&mut self, from: Sources<'_>, index: &Index, units: &mut u32) -> bool {
        while *units > 0 {
            let Some(slot) = slot_at(from.slots, self.slot) else {
                // Input: no filters beyond these.
                return true;
            };
            self.slot += 1;
            *units -= 1;
            if let Some(row) = from.index.rows(slot).next() {
                let beginning = self.beginning(row, index.grid.axes());
                self.groups.entry(beginning).or_default().push(slot);
            }
        }
        false
    }

    fn beginning(&self, row: &Row, axes: &[Axis]) -> Beginning {
        let mut named = self.axes.iter().enumerate().filter_map(|(rank, axis)| {
            let axis = &axes[*axis];
            let buckets = axis.buckets(row.bound(axis.name)?);
            let is_narrow = buckets.clone().count() <= Axis::BUCKETS / 2;
            is_narrow.then_some((rank, *buckets.start()))
        });
        let last = (axes.len(), 0);
        let first = named.next().unwrap_or(last);
        let second = named.next().unwrap_or(last);
        (first.0, first.1 / PART_BUCKETS, second.0, second.1)
    }
}

fn slot_at(slots: &Slots, index: usize) -> Option<Slot> {
    let index = (index < slots.count()).then_some(index)?;
    u32::try_from(index).ok().map(Slot)
}

fn place(index: &mut Index, from: Sources<'_>, slot: Slot, units: &mut u32) {
    let Some((id, filter)) = from.slots.at(slot) else {
        // Input: a filter that was removed since.
        return;
    };
    if index.has(slot) {
        // Another filter has come into the slot, and is in already.
        return;
    }
    let conditions = Condition::known(filter, from.names);
    index.insert(id, &conditions);
    let axes = u32::try_from(index.grid.axes().len()).unwrap_or_default();
    let each = PLACING_UNITS + PLACING_AXIS_UNITS * axes;
    *units = units.saturating_sub(each * u32::try_from(conditions.len()).unwrap_or(1).max(1));
}
