//! All logs of a journal, by slot and by name, and the order of their batches in memory.
//!
//! A log has a slot from its beginning, and no other log ever gets that slot, not even when the log
//! is gone. So the slot alone identifies the log of each record in a segment.
//!
//! Invariants, held by [`Logs::check`]:
//! - Each log is under its own slot, and that is below the next one.
//! - Each name leads to the log of that name.
//! - Each log keeps the invariants of [`LogState`].

use super::cache::{Cache, Cached};
use super::id::Slot;
use super::log::LogState;
use super::tombstones::{Tombstone, Tombstones};
use airmail_model::{LogId, Sequence};
use std::collections::BTreeMap;

/// All logs. See the module's documentation.
#[derive(Debug)]
pub(super) struct Logs {
    all: BTreeMap<Slot, LogState>,
    slots: BTreeMap<LogId, Slot>,
    tombstones: Tombstones,
    next_slot: Slot,
    /// Lives that logs have begun since the journal opened.
    renewals: u64,
    cache: Cache,
}

impl Default for Logs {
    fn default() -> Logs {
        Logs {
            all: BTreeMap::new(),
            slots: BTreeMap::new(),
            tombstones: Tombstones::default(),
            next_slot: Slot::FIRST,
            renewals: 0,
            cache: Cache::default(),
        }
    }
}

impl Logs {
    /// One of them.
    pub(super) fn get(&self, slot: Slot) -> Option<&LogState> {
        self.all.get(&slot)
    }

    /// One of them, to be changed.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut LogState> {
        self.all.get_mut(&slot)
    }

    /// The slot of the log with this name.
    pub(super) fn slot_of(&self, id: LogId) -> Option<Slot> {
        self.slots.get(&id).copied()
    }

    /// The log with this name.
    pub(super) fn named(&self, id: LogId) -> Option<&LogState> {
        self.all.get(self.slots.get(&id)?)
    }

    /// The log with this name, to be changed.
    pub(super) fn named_mut(&mut self, id: LogId) -> Option<&mut LogState> {
        self.all.get_mut(self.slots.get(&id)?)
    }

    /// The names and slots, in order of name.
    pub(super) fn names(&self) -> impl Iterator<Item = (LogId, Slot)> {
        self.slots.iter().map(|(id, slot)| (*id, *slot))
    }

    /// All of them, in order of slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LogState> {
        self.all.values()
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LogState> {
        self.all.values_mut()
    }

    /// The slot that the next log gets.
    pub(super) fn next_slot(&self) -> Slot {
        self.next_slot
    }

    /// Goes on with slots behind those found.
    pub(super) fn go_on_at(&mut self, next: Slot) {
        self.next_slot = self.next_slot.max(next);
    }

    /// Takes a log up, under its name and slot.
    pub(super) fn insert(&mut self, log: LogState) {
        self.go_on_at(log.slot.next());
        self.slots.insert(log.id, log.slot);
        self.all.insert(log.slot, log);
    }

    /// The log of a slot; made if there is none. The name leads to it, unless damage has given another's
    /// name to the slot.
    pub(super) fn at(
        &mut self,
        slot: Slot,
        id: LogId,
        make: impl FnOnce() -> LogState,
    ) -> &mut LogState {
        self.go_on_at(slot.next());
        let log = self.all.entry(slot).or_insert_with(make);
        if log.id == id {
            self.slots.insert(id, slot);
        }
        log
    }

    /// Forgets a name. The slot that it led to.
    pub(super) fn unname(&mut self, id: LogId) -> Option<Slot> {
        self.slots.remove(&id)
    }

    /// Takes out the log of a slot, to which no name leads any more.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<LogState> {
        self.all.remove(&slot)
    }

    /// Takes out the log of a slot, and all names that lead to it.
    pub(super) fn forget(&mut self, slot: Slot) -> Option<LogState> {
        let log = self.all.remove(&slot)?;
        self.slots.retain(|_, of| *of != slot);
        Some(log)
    }

    /// The marks of deleted logs.
    pub(super) fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// Leaves the mark of a deleted log.
    pub(super) fn bury(&mut self, tombstone: Tombstone) {
        self.tombstones.add(tombstone);
    }

    /// Takes up the marks that a checkpoint has, before any other.
    pub(super) fn restore_tombstones(&mut self, tombstones: Tombstones) {
        self.tombstones = tombstones;
    }

    /// Counts a life that a log begins.
    pub(super) fn renewed(&mut self) -> u64 {
        self.renewals += 1;
        self.renewals
    }

    /// Takes up that a log's newest batch is in memory.
    pub(super) fn cached(&mut self, batch: Cached) {
        self.cache.add(batch);
    }

    /// Forgets a log's batches in memory from number `from` on.
    pub(super) fn forget_recent(&mut self, slot: Slot, from: Sequence) {
        if let Some(log) = self.all.get_mut(&slot) {
            log.recent
                .truncate(log.recent.partition_point(|recent| recent.first < from));
        }
        self.cache.forget(slot, from);
    }

    /// Forgets the oldest batches in memory beyond `max` bytes, if they are durable.
    pub(super) fn trim_cache(&mut self, max: u64) {
        while let Some(Cached { slot, first, .. }) = self.cache.oldest_beyond(max) {
            if let Some(log) = self.all.get_mut(&slot) {
                if first >= log.numbers.durable {
                    return;
                }
                let oldest = log.recent.front();
                if oldest.is_some_and(|recent| recent.first == first) {
                    log.recent.pop_front();
                }
            }
            self.cache.forget_oldest();
        }
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        for (slot, log) in &self.all {
            assert_eq!(*slot, log.slot, "a log under another's slot");
            assert!(
                *slot < self.next_slot,
                "slot {slot}, and the next is {}",
                self.next_slot
            );
            log.check();
        }
        for (id, slot) in &self.slots {
            let log = self.all.get(slot);
            assert!(
                log.is_some_and(|log| log.id == *id),
                "{id} leads to slot {slot}, where {:?} is",
                log.map(|log| log.id)
            );
        }
        self.tombstones.check();
        self.cache.check();
    }
}
