//! The readers of a journal: those that can go on, and those that read from a file.
//!
//! Those that can go on have their turns in the order of [`reader_turns`](super::reader_turns). Reads of
//! segments are bounded: a reader beyond the bound waits in a queue for its turn to read, lane high before normal
//! by the same rule; reads are about equal in size, so there one counts like another. Whose turn has come may read
//! whoever goes on before: else those who read already would take each place that becomes free. A reader that is
//! gone may still be in the list of those that can go on, or in the queue: its entry is
//! skipped there.
//!
//! Invariants, held by [`Readers::check`]:
//! - Never more reads are under way, and turns to read given, than the bound.
//! - A reader that has a turn to read can go on.
//! - Each reader is under its own id, and has accounted for all numbers before its next.

use super::id::SegmentId;
use super::id::Slot;
use super::read::{Loaded, Reader};
use super::reader_turns::{LaneLine, ReaderTurns, Standing};
use super::recent_runs::RecentRuns;
use super::table::Location;
use crate::contract::ReaderId;
use airmail_model::{Lane, NormalShare};
use std::collections::{BTreeMap, BTreeSet};

/// All readers. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Readers {
    all: BTreeMap<ReaderId, Reader>,
    runnable: BTreeSet<ReaderId>,
    /// Those that have a turn in this step.
    turns: ReaderTurns,
    /// Reads of segments under way.
    reads: usize,
    /// Bytes that were read.
    read_bytes: u64,
    runs: RecentRuns,
    /// Those that wait to read.
    queue: LaneLine,
    /// Those whose turn to read has come.
    may_read: BTreeSet<ReaderId>,
}

impl Readers {
    /// No readers; lane normal has this share.
    pub(super) fn new(share: NormalShare) -> Readers {
        Readers {
            turns: ReaderTurns::new(share),
            queue: LaneLine::new(share),
            ..Readers::default()
        }
    }

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

    /// Gives each that can go on a turn in this step, by its standing; they are not named again before something
    /// wakes them.
    pub(super) fn begin_turns(&mut self, standing: impl Fn(&Reader) -> Standing) {
        for r in std::mem::take(&mut self.runnable) {
            // One that is not there has ended since something woke it.
            match self.all.get(&r) {
                Some(reader) => self.turns.add(r, standing(reader)),
                None => drop(self.may_read.remove(&r)),
            }
        }
    }

    /// The next whose turn it is, with its standing.
    pub(super) fn next_turn(&mut self) -> Option<(ReaderId, Standing)> {
        self.turns.next()
    }

    /// One has had its turn, and so many bytes in it.
    pub(super) fn had_turn(&mut self, r: ReaderId, standing: Standing, bytes: u64) {
        self.turns.took(standing, bytes);
        self.may_read.remove(&r);
    }

    /// Whether a reader may begin one more read where `max` may be under way.
    pub(super) fn may_read(&self, r: ReaderId, max: usize) -> bool {
        self.may_read.contains(&r) || self.reads + self.may_read.len() < max
    }

    /// A reader of a log of this lane waits for its turn to read.
    pub(super) fn queue(&mut self, r: ReaderId, lane: Lane) {
        self.queue.add(r, lane);
    }

    /// A reader has begun a read.
    pub(super) fn read_begun(&mut self, r: ReaderId) {
        self.may_read.remove(&r);
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
        let mut free = max.saturating_sub(self.reads + self.may_read.len());
        while free > 0
            && let Some((next, lane)) = self.queue.next()
        {
            if let Some(reader) = self.all.get_mut(&next) {
                reader.reading = false;
                self.runnable.insert(next);
                self.may_read.insert(next);
                free -= 1;
                self.queue.took(lane, 1);
            }
        }
    }

    /// Reads of segments under way.
    pub(super) fn reads(&self) -> usize {
        self.reads
    }

    /// Asserts the invariants of the module's documentation, where `max` reads may be under way.
    pub(super) fn check(&self, max: usize) {
        let reads = self.reads + self.may_read.len();
        assert!(reads <= max, "{reads} reads of {max}");
        assert!(
            self.may_read.is_subset(&self.runnable),
            "{:?} may read, and {:?} can go on",
            self.may_read,
            self.runnable
        );
        self.runs.check();
        self.turns.check();
        for (r, reader) in &self.all {
            assert_eq!(*r, reader.id, "a reader under another's id");
            reader.check();
        }
    }
}
