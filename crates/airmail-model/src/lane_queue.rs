//! Turns of two lanes where both wait: one rule for every queue, window and reader.
//!
//! High goes first. While normal waits too it gets [`NORMAL_SHARE`] of the bytes, in [`LaneTurns`] by the debt that
//! each byte of high adds; so order within a lane holds, and neither waits for ever. Nobody is promoted by its waiting
//! time: bounded queues are short in time, and such a promotion would come too late to help.
//!
//! Invariants, while both lanes wait: of the bytes that have gone, normal's are at least its share less one item of
//! each lane, and high's are all the rest. Whoever comes to an empty lane finds nothing saved up, for either.

use crate::Lane;
use std::collections::VecDeque;

/// Normal's part of the bytes while high waits too: one in so many.
pub const NORMAL_SHARE: u64 = 4;

/// Turns of two lanes, by bytes.
///
/// ```
/// use airmail_model::{Lane, LaneTurns};
///
/// let mut turns = LaneTurns::default();
/// let four = [(); 4].map(|()| turns.next(Some(100), Some(100)));
/// assert_eq!(four, [Lane::High, Lane::High, Lane::High, Lane::Normal].map(Some));
/// assert_eq!(turns.next(Some(100), None), Some(Lane::Normal), "alone it has everything");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneTurns {
    /// Bytes of high that have gone while normal waited, less what normal got for them.
    debt: u64,
}

impl LaneTurns {
    /// The lane that goes next, of those whose first item's bytes are given. Those bytes count as gone.
    pub fn next(&mut self, normal: Option<usize>, high: Option<usize>) -> Option<Lane> {
        let lane = self.peek(normal, high)?;
        match (lane, normal, high) {
            (Lane::High, Some(_), Some(high)) => self.debt = self.debt.saturating_add(bytes(high)),
            (Lane::Normal, Some(normal), Some(_)) => self.debt -= price(normal),
            _ => self.debt = 0,
        }
        Some(lane)
    }

    /// The lane that would go next.
    #[must_use]
    pub fn peek(&self, normal: Option<usize>, high: Option<usize>) -> Option<Lane> {
        match (normal, high) {
            (None, None) => None,
            (Some(_), None) => Some(Lane::Normal),
            (None, Some(_)) => Some(Lane::High),
            (Some(normal), Some(_)) if self.debt >= price(normal) => Some(Lane::Normal),
            (Some(_), Some(_)) => Some(Lane::High),
        }
    }
}

/// Bytes of an item: what has none still takes its turn.
fn bytes(item: usize) -> u64 {
    (item as u64).max(1)
}

/// Bytes of high that have to go for an item of normal.
fn price(item: usize) -> u64 {
    bytes(item).saturating_mul(NORMAL_SHARE - 1)
}

/// A queue of items of both lanes, each with its bytes, taken by turns.
///
/// ```
/// use airmail_model::{Lane, LaneQueue};
///
/// let mut queue = LaneQueue::default();
/// queue.push(Lane::Normal, 100, "of all days");
/// queue.push(Lane::High, 100, "urgent");
/// assert_eq!(queue.pop(), Some((Lane::High, 100, "urgent")));
/// assert_eq!(queue.bytes(Lane::Normal), 100);
/// ```
#[derive(Clone, Debug)]
pub struct LaneQueue<T> {
    lanes: [OneLane<T>; Lane::ALL.len()],
    turns: LaneTurns,
}

#[derive(Clone, Debug)]
struct OneLane<T> {
    items: VecDeque<(usize, T)>,
    bytes: usize,
}

impl<T> Default for LaneQueue<T> {
    fn default() -> LaneQueue<T> {
        let lane = || OneLane {
            items: VecDeque::new(),
            bytes: 0,
        };
        LaneQueue {
            lanes: [lane(), lane()],
            turns: LaneTurns::default(),
        }
    }
}

impl<T> LaneQueue<T> {
    /// Puts an item of `bytes` at the end of its lane.
    pub fn push(&mut self, lane: Lane, bytes: usize, item: T) {
        let lane = &mut self.lanes[lane as usize];
        lane.items.push_back((bytes, item));
        lane.bytes += bytes;
    }

