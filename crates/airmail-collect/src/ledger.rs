//! One source's ledger: its records that are taken and not yet acknowledged, and its watermark.
//!
//! Invariants: entries are in the order of their numbers; `watermark` is the number up to which
//! every record that was taken is acknowledged; a record acknowledged beyond it waits in its place.

use crate::stamp::Range;
use std::collections::VecDeque;

#[derive(Debug)]
struct Entry {
    number: u64,
    bytes: u32,
    acknowledged: bool,
}

/// The account.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    /// Number of entries that were ever taken out: the index of the first one that is left.
    gone: u64,
    /// The first number that no record has accounted for.
    next: u64,
    watermark: u64,
    bytes: u64,
}

impl Ledger {
    /// Begins for a source that is taken from `next` on.
    pub(crate) fn new(next: u64) -> Ledger {
        Ledger {
            entries: VecDeque::new(),
            gone: 0,
            next,
            watermark: next,
            bytes: 0,
        }
    }

    /// Enters a record; gives its index and range. `None` if it was entered before.
    pub(crate) fn take(&mut self, number: u64, bytes: u32) -> Option<(u64, Range)> {
        if number < self.next {
            return None;
        }
        let range = Range {
            from: self.next,
            number,
        };
        self.next = number + 1;
        self.bytes += u64::from(bytes);
        self.entries.push_back(Entry {
            number,
            bytes,
            acknowledged: false,
        });
        Some((self.gone + self.entries.len() as u64 - 1, range))
    }

    /// The main cluster has the record with this index.
    pub(crate) fn acknowledge(&mut self, index: u64) {
        let at = index.checked_sub(self.gone);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) else {
            return;
        };
        entry.acknowledged = true;
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.acknowledged) {
            self.gone += 1;
            self.watermark = entry.number + 1;
            self.bytes -= u64::from(entry.bytes);
        }
    }

    /// Where to go on after a takeover.
    pub(crate) fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Records from the first that is not acknowledged on, acknowledged ones among them: they are kept.
    pub(crate) fn records(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_waits_for_the_first_that_is_missing() {
        let mut ledger = Ledger::new(5);
        let (first, range) = ledger.take(5, 10).unwrap();
        assert_eq!(range, Range { from: 5, number: 5 });
        // 6 is none: compacted away.
        let (second, range) = ledger.take(7, 20).unwrap();
        assert_eq!(range, Range { from: 6, number: 7 });
        let (third, _) = ledger.take(8, 30).unwrap();
        assert_eq!(ledger.take(7, 20), None, "a repeat");
        ledger.acknowledge(third);
        ledger.acknowledge(second);
        assert_eq!(
            (ledger.watermark(), ledger.records(), ledger.bytes()),
            (5, 3, 60)
        );
        ledger.acknowledge(first);
        assert_eq!(
            (ledger.watermark(), ledger.records(), ledger.bytes()),
            (9, 0, 0)
        );
        ledger.acknowledge(first);
        assert_eq!(
            ledger.watermark(),
            9,
            "an ack that comes again changes nothing"
        );
    }
}
