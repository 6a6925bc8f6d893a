//! Writing a complete block's index file, and making a damaged one's table again.
//!
//! One index file is written at a time, synced, and never again: after a failure the table stays in
//! memory, and the file is removed and made anew later. An index that cannot be read is made again
//! from its block.

use super::Journal;
use super::damage::{Problem, Reason};
use super::effects::Purpose;
use super::format::Kind;
use super::id::{BlockId, BlockIndex, FileOffset, Slot};
use super::index::{self, Layout};
use super::scan::{Body, Found, Loaded, Scanner};
use super::segment::{Segment, State, index_name, segment_name};
use super::table::{Location, Table};
use crate::contract::ReaderId;
use crate::files::FileOp;
use airmail_model::{Mono, bug};
use bytes::Bytes;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

/// How often a block that cannot be read is tried.
const REBUILD_ATTEMPTS: u32 = 3;

/// An index file on its way.
#[derive(Debug)]
pub(super) struct Indexing {
    block: BlockId,
    layout: Layout,
    firsts: BTreeMap<Slot, u32>,
    bytes: Bytes,
    stage: Stage,
}

/// How far it is.
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
/// Invariants, held by [`Indexer::check`]:
/// - The index that is being written is not waiting to be begun, too.
/// - A block that readers wait for is tried at most `REBUILD_ATTEMPTS` times.
#[derive(Debug, Default)]
pub(super) struct Indexer {
    /// Blocks whose index is to be written, in order.
    waiting: VecDeque<BlockId>,
    under_way: Option<Indexing>,
    /// After a failure, none is begun before this time.
    not_before: Mono,
    rebuilding: BTreeMap<BlockId, Rebuild>,
}

impl Indexer {
    /// Whether a block's table is being made again.
    pub(super) fn is_making_again(&self, block: BlockId) -> bool {
        self.rebuilding.contains_key(&block)
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        for (block, rebuild) in &self.rebuilding {
            assert!(
                rebuild.failures < REBUILD_ATTEMPTS,
                "block {block} was tried {} times",
                rebuild.failures
            );
        }
    }
}

impl Journal {
    /// A block has got its last batch.
    pub(super) fn block_complete(&mut self, block: BlockId) {
        let place = self.segments.block(block);
        if place.is_some_and(|block| block.table.is_some() && block.layout.is_none()) {
            self.indexer.waiting.push_back(block);
        }
    }

