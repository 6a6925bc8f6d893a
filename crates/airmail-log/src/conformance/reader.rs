//! One reader, and the checks of every reader: its numbers are tiled, and its end is the end.

use crate::contract::{GapWhy, ReaderId, Refusal, Stored};
use airmail_model::{Extent, LogId, MapEpoch, Sequence};

/// Deliveries to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A batch.
    Batch(Stored),
    /// Numbers it will not get.
    Gap(Extent, GapWhy),
    /// It has given everything before this number.
    Tail(Sequence),
    /// The end of a sealed log: its last number, and the map that goes on.
    Sealed(Sequence, MapEpoch),
    /// An edit of what is wanted has taken effect, from this number on.
    Effective(u32, Option<Sequence>),
    /// It is to be said anew what is wanted.
    WantsLost,
    /// It is over.
    Ended(Option<Refusal>),
}

impl Seen {
    /// The numbers that it accounts for.
    #[must_use]
    pub fn extent(&self) -> Option<Extent> {
        match self {
            Seen::Batch(stored) => Some(stored.extent),
            Seen::Gap(extent, _) => Some(*extent),
            _ => None,
        }
    }

    /// (Number, topic, payload) of each record in it.
    #[must_use]
    pub fn records(&self) -> Vec<(u64, String, Vec<u8>)> {
        let Seen::Batch(stored) = self else {
            return Vec::new();
        };
        let records = stored.batch.iter().map(|record| {
            let number = stored.base.plus(record.index.into()).0;
            let topic = record.topic_name.to_owned();
            (number, topic, record.payload.to_vec())
        });
        records.collect()
    }
}

/// One reader, as the driver follows it.
pub(super) struct Reader {
    pub(super) log: LogId,
    /// The first number not accounted for.
    pub(super) next: Sequence,
    pub(super) seen: Vec<Seen>,
    began: bool,
    ended: bool,
}

impl Reader {
    pub(super) fn new(log: LogId, from: Sequence) -> Reader {
        Reader {
            log,
            next: from,
            seen: Vec::new(),
            began: false,
            ended: false,
        }
    }

    /// Takes a delivery, and checks it against the promises to every reader.
    pub(super) fn take(&mut self, r: ReaderId, seen: Seen) {
        assert!(!self.ended, "{r:?} has ended, and then came {seen:?}");
        let next = self.next;
        match &seen {
            Seen::Batch(stored) => {
                let extent = stored.extent;
                // The first batch may begin before the number that was asked for, but must hold it.
                let fits = extent.first == next || !self.began && extent.contains(next);
                assert!(fits, "{r:?} at {next} got a batch of {extent:?}");
                for (number, ..) in seen.records() {
                    let inside = extent.contains(Sequence(number));
                    assert!(inside, "record {number} in a batch of {extent:?}");
                }
            }
            Seen::Gap(extent, _) => {
                assert_eq!(extent.first, next, "{r:?} at {next}: {seen:?}");
                assert!(extent.last >= extent.first, "{r:?}: {seen:?}");
            }
            Seen::Tail(at) => assert_eq!(*at, next, "{r:?} has come to {next}: {seen:?}"),
            Seen::Sealed(last, _) => assert_eq!(last.plus(1), next, "{r:?} is at {next}"),
            Seen::Effective(_, at) => assert_eq!(at.unwrap_or(next), next, "{r:?}: {seen:?}"),
            Seen::WantsLost => {}
            Seen::Ended(_) => self.ended = true,
        }
        if let Some(extent) = seen.extent() {
            self.next = extent.next();
            self.began = true;
        }
        self.seen.push(seen);
    }
}
