//! Storage calls and readers under way. A tag or reader number is never used twice (`calls`), so a late
//! completion is recognised because its tag or reader is no longer in the table.

use crate::catalog::SystemAppend;
use crate::keys::{ReaderKey, TowerLogKey};
use crate::link::MemberId;
use airmail_log::{ReaderId, Tag};
use airmail_model::{Mono, NamespaceId};
use std::collections::BTreeMap;

/// Purposes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Opening log 0.
    OpenSystem,
    /// Where log 0 ends.
    SystemEnd,
    /// Appending to log 0.
    AppendSystem(SystemAppend),
    /// Making provisions for a namespace.
    Provision,
    /// Removing those of one that will never be.
    Withdraw,
    /// Telling a storage what log 0 names.
    Keep,
    /// Opening a namespace's log: by an order for that namespace, or because the tower tries again.
    Open(Option<NamespaceId>, TowerLogKey),
    /// Deleting a namespace's log.
    Delete(NamespaceId, TowerLogKey),
    /// A publish, by the gateway's number.
    Append(TowerLogKey, u64),
    /// A question of the gateway.
    Answer(TowerLogKey, MemberId),
    /// A log's clock, as the gateway asked at this time.
    Clock(TowerLogKey, Mono),
    /// Where a log ends, for all who ask.
    End(TowerLogKey),
    /// Beginning a new life of a log.
    Renew(TowerLogKey),
    /// A part of a listing of topics.
    Topics(u64, usize),
    /// Sealing a log of an earlier map.
    Seal(TowerLogKey),
    /// Where a sealed log ends.
    SealedEnd(TowerLogKey),
    /// Bounds of a sealed log, to see what retention has left in it.
    Left(TowerLogKey),
}

/// Owners of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The catalog's, of log 0.
    System,
    /// A log's tail reader.
    Tail(TowerLogKey),
    /// A catch-up reader.
    CatchUp(ReaderKey),
}

/// Calls and readers under way.
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

    /// Takes the purpose of a tag's call, which is under way no more.
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

    /// Owner of a reader, unless it has been given up.
    pub(crate) fn owner(&self, reader: ReaderId) -> Option<Owner> {
        self.readers.get(&reader).copied()
    }

    /// Gives a reader up: what still comes of it is dropped.
    pub(crate) fn give_up(&mut self, reader: ReaderId) {
        self.readers.remove(&reader);
    }

    /// Whether no call and no reader under way is numbered above the last number given.
    pub(crate) fn are_numbered(&self) -> bool {
        let tag = self.calls.last_key_value().map(|(tag, _)| tag.0);
        let reader = self.readers.last_key_value().map(|(reader, _)| reader.0);
        tag.is_none_or(|tag| tag <= self.tags)
            && reader.is_none_or(|reader| reader <= self.reader_ids)
    }

    /// Every reader that has not been given up, and whose it is.
    pub(crate) fn readers(&self) -> impl Iterator<Item = (ReaderId, Owner)> + '_ {
        self.readers.iter().map(|(reader, owner)| (*reader, *owner))
    }
}
