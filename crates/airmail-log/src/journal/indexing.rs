//! Writing a complete block's index file, and making a damaged one's table again.
//!
//! One index file is written at a time, synced, and never again: after a failure the table stays in
//! memory, and the file is removed and made anew later. An index that cannot be read is made again
//! from its block.

use super::damage::{Problem, Reason};
use super::format::Kind;
use super::index::{self, Layout};
use super::scan::{Body, Found, Loaded, Scanner};
use super::segment::{Segment, State, index_name, segment_name};
use super::table::{Location, Table};
use super::{Journal, Purpose};
use crate::contract::ReaderId;
use crate::files::FileOp;
use bytes::Bytes;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// How often a block that cannot be read is tried.
const REBUILD_ATTEMPTS: u32 = 3;

/// An index file on its way.
#[derive(Debug)]
pub(super) struct Indexing {
    segment: u64,
    block: u32,
    layout: Layout,
    firsts: BTreeMap<u32, u32>,
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

impl Journal {
    /// A block has got its last batch.
    pub(super) fn block_complete(&mut self, segment: u64, block: usize) {
        let place = self
            .segments
            .get(&segment)
            .and_then(|segment| segment.blocks.get(block));
        if place.is_some_and(|block| block.table.is_some() && block.layout.is_none()) {
            self.to_index.push_back((segment, block as u32));
        }
    }

    /// Begins to write the next index file, if it is time.
    pub(super) fn write_index(&mut self) {
        if self.indexing.is_some() || self.index_at > self.now.mono || !self.may_try() {
            return;
        }
        while let Some((segment, block)) = self.to_index.pop_front() {
            // One that will go when it is swept needs none.
            let stays =
                |of: &&Segment| !(of.leaving || (of.state == State::Sealed && of.is_unused()));
            let Some(of) = self.segments.get(&segment).filter(stays) else {
                continue;
            };
            let Some(place) = of.blocks.get(block as usize) else {
                continue;
            };
            let Some(table) = place.table.as_ref().filter(|_| place.layout.is_none()) else {
                continue;
            };
            let (bytes, layout, firsts) = index::encode(segment, block, place.start, table);
            let (bytes, stage) = (Bytes::from(bytes), Stage::Making);
            self.indexing = Some(Indexing {
                segment,
                block,
                layout,
                firsts,
                bytes,
                stage,
            });
            let name = index_name(segment, block);
            return self.submit(Purpose::Index, FileOp::Create { name });
        }
    }

