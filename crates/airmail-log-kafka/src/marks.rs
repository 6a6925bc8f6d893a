//! Marks: the records of a log that are copies, in whole or in part, for whoever reads it again.
//!
//! A sweep cannot tell a copy by itself: the first one may be gone with the log's beginning. So each record of which
//! something was left out is marked when it is read through, and the marks go with the statements about the log.
//! They are kept in *segments* of a fixed number of marks, counted from the log's beginning: a segment that is full
//! never changes, so a statement refers to it and does not write it again, and its bytes are the same wherever they
//! are kept.
//!
//! There are never more than so many full segments. With the one that is full next, the oldest goes, and with it the
//! log's beginning as far as that segment went: what nobody can tell from a copy is given to nobody, rather than a copy
//! come back. The bound is far above what retries leave in what is kept. Because segments are counted by the log, this
//! happens at the same place for every reader.
//!
//! Invariant `few_segments`: there are never more full segments than the bounds say.

use crate::place::Offset;
use bytes::Bytes;
use std::collections::VecDeque;

/// Bytes of a mark: an offset, and a number of messages.
const MARK_BYTES: usize = 10;

/// Bounds on a log's marks. They are the same for all readers of a cluster; tests have small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkBounds {
    /// Marks in a segment, at least 1. Default 16,384: 160 KiB.
    pub in_segment: usize,
    /// Full segments that are kept. Default 128: 2,097,152 marks, 20 MiB.
    pub segments: u64,
}

impl Default for MarkBounds {
    fn default() -> MarkBounds {
        MarkBounds {
            in_segment: 16_384,
            segments: 128,
        }
    }
}

/// A segment: its number, from 0, and its marks in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) marks: Bytes,
}

/// Marks of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    bounds: MarkBounds,
    full: VecDeque<Segment>,
    /// Number of the segment that is not full.
    number: u64,
    open: Vec<u8>,
    /// Nothing is known of records before this: their marks are gone.
    floor: Offset,
}

/// The mark at a place in a segment.
fn mark(marks: &[u8], at: usize) -> Option<(Offset, u32)> {
    let bytes = marks.get(at * MARK_BYTES..)?.first_chunk::<MARK_BYTES>()?;
    let [o0, o1, o2, o3, o4, o5, o6, o7, n0, n1] = *bytes;
    let offset = u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
    Some((Offset(offset), u16::from_be_bytes([n0, n1]).into()))
}

fn last(marks: &[u8]) -> Option<Offset> {
    let count = marks.len() / MARK_BYTES;
    mark(marks, count.checked_sub(1)?).map(|(offset, _)| offset)
}