    /// The item whose turn it is, with its lane and bytes.
    pub fn pop(&mut self) -> Option<(Lane, usize, T)> {
        let lane = self
            .turns
            .next(self.first(Lane::Normal), self.first(Lane::High))?;
        let queue = &mut self.lanes[lane as usize];
        let (bytes, item) = queue.items.pop_front()?;
        queue.bytes -= bytes;
        Some((lane, bytes, item))
    }

    /// The lane whose turn it is, and its first item.
    #[must_use]
    pub fn peek(&self) -> Option<(Lane, &T)> {
        let lane = self
            .turns
            .peek(self.first(Lane::Normal), self.first(Lane::High))?;
        let (_, item) = self.lanes[lane as usize].items.front()?;
        Some((lane, item))
    }

    /// Bytes of the first item of a lane.
    fn first(&self, lane: Lane) -> Option<usize> {
        let items = &self.lanes[lane as usize].items;
        items.front().map(|(bytes, _)| *bytes)
    }

    /// Bytes of a lane's items together.
    #[must_use]
    pub fn bytes(&self, lane: Lane) -> usize {
        self.lanes[lane as usize].bytes
    }

    /// Number of items, of both lanes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.items.len()).sum()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.items.is_empty())
    }

    /// A lane's items, oldest first.
    pub fn of(&self, lane: Lane) -> impl Iterator<Item = &T> {
        self.lanes[lane as usize].items.iter().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain count: whatever the sizes, while both wait.
        #[test]
        fn normal_gets_its_share_and_high_the_rest(
            normal in prop::collection::vec(1usize..5_000, 1..60),
            high in prop::collection::vec(1usize..5_000, 1..200),
        ) {
            let mut queue = LaneQueue::default();
            for (number, bytes) in normal.iter().enumerate() {
                queue.push(Lane::Normal, *bytes, number);
            }
            for (number, bytes) in high.iter().enumerate() {
                queue.push(Lane::High, *bytes, number);
            }
            let (mut gone, mut next) = ([0, 0], [0, 0]);
            while queue.bytes(Lane::Normal) > 0 && queue.bytes(Lane::High) > 0 {
                let (lane, bytes, number) = queue.pop().expect("both wait");
                prop_assert_eq!(number, next[lane as usize], "in order within its lane");
                next[lane as usize] += 1;
                gone[lane as usize] += bytes;
                let [of_normal, of_high] = gone;
                let share = (of_normal + of_high) / 4;
                prop_assert!(of_normal + 5_000 + 5_000 >= share, "{:?}", gone);
                prop_assert!(of_normal <= share + 5_000, "{:?}", gone);
            }
        }

        #[test]
        fn everything_that_is_put_in_comes_out_once(
            items in prop::collection::vec((any::<bool>(), 0usize..100), 0..100),
        ) {
            let mut queue = LaneQueue::default();
            for (number, (is_high, bytes)) in items.iter().enumerate() {
                let lane = if *is_high { Lane::High } else { Lane::Normal };
                queue.push(lane, *bytes, number);
            }
            prop_assert_eq!(queue.len(), items.len());
            let mut seen: Vec<usize> = Vec::new();
            while let Some((lane, first)) = queue.peek().map(|(lane, item)| (lane, *item)) {
                let (of, bytes, number) = queue.pop().expect("it was looked at");
                prop_assert_eq!((of, number), (lane, first));
                prop_assert_eq!((of == Lane::High, bytes), items[number]);
                seen.push(number);
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..items.len()).collect::<Vec<_>>());
            prop_assert!(queue.is_empty() && queue.bytes(Lane::High) + queue.bytes(Lane::Normal) == 0);
        }
    }

    #[test]
    fn a_lane_that_was_empty_has_nothing_saved_up() {
        let mut turns = LaneTurns::default();
        for _ in 0..1_000 {
            assert_eq!(turns.next(None, Some(100)), Some(Lane::High));
        }
        assert_eq!(turns.next(Some(100), Some(100)), Some(Lane::High));
        assert_eq!(turns.next(Some(100), None), Some(Lane::Normal));
        let three = [(); 3].map(|()| turns.next(Some(100), Some(100)));
        assert_eq!(three, [Some(Lane::High); 3]);
    }

    #[test]
    fn what_has_no_bytes_takes_its_turn() {
        let mut turns = LaneTurns::default();
        let four = [(); 4].map(|()| turns.next(Some(0), Some(0)));
        assert_eq!(four[3], Some(Lane::Normal));
    }
}
