//! Entries: records of a partition as readers get them, and windows of entries that follow one another.
//!
//! A record is examined once: its bytes become a checked batch, damaged messages are cut out, and messages that are
//! copies are left out. What is left are *tiles*: batches and losses. The numbers between tiles, and those of a record
//! without any, are unused.

use crate::brokers::Record;
use crate::place::{INDEXES, Offset};
use airmail_log::Stored;
use airmail_model::{AppendTime, Batch, Checked, Extent, LogId};
use std::collections::VecDeque;

/// Microseconds of a millisecond: Kafka's times are in these.
pub(crate) const MS_US: i64 = 1000;

/// A part of a record's numbers that a reader is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tile {
    /// Messages.
    Batch(Stored),
    /// Damaged, or nothing that this log could hold.
    Lost(Extent),
}

impl Tile {
    pub(crate) fn extent(&self) -> Extent {
        match self {
            Tile::Batch(stored) => stored.extent,
            Tile::Lost(extent) => *extent,
        }
    }
}

/// A record as readers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) offset: Offset,
    /// Bytes that it takes.
    pub(crate) bytes: u64,
    /// In order; none where nothing of it is given.
    pub(crate) tiles: Vec<Tile>,
}

/// A record's batch, once checked.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) batch: Checked<Batch>,
    /// Places of damaged messages, ascending.
    damaged: Vec<u16>,
}

/// Reads the batch of a record of this log. `None`: it is none, and its numbers are lost.
pub(crate) fn read(record: &Record, log: LogId) -> Option<Read> {
    let value = record.value.clone()?;
    record.sent_ms?;
    let (batch, damaged) = Batch::check_stored(value).ok()?;
    let fits = batch.log() == log && batch.numbers() <= INDEXES;
    fits.then_some(Read { batch, damaged })
}

impl Entry {
    /// A record without anything for readers.
    pub(crate) fn void(record: &Record) -> Entry {
        Entry {
            offset: record.offset,
            bytes: record.bytes(),
            tiles: Vec::new(),
        }
    }

    /// A record that holds nothing that can be read.
    pub(crate) fn lost(record: &Record) -> Entry {
        Entry {
            tiles: vec![Tile::Lost(record.offset.numbers())],
            ..Entry::void(record)
        }
    }

    /// A batch without its first `left_out` messages, which are copies.
    pub(crate) fn of(record: &Record, read: &Read, left_out: u32) -> Entry {
        let mut entry = Entry::void(record);
        let Read { batch, damaged } = read;
        let whole = Extent::starting_at(record.offset.number(), batch.numbers());
        if left_out == 0 && damaged.is_empty() {
            entry.push(record, whole, batch.clone());
            return entry;
        }
        let mut run: Vec<u16> = Vec::new();
        for (place, (index, _)) in (0_u16..).zip(batch.heads()) {
            if u32::from(index) < left_out {
                continue;
            }
            if damaged.binary_search(&place).is_ok() {
                entry.push_run(record, batch, &mut run);
                let number = record.offset.number().plus(index.into());
                entry.tiles.push(Tile::Lost(Extent::starting_at(number, 1)));
                continue;
            }
            run.push(place);
        }
        entry.push_run(record, batch, &mut run);
        entry
    }

    /// Adds the messages at places that follow one another.
    fn push_run(&mut self, record: &Record, batch: &Batch, run: &mut Vec<u16>) {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            let number = |place: u16| record.offset.number().plus(batch.head(place).0.into());
            let extent = Extent {
                first: number(*first),
                last: number(*last),
            };
            if let Some(slice) = batch.slice_of(run) {
                self.push(record, extent, slice.to_batch());
            }
        }
        run.clear();
    }

    fn push(&mut self, record: &Record, extent: Extent, batch: Checked<Batch>) {
        self.tiles.push(Tile::Batch(Stored {
            base: record.offset.number(),
            extent,
            appended: AppendTime(record.appended_ms.saturating_mul(MS_US)),
            batch,
        }));
    }
}

/// Entries that follow one another: all that the partition has in a range of offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// From here on everything is known.
    pub(crate) first: Offset,
    /// Before this everything is known.
    pub(crate) next: Offset,
    entries: VecDeque<Entry>,
    bytes: u64,
}

impl Window {
    pub(crate) fn new(at: Offset) -> Window {
        Window {
            first: at,
            next: at,
            ..Window::default()
        }
    }

    pub(crate) fn contains(&self, offset: Offset) -> bool {
        self.first <= offset && offset < self.next
    }

    /// Bytes of each of its offsets, on average.
    pub(crate) fn bytes_each(&self) -> u64 {
        self.bytes / (self.next.0 - self.first.0).max(1)
    }

