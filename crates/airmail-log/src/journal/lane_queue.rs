//! The batches that wait to be stored: a queue for each lane, which go by turns.
//!
//! Lane high goes first, but while normal waits too it gets its share of the bytes ([`LaneTurns`]). A log is
//! of one lane, so its batches are in one queue and never overtake each other; a log's places, its answers and its
//! producers depend on no other log, so that others overtake it changes nothing for it.
//!
//! Invariants, held by [`LaneQueue::check`]:
//! - `bytes` is the total size of the waiting batches of each lane.
//! - A batch waits in the queue of its log's lane.
//! - Batches of a log that are written for the first time wait in order of number.

use super::append::{cost, waiting_cost};
use super::entry::Entry;
use super::id::Slot;
use airmail_model::{Lane, LaneBytes, LaneTurns, NormalShare};
use std::collections::{BTreeMap, VecDeque};

/// Both queues. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct LaneQueue {
    /// By [`Lane`] as an index.
    lanes: [VecDeque<Entry>; 2],
    bytes: LaneBytes,
    turns: LaneTurns,
}

impl LaneQueue {
    /// An empty one, in which normal has this share.
    pub(super) fn new(share: NormalShare) -> LaneQueue {
        LaneQueue {
            turns: LaneTurns::new(share),
            ..LaneQueue::default()
        }
    }

    /// A batch waits behind those of its lane that do.
    pub(super) fn add(&mut self, entry: Entry) {
        let lane = entry.lane();
        self.bytes.add(lane, waiting_cost(&entry.batch));
        self.lanes[lane as usize].push_back(entry);
    }

    /// Batches wait before all of their lane that do, in their order.
    pub(super) fn put_back(&mut self, entries: Vec<Entry>) {
        for entry in entries.into_iter().rev() {
            let lane = entry.lane();
            self.bytes.add(lane, waiting_cost(&entry.batch));
            self.lanes[lane as usize].push_front(entry);
        }
    }

    /// The next batch of the `open` lanes, which waits no more.
    pub(super) fn next(&mut self, open: [bool; 2]) -> Option<Entry> {
        let lane = self.turns.next(self.waiting_in(open))?;
        let entry = self.lanes[lane as usize].pop_front()?;
        self.bytes.remove(lane, waiting_cost(&entry.batch));
        Some(entry)
    }

    /// A batch that was the next one of the `open` lanes goes: it was its lane's turn.
    pub(super) fn took(&mut self, entry: &Entry, open: [bool; 2]) {
        let lane = entry.lane();
        let other_waits = self.waiting_in(open)[lane.other() as usize];
        self.turns.took(lane, cost(&entry.batch), other_waits);
    }

    /// Whether a batch of each of the `open` lanes waits.
    fn waiting_in(&self, open: [bool; 2]) -> [bool; 2] {
        let [normal, high] = &self.lanes;
        [open[0] && !normal.is_empty(), open[1] && !high.is_empty()]
    }

    /// All that wait, high first; none does any more, so it is nobody's turn.
    pub(super) fn take_all(&mut self) -> Vec<Entry> {
        self.bytes = LaneBytes::default();
        let mut all = Vec::new();
        for lane in self.lanes.iter_mut().rev() {
            all.extend(lane.drain(..));
        }
        all
    }

    /// Forgets the batches of a log.
    pub(super) fn forget_log(&mut self, slot: Slot) {
        for lane in Lane::ALL {
            self.lanes[lane as usize].retain(|entry| {
                let gone = entry.slot == slot;
                if gone {
                    self.bytes.remove(lane, waiting_cost(&entry.batch));
                }
                !gone
            });
        }
    }

    /// Those that wait, high first; each lane in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.lanes.iter().rev().flatten()
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    /// Whether the first of a lane is to be written once more.
    pub(super) fn begins_with_a_copy(&self) -> bool {
        let mut first = self.lanes.iter().filter_map(VecDeque::front);
        first.any(|entry| entry.copy)
    }

    /// Sizes of the waiting batches in their segments.
    pub(super) fn bytes(&self) -> LaneBytes {
        self.bytes
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        let mut bytes = LaneBytes::default();
        let mut last = BTreeMap::new();
        for lane in Lane::ALL {
            for entry in &self.lanes[lane as usize] {
                assert_eq!(entry.lane(), lane, "the lane of slot {}", entry.slot);
                bytes.add(lane, waiting_cost(&entry.batch));
                if !entry.copy {
                    let before = last.insert(entry.slot, entry.first);
                    assert!(
                        before < Some(entry.first),
                        "slot {}: {} waits behind {before:?}",
                        entry.slot,
                        entry.first
                    );
                }
            }
        }
        assert_eq!(self.bytes, bytes, "the bytes that wait");
    }
}
