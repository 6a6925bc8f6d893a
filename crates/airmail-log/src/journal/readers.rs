//! The readers of a journal: those that can go on, and those that read from a file.
//!
//! Reads of segments are bounded: a reader beyond the bound waits in a queue for its turn. A reader
//! that is gone may still be in the list of those that can go on, or in the queue: its entry is
//! skipped there.
//!
//! Invariants, held by [`Readers::check`]:
//! - Never more reads are under way than the bound.
//! - Each reader is under its own id, and has accounted for all numbers before its next.

use super::id::SegmentId;
use super::id::Slot;
use super::read::{Loaded, Reader};
use super::recent_runs::RecentRuns;
use super::table::Location;
use crate::contract::ReaderId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// All readers. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Readers {
    all: BTreeMap<ReaderId, Reader>,
    runnable: BTreeSet<ReaderId>,
    /// Reads of segments under way.
    reads: usize,
    /// Bytes that were read.
    read_bytes: u64,
    runs: RecentRuns,
    /// Those that wait to read.
    queue: VecDeque<ReaderId>,
}

impl Readers {
    /// Takes up a reader, which can go on at once.
    pub(super) fn start(&mut self, reader: Reader) {
        self.runnable.insert(reader.id);
        self.all.insert(reader.id, reader);
    }

    /// Takes a reader out, to have its turn.
    pub(super) fn take(&mut self, r: ReaderId) -> Option<Reader> {
        self.all.remove(&r)
    }

    /// Puts a reader back that has had its turn.
    pub(super) fn put_back(&mut self, reader: Reader) {
        self.all.insert(reader.id, reader);
    }

    /// One of them, to be changed.
    pub(super) fn get_mut(&mut self, r: ReaderId) -> Option<&mut Reader> {
        self.all.get_mut(&r)
    }

    /// An id that no reader has, from above, so that it does not meet the owner's.
    pub(super) fn free_id(&self) -> Option<ReaderId> {
        let mut ids = (0..=u64::MAX).rev().map(ReaderId);
        ids.find(|r| !self.all.contains_key(r))
    }

    /// A reader can go on.
    pub(super) fn wake(&mut self, r: ReaderId) {
        self.runnable.insert(r);
    }

    /// Readers can go on.
    pub(super) fn wake_all(&mut self, readers: impl IntoIterator<Item = ReaderId>) {
        self.runnable.extend(readers);
    }

    /// The readers of a log can go on.
    pub(super) fn wake_log(&mut self, slot: Slot) {
        let readers = self.all.values().filter(|reader| reader.slot == slot);
        self.runnable.extend(readers.map(|reader| reader.id));
    }

    /// Whether any can go on.
    pub(super) fn can_go_on(&self) -> bool {
        !self.runnable.is_empty()
    }

    /// Those that can go on; they are not named again before something wakes them.
    pub(super) fn take_runnable(&mut self) -> BTreeSet<ReaderId> {
        std::mem::take(&mut self.runnable)
    }

    /// Whether one more read may begin where `max` may be under way.
    pub(super) fn may_read(&self, max: usize) -> bool {
        self.reads < max
    }

    /// A reader waits for its turn to read.
    pub(super) fn queue(&mut self, r: ReaderId) {
        self.queue.push_back(r);
    }

    /// A read has begun.
    pub(super) fn read_begun(&mut self) {
        self.reads += 1;
    }

    /// A read has ended, with so many bytes.
    pub(super) fn read_ended(&mut self, bytes: usize) {
        self.reads -= 1;
        self.read_bytes += bytes as u64;
    }

    /// Bytes that were read from segments.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Keeps a run for other readers, within `max` bytes for all runs.
    pub(super) fn keep_run(&mut self, run: &Loaded, max: u64) {
        self.runs.keep(run, max);
    }

    /// A run with all of a batch that was read for another reader not long ago.
    pub(super) fn find_run(&self, segment: SegmentId, location: &Location) -> Option<Loaded> {
        self.runs.find(segment, location)
    }

    /// Gives the turn to readers that wait for a read, as many as may read. One that is gone, or that
    /// wants nothing any more, gives its turn to the next.
    pub(super) fn wake_reading(&mut self, max: usize) {
        let mut free = max.saturating_sub(self.reads);
        while free > 0
            && let Some(next) = self.queue.pop_front()
        {
            if let Some(reader) = self.all.get_mut(&next) {
                reader.reading = false;
                self.runnable.insert(next);
                free -= 1;
            }
        }
    }

    /// Reads of segments under way.
    pub(super) fn reads(&self) -> usize {
        self.reads
    }

    /// Asserts the invariants of the module's documentation, where `max` reads may be under way.
    pub(super) fn check(&self, max: usize) {
        assert!(self.reads <= max, "{} reads of {max}", self.reads);
        self.runs.check();
        for (r, reader) in &self.all {
            assert_eq!(*r, reader.id, "a reader under another's id");
            reader.check();
        }
    }
}