    /// Begins to write the next index file, if it is time.
    pub(super) fn write_index(&mut self) {
        if self.indexer.under_way.is_some()
            || self.indexer.not_before > self.time.mono()
            || !self.may_try()
        {
            return;
        }
        while let Some(block) = self.indexer.waiting.pop_front() {
            // One that will go when it is swept needs none.
            let stays =
                |of: &&Segment| !(of.leaving || (of.state == State::Sealed && of.is_unused()));
            let Some(of) = self.segments.get(block.segment).filter(stays) else {
                // Input: a segment of which nothing is kept any more.
                continue;
            };
            let Some(place) = of.block(block.block) else {
                bug!("block {block} is to be indexed and is not there");
                continue;
            };
            let Some(table) = place.table.as_ref().filter(|_| place.layout.is_none()) else {
                // Input: a damaged index: it was made again, and is there.
                continue;
            };
            let (bytes, layout, firsts) = index::encode(block, place.start, table);
            let (bytes, stage) = (Bytes::from(bytes), Stage::Making);
            self.indexer.under_way = Some(Indexing {
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
    pub(super) fn index_step_done(&mut self, result: io::Result<()>) {
        let Some(mut indexing) = self.indexer.under_way.take() else {
            bug!("a step of an index has ended, and none is under way");
            return;
        };
        let name = index_name(indexing.block);
        let op = match (indexing.stage, result) {
            (Stage::Making, Ok(())) => {
                indexing.stage = Stage::Writing;
                let parts = vec![indexing.bytes.clone()];
                FileOp::Write {
                    name,
                    at: 0,
                    parts,
                    sync: true,
                    note: None,
                }
            }
            (Stage::Making, Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                indexing.stage = Stage::Removing;
                FileOp::Remove { name }
            }
            (Stage::Removing, Ok(())) => {
                indexing.stage = Stage::Making;
                FileOp::Create { name }
            }
            (Stage::Writing, Ok(())) => return self.index_written(indexing),
            (_, Err(_)) => {
                self.indexer.not_before = self.time.mono().plus(self.config.probe_interval);
                self.indexer.waiting.push_back(indexing.block);
                return;
            }
        };
        self.effects.submit(Purpose::Index, op);
        self.indexer.under_way = Some(indexing);
    }

    fn index_written(&mut self, indexing: Indexing) {
        let Indexing {
            block,
            layout,
            firsts,
            ..
        } = indexing;
        let of = self.segments.get_mut(block.segment);
        let of = of.filter(|of| !of.leaving);
        let Some(place) = of.and_then(|of| of.block_mut(block.block)) else {
            // Input: a segment of which nothing was kept any more while its index was written.
            let name = index_name(block);
            return self.effects.submit(Purpose::Minor, FileOp::Remove { name });
        };
        let Some(table) = place.table.take() else {
            bug!("the index of block {block} is written, and its table is gone");
            return;
        };
        place.layout = Some(layout);
        for (slot, list) in &table.logs {
            let Some(log) = self.logs.get_mut(*slot) else {
                // Input: a log that was deleted meanwhile.
                continue;
            };
            let Some(last) = list.last().map(Location::last) else {
                bug!("slot {slot} has no batch in its table of block {block}");
                continue;
            };
            let at = log.kept.list.partition_point(|place| place.last < last);
            if let Some(place) = log.kept.list.get_mut(at)
                && place.block == block
            {
                place.entries_at = firsts.get(slot).copied().unwrap_or(0);
                place.entries = list.len() as u32;
            }
        }
    }

    /// The index of a block cannot be trusted: a reader waits until its table is made again.
    pub(super) fn rebuild(&mut self, r: ReaderId, block: BlockId) {
        if let Some(place) = self.segments.block_mut(block) {
            place.layout = None;
        }
        let begun = self.indexer.rebuilding.contains_key(&block);
        let rebuild = self.indexer.rebuilding.entry(block).or_default();
        rebuild.waiting.push(r);
        if !begun {
            self.read_block(block);
        }
    }

    /// Has the tables of these blocks in memory, and lets go of others that are on disk.
    pub(super) fn hold_tables(&mut self, wanted: &BTreeSet<BlockId>) {
        let mut missing = Vec::new();
        for segment in self.segments.iter_mut() {
            for (n, block) in segment.blocks.iter_mut().enumerate() {
                let key = BlockId {
                    segment: segment.id,
                    block: BlockIndex::at(n),
                };
                if wanted.contains(&key) && block.table.is_none() {
                    missing.push(key);
                } else if block.layout.is_some() && !wanted.contains(&key) {
                    block.table = None;
                }
            }
        }
        for block in missing {
            if let Entry::Vacant(begins) = self.indexer.rebuilding.entry(block) {
                begins.insert(Rebuild::default());
                self.read_block(block);
            }
        }
    }

    fn read_block(&mut self, block: BlockId) {
        let Some(of) = self.segments.get(block.segment) else {
            bug!("the segment of block {block} is gone, and readers wait for it");
            return self.rebuilt(block);
        };
        let Some(place) = of.block(block.block) else {
            bug!("block {block} is gone, and readers wait for it");
            return self.rebuilt(block);
        };
        let at = place.start;
        let length = u32::try_from(place.end - at).unwrap_or(u32::MAX);
        let op = FileOp::Read {
            name: of.name.clone(),
            at: at.0,
            length,
            records: Vec::new(),
        };
        self.segments.read_begun(block.segment);
        self.effects.submit(Purpose::Rebuild(block), op);
    }

    /// A block was read.
    pub(super) fn block_read(&mut self, block: BlockId, result: io::Result<Bytes>) {
        let bounds = self.segments.get(block.segment).and_then(|of| {
            let place = of.block(block.block)?;
            Some((place.start, place.end, of.header.salt))
        });
        let table = result.ok().zip(bounds);
        let table = table.map(|(bytes, (start, end, salt))| table_of(bytes, start, end, salt));
        let whole = table
            .as_ref()
            .is_some_and(|table| self.is_whole(block, table));
        if !whole && table.is_some() {
            let at = bounds.map_or(0, |(start, ..)| start.0);
            let name = segment_name(block.segment);
            self.faults.found(Problem::of(&name, at, Reason::Block));
        }
        self.segments.read_ended(block.segment);
        if let Some(place) = self.segments.block_mut(block) {
            match table {
                Some(table) => {
                    place.table = Some(table);
                    if place.layout.is_none() && whole {
                        self.indexer.waiting.push_back(block);
                    }
                    self.upkeep.set_retain_at(self.time.mono());
                }
                None => {
                    let failures = self.indexer.rebuilding.entry(block).or_default();
                    failures.failures += 1;
                    if failures.failures < REBUILD_ATTEMPTS {
                        return self.read_block(block);
                    }
                    // Told as lost, and tried again when the journal opens.
                    if place.layout.is_none() {
                        place.table = Some(Table::default());
                    }
                }
            }
        }
        self.rebuilt(block);
    }

    /// Whether a table has all that the logs have in the block. Where damage has taken some of it
    /// the table stays in memory: by an index a reader of one topic would take it for unused.
    fn is_whole(&self, block: BlockId, table: &Table) -> bool {
        self.logs.iter().all(|log| {
            let list = table.logs.get(&log.slot).map_or(&[][..], |list| list);
            let mut places = log.kept.list.iter();
            places
                .find(|place| place.block == block)
                .is_none_or(|place| place.is_covered_by(list))
        })
    }

    fn rebuilt(&mut self, block: BlockId) {
        let waiting = self
            .indexer
            .rebuilding
            .remove(&block)
            .unwrap_or_default()
            .waiting;
        for r in waiting {
            if let Some(reader) = self.readers.get_mut(r) {
                reader.reading = false;
                reader.lookup = None;
                self.readers.wake(r);
            }
        }
    }
}

/// The table of a block, from its bytes.
fn table_of(bytes: Bytes, start: FileOffset, end: FileOffset, salt: u32) -> Table {
    let mut loaded = Loaded { at: start, bytes };
    let mut scanner = Scanner::new(&mut loaded, "".into(), end, salt, start);
    let mut table = Table::default();
    // The bytes are in memory: reading them cannot fail.
    while let Ok(found) = scanner.next() {
        match found {
            Found::Record {
                at,
                envelope,
                body: Body::Batch(batch, _),
                ..
            } if envelope.kind == Kind::Batch => {
                let location = Location {
                    first: envelope.sequence(),
                    numbers: envelope.numbers,
                    offset: at,
                    length: envelope.length,
                    time: envelope.append_time,
                };
                table.add(
                    envelope.slot,
                    location,
                    batch.topics().map(|topic| topic.hash),
                );
            }
            Found::Record { .. } => {}
            Found::Nothing { at, envelope } => {
                let behind = envelope.map_or(at + 8, |sound| at + sound.stored_bytes());
                if !scanner.resync(behind, end).unwrap_or(false) {
                    break;
                }
            }
        }
    }
    table
}
