//! One log as the storage has it open: its partition, how far it was read through, and who reads it.
//!
//! A log is read through once, in order, by a consumer of the tail's slot, from the place of a statement on, or from the
//! first offset that is kept, and then for ever: so the producers are known, the copies are marked, and the newest
//! entries are kept for readers. No reader passes that place, because nobody knows there what is a copy. What is older
//! than the newest entries is read once more, by a sweep, with the marks as they are.
//!
//! Invariants: `marks_before_scan`: every mark is before the place up to which the log is read. `newest_before_scan`:
//! the newest entries end there.

use crate::asking::Asking;
use crate::brokers::{ConsumerId, Partition, Record};
use crate::config::StatementConfig;
use crate::contents::Contents;
use crate::entry::Window;
use crate::layout::MapTopics;
use crate::marks::Marks;
use crate::place::Offset;
use crate::producers::Producers;
use crate::reader::ReaderKey;
use crate::sending::Sending;
use crate::statement::Witness;
use airmail_log::{Bounds, LogSpec, Refusal};
use airmail_model::{AppendTime, Incarnation, LogId, Sequence};
use std::collections::BTreeSet;

/// A log that is read through.
#[derive(Debug)]
pub(crate) struct Scan {
    /// None while it is looked for where to go on.
    pub(crate) consumer: Option<ConsumerId>,
    pub(crate) producers: Producers,
    /// Records of which the first messages are copies.
    pub(crate) marks: Marks,
    pub(crate) contents: Contents,
    pub(crate) newest: Window,
    /// There was nothing more when it was looked at last.
    pub(crate) is_at_end: bool,
    /// The last record that was read.
    pub(crate) last: Option<Record>,
    /// The record before the place of a statement, while it is not known whether the log has it.
    pub(crate) awaited: Option<Witness>,
    /// Number of times that it was looked for in vain.
    pub(crate) looks: u32,
    /// Bytes read since the last statement.
    pub(crate) unstated_bytes: u64,
}

impl Scan {
    /// Nothing was read yet, of a log that begins here.
    pub(crate) fn new(from: Offset, config: &StatementConfig) -> Scan {
        let mut marks = Marks::new(config.marks);
        marks.begin_at(from);
        Scan {
            consumer: None,
            producers: Producers::new(config.known),
            marks,
            contents: Contents::default(),
            newest: Window::new(from),
            is_at_end: false,
            last: None,
            awaited: None,
            looks: 0,
            unstated_bytes: 0,
        }
    }

    /// The offset from which it goes on to read: at the record that is awaited, if there is one.
    pub(crate) fn begin(&self) -> Offset {
        let witness = self.awaited.map(|witness| witness.offset);
        witness.map_or(self.next(), |at| at.min(self.next()))
    }

    /// The offset before which everything was read.
    pub(crate) fn next(&self) -> Offset {
        self.newest.next
    }
}

/// A log that is open.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) id: LogId,
    pub(crate) partition: Partition,
    /// Its map's topics; none for log 0.
    pub(crate) topics: Option<MapTopics>,
    pub(crate) spec: LogSpec,
    pub(crate) incarnation: Incarnation,
    /// Whether it was told that it is open.
    pub(crate) is_open: bool,
    /// Times that it was cut, and went on in another life.
    pub(crate) cuts: u32,
    /// Reason for which nothing of it is served or taken: the partition is not the one that it was, or that is to be seen.
    pub(crate) suspended: Option<Refusal>,
    /// The first offset that is kept, as far as it is known.
    pub(crate) low: Offset,
    pub(crate) scan: Scan,
    pub(crate) sending: Sending,
    pub(crate) asking: Asking,
    pub(crate) readers: BTreeSet<ReaderKey>,
    #[cfg(feature = "sabotage")]
    pub(crate) bug: Option<crate::sabotage::Bug>,
}

impl Log {
    /// The first offset that may hold a batch, and of which it is known what is a copy there.
    pub(crate) fn first(&self) -> Offset {
        let known = self.low.max(self.scan.marks.floor());
        known.max(self.birthless())
    }

    /// The offset behind the birth record.
    fn birthless(&self) -> Offset {
        Offset(u64::from(self.topics.is_some()))
    }

    /// Whether something was removed from the beginning.
    pub(crate) fn is_trimmed(&self) -> bool {
        self.first() > self.birthless()
    }

    /// Takes note of the first offset that is kept.
    pub(crate) fn kept_from(&mut self, low: Offset) {
        if low <= self.low {
            return;
        }
        self.low = low;
        self.scan.marks.forget_before(low);
        self.scan.contents.forget_before(low);
    }

    /// Its bounds, where this is its end.
    pub(crate) fn bounds(&self, high: Offset) -> Bounds {
        let first = self.first();
        let next = high.max(first);
        let contents = self.scan.contents.from(first).filter(|_| first < next);
        Bounds {
            first: first.number(),
            next: next.number(),
            // An old leader's end is lower than what others were given: no position lies too far beyond it.
            reach: Sequence::MAX,
            incarnation: self.incarnation,
            first_time: contents.map(|(ms, _)| AppendTime(ms.saturating_mul(1000))),
            bytes: contents.map_or(0, |(_, bytes)| bytes),
            sealed: None,
        }
    }

    /// The last record that was read of it, if there is one: what has to be there still.
    pub(crate) fn last_read(&self) -> Option<Witness> {
        self.scan
            .awaited
            .or(self.scan.last.as_ref().map(Witness::of))
    }

    /// The number of its end, as far as it was read.
    pub(crate) fn next(&self) -> Sequence {
        self.scan.next().number()
    }

    /// Asserts what the module's documentation says.
    pub(crate) fn check(&self) {
        let last = self.scan.marks.last();
        assert!(
            last.is_none_or(|at| at < self.scan.next()),
            "marks_before_scan"
        );
        self.scan.marks.check();
        assert!(
            self.scan.newest.first <= self.scan.newest.next,
            "newest_before_scan"
        );
        self.sending.check();
        self.scan.producers.check();
    }
}
