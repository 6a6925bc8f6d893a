//! Places of a log's batches: the blocks that hold them, and their sizes there.
//!
//! Invariants, held by [`Places::check`]:
//! - Places are in order of number, and never overlap.
//! - `bytes` is their total size.

use super::id::{BlockId, Slot};
use super::table::Location;
use airmail_model::{AppendTime, Extent, Sequence};
use std::collections::VecDeque;

/// The records of one log in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) first: Sequence,
    pub(super) last: Sequence,
    pub(super) block: BlockId,
    /// The size of the batches, with their envelopes.
    pub(super) bytes: u64,
    pub(super) time_min: AppendTime,
    pub(super) time_max: AppendTime,
    /// The first of the log's entries in the block's index, and their number.
    pub(super) entries_at: u32,
    pub(super) entries: u32,
}

impl Place {
    /// Whether a block can hold this: a file may say anything, with a good checksum as well.
    pub(super) fn is_possible(&self) -> bool {
        let order = self.first <= self.last && self.last < Sequence::MAX;
        let numbers = self.first >= Sequence::FIRST && order;
        numbers && self.entries_at.checked_add(self.entries).is_some()
    }

    /// The numbers from its first to its last; in a block they follow one another.
    pub(super) const fn extent(&self) -> Extent {
        Extent {
            first: self.first,
            last: self.last,
        }
    }

    /// Whether these batches hold every number of it.
    pub(super) fn is_covered_by(&self, list: &[Location]) -> bool {
        let begins = list.first().is_some_and(|one| one.first <= self.first);
        let ends = list.last().is_some_and(|one| one.last() >= self.last);
        let follow = |pair: &[Location]| pair[0].extent().next() == pair[1].first;
        begins && ends && list.windows(2).all(follow)
    }
}

/// Where all of a log's batches are. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Size of the kept places, in bytes.
    bytes: u64,
    list: VecDeque<Place>,
    /// Given up, but the command that says so is not yet durable.
    leaving: Vec<Place>,
}

impl Places {
    /// Size of the kept places, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All places, in order of number.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Place> {
        self.list.iter()
    }

    /// Those that are given up by a command that is not yet durable.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &Place> {
        self.leaving.iter()
    }

    /// The blocks that hold something of the log, or have it held until a command is durable.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        let places = self.list.iter().chain(&self.leaving);
        places.map(|place| place.block)
    }

    /// The first place with a batch from a time on, and the one before it.
    pub(super) fn around(&self, at: AppendTime) -> (Option<&Place>, Option<&Place>) {
        let start = self.list.partition_point(|place| place.time_max < at);
        (self.list.get(start.wrapping_sub(1)), self.list.get(start))
    }

    /// Takes up a place that a checkpoint names; they come in order.
    pub(super) fn restore(&mut self, place: Place) {
        self.bytes += place.bytes;
        self.list.push_back(place);
    }

    /// Gives up the batches before `first`. For a block that has numbers on both sides of it,
    /// `list` gives the entries that stay, if they are in memory.
    pub(super) fn trim<'t>(&mut self, first: Sequence, list: impl Fn(BlockId) -> &'t [Location]) {
        while let Some(place) = self.list.front_mut() {
            if place.last < first {
                self.bytes -= place.bytes;
                self.leaving.push(*place);
                self.list.pop_front();
                continue;
            }
            if place.first < first {
                let list = list(place.block);
                let kept = &list[list.partition_point(|location| location.last() < first)..];
                if let Some(oldest) = kept.first() {
                    let bytes = kept.iter().map(Location::stored_bytes).sum();
                    self.bytes -= place.bytes - bytes;
                    place.bytes = bytes;
                    place.time_min = oldest.time;
                }
                place.first = first;
            }
            break;
        }
    }

    /// Takes the places before `first` that were given up, now that this is durable.
    pub(super) fn take_left(&mut self, first: Sequence) -> Vec<Place> {
        let gone = self.leaving.extract_if(.., |place| place.last < first);
        gone.collect()
    }

    /// Loses the first place, as if it had been given up.
    #[cfg(feature = "sabotage")]
    pub(super) fn lose_first(&mut self) -> Option<Place> {
        self.list.pop_front()
    }

    /// Notes that a block has its index, with the log's entries in it, of which `last` is the last
    /// number.
    pub(super) fn indexed(&mut self, block: BlockId, last: Sequence, at: u32, entries: u32) {
        let behind = self.list.partition_point(|place| place.last < last);
        if let Some(place) = self.list.get_mut(behind)
            && place.block == block
        {
            place.entries_at = at;
            place.entries = entries;
        }
    }

    /// The place that holds `number`, or the next after it.
    pub(super) fn from(&self, number: Sequence) -> Option<&Place> {
        self.list
            .get(self.list.partition_point(|place| place.last < number))
    }

    /// The log's place in a block.
    pub(super) fn within(&self, block: BlockId) -> Option<&Place> {
        self.list.iter().find(|place| place.block == block)
    }

    /// A batch is in a block; says whether it is the log's first there. Batches come in order of
    /// number, but for those of different classes when the journal opens.
    pub(super) fn take(&mut self, block: BlockId, location: &Location) -> bool {
        self.bytes += location.stored_bytes();
        let at = self
            .list
            .partition_point(|place| place.first < location.first);
        let before = at.checked_sub(1).and_then(|at| self.list.get_mut(at));
        if let Some(place) = before
            && place.block == block
        {
            place.last = location.last();
            place.bytes += location.stored_bytes();
            place.time_max = location.time;
            return false;
        }
        let place = Place {
            first: location.first,
            last: location.last(),
            block,
            bytes: location.stored_bytes(),
            time_min: location.time,
            time_max: location.time,
            entries_at: 0,
            entries: 0,
        };
        self.list.insert(at, place);
        true
    }

    /// A batch that has a place is durable in another: it leaves the old one. That one's block, if
    /// the log keeps nothing more in it.
    pub(super) fn leave(&mut self, location: &Location) -> Option<BlockId> {
        let at = self
            .list
            .partition_point(|place| place.last < location.first);
        let place = self.list.get_mut(at)?;
        if place.first > location.last() || location.last() > place.last {
            return None;
        }
        let bytes = location.stored_bytes().min(place.bytes);
        place.bytes -= bytes;
        self.bytes -= bytes;
        place.first = location.last().plus(1);
        if place.first <= place.last {
            return None;
        }
        let left = place.block;
        self.bytes -= place.bytes;
        self.list.remove(at);
        Some(left)
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self, slot: Slot) {
        for place in &self.list {
            assert!(place.first <= place.last, "slot {slot}: {place:?}");
        }
        let mut pairs = self.list.iter().zip(self.list.iter().skip(1));
        assert!(
            pairs.all(|(one, next)| one.last < next.first),
            "slot {slot}: places overlap: {:?}",
            self.list
        );
        let bytes: u64 = self.list.iter().map(|place| place.bytes).sum();
        assert_eq!(bytes, self.bytes, "slot {slot}: the bytes of its places");
    }
}
