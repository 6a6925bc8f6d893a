//! Rebuilding of a block's table: where its index cannot be read, or retention needs it exactly.
//!
//! The block is read from its segment, a few times if that fails; the records that then cannot be
//! read are reported as lost, and tried again when the journal opens. Readers that need the table
//! wait meanwhile.

use super::Journal;
use super::damage::{Problem, Reason};
use super::effects::Purpose;
use super::format::Kind;
use super::id::{BlockId, FileOffset, Slot};
use super::names::segment_name;
use super::read::Reading;
use super::scan::{Body, Found, Loaded, Scanner};
use super::table::{Location, Table};
use crate::contract::ReaderId;
use crate::files::FileOp;
use airmail_model::bug;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::io;

impl Reading<'_> {
    /// The index of a block cannot be trusted: a reader waits until its table is made again.
    pub(super) fn rebuild(&mut self, r: ReaderId, block: BlockId) {
        if let Some(place) = self.segments.block_mut(block) {
            place.index_lost();
        }
        if self.indexer.make_again(block, Some(r)) {
            self.read_block(block);
        }
    }

    /// Has the tables of these blocks in memory, and lets go of others that are on disk.
    pub(super) fn hold_tables(&mut self, wanted: &BTreeSet<BlockId>) {
        let mut missing = Vec::new();
        for segment in self.segments.iter_mut() {
            for (id, block) in segment.blocks_mut() {
                if !wanted.contains(&id) {
                    block.let_go_of_table();
                } else if block.table().is_none() {
                    missing.push(id);
                }
            }
        }
        for block in missing {
            if self.indexer.make_again(block, None) {
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
        let at = place.start();
        let length = u32::try_from(place.end() - at).unwrap_or(u32::MAX);
        let op = FileOp::Read {
            name: of.name.clone(),
            at: at.0,
            length,
            records: Vec::new(),
        };
        self.segments.read_begun(block.segment);
        self.effects.submit(Purpose::Rebuild(block), op);
    }

    /// Lets readers go on that waited for a block's table, which is there or will not be.
    fn rebuilt(&mut self, block: BlockId) {
        for r in self.indexer.made_again(block) {
            if let Some(reader) = self.readers.get_mut(r) {
                reader.reading = false;
                reader.lookup = None;
                self.readers.wake(r);
            }
        }
    }

    /// A block was read. Whether its table is there now.
    fn block_read(&mut self, block: BlockId, result: io::Result<Bytes>) -> bool {
        let bounds = self.segments.get(block.segment).and_then(|of| {
            let place = of.block(block.block)?;
            Some((place.start(), place.end(), of.header.salt))
        });
        let table = result.ok().zip(bounds);
        let table = table.map(|(bytes, (start, end, salt))| {
            table_of(bytes, start, end, salt, |slot, location| {
                self.is_of(block, slot, location)
            })
        });
        let whole = table
            .as_ref()
            .is_some_and(|table| self.is_whole(block, table));
        if !whole && table.is_some() {
            let at = bounds.map_or(0, |(start, ..)| start.0);
            let name = segment_name(block.segment);
            self.faults.found(Problem::of(&name, at, Reason::Block));
        }
        self.segments.read_ended(block.segment);
        let made = table.is_some();
        if let Some(place) = self.segments.block_mut(block) {
            match table {
                Some(table) => {
                    place.table_made(table);
                    if place.layout().is_none() && whole {
                        self.indexer.want_index(block);
                    }
                }
                None => {
                    if self.indexer.try_again(block) {
                        self.read_block(block);
                        return false;
                    }
                    // Told as lost, and tried again when the journal opens.
                    if place.layout().is_none() {
                        place.table_made(Table::default());
                    }
                }
            }
        }
        self.rebuilt(block);
        made
    }

    /// Whether a batch that lies in a block belongs to its table. Between the batches of a log there may be
    /// one that was written once more: a start that still knew its first place has left this one out.
    fn is_of(&self, block: BlockId, slot: Slot, location: &Location) -> bool {
        let place = self.logs.get(slot).and_then(|log| log.kept.within(block));
        place.is_none_or(|place| place.first <= location.last() && location.first <= place.last)
    }

    /// Whether a table has all that the logs have in the block. Where damage has taken some of it
    /// the table stays in memory: by an index a reader of one topic would take it for unused.
    fn is_whole(&self, block: BlockId, table: &Table) -> bool {
        self.logs.iter().all(|log| {
            let list = table.logs.get(&log.slot).map_or(&[][..], |list| list);
            let place = log.kept.within(block);
            place.is_none_or(|place| place.is_covered_by(list))
        })
    }
}

impl Journal {
    /// A block was read, to make its table again.
    pub(super) fn block_read(&mut self, block: BlockId, result: io::Result<Bytes>) {
        if self.reading().block_read(block, result) {
            // Retention may wait for it.
            self.upkeep.set_retain_at(self.time.mono());
        }
    }
}

/// The table of a block, from its bytes, with the batches that belong to it.
fn table_of(
    bytes: Bytes,
    start: FileOffset,
    end: FileOffset,
    salt: u32,
    belongs: impl Fn(Slot, &Location) -> bool,
) -> Table {
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
                if belongs(envelope.slot, &location) {
                    table.add(envelope.slot, location, batch.topic_hashes());
                }
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