    /// Takes the next entry; holes before it are known to be ones.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.next = entry.offset.plus(1);
        self.bytes += entry.bytes;
        if !entry.tiles.is_empty() {
            self.entries.push_back(entry);
        }
    }

    /// Takes note that there is nothing more before an offset.
    pub(crate) fn known_to(&mut self, next: Offset) {
        self.next = self.next.max(next);
    }

    /// Forgets the oldest entries until no more than `most` bytes are kept.
    pub(crate) fn shrink(&mut self, most: u64) {
        while self.bytes > most {
            let Some(entry) = self.entries.pop_front() else {
                // Input: a window whose last entries had nothing for readers.
                self.bytes = 0;
                self.first = self.next;
                return;
            };
            self.bytes = self.bytes.saturating_sub(entry.bytes);
            self.first = entry.offset.plus(1);
        }
    }

    /// Forgets everything before an offset.
    pub(crate) fn forget_before(&mut self, before: Offset) {
        while self.entries.front().is_some_and(|e| e.offset < before) {
            if let Some(entry) = self.entries.pop_front() {
                self.bytes = self.bytes.saturating_sub(entry.bytes);
            }
        }
        self.first = self.first.max(before);
        self.next = self.next.max(before);
    }

    /// The first entry with tiles from an offset on.
    pub(crate) fn from(&self, offset: Offset) -> Option<&Entry> {
        let at = self.entries.partition_point(|e| e.offset < offset);
        self.entries.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_log::conformance::{Maker, log};
    use airmail_model::Sequence;

    fn record(offset: u64, texts: &[&str]) -> Record {
        let records: Vec<_> = texts.iter().map(|text| ("a", *text)).collect();
        Record {
            offset: Offset(offset),
            appended_ms: 5,
            sent_ms: Some(5),
            key: None,
            value: Some(Maker::new(log(0)).batch(&records).bytes().clone()),
        }
    }

    fn extents(entry: &Entry) -> Vec<(u64, u64)> {
        let extents = entry.tiles.iter().map(Tile::extent);
        extents.map(|e| (e.first.0, e.last.0)).collect()
    }

    #[test]
    fn a_batch_that_is_old_in_part_is_given_from_its_first_new_message_on() {
        let record = record(1, &["x", "y", "z"]);
        let read = read(&record, log(0)).unwrap();
        for (left_out, expected) in [
            (0, vec![(8192, 8194)]),
            (1, vec![(8193, 8194)]),
            (2, vec![(8194, 8194)]),
            (3, vec![]),
        ] {
            let entry = Entry::of(&record, &read, left_out);
            assert_eq!(extents(&entry), expected, "{left_out} left out");
            if let Some(Tile::Batch(stored)) = entry.tiles.first() {
                assert_eq!(stored.base, Sequence(8192));
                assert_eq!(stored.batch.records(), 3 - left_out as u16);
                assert_eq!(stored.appended, AppendTime(5000));
            }
        }
    }

    #[test]
    fn a_damaged_message_is_lost_alone() {
        let mut record = record(1, &["xxxxxxxxxxxx", "yyyyyyyyyyyy", "zzzzzzzzzzzz"]);
        let mut bytes = record.value.take().unwrap().to_vec();
        let at = bytes.windows(4).position(|w| w == b"yyyy").unwrap();
        bytes[at] ^= 1;
        record.value = Some(bytes.into());
        let read = read(&record, log(0)).unwrap();
        let entry = Entry::of(&record, &read, 0);
        assert_eq!(extents(&entry), [(8192, 8192), (8193, 8193), (8194, 8194)]);
        assert!(matches!(entry.tiles[1], Tile::Lost(_)));
        let entry = Entry::of(&record, &read, 2);
        assert_eq!(extents(&entry), [(8194, 8194)]);
    }

    #[test]
    fn bytes_that_are_no_batch_of_the_log_are_none() {
        let good = record(1, &["x"]);
        assert!(read(&good, log(0)).is_some());
        assert!(read(&good, log(1)).is_none(), "another log's");
        let foreign = Record {
            sent_ms: None,
            ..good.clone()
        };
        assert!(read(&foreign, log(0)).is_none(), "no record of ours");
        let torn = good.value.as_ref().map(|value| value.slice(..10));
        assert!(
            read(
                &Record {
                    value: torn,
                    ..good
                },
                log(0)
            )
            .is_none()
        );
    }

    #[test]
    fn a_window_forgets_its_oldest_and_knows_from_where_it_knows_all() {
        let mut window = Window::new(Offset(3));
        for offset in [4, 5, 7, 8] {
            window.push(Entry::lost(&record(offset, &["x"])));
        }
        assert!(window.contains(Offset(3)) && window.contains(Offset(8)));
        assert_eq!(window.from(Offset(6)).map(|e| e.offset), Some(Offset(7)));
        window.forget_before(Offset(5));
        assert_eq!((window.first, window.next), (Offset(5), Offset(9)));
        window.shrink(0);
        assert_eq!((window.first, window.next), (Offset(9), Offset(9)));
        assert_eq!(window.from(Offset(0)), None);
    }
}
