//! Writing of complete blocks' index files.
//!
//! One index file is written at a time, synced, and never again: after a failure the table stays in
//! memory, and the file is removed and made anew later. An index that cannot be read is made again
//! from its block ([`rebuilding`](super::rebuilding)).

use super::Journal;
use super::block::Block;
use super::effects::{Effects, Purpose};
use super::id::{BlockId, Slot};
use super::index::{self, Layout};
use super::logs::Logs;
use super::names::index_name;
use super::segment::Segment;
use super::segment_set::SegmentSet;
use super::table::Location;
use crate::contract::ReaderId;
use crate::files::FileOp;
use airmail_model::{Mono, bug};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Number of attempts at a block that cannot be read.
const REBUILD_ATTEMPTS: u32 = 3;

/// An index file on its way.
#[derive(Debug)]
struct IndexFile {
    block: BlockId,
    layout: Layout,
    firsts: BTreeMap<Slot, u32>,
    bytes: Bytes,
    stage: Stage,
}

/// Stage of making an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Making,
    Removing,
    Writing,
}

/// A block's table being made again.
#[derive(Debug, Default)]
pub(super) struct Rebuild {
    waiting: Vec<ReaderId>,
    failures: u32,
}

/// The indexes that are being written, and the tables that are being made again.
///
/// A block may wait twice, told to be complete once more when its segment is sealed; `Indexing::begin` passes
/// over one that has its index.
///
/// Invariant, held by [`Indexer::check`]: a block that readers wait for is tried at most `REBUILD_ATTEMPTS`
/// times.
#[derive(Debug, Default)]
pub(super) struct Indexer {
    /// Blocks whose index is to be written, in order.
    waiting: VecDeque<BlockId>,
    under_way: Option<IndexFile>,
    /// Time before which no index file is begun, after a failure.
    not_before: Mono,
    rebuilding: BTreeMap<BlockId, Rebuild>,
}

/// The parts of the journal that writing an index file changes.
struct Indexing<'j> {
    indexer: &'j mut Indexer,
    segments: &'j mut SegmentSet,
    logs: &'j mut Logs,
    effects: &'j mut Effects,
}

impl Indexer {
    /// The index of a block is to be written.
    pub(super) fn want_index(&mut self, block: BlockId) {
        self.waiting.push_back(block);
    }

    /// A block's table is to be made again, and a reader may wait for it. Whether that begins now.
    pub(super) fn make_again(&mut self, block: BlockId, waiting: Option<ReaderId>) -> bool {
        let begins = !self.rebuilding.contains_key(&block);
        let rebuild = self.rebuilding.entry(block).or_default();
        rebuild.waiting.extend(waiting);
        begins
    }

    /// A block that is to be made again could not be read. Whether it is tried once more.
    pub(super) fn try_again(&mut self, block: BlockId) -> bool {
        let rebuild = self.rebuilding.entry(block).or_default();
        rebuild.failures += 1;
        rebuild.failures < REBUILD_ATTEMPTS
    }

    /// Takes the readers that waited for a block's table, which is there or will not be.
    pub(super) fn made_again(&mut self, block: BlockId) -> Vec<ReaderId> {
        let made = self.rebuilding.remove(&block);
        made.map_or_else(Vec::new, |rebuild| rebuild.waiting)
    }

    /// Whether a block's table is being made again.
    pub(super) fn is_making_again(&self, block: BlockId) -> bool {
        self.rebuilding.contains_key(&block)
    }

    /// Asserts the invariant.
    pub(super) fn check(&self) {
        for (block, rebuild) in &self.rebuilding {
            assert!(
                rebuild.failures < REBUILD_ATTEMPTS,
                "block {block} was tried {} times",
                rebuild.failures
            );
        }
    }

    /// A block has got its last batch.
    pub(super) fn complete(&mut self, block: BlockId, segments: &SegmentSet) {
        let place = segments.block(block);
        if place.is_some_and(Block::needs_index) {
            self.waiting.push_back(block);
        }
    }
}

