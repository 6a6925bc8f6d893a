//! Segments of which little is wanted: that little is written once more, elsewhere, so that they go.
//!
//! Logs of a class share segments. A log that is rarely written to would keep every segment in which
//! it has a batch, with all that others had there and do not want any more. So where the sealed
//! segments of a class hold more than one segment's worth of what nobody wants, and nothing else is
//! to be done, the batches that are wanted of the one that holds the least are appended again, as
//! after an unclean stop: with the same numbers and times, in the class's open segment, synced. When
//! that is durable a log's place moves there; the old segment goes when no log keeps anything in it
//! and a checkpoint knows the new places.
//!
//! A block of a segment is moved at a time. One that is not sound stays where it is, and so does its
//! segment, until the next start: what is damaged is told, not copied.

use super::format::{Envelope, HEADER_BYTES, Kind, META_CLASS};
use super::log::{Entry, LogState, Place};
use super::scan::{Body, Found, Loaded, Scanner};
use super::segment::{Segment, State};
use super::table::Location;
use super::{Journal, Purpose};
use crate::files::FileOp;
use airmail_model::{Batch, Checked};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;

/// What there is to be moved, as far as is known.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// No segment has come to hold less since none was worth it.
    pub(super) settled: bool,
    under_way: Option<Moving>,
}

/// A move under way.
#[derive(Clone, Copy, Debug)]
struct Moving {
    segment: u64,
    block: u32,
    /// The block is being read; else its batches are being written.
    reading: bool,
}

/// A batch as it was read.
type Record = (Envelope, Checked<Batch>);

/// All batches of a block, or `None` if not everything of it is sound.
fn records_of(bytes: Bytes, start: u64, end: u64, salt: u32) -> Option<Vec<Record>> {
    let mut loaded = Loaded { at: start, bytes };
    let mut scanner = Scanner::new(&mut loaded, "".into(), end, salt, start);
    let mut all = Vec::new();
    while scanner.at() < end {
        // The bytes are in memory: reading them cannot fail.
        match scanner.next().ok()? {
            Found::Record {
                envelope,
                body: Body::Batch(batch, damaged),
                ..
            } if envelope.kind == Kind::Batch && damaged.is_empty() => all.push((envelope, batch)),
            _ => return None,
        }
    }
    Some(all)
}

impl LogState {
    /// What the log keeps in a block.
    fn place_in(&self, segment: u64, block: u32) -> Option<&Place> {
        let mut places = self.places.iter();
        places.find(|place| (place.segment, place.block) == (segment, block))
    }

    /// A batch that has a place is durable in another: it leaves the old one. That one's block, if
    /// the log keeps nothing more in it.
    pub(super) fn leave_place(&mut self, location: &Location) -> Option<(u64, u32)> {
        let at = self
            .places
            .partition_point(|place| place.last < location.first);
        let place = self.places.get_mut(at)?;
        if place.first > location.last() || location.last() > place.last {
            return None;
        }
        let bytes = location.stored_bytes().min(place.bytes);
        place.bytes -= bytes;
        self.bytes -= bytes;
        place.first = location.last() + 1;
        if place.first <= place.last {
            return None;
        }
        let left = (place.segment, place.block);
        self.bytes -= place.bytes;
        self.places.remove(at);
        Some(left)
    }
}

impl Journal {
    /// Begins to move what is wanted of a segment, if there is one that is worth it.
    pub(super) fn begin_move(&mut self) {
        let idle = self.pending.is_empty()
            && self.commits.is_empty()
            && self.metas.is_empty()
            && self.trouble.is_none();
        if !idle || self.moves.under_way.is_some() || self.moves.settled {
            return;
        }
        self.moves.settled = true;
        if let Some(segment) = self.sparse() {
            self.move_block(segment);
        }
    }

    /// Of a class that holds too much that is not wanted, the segment with the least that is.
    fn sparse(&self) -> Option<u64> {
        let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
        for place in self.logs.values().flat_map(|log| &log.places) {
            *wanted.entry(place.segment).or_default() += place.bytes;
        }
        let movable = |segment: &&Segment| {
            segment.state == State::Sealed && segment.header.class != META_CLASS && !segment.leaving
        };
        let mut waste: BTreeMap<u16, u64> = BTreeMap::new();
        let mut least: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for segment in self.segments.values().filter(movable) {
            let class = segment.header.class;
            let live = wanted.get(&segment.id).copied().unwrap_or(0);
            let length = segment.durable.saturating_sub(HEADER_BYTES as u64);
            if live == 0 {
                // It goes by itself.
                continue;
            }
            *waste.entry(class).or_default() += length.saturating_sub(live);
            if live <= length / 2 && !segment.unmovable {
                let found = least.entry(class).or_insert((live, segment.id));
                *found = (live, segment.id).min(*found);
            }
        }
        let too_much = |class: &u16| waste.get(class) > Some(&self.segment_limit(*class));
        let found = least.iter().find(|(class, _)| too_much(class));
        found.map(|(_, (_, segment))| *segment)
    }