fn find(marks: &[u8], offset: Offset) -> Option<u32> {
    let (mut low, mut high) = (0, marks.len() / MARK_BYTES);
    while low < high {
        let middle = low.midpoint(high);
        let (found, left_out) = mark(marks, middle)?;
        match found.cmp(&offset) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return Some(left_out),
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// Whether marks are whole, and their offsets rise.
fn is_sound(marks: &[u8]) -> bool {
    let count = marks.len() / MARK_BYTES;
    let offset = |at| mark(marks, at).map(|(offset, _)| offset);
    marks.len().is_multiple_of(MARK_BYTES) && (1..count).all(|at| offset(at - 1) < offset(at))
}

impl Marks {
    /// No marks, at a log's beginning.
    pub(crate) fn new(bounds: MarkBounds) -> Marks {
        Marks {
            bounds,
            ..Marks::default()
        }
    }

    /// Marks as they were stated: the number of the segment that is not full, the floor, and segments in order. `None`:
    /// these are none that could have been.
    pub(crate) fn restore(
        bounds: MarkBounds,
        number: u64,
        floor: Offset,
        segments: Vec<Segment>,
    ) -> Option<Marks> {
        let mut marks = Marks {
            number,
            floor,
            ..Marks::new(bounds)
        };
        for segment in segments {
            let before = marks.full.back().map(|before| before.number);
            let is_next = before.is_none_or(|before| before + 1 == segment.number);
            if !is_sound(&segment.marks) || !is_next || segment.number > number {
                return None;
            }
            if segment.number == number {
                marks.open = segment.marks.to_vec();
            } else {
                marks.full.push_back(segment);
            }
        }
        Some(marks)
    }

    /// Marks the next record of which the first so many messages are left out.
    pub(crate) fn push(&mut self, offset: Offset, left_out: u32) {
        self.open.extend(offset.0.to_be_bytes());
        let left_out = u16::try_from(left_out).unwrap_or(u16::MAX);
        self.open.extend(left_out.to_be_bytes());
        if self.open.len() < self.bounds.in_segment.max(1) * MARK_BYTES {
            return;
        }
        self.full.push_back(Segment {
            number: self.number,
            marks: std::mem::take(&mut self.open).into(),
        });
        self.number += 1;
        let kept = self.number.saturating_sub(self.bounds.segments);
        let is_gone = |segment: &&Segment| segment.number < kept;
        while self.full.front().filter(is_gone).is_some() {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(last) = self.full.pop_front().and_then(|of| last(&of.marks)) {
            self.floor = self.floor.max(last.plus(1));
        }
    }

    /// Number of a record's first messages that are left out; 0 for one without a mark.
    pub(crate) fn of(&self, offset: Offset) -> u32 {
        let at = self
            .full
            .partition_point(|segment| last(&segment.marks) < Some(offset));
        let segment = self.full.get(at).map_or(&self.open[..], |s| &s.marks);
        find(segment, offset).unwrap_or(0)
    }

    /// Forgets segments that lie before an offset.
    pub(crate) fn forget_before(&mut self, first: Offset) {
        let is_before = |segment: &&Segment| last(&segment.marks) < Some(first);
        while self.full.front().filter(is_before).is_some() {
            self.forget_first();
        }
    }

    /// Takes note that nobody has read what is before an offset.
    pub(crate) fn begin_at(&mut self, first: Offset) {
        self.floor = self.floor.max(first);
    }

    /// The offset before which nobody knows what is a copy.
    pub(crate) fn floor(&self) -> Offset {
        self.floor
    }

    /// Number of the segment that is not full.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The last record with a mark, if it is known.
    pub(crate) fn last(&self) -> Option<Offset> {
        let full = self.full.back().and_then(|segment| last(&segment.marks));
        last(&self.open).or(full)
    }

    /// All segments with marks, in order.
    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment> {
        let open = (!self.open.is_empty()).then(|| Segment {
            number: self.number,
            marks: Bytes::copy_from_slice(&self.open),
        });
        self.full.iter().cloned().chain(open)
    }

    /// Asserts what the module's documentation says.
    pub(crate) fn check(&self) {
        assert!(
            self.full.len() as u64 <= self.bounds.segments,
            "few_segments"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: MarkBounds = MarkBounds {
        in_segment: 3,
        segments: 2,
    };

    fn restored(marks: &Marks) -> Marks {
        let segments = marks.segments().collect();
        Marks::restore(marks.bounds, marks.number, marks.floor, segments).unwrap()
    }

    proptest! {
        #[test]
        fn marks_are_those_of_a_map_from_their_floor_on(
            steps in prop::collection::vec((1_u64..4, 1_u32..4096), 0..40),
        ) {
            let (mut marks, mut map) = (Marks::new(SMALL), std::collections::BTreeMap::new());
            let mut offset = 0;
            for (step, left_out) in steps {
                offset += step;
                marks.push(Offset(offset), left_out);
                marks.check();
                map.insert(offset, left_out);
                marks = restored(&marks);
            }
            for at in marks.floor().0..offset + 3 {
                let expected = map.get(&at).copied().unwrap_or(0);
                prop_assert_eq!(marks.of(Offset(at)), expected, "at {}", at);
            }
            let below = map.keys().filter(|at| **at < marks.floor().0).count();
            prop_assert!(map.len() - below <= 3 * 2 + 2);
            prop_assert_eq!(marks.last(), map.keys().last().map(|at| Offset(*at)));
        }
    }

    #[test]
    fn the_floor_rises_at_the_same_mark_whoever_has_forgotten_what_is_gone() {
        let mut known = Marks::new(SMALL);
        let mut trimmed = Marks::new(SMALL);
        for offset in 0..20 {
            known.push(Offset(offset), 1);
            trimmed.push(Offset(offset), 1);
            trimmed.forget_before(Offset(offset));
            assert!(known.floor() <= trimmed.floor() && trimmed.floor() <= Offset(offset));
            let segments: Vec<Segment> = trimmed.segments().collect();
            assert!(known.segments().collect::<Vec<_>>().ends_with(&segments));
            assert_eq!(known.of(Offset(offset)), 1);
        }
        assert_eq!(known.floor(), Offset(12));
        assert_eq!(
            known.segments().map(|s| s.number).collect::<Vec<_>>(),
            [4, 5, 6]
        );
    }

    #[test]
    fn segments_that_were_never_stated_so_are_refused() {
        let mut marks = Marks::new(SMALL);
        for offset in 0..7 {
            marks.push(Offset(offset), 1);
        }
        let segments: Vec<Segment> = marks.segments().collect();
        let restore = |segments| Marks::restore(SMALL, 2, Offset(0), segments);
        assert!(restore(segments.clone()).is_some());
        assert!(
            restore(vec![segments[0].clone(), segments[2].clone()]).is_none(),
            "a gap"
        );
        assert!(
            restore(vec![segments[1].clone(), segments[0].clone()]).is_none(),
            "order"
        );
        let torn = Segment {
            marks: segments[0].marks.slice(..7),
            ..segments[0].clone()
        };
        assert!(restore(vec![torn]).is_none());
    }
}
