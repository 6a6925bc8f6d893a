//! Assertion of the journal's invariants: the parts' own, and those between them.
//!
//! Each sentence of a module's documentation that says *always* or *never*, or gives an inequality,
//! is asserted by the `check` of the part that the module is about; a relation between parts is
//! asserted here. The check runs after each step where bugs panic ([`airmail_model::bug`]): in
//! debug builds, simulator and fuzz targets. Its cost grows with everything that the journal has in
//! memory, so a release runs none of it.

use super::Journal;
use super::effects::Purpose;
use super::entry::Entry;
use super::id::{BlockId, SegmentId};
use super::meta::Meta;
use super::segment::{Segment, State};
use airmail_model::{LogId, bug};
use std::collections::BTreeMap;

impl Journal {
    /// Whether the invariants are to be asserted. Not where the simulator has planted a bug in the journal:
    /// that must be found by its effect on the journal's users.
    pub(super) fn is_checked(&self) -> bool {
        #[cfg(feature = "sabotage")]
        if self.config.bug.is_some() || self.config.greater_is_next {
            return false;
        }
        bug::is_checking()
    }

    /// Asserts everything that must hold between two steps.
    ///
    /// # Panics
    /// If something does not hold: that is a bug of the journal, whatever its files are like.
    pub(super) fn check(&self) {
        self.time.check();
        self.calls.check();
        self.effects.check();
        self.logs.check();
        self.producers.check();
        self.segments.check();
        self.commits.check();
        self.commands.check();
        self.readers.check(self.config.reads_max.max(1));
        self.indexer.check();
        self.checkpointer.check();
        self.ends.check();
        self.upkeep.check(&self.logs);
        self.faults.check();
        self.check_operations();
        self.check_kept();
        self.check_failed();
        if !self.commands.are_held_back() {
            for log in self.logs.iter() {
                log.numbers.check_opened(log.slot);
            }
            self.check_held_in_memory();
            self.check_settled();
        }
    }

    /// Asserts that the operations that parts wait for are under way, and no others.
    fn check_operations(&self) {
        let mut reads: BTreeMap<SegmentId, u32> = BTreeMap::new();
        let mut of_readers = 0;
        for purpose in self.effects.under_way() {
            let segment = match purpose {
                Purpose::Read(_, segment, _) => {
                    of_readers += 1;
                    segment
                }
                Purpose::Pages(_, block) | Purpose::Rebuild(block) | Purpose::Moved(block) => {
                    block.segment
                }
                Purpose::Filled(id, to) => {
                    let filling = self
                        .segments
                        .get(id)
                        .and_then(|segment| segment.fill.going_to());
                    assert_eq!(filling, Some(to), "what {id} is filled to");
                    continue;
                }
                Purpose::Left(id) => {
                    let leaving = self.segments.get(id).is_some_and(|of| of.is_leaving());
                    assert!(leaving, "{id} is removed, and is not leaving");
                    continue;
                }
                Purpose::Made(id) => {
                    let state = self.segments.get(id).map(|segment| segment.state());
                    assert_eq!(state, Some(State::Making), "the state of {id}");
                    continue;
                }
                _ => continue,
            };
            *reads.entry(segment).or_default() += 1;
        }
        assert_eq!(self.readers.reads(), of_readers, "reads of readers");
        for segment in self.segments.iter() {
            let id = segment.id;
            let under_way = reads.get(&id).copied().unwrap_or(0);
            assert_eq!(segment.reads(), under_way, "reads of {id}");
        }
        // A commit that is open waits for a write; of one that was given up nobody waits for the end.
        for place in self.commits.open_places() {
            let purpose = Purpose::Commit(place);
            let mut all = self.effects.under_way();
            assert!(
                all.any(|one| one == purpose),
                "part {place} of a commit waits for no write"
            );
        }
    }