    /// Has the first block of a segment that a log keeps something in read; ends the move if there
    /// is none.
    fn move_block(&mut self, segment: u64) {
        self.moves.under_way = None;
        // Another may be worth it, then.
        self.moves.settled = false;
        let Some(of) = self.segments.get_mut(&segment) else {
            return;
        };
        let mut blocks = of.blocks.iter().enumerate();
        let Some((n, place)) = blocks.find(|(_, block)| block.kept_by > 0) else {
            return;
        };
        let block = n as u32;
        let op = FileOp::Read {
            name: of.name.clone(),
            at: place.start,
            length: u32::try_from(place.end - place.start).unwrap_or(u32::MAX),
            records: Vec::new(),
        };
        of.reads += 1;
        self.moves.under_way = Some(Moving {
            segment,
            block,
            reading: true,
        });
        self.submit(Purpose::Moved(segment, block), op);
    }

    /// A block that is to be moved was read: its batches are written like those found at a start.
    pub(super) fn block_to_move(&mut self, segment: u64, block: u32, result: io::Result<Bytes>) {
        let Some(of) = self.segments.get_mut(&segment) else {
            self.moves.under_way = None;
            return;
        };
        of.reads -= 1;
        self.sweep_due |= of.reads == 0;
        if self.closing {
            self.moves.under_way = None;
            return;
        }
        let bounds = of.blocks.get(block as usize);
        let bounds = bounds.map(|place| (place.start, place.end, of.header.salt));
        let read = result.ok().zip(bounds);
        let records =
            read.and_then(|(bytes, (start, end, salt))| records_of(bytes, start, end, salt));
        let Some(entries) = records.and_then(|records| self.wanted_of(segment, block, records))
        else {
            return self.give_move_up();
        };
        if let Some(moving) = &mut self.moves.under_way {
            moving.reading = false;
        }
        for entry in entries {
            self.pending_bytes += super::append::cost(&entry.batch);
            self.pending.push_back(entry);
        }
    }

    /// What logs keep of a block's batches, to be written once more; `None` if one is missing.
    fn wanted_of(&self, segment: u64, block: u32, records: Vec<Record>) -> Option<Vec<Entry>> {
        let mut next: BTreeMap<u32, u64> = BTreeMap::new();
        let mut entries = Vec::new();
        for (envelope, batch) in records {
            let (slot, first) = (envelope.slot, envelope.first);
            let log = self.logs.get(&slot).filter(|log| log.id == batch.log());
            let place = log.and_then(|log| log.place_in(segment, block));
            let behind = first + u64::from(envelope.numbers);
            let Some(place) = place.filter(|of| of.first < behind && first <= of.last) else {
                continue;
            };
            let expected = next.entry(slot).or_insert(place.first);
            if first > *expected {
                return None;
            }
            *expected = behind;
            entries.push(Entry::again(&envelope, batch));
        }
        let mut places = self.logs.values().filter_map(|log| {
            let place = log.place_in(segment, block)?;
            Some((log.slot, place.last + 1))
        });
        let whole = places.all(|(slot, behind)| next.get(&slot) == Some(&behind));
        whole.then_some(entries)
    }

    /// Goes on to the next block when all of one has been moved.
    pub(super) fn go_on_moving(&mut self) {
        let Some(moving) = self.moves.under_way.filter(|moving| !moving.reading) else {
            return;
        };
        let written = self.pending.is_empty() && self.commits.is_empty();
        if !written {
            return;
        }
        let of = self.segments.get(&moving.segment);
        let block = of.and_then(|of| of.blocks.get(moving.block as usize));
        match block.is_some_and(|block| block.kept_by > 0) {
            true if !self.is_trimming(&moving) => self.give_move_up(),
            true => {}
            false => {
                self.moves.under_way = None;
                if self.may_try() && !self.closing {
                    self.move_block(moving.segment);
                }
                if self.moves.under_way.is_none() {
                    self.complete_moved(moving.segment);
                    self.begin_move();
                }
            }
        }
    }

    /// Whether a log gives up its part of the block in another way, whose command is on its way.
    fn is_trimming(&self, moving: &Moving) -> bool {
        let is_it = |place: &Place| (place.segment, place.block) == (moving.segment, moving.block);
        let leaving = self.logs.values().any(|log| log.leaving.iter().any(is_it));
        let gone = |(segment, block, _): &(u64, u32, u32)| {
            (*segment, *block) == (moving.segment, moving.block)
        };
        leaving || self.gone.iter().any(gone)
    }

    /// What was moved gets its index at once: behind a place without one, a checkpoint cannot name
    /// any of its logs'.
    fn complete_moved(&mut self, from: u64) {
        let class = self.segments.get(&from).map(|of| of.header.class);
        let class = class.and_then(|class| self.classes.get(&class));
        let Some(id) = class.and_then(|class| class.active) else {
            return;
        };
        let last = self.segments.get_mut(&id).and_then(Segment::close_block);
        if let Some(block) = last {
            self.block_complete(id, block);
        }
    }

    /// Whether a batch of a segment has been moved from there.
    pub(super) fn is_elsewhere(&self, segment: u64, slot: u32, location: &Location) -> bool {
        let log = self.logs.get(&slot);
        let place = log.and_then(|log| log.place_from(location.last()));
        place.is_some_and(|place| place.first <= location.last() && place.segment != segment)
    }

    /// A segment stays as it is until the next start.
    fn give_move_up(&mut self) {
        let moving = self.moves.under_way.take();
        let of = moving.and_then(|moving| self.segments.get_mut(&moving.segment));
        if let Some(of) = of {
            of.unmovable = true;
        }
        if let Some(moving) = moving {
            self.complete_moved(moving.segment);
        }
        self.moves.settled = false;
    }
}
