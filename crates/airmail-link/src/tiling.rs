//! Tiling: how far a reader was told of a log's numbers, and the part of what comes that is new to it.
//!
//! Invariant: `next` never goes back, and every number below it, from the first on, was told once.

use airmail_log::{Completion, GapWhy, ReaderId, Stored};
use airmail_model::{Extent, Sequence};

/// Place of a reader. See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling {
    /// The first number that was not told.
    next: Sequence,
    /// Something was told.
    has_begun: bool,
}

impl Tiling {
    /// A reader that begins at `from`.
    pub(crate) const fn begin(from: Sequence) -> Tiling {
        Tiling {
            next: from,
            has_begun: false,
        }
    }

    /// The first number that was not told.
    pub(crate) const fn next(&self) -> Sequence {
        self.next
    }

    /// Leaves out the next number, as if it had been told.
    #[cfg(feature = "sabotage")]
    pub(crate) fn skip_one(&mut self) {
        self.next = self.next.plus(1);
    }

    /// The part of a batch that is new, if any is, for the reader `r`.
    pub(crate) fn batch(&mut self, r: ReaderId, mut stored: Stored) -> Option<Completion> {
        let extent = self.new_part(stored.extent)?;
        if extent == stored.extent {
            return Some(Completion::Batch { r, stored });
        }
        stored.extent = extent;
        let base = stored.base;
        let is_new = |index: u16, _| base.plus(index.into()) >= extent.first;
        let Some(slice) = stored.batch.slice(is_new) else {
            // Input: a batch whose last numbers have no records.
            let why = GapWhy::Unused;
            return Some(Completion::Gap { r, extent, why });
        };
        stored.batch = slice.to_batch();
        Some(Completion::Batch { r, stored })
    }

    /// The part of a gap that is new, if any is, for the reader `r`.
    pub(crate) fn gap(&mut self, r: ReaderId, extent: Extent, why: GapWhy) -> Option<Completion> {
        self.has_begun = true;
        let extent = self.new_part(extent)?;
        Some(Completion::Gap { r, extent, why })
    }

    /// The numbers of an extent that were not told; from now on they are. The first batch of all may begin before
    /// the number that was asked for.
    fn new_part(&mut self, extent: Extent) -> Option<Extent> {
        if extent.last < self.next {
            return None;
        }
        let mut part = extent;
        if self.has_begun {
            part.first = part.first.max(self.next);
        }
        self.has_begun = true;
        self.next = extent.next();
        Some(part)
    }
}