impl Journal {
    fn indexing(&mut self) -> Indexing<'_> {
        Indexing {
            indexer: &mut self.indexer,
            segments: &mut self.segments,
            logs: &mut self.logs,
            effects: &mut self.effects,
        }
    }

    /// Begins to write the next index file, if it is time.
    pub(super) fn write_index(&mut self) {
        if self.may_try() {
            let now = self.time.mono();
            self.indexing().begin(now);
        }
    }

    /// A step of the index file on its way has ended.
    pub(super) fn index_step_done(&mut self, result: io::Result<()>) {
        let again = self.time.mono().plus(self.config.probe_interval);
        self.indexing().step_done(result, again);
    }
}

impl Indexing<'_> {
    /// Begins to write the next index file, if there is one to be written and it is time.
    fn begin(&mut self, now: Mono) {
        if self.indexer.under_way.is_some() || self.indexer.not_before > now {
            return;
        }
        while let Some(block) = self.indexer.waiting.pop_front() {
            // One that will go when it is swept needs none.
            let stays = |of: &&Segment| !(of.is_leaving() || (of.is_sealed() && of.is_unused()));
            let Some(of) = self.segments.get(block.segment).filter(stays) else {
                // Input: a segment of which nothing is kept any more.
                continue;
            };
            let Some(place) = of.block(block.block) else {
                bug!("block {block} is to be indexed and is not there");
                continue;
            };
            let Some(table) = place.table().filter(|_| place.needs_index()) else {
                // Input: a damaged index: it was made again, and is there.
                continue;
            };
            let (bytes, layout, firsts) = index::encode(block, place.start(), table);
            let (bytes, stage) = (Bytes::from(bytes), Stage::Making);
            self.indexer.under_way = Some(IndexFile {
                block,
                layout,
                firsts,
                bytes,
                stage,
            });
            let name = index_name(block);
            return self.effects.submit(Purpose::Index, FileOp::Create { name });
        }
    }

    /// A step of the index file on its way has ended.
    fn step_done(&mut self, result: io::Result<()>, again: Mono) {
        let Some(mut file) = self.indexer.under_way.take() else {
            bug!("a step of an index has ended, and none is under way");
            return;
        };
        let name = index_name(file.block);
        let op = match (file.stage, result) {
            (Stage::Making, Ok(())) => {
                file.stage = Stage::Writing;
                let parts = vec![file.bytes.clone()];
                FileOp::Write {
                    name,
                    at: 0,
                    parts,
                    sync: true,
                    note: None,
                }
            }
            (Stage::Making, Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                file.stage = Stage::Removing;
                FileOp::Remove { name }
            }
            (Stage::Removing, Ok(())) => {
                file.stage = Stage::Making;
                FileOp::Create { name }
            }
            (Stage::Writing, Ok(())) => {
                return self.written(file);
            }
            (_, Err(_)) => {
                self.indexer.not_before = again;
                self.indexer.waiting.push_back(file.block);
                return;
            }
        };
        self.effects.submit(Purpose::Index, op);
        self.indexer.under_way = Some(file);
    }

    /// The file is there: the block is found by it from here on.
    fn written(&mut self, file: IndexFile) {
        let IndexFile {
            block,
            layout,
            firsts,
            ..
        } = file;
        let of = self.segments.get_mut(block.segment);
        let of = of.filter(|of| !of.is_leaving());
        let Some(place) = of.and_then(|of| of.block_mut(block.block)) else {
            // Input: a segment of which nothing was kept any more while its index was written.
            let name = index_name(block);
            return self.effects.submit(Purpose::Minor, FileOp::Remove { name });
        };
        let Some(table) = place.index_written(layout) else {
            bug!("the index of block {block} is written, and its table is gone");
            return;
        };
        for (slot, list) in &table.logs {
            let Some(log) = self.logs.get_mut(*slot) else {
                // Input: a log that was deleted meanwhile.
                continue;
            };
            let Some(last) = list.last().map(Location::last) else {
                bug!("slot {slot} has no batch in its table of block {block}");
                continue;
            };
            let at = firsts.get(slot).copied().unwrap_or(0);
            log.kept.indexed(block, last, at, list.len() as u32);
        }
    }
}
