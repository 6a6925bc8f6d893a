//! Zeros that are written to a segment's file ahead of the writes.
//!
//! A fill and a write of the same bytes must not overtake one another, so a write that would meet
//! the fill under way waits. After a failed fill, the segment is to be left.
//!
//! Invariant, held by [`Fill::check`]: the bytes being filled lie behind those that are filled.

use super::id::{FileOffset, SegmentId};
use airmail_model::bug;
use std::io;

/// Progress of filling a segment. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Fill {
    /// Place behind the last filled byte.
    end: FileOffset,
    /// Where the fill under way ends.
    going_to: Option<FileOffset>,
    /// Error of a fill that failed.
    failed: Option<io::Error>,
}

impl Fill {
    /// A file that is there is as long as this.
    pub(super) fn found(end: FileOffset) -> Fill {
        Fill {
            end,
            ..Fill::default()
        }
    }

    /// Place behind the last filled byte, which is the file's length.
    pub(super) fn end(&self) -> FileOffset {
        self.end
    }

    /// Where the fill under way ends.
    pub(super) fn going_to(&self) -> Option<FileOffset> {
        self.going_to
    }

    /// Whether a fill is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.going_to.is_some()
    }

    /// Whether a write from `at` to `end` would meet the fill under way.
    pub(super) fn meets(&self, at: FileOffset, end: FileOffset) -> bool {
        let to = self.going_to;
        to.is_some_and(|to| self.end < end && at < to)
    }

    /// A fill is under way.
    pub(super) fn begun(&mut self, from: FileOffset, to: FileOffset) {
        if let Some(other) = self.going_to {
            bug!("a fill to {to} begins while one to {other} is under way");
        }
        self.end = from;
        self.going_to = Some(to);
    }

    /// The fill under way has ended.
    pub(super) fn ended(&mut self) {
        self.going_to = None;
    }

    /// All is filled before `to`.
    pub(super) fn filled_to(&mut self, to: FileOffset) {
        self.end = self.end.max(to);
    }

    /// A fill failed.
    pub(super) fn fail(&mut self, error: io::Error) {
        self.failed = Some(error);
    }

    /// Whether a fill failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes the error of a failed fill; from here on there is none.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// The file is cut to end here.
    pub(super) fn cut(&mut self, end: FileOffset) {
        self.end = end;
    }

    /// Asserts the invariant of the module's documentation.
    pub(super) fn check(&self, id: SegmentId) {
        assert!(
            self.going_to.is_none_or(|to| self.end < to),
            "{id}: filled to {}, filling to {:?}",
            self.end,
            self.going_to
        );
    }
}
