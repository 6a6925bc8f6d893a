//! Names of a journal's files, and the facts that a name gives.

use super::id::{BlockId, BlockIndex, CheckpointId, SegmentId};
use crate::files::FileName;

/// The name of a segment's file.
pub(super) fn segment_name(id: SegmentId) -> FileName {
    format!("seg-{id}").into()
}

/// Whether a file is a segment. The latest writes of a segment are in memory for its readers; those
/// of other files are not.
pub(crate) fn is_segment(name: &str) -> bool {
    number_of(name, "seg-").is_some()
}

/// Whether a file is one without some of which a journal never is, once it has begun.
pub(crate) fn is_journals_own(name: &str) -> bool {
    is_segment(name) || number_of(name, "checkpoint-").is_some()
}

/// The name of a block's index file.
pub(super) fn index_name(block: BlockId) -> FileName {
    format!("idx-{}-{:08x}", block.segment, block.block.0).into()
}

/// The segment and block in the name of an index file.
pub(super) fn index_of(name: &str) -> Option<BlockId> {
    let (segment, block) = name.strip_prefix("idx-")?.split_once('-')?;
    let sizes = (segment.len(), block.len()) == (16, 8);
    let segment = u64::from_str_radix(segment, 16).ok().filter(|_| sizes)?;
    let block = u32::from_str_radix(block, 16).ok()?;
    Some(BlockId {
        segment: SegmentId(segment),
        block: BlockIndex(block),
    })
}

/// The name of an emptied segment's file.
pub(super) fn free_name(id: SegmentId) -> FileName {
    format!("free-{id}").into()
}

/// The name of a checkpoint's file.
pub(super) fn checkpoint_name(id: CheckpointId) -> FileName {
    format!("checkpoint-{:016x}", id.0).into()
}

/// The name of the file of durable ends.
pub(super) const ENDS_NAME: &str = "ends";

/// The segment of a file with this name.
pub(super) fn segment_of(name: &str) -> Option<SegmentId> {
    number_of(name, "seg-").map(SegmentId)
}

/// The number in a name with this prefix.
pub(super) fn number_of(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    if digits.len() != 16 {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}
