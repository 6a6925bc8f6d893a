//! Typed ids of a journal's parts: segments, their blocks and classes, places in a file, the slots
//! of logs, checkpoints.
//!
//! Each is a newtype over the integer that the formats hold, so that none can be taken for another: a
//! segment for a block, or a length for a place in a file. Numbers of records and times have the model's
//! types ([`Sequence`](airmail_model::Sequence), [`AppendTime`](airmail_model::AppendTime)) down to the
//! codec. A count of bytes stays an integer: adding one to a [`FileOffset`] gives another, and the
//! difference of two is one.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A segment, by its number. Never reused: the next one is always higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u64);

impl SegmentId {
    /// The first segment of a journal.
    pub const FIRST: SegmentId = SegmentId(1);

    /// The segment made after this one.
    #[must_use]
    pub const fn next(self) -> SegmentId {
        SegmentId(self.0.saturating_add(1))
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A log, by its number in this journal. Never reused, not even after the log was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// The first slot of a journal.
    pub const FIRST: Slot = Slot(1);

    /// The slot given after this one.
    #[must_use]
    pub const fn next(self) -> Slot {
        Slot(self.0 + 1)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A block of a segment: 0 is the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockIndex(pub u32);

impl BlockIndex {
    /// The block at a place of a segment's list.
    #[must_use]
    pub const fn at(place: usize) -> BlockIndex {
        BlockIndex(place as u32)
    }

    /// Its place in the segment's list.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

/// A block of the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The segment that it is a part of.
    pub segment: SegmentId,
    /// Its place among the segment's blocks.
    pub block: BlockIndex,
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.block.0, self.segment)
    }
}

/// A place in a file, in bytes from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileOffset(pub u64);

impl FileOffset {
    /// The beginning of a file.
    pub const START: FileOffset = FileOffset(0);

    /// This place, or the next one at a multiple of `bytes`.
    #[must_use]
    pub const fn next_multiple_of(self, bytes: u64) -> FileOffset {
        FileOffset(self.0.next_multiple_of(bytes))
    }

    /// Number of bytes between `earlier` and this place; 0 if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: FileOffset) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for FileOffset {
    type Output = FileOffset;

    fn add(self, bytes: u64) -> FileOffset {
        FileOffset(self.0 + bytes)
    }
}

impl AddAssign<u64> for FileOffset {
    fn add_assign(&mut self, bytes: u64) {
        self.0 += bytes;
    }
}

/// The bytes from one place to a later one.
impl Sub for FileOffset {
    type Output = u64;

    fn sub(self, earlier: FileOffset) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for FileOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The retention class of a segment: logs of one class share segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

/// A checkpoint, by its number. Never reused: the next one is always higher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(pub u64);

impl CheckpointId {
    /// The first checkpoint of a journal.
    pub const FIRST: CheckpointId = CheckpointId(1);

    /// The checkpoint written after this one.
    #[must_use]
    pub const fn next(self) -> CheckpointId {
        CheckpointId(self.0 + 1)
    }
}