    /// Asserts that each block knows how many logs keep something in it, and that its batches can be found.
    fn check_kept(&self) {
        let logs = self.logs.iter();
        let blocks = logs.flat_map(|log| log.kept.blocks());
        let mut kept: Vec<BlockId> = blocks.chain(self.upkeep.deleted_blocks()).collect();
        kept.sort_unstable();
        // Segments and their blocks come in the same order.
        let mut kept = kept.into_iter().peekable();
        for segment in self.segments.iter() {
            for (id, block) in segment.named_blocks() {
                let mut expected = 0;
                while kept.next_if_eq(&id).is_some() {
                    expected += 1;
                }
                assert_eq!(
                    block.kept_by(),
                    expected,
                    "logs that keep part of block {id}"
                );
                assert!(
                    block.table().is_some()
                        || block.layout().is_some()
                        || self.indexer.is_making_again(id),
                    "block {id} has neither table nor index"
                );
            }
        }
        let rest = kept.next();
        assert!(rest.is_none(), "logs keep what no segment has: {rest:?}");
    }

    /// Asserts that a log whose batches failed is there, and is not settled.
    fn check_failed(&self) {
        for slot in self.faults.failed() {
            assert!(
                self.logs.get(*slot).is_some(),
                "slot {slot} has failed batches, and no log"
            );
        }
    }

    /// Asserts that only durable batches are in a table, and that the others are in memory.
    fn check_held_in_memory(&self) {
        for log in self.logs.iter() {
            let last = log.kept.iter().next_back().map(|place| place.last);
            assert!(
                last.is_none_or(|last| last < log.numbers.durable),
                "slot {}: a table has {last:?}, and {} is not durable",
                log.slot,
                log.numbers.durable
            );
        }
        let unsynced = self.segments.iter().flat_map(Segment::unsynced);
        let written = || self.commits.parts().flat_map(|part| &part.entries);
        written().for_each(|entry| self.check_copied(entry));
        let waiting = self.commits.waiting().iter();
        for entry in unsynced.chain(written()).chain(waiting) {
            self.check_entry(entry);
        }
    }

    /// Asserts that no command waits that the batches to be written may rely on. Acknowledged batches of a
    /// failed segment go before all else; and a segment that is full is sealed while batches are gathered.
    pub(super) fn check_commands_first(&self, entries: &[Entry]) {
        if entries.iter().all(|entry| entry.copy) {
            return;
        }
        for meta in self.commands.iter() {
            let full = match meta {
                Meta::SegmentSealed { segment, .. } => {
                    let segment = self.segments.get(*segment);
                    segment.is_some_and(|segment| !segment.has_failed())
                }
                _ => false,
            };
            assert!(full, "batches are written before {meta:?}");
        }
    }

    /// Asserts that a batch of log 0 that is being written has a durable copy in another file.
    fn check_copied(&self, entry: &Entry) {
        let log = self.logs.get(entry.slot);
        let copied = log.filter(|log| log.id == LogId::SYSTEM && !entry.copy);
        let told = copied.map(|log| log.copies.told());
        assert!(
            self.config.new_incarnations || told.is_none_or(|told| entry.next() <= told),
            "log 0: {} is written, and copied before {told:?}",
            entry.first
        );
    }

    fn check_entry(&self, entry: &Entry) {
        let Some(log) = self.logs.get(entry.slot) else {
            // Input: a log that was deleted while its batches were on their way.
            return;
        };
        let (slot, first) = (entry.slot, entry.first);
        assert!(
            entry.next() <= log.numbers.next,
            "slot {slot}: {first} is on its way, and the next is {}",
            log.numbers.next
        );
        assert!(
            entry.copy || entry.next() > log.numbers.durable,
            "slot {slot}: {first} of log {} is on its way, and {:?} is durable",
            log.id,
            log.numbers
        );
        assert!(
            entry.copy || log.in_memory(first).is_some(),
            "slot {slot}: {first} of log {} is not durable, and not in memory: {:?}",
            log.id,
            log.numbers
        );
    }
}