    /// A step of the index file on its way has ended.
    pub(super) fn index_step_done(&mut self, result: io::Result<()>) {
        let Some(mut indexing) = self.indexing.take() else {
            return;
        };
        let name = index_name(indexing.segment, indexing.block);
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
                self.index_at = self.now.mono.plus(self.config.probe_interval);
                self.to_index.push_back((indexing.segment, indexing.block));
                return;
            }
        };
        self.submit(Purpose::Index, op);
        self.indexing = Some(indexing);
    }

    fn index_written(&mut self, indexing: Indexing) {
        let Indexing {
            segment,
            block,
            layout,
            firsts,
            ..
        } = indexing;
        let of = self.segments.get_mut(&segment).filter(|of| !of.leaving);
        let Some(place) = of.and_then(|of| of.blocks.get_mut(block as usize)) else {
            let name = index_name(segment, block);
            return self.submit(Purpose::Minor, FileOp::Remove { name });
        };
        let Some(table) = place.table.take() else {
            return;
        };
        place.layout = Some(layout);
        for (slot, list) in &table.logs {
            let Some(log) = self.logs.get_mut(slot) else {
                continue;
            };
            let Some(last) = list.last().map(Location::last) else {
                continue;
            };
            let at = log.places.partition_point(|place| place.last < last);
            if let Some(place) = log.places.get_mut(at)
                && (place.segment, place.block) == (segment, block)
            {
                place.entries_at = firsts.get(slot).copied().unwrap_or(0);
                place.entries = list.len() as u32;
            }
        }
    }

    /// The index of a block cannot be trusted: a reader waits until its table is made again.
    pub(super) fn rebuild(&mut self, r: ReaderId, segment: u64, block: u32) {
        let of = self.segments.get_mut(&segment);
        if let Some(place) = of.and_then(|of| of.blocks.get_mut(block as usize)) {
            place.layout = None;
        }
        let begun = self.rebuilding.contains_key(&(segment, block));
        let rebuild = self.rebuilding.entry((segment, block)).or_default();
        rebuild.waiting.push(r);
        if !begun {
            self.read_block(segment, block);
        }
    }

    /// Has the tables of these blocks in memory, and lets go of others that are on disk.
    pub(super) fn hold_tables(&mut self, wanted: &BTreeSet<(u64, u32)>) {
        let mut missing = Vec::new();
        for segment in self.segments.values_mut() {
            for (n, block) in segment.blocks.iter_mut().enumerate() {
                let key = (segment.id, n as u32);
                if wanted.contains(&key) && block.table.is_none() {
                    missing.push(key);
                } else if block.layout.is_some() && !wanted.contains(&key) {
                    block.table = None;
                }
            }
        }
        for (segment, block) in missing {
            if let Entry::Vacant(begins) = self.rebuilding.entry((segment, block)) {
                begins.insert(Rebuild::default());
                self.read_block(segment, block);
            }
        }
    }

    fn read_block(&mut self, segment: u64, block: u32) {
        let of = self.segments.get_mut(&segment);
        let Some(of) = of else {
            return self.rebuilt(segment, block);
        };
        let Some(place) = of.blocks.get(block as usize) else {
            return;
        };
        of.reads += 1;
        let length = u32::try_from(place.end - place.start).unwrap_or(u32::MAX);
        let op = FileOp::Read {
            name: of.name.clone(),
            at: place.start,
            length,
            records: Vec::new(),
        };
        self.submit(Purpose::Rebuild(segment, block), op);
    }

    /// A block was read.
    pub(super) fn block_read(&mut self, segment: u64, block: u32, result: io::Result<Bytes>) {
        let bounds = self.segments.get(&segment).and_then(|of| {
            let place = of.blocks.get(block as usize)?;
            Some((place.start, place.end, of.header.salt))
        });
        let table = result.ok().zip(bounds);
        let table = table.map(|(bytes, (start, end, salt))| table_of(bytes, start, end, salt));
        let whole = table
            .as_ref()
            .is_some_and(|table| self.is_whole(segment, block, table));
        if !whole && table.is_some() {
            let at = bounds.map_or(0, |(start, ..)| start);
            let name = segment_name(segment);
            self.damage.found(Problem::of(&name, at, Reason::Block));
        }
        if let Some(of) = self.segments.get_mut(&segment) {
            of.reads -= 1;
            self.sweep_due |= of.reads == 0;
            if let Some(place) = of.blocks.get_mut(block as usize) {
                match table {
                    Some(table) => {
                        place.table = Some(table);
                        if place.layout.is_none() && whole {
                            self.to_index.push_back((segment, block));
                        }
                        self.retention_at = self.now.mono;
                    }
                    None => {
                        let failures = self.rebuilding.entry((segment, block)).or_default();
                        failures.failures += 1;
                        if failures.failures < REBUILD_ATTEMPTS {
                            return self.read_block(segment, block);
                        }
                        // Told as lost, and tried again when the journal opens.
                        if place.layout.is_none() {
                            place.table = Some(Table::default());
                        }
                    }
                }
            }
        }
        self.rebuilt(segment, block);
    }

    /// Whether a table has all that the logs have in the block. Where damage has taken some of it
    /// the table stays in memory: by an index a reader of one topic would take it for unused.
    fn is_whole(&self, segment: u64, block: u32, table: &Table) -> bool {
        self.logs.values().all(|log| {
            let list = table.logs.get(&log.slot).map_or(&[][..], |list| list);
            let mut places = log.places.iter();
            places
                .find(|place| (place.segment, place.block) == (segment, block))
                .is_none_or(|place| place.is_covered_by(list))
        })
    }

    fn rebuilt(&mut self, segment: u64, block: u32) {
        let waiting = self
            .rebuilding
            .remove(&(segment, block))
            .unwrap_or_default()
            .waiting;
        for r in waiting {
            if let Some(reader) = self.readers.get_mut(&r) {
                reader.reading = false;
                reader.lookup = None;
                self.runnable.insert(r);
            }
        }
    }
}

/// The table of a block, from its bytes.
fn table_of(bytes: Bytes, start: u64, end: u64, salt: u32) -> Table {
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
                    first: envelope.first,
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
