//! Readers of the owner: where each stands, and whom it is read for by.

use super::cache::Shelf;
use crate::tiling::Tiling;
use airmail_log::{Direction, ReaderId, Scope, ScopeFilter};
use airmail_model::{LogId, Sequence, TopicHash};

/// Where what a reader gets comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The cache, and whoever fills it.
    Cache,
    /// A reader of its own, above.
    Above(ReaderId),
}

/// A reader of the owner.
#[derive(Debug)]
pub(super) struct CachedReader {
    pub(super) log: LogId,
    pub(super) scope: Box<Scope>,
    pub(super) tiling: Tiling,
    /// Credit that its owner has given and no batch has used, in bytes. Below 0: overdrawn.
    pub(super) credit: i64,
    pub(super) source: Source,
    /// The end of the log when the reader began: before that, nothing is the tail. `None`: it is being asked for.
    pub(super) end: Option<Sequence>,
    pub(super) tail_told: Option<Sequence>,
    pub(super) seal_told: bool,
}

impl CachedReader {
    pub(super) fn new(log: LogId, from: Sequence, scope: Box<Scope>, credit: u32) -> CachedReader {
        CachedReader {
            log,
            scope,
            tiling: Tiling::begin(from),
            credit: credit.into(),
            source: Source::Cache,
            end: None,
            tail_told: None,
            seal_told: false,
        }
    }

    /// Whether it may be given what the cache has. What is wanted of one may change on its way.
    pub(super) fn may_share(&self) -> bool {
        self.scope.direction == Direction::Forward && self.scope.filter != ScopeFilter::Wanted
    }

    /// The topic that it wants. `None`: everything.
    pub(super) fn topic(&self) -> Option<TopicHash> {
        match self.scope.filter {
            ScopeFilter::Topic(topic) => Some(topic),
            ScopeFilter::All | ScopeFilter::Wanted => None,
        }
    }

    /// Where what it wants lies.
    pub(super) fn shelf(&self) -> Shelf {
        Shelf {
            log: self.log,
            topic: self.topic(),
        }
    }

    /// The first number that it was not told.
    pub(super) fn next(&self) -> Sequence {
        self.tiling.next()
    }

    /// Whether it was told everything that it asked for.
    pub(super) fn is_complete(&self) -> bool {
        self.scope.until.is_some_and(|until| self.next() >= until)
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_sub(bytes);
    }
}
