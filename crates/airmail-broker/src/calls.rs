//! Storage calls and readers under way. A tag or reader number is never used twice, so that what
//! comes too late is known by having no entry.

use crate::catalog::SystemAppend;
use crate::keys::{CaravanKey, LateKey, LogKey};
use airmail_log::{ReaderId, Tag};
use airmail_model::{NamespaceId, Sequence};
use std::collections::BTreeMap;

/// What a call was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Opening log 0.
    OpenSystem,
    /// Appending to log 0.
    AppendSystem(SystemAppend),
    /// Opening a namespace's log.
    Open(LogKey),
    /// Deleting a namespace's log.
    Delete(NamespaceId, LogKey),
    /// A publish, by its number in its log.
    Append(LogKey, u64),
    /// Finding where a subscription begins, by its ticket. `lost`: its position is of an earlier
    /// life of the log.
    First {
        late: LateKey,
        ticket: u64,
        lost: bool,
    },
    /// Finding whether a position of the log's own life lies beyond its end.
    End {
        late: LateKey,
        ticket: u64,
        next: Sequence,
    },
    /// Beginning a new life of a log.
    Renew(LogKey),
    /// Finding where a subscription begins by time.
    Find(LateKey, u64),
    /// A part of a listing of topics.
    Topics(u64, usize),
}

/// Whose a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Log 0.
    System,
    /// A room's tail reader.
    Room(LogKey),
    /// A caravan's.
    Caravan(CaravanKey),
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    tags: u64,
    calls: BTreeMap<Tag, Purpose>,
    reader_ids: u64,
    readers: BTreeMap<ReaderId, Owner>,
}

impl Calls {
    /// A tag for a call that is about to be made.
    pub(crate) fn tag(&mut self, purpose: Purpose) -> Tag {
        self.tags += 1;
        let tag = Tag(self.tags);
        self.calls.insert(tag, purpose);
        tag
    }

    /// What a tag's call was made for; it is under way no more.
    pub(crate) fn answered(&mut self, tag: Tag) -> Option<Purpose> {
        self.calls.remove(&tag)
    }

    /// A new reader.
    pub(crate) fn reader(&mut self, owner: Owner) -> ReaderId {
        self.reader_ids += 1;
        let reader = ReaderId(self.reader_ids);
        self.readers.insert(reader, owner);
        reader
    }

    /// Whose a reader is, unless it has been given up.
    pub(crate) fn owner(&self, reader: ReaderId) -> Option<Owner> {
        self.readers.get(&reader).copied()
    }

    /// Gives a reader up: what still comes of it is dropped.
    pub(crate) fn give_up(&mut self, reader: ReaderId) {
        self.readers.remove(&reader);
    }
}
