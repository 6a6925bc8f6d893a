//! A segment: a file of one retention class, written from its beginning to its end, once.
//!
//! It is never written again after any failure: it is sealed at its last durable end, and a command
//! says so before anything that could be mistaken for what it held is written elsewhere.

use super::format::{HEADER_BYTES, SegmentHeader};
use super::index::Layout;
use super::log::Entry;
use super::table::{Location, Table};
use crate::files::FileName;
use airmail_model::Mono;

/// What can be done with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its file is being made.
    Making,
    /// Takes batches.
    Open,
    /// Takes nothing more.
    Sealed,
}

/// A part of a segment, with a table of its own.
#[derive(Debug)]
pub(super) struct Block {
    /// Its first byte in the segment.
    pub(super) start: u64,
    /// Behind its last byte.
    pub(super) end: u64,
    /// In memory while it is written, and until its index is on disk.
    pub(super) table: Option<Table>,
    /// Of its index file. `None` until that is on disk.
    pub(super) layout: Option<Layout>,
    /// It takes nothing more, though it is not full: its index is made.
    pub(super) closed: bool,
    /// How many logs have something kept in it.
    pub(super) kept_by: u32,
}

/// One segment. See the module's documentation.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: u64,
    pub(super) name: FileName,
    pub(super) header: SegmentHeader,
    pub(super) state: State,
    /// The header is in the file, or at least on its way.
    pub(super) header_written: bool,
    /// Behind the last byte written.
    pub(super) written: u64,
    /// Behind the last byte that is durable.
    pub(super) durable: u64,
    /// Behind the last byte that was written with zeros ahead.
    pub(super) filled: u64,
    /// Where the fill under way ends.
    pub(super) filling: Option<u64>,
    /// A fill failed: it is to be left.
    pub(super) fill_failed: Option<std::io::Error>,
    /// A write or sync of it failed: its file is not recycled.
    pub(super) failed: bool,
    /// Written and not yet durable.
    pub(super) unsynced: Vec<Entry>,
    /// Since when there are such.
    pub(super) unsynced_since: Option<Mono>,
    /// In order; the last is the one that is written.
    pub(super) blocks: Vec<Block>,
    /// The first checkpoint that knows of all that is in it: numbers, and where producers stand.
    pub(super) covered_by: u64,
    /// Reads under way: it is not removed before they have ended.
    pub(super) reads: u32,
    /// Of a segment of commands: the count after its last.
    pub(super) meta_next: u64,
    /// What is wanted of it cannot be written elsewhere.
    pub(super) unmovable: bool,
    /// Nothing in it is kept; its removal is under way or waits.
    pub(super) leaving: bool,
}

impl Segment {
    pub(super) fn new(header: SegmentHeader) -> Segment {
        Segment {
            id: header.segment,
            name: segment_name(header.segment),
            header,
            state: State::Making,
            header_written: false,
            written: HEADER_BYTES as u64,
            durable: HEADER_BYTES as u64,
            filled: 0,
            filling: None,
            fill_failed: None,
            failed: false,
            unsynced: Vec::new(),
            unsynced_since: None,
            blocks: Vec::new(),
            covered_by: 0,
            reads: 0,
            meta_next: 0,
            unmovable: false,
            leaving: false,
        }
    }

    /// The block that a batch falls in, made if need be: a new one where the last is full, or where
    /// what it has of the log does not end before the batch. So a block has an unbroken run of each
    /// log, also of one that went to another class of segments and came back.
    pub(super) fn block_for(&mut self, slot: u32, batch: &Location, block_bytes: u64) -> usize {
        let start = batch.offset;
        let full = self.blocks.last().is_none_or(|block| {
            block.table.as_ref().is_none_or(|table| {
                let run = table.logs.get(&slot).and_then(|list| list.last());
                run.is_some_and(|before| before.last() + 1 != batch.first)
            }) || block.layout.is_some()
                || block.closed
                || block.end - block.start >= block_bytes
        });
        if full {
            self.blocks.push(Block {
                start,
                end: start,
                table: Some(Table::default()),
                layout: None,
                closed: false,
                kept_by: 0,
            });
        }
        self.blocks.len() - 1
    }

    /// Has the block that is written take nothing more; which it is.
    pub(super) fn close_block(&mut self) -> Option<usize> {
        let last = self.blocks.len().checked_sub(1)?;
        let block = &mut self.blocks[last];
        let open = !block.closed && block.layout.is_none();
        block.closed = true;
        open.then_some(last)
    }

    /// Whether nothing in it is kept by any log.
    pub(super) fn is_unused(&self) -> bool {
        self.unsynced.is_empty() && self.blocks.iter().all(|block| block.kept_by == 0)
    }
}

/// The name of a segment's file.
pub(super) fn segment_name(id: u64) -> FileName {
    format!("seg-{id:016x}").into()
}

/// Whether a file is a segment. What a segment was just written with is in memory for its readers;
/// of other files it is not.
pub(crate) fn is_segment(name: &str) -> bool {
    number_of(name, "seg-").is_some()
}

/// Whether a file is one without some of which a journal never is, once it has begun.
pub(crate) fn is_journals_own(name: &str) -> bool {
    is_segment(name) || number_of(name, "checkpoint-").is_some()
}

/// The name of a block's index file.
pub(super) fn index_name(id: u64, block: u32) -> FileName {
    format!("idx-{id:016x}-{block:08x}").into()
}

/// The segment and block in the name of an index file.
pub(super) fn index_of(name: &str) -> Option<(u64, u32)> {
    let (segment, block) = name.strip_prefix("idx-")?.split_once('-')?;
    let sizes = (segment.len(), block.len()) == (16, 8);
    let segment = u64::from_str_radix(segment, 16).ok().filter(|_| sizes)?;
    Some((segment, u32::from_str_radix(block, 16).ok()?))
}

/// The name of an emptied segment's file.
pub(super) fn free_name(id: u64) -> FileName {
    format!("free-{id:016x}").into()
}

/// The name of a checkpoint's file.
pub(super) fn checkpoint_name(number: u64) -> FileName {
    format!("checkpoint-{number:016x}").into()
}

/// The name of the file of durable ends.
pub(super) const ENDS_NAME: &str = "ends";

/// The number in a name with this prefix.
pub(super) fn number_of(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    if digits.len() != 16 {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}
