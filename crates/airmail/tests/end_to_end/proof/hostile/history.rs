//! History of a round, as one list in the order in which it was seen: publishers' requests and
//! their answers, readers' deliveries and gaps, and the acts on the directory that may cost
//! messages. The judge reads it; nothing here judges.

use crate::proof::stamp::Stamp;
use airmail_client::{ErrorCode, GapReason};
use airmail_model::LogId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// One thing that happened. Its place in the list is its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A publisher handed a message over.
    Invoked(Stamp),
    /// An answer to a publisher.
    Answered(Stamp, Answer),
    /// A reader began. One that comes back to its position is the same reader, and begins but once.
    Began {
        reader: usize,
        topic: u32,
        from: Begin,
    },
    /// A reader was given a message.
    Given {
        reader: usize,
        place: Place,
        stamp: Stamp,
    },
    /// A reader was told a gap.
    Told { reader: usize, gap: Hole },
    /// A reader met something that must not be at all: bytes that nobody published, or an end.
    Wrong { reader: usize, why: String },
    /// A copy of the directory is begun.
    Copied,
    /// A copy, begun at that place of the list, stands where the directory stood.
    Restored { copied: usize },
    /// Files went, and these messages may be gone with them.
    Removed(BTreeSet<Stamp>),
    /// The directory, or what shows whose it is, is taken away from the node that runs.
    Taken,
    /// It is as it was, and so is the node.
    Back,
}

/// Answers to a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is stored; where, if that was told.
    Stored(Option<(LogId, u64)>),
    /// It failed, with this code.
    Failed(ErrorCode),
}

/// Where a reader began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    Earliest,
    /// Begins after all that was published before the event.
    Latest,
}

/// Where a message stands: in which life of its log, and under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) life: u64,
    pub(crate) number: u64,
}

/// Numbers that will not come, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) reason: GapReason,
}

impl Hole {
    pub(crate) fn covers(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// Progress of all publishers and readers, which waits compare.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Number of messages stored, and the place of the last such answer, by (publisher, topic).
    pub(crate) stored: BTreeMap<(u32, u32), (u64, usize)>,
    /// Number of messages given, by reader.
    pub(crate) given: BTreeMap<usize, u64>,
    /// Messages that are not answered.
    pub(crate) open: u64,
}

#[derive(Debug, Default)]
struct Book {
    events: Vec<Event>,
    progress: Progress,
    wrong: Option<String>,
}

/// The list, shared by all publishers and readers.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Book>);

impl History {
    /// Number of events so far.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().events.len()
    }

    /// Adds an event; gives its place.
    pub(crate) fn note(&self, event: Event) -> usize {
        let mut book = self.0.lock();
        let place = book.events.len();
        match &event {
            Event::Invoked(_) => book.progress.open += 1,
            Event::Answered(..) => book.progress.open -= 1,
            _ => {}
        }
        match &event {
            Event::Answered(stamp, Answer::Stored(_)) => {
                let of = (stamp.publisher, stamp.topic);
                let stored = book.progress.stored.entry(of).or_default();
                *stored = (stored.0 + 1, place);
            }
            Event::Given { reader, .. } => {
                *book.progress.given.entry(*reader).or_default() += 1;
            }
            Event::Wrong { reader, why } => {
                let wrong = format!("reader {reader}: {why}");
                book.wrong.get_or_insert(wrong);
            }
            _ => {}
        }
        book.events.push(event);
        place
    }

    /// Says of a removal that it was taken back before a node ran on it.
    pub(crate) fn take_back_removal(&self, place: usize) {
        self.0.lock().events[place] = Event::Removed(BTreeSet::new());
    }

    /// Progress of all publishers and readers. Fails if a reader met something that must not be.
    #[track_caller]
    pub(crate) fn progress(&self) -> Progress {
        let book = self.0.lock();
        let wrong = book.wrong.clone();
        let progress = book.progress.clone();
        drop(book);
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
        progress
    }

    /// All of it so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().events.clone()
    }
}
