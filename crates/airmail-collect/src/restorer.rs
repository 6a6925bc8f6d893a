//! Restoring of order by a reader of the main cluster: it gets each source's records in order and
//! once, wherever the policy put them and however often a takeover sent them again.
//!
//! The rule is that of Airmail's own ranges: a record below the accounted number is a repeat; one
//! whose range begins above it waits for the missing ones; any other is next. Partitions do not
//! matter, so records of several may be given in any order between them.

use crate::stamp::{Range, Stamp};
use std::collections::BTreeMap;

#[derive(Debug)]
struct Waiting<T> {
    from: u64,
    record: T,
}

#[derive(Debug)]
struct Sequence<T> {
    next: u64,
    /// Records that wait for earlier ones, by number.
    waiting: BTreeMap<u64, Waiting<T>>,
}

impl<T> Sequence<T> {
    fn new(next: u64) -> Sequence<T> {
        Sequence {
            next,
            waiting: BTreeMap::new(),
        }
    }
}

/// Restores the order of every source.
///
/// ```
/// use airmail_collect::{Restorer, Stamp};
///
/// let mut restorer = Restorer::new();
/// let mut restored = Vec::new();
/// for (range, record) in [("0-0", 'a'), ("2-2", 'c'), ("0-0", 'a'), ("1-1", 'b')] {
///     let stamp = Stamp { source: "near/T/0".into(), range: range.parse().unwrap() };
///     restorer.take(&stamp, record, &mut restored);
/// }
/// assert_eq!(restored, ['a', 'b', 'c']);
/// ```
#[derive(Debug)]
pub struct Restorer<T> {
    sequences: BTreeMap<String, Sequence<T>>,
}

impl<T> Default for Restorer<T> {
    fn default() -> Restorer<T> {
        Restorer {
            sequences: BTreeMap::new(),
        }
    }
}

impl<T> Restorer<T> {
    /// One for a reader that begins where the collectors began.
    #[must_use]
    pub fn new() -> Restorer<T> {
        Restorer::default()
    }

    /// One for a reader that had everything below these numbers, by source.
    pub fn resume(numbers: impl IntoIterator<Item = (String, u64)>) -> Restorer<T> {
        let numbers = numbers.into_iter();
        Restorer {
            sequences: numbers
                .map(|(source, next)| (source, Sequence::new(next)))
                .collect(),
        }
    }

    /// Takes a record; adds to `restored` the records that are next by it.
    pub fn take(&mut self, stamp: &Stamp, record: T, restored: &mut Vec<T>) {
        let sequence = match self.sequences.get_mut(&stamp.source) {
            Some(sequence) => sequence,
            None => {
                let first = Sequence::new(0);
                self.sequences.entry(stamp.source.clone()).or_insert(first)
            }
        };
        let Range { from, number } = stamp.range;
        if number < sequence.next {
            return;
        }
        let waiting = sequence
            .waiting
            .entry(number)
            .or_insert(Waiting { from, record });
        // Told twice, it waits for no more than the one that needs less.
        waiting.from = waiting.from.min(from);
        while let Some(first) = sequence.waiting.first_entry() {
            if first.get().from > sequence.next {
                break;
            }
            let (number, next) = first.remove_entry();
            sequence.next = number + 1;
            restored.push(next.record);
        }
    }

    /// The numbers from which to resume: everything below was given.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, u64)> {
        let sequences = self.sequences.iter();
        sequences.map(|(source, sequence)| (&**source, sequence.next))
    }

    /// Number of records that wait for earlier ones.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.sequences
            .values()
            .map(|sequence| sequence.waiting.len())
            .sum()
    }
}
