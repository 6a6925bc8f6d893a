//! Effects: operations that the journal asks of its files, and completions that it gives to its
//! owner.
//!
//! An operation gets a token when it is asked for, and its completion comes back with that token
//! once. Its purpose is kept until then, so a completion is never mistaken for another's.
//!
//! Invariants, held by [`Effects::check`]:
//! - Every operation that waits to be submitted has its purpose, and a token that was given.
//! - Tokens are given in order and never reused.

use super::id::{BlockId, FileOffset, SegmentId};
use crate::contract::{Completion, ReaderId};
use crate::files::{FileOp, FileToken};
use std::collections::BTreeMap;

/// Purpose of an operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A commit's write, by its place in the commit.
    Commit(usize),
    /// A segment's file was made.
    Made(SegmentId),
    /// A segment's file was filled up to here.
    Filled(SegmentId, FileOffset),
    /// A reader's read of a segment.
    Read(ReaderId, SegmentId, FileOffset),
    /// A reader's read of a block's index.
    Pages(ReaderId, BlockId),
    /// A block was read, to make its table again.
    Rebuild(BlockId),
    /// A step of the index file under way.
    Index,
    /// A step of the checkpoint under way.
    Checkpoint,
    /// An emptied segment's file was renamed or removed.
    Left(SegmentId),
    /// A block was read, to be written once more.
    Moved(BlockId),
    /// The file of durable ends was made or written.
    Ends,
    /// The file of the trusted time was made or written.
    Clock,
    /// Its failure changes nothing.
    Minor,
}

/// File operations to start and completions to report. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Operations not yet given to the files, in order.
    waiting: Vec<(FileToken, FileOp)>,
    /// Purposes of all operations that have not ended, by token.
    purposes: BTreeMap<FileToken, Purpose>,
    last_token: u64,
    /// Completions not yet given to the owner, in order.
    completions: Vec<Completion>,
}

impl Effects {
    /// Has an operation done.
    pub(super) fn submit(&mut self, purpose: Purpose, op: FileOp) {
        self.last_token += 1;
        let token = FileToken(self.last_token);
        self.purposes.insert(token, purpose);
        self.waiting.push((token, op));
    }

    /// Takes the purpose of an operation that has ended.
    pub(super) fn ended(&mut self, token: FileToken) -> Option<Purpose> {
        self.purposes.remove(&token)
    }

    /// Tells the owner.
    pub(super) fn tell(&mut self, completion: Completion) {
        self.completions.push(completion);
    }

    /// Completions for the owner, in order, to which a caller may add.
    pub(super) fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    /// Number of operations that wait to be given to the files.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Puts the newest operation before all that were asked for since there were `earlier`.
    pub(super) fn bring_forward(&mut self, earlier: usize) {
        self.waiting[earlier..].rotate_right(1);
    }

    /// The operations that wait to be given to the files.
    pub(super) fn waiting(&self) -> &[(FileToken, FileOp)] {
        &self.waiting
    }

    /// Gives the operations that wait, in order.
    pub(super) fn take(&mut self) -> Vec<(FileToken, FileOp)> {
        std::mem::take(&mut self.waiting)
    }

    /// Gives the operations that wait, in order, and keeps the memory for the next.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (FileToken, FileOp)> {
        self.waiting.drain(..)
    }

    /// Has an operation that was taken wait again, behind those that do.
    pub(super) fn put_back(&mut self, token: FileToken, op: FileOp) {
        self.waiting.push((token, op));
    }

    /// Purposes of the operations that have not ended.
    pub(super) fn under_way(&self) -> impl Iterator<Item = Purpose> {
        self.purposes.values().copied()
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self) {
        for (token, op) in &self.waiting {
            assert!(
                self.purposes.contains_key(token),
                "{token:?} waits without a purpose: {op:?}"
            );
        }
        let newest = self.purposes.last_key_value();
        assert!(
            newest.is_none_or(|(token, _)| token.0 <= self.last_token),
            "{newest:?} is under way, and the last token given was {}",
            self.last_token
        );
    }

    /// The purpose of an operation that has not ended.
    #[cfg(test)]
    pub(super) fn purpose(&self, token: FileToken) -> Option<Purpose> {
        self.purposes.get(&token).copied()
    }
}
