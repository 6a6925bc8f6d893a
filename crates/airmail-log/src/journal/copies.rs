//! The batches of log 0 once more: in memory, and in each checkpoint.
//!
//! Log 0 holds the namespaces, as commands: few and small, and without them nothing else can be
//! reached. So damage to the one place that a batch has in a segment must not lose them. A reader of
//! log 0 gets what is here first; a checkpoint is written when log 0 was appended to.

use super::log::Recent;
use std::collections::BTreeMap;

/// Copies held at most, in bytes; what is beyond has its segment alone, as every other log's.
const BYTES_MAX: u64 = 4 << 20;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Copies {
    batches: BTreeMap<u64, Recent>,
    bytes: u64,
}

impl Copies {
    /// Takes up a batch, if there is room.
    pub(super) fn take(&mut self, batch: Recent) {
        let bytes = batch.batch.bytes().len() as u64;
        if self.bytes + bytes <= BYTES_MAX && !self.batches.contains_key(&batch.first) {
            self.bytes += bytes;
            self.batches.insert(batch.first, batch);
        }
    }

    /// The batch that holds `number`.
    pub(super) fn at(&self, number: u64) -> Option<&Recent> {
        let (_, batch) = self.batches.range(..=number).next_back()?;
        (number < batch.next()).then_some(batch)
    }

    /// Those that hold a number from `from` on, in order.
    pub(super) fn from(&self, from: u64) -> impl Iterator<Item = &Recent> {
        let all = self.batches.values();
        all.filter(move |batch| batch.next() > from)
    }

    /// The log is trimmed.
    pub(super) fn forget(&mut self, before: u64) {
        let bytes = &mut self.bytes;
        self.batches.retain(|_, batch| {
            let stays = batch.next() > before;
            if !stays {
                *bytes -= batch.batch.bytes().len() as u64;
            }
            stays
        });
    }
}
