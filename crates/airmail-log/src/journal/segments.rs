//! The journal's segments: making them, filling ahead, moving on to the next, sealing. They are let go
//! by [`sweeping`](super::sweeping).

use super::calls::Calls;
use super::commands::Commands;
use super::effects::{Effects, Purpose};
use super::faults::Faults;
use super::fill::Fill;
use super::format::{META_CLASS, PLACES, SYSTEM_CLASS, SegmentHeader};
use super::id::{ClassId, FileOffset, SegmentId};
use super::indexing::Indexer;
use super::meta::Meta;
use super::names::free_name;
use super::segment::{Segment, State};
use super::segment_set::SegmentSet;
use super::time::Time;
use super::{Journal, JournalConfig};
use crate::files::{FileName, FileOp};
use airmail_model::bug;
use airmail_model::random::nth;
use std::io;

/// Bytes that are filled to see whether a full disk has room again.
const PROBE_BYTES: u64 = 64 << 10;
/// Fills begin and end at multiples of this, as commits end: no page is ever filled while a commit
/// writes another part of it, which could undo one of the two.
pub(super) const FILL_ALIGNED_BYTES: u64 = 4096;

/// The salt of a new segment. Half of it is the segment's own, so that a recycled file's earlier
/// records are not taken for data even where the header is lost.
fn salt_of(seed: u64, segment: SegmentId) -> u32 {
    (nth(seed, segment.0) as u32) << 16 | own_salt(segment)
}

fn own_salt(segment: SegmentId) -> u32 {
    nth(0, segment.0) as u32 & 0xffff
}

/// Whether a salt found in a segment can be its own.
pub(super) fn is_own_salt(salt: u32, segment: SegmentId) -> bool {
    salt & 0xffff == own_salt(segment)
}

/// Zeros over a part of a segment.
fn fill(name: FileName, from: FileOffset, to: FileOffset) -> FileOp {
    let (from, to) = (from.0, to.0);
    FileOp::Fill { name, from, to }
}

/// Seals a segment: it takes nothing more, and bytes behind its durable end are not data.
pub(super) fn seal(
    segments: &mut SegmentSet,
    indexer: &mut Indexer,
    commands: &mut Commands,
    id: SegmentId,
) {
    let Some(segment) = segments.get_mut(id) else {
        bug!("segment {id} is to be sealed and is gone");
        return;
    };
    let (end, last) = (segment.seal(), segment.last_block());
    segments.want_sweep();
    segments.want_move();
    if let Some(last) = last {
        indexer.complete(last, segments);
    }
    let sealed = Meta::SegmentSealed { segment: id, end };
    commands.give(sealed, None);
}

/// The segment that could not be filled.
enum Unfilled {
    /// One that is being made, and why.
    New(io::Error),
    /// One that takes batches: it is to be left.
    Written,
}

/// The parts of the journal that making and filling segments reads or changes.
pub(super) struct Making<'j> {
    pub(super) config: &'j JournalConfig,
    pub(super) time: &'j Time,
    pub(super) calls: &'j Calls,
    pub(super) faults: &'j mut Faults,
    pub(super) segments: &'j mut SegmentSet,
    pub(super) effects: &'j mut Effects,
}

impl Journal {
    pub(super) fn making(&mut self) -> Making<'_> {
        Making {
            config: &self.config,
            time: &self.time,
            calls: &self.calls,
            faults: &mut self.faults,
            segments: &mut self.segments,
            effects: &mut self.effects,
        }
    }

    /// A segment's file was made, or could not be.
    pub(super) fn segment_made(&mut self, id: SegmentId, result: io::Result<()>) {
        match result {
            Ok(()) => self.making().made(id),
            Err(error) => self.failing().making_failed(id, &error),
        }
    }

    /// A segment's file was filled up to here, or could not be.
    pub(super) fn segment_filled(&mut self, id: SegmentId, to: FileOffset, result: io::Result<()>) {
        match self.making().filled(id, to, result) {
            None => {}
            Some(Unfilled::New(error)) => self.failing().making_failed(id, &error),
            Some(Unfilled::Written) => self.failing().abandon_unfilled(),
        }
    }
}

impl Making<'_> {
    /// The class's segment that takes batches; begins to make one if there is none.
    pub(super) fn open(&mut self, class: ClassId) -> Option<SegmentId> {
        let state = self.segments.class_mut(class);
        if state.active.is_none() {
            state.active = state.prepared.take();
        }
        match state.active {
            Some(id) => self.segments.get(id).filter(|s| s.is_open()).map(|s| s.id),
            None => {
                if self.faults.may_try(self.time.mono()) {
                    let id = self.make(class);
                    self.segments.class_mut(class).active = Some(id);
                }
                None
            }
        }
    }

    fn make(&mut self, class: ClassId) -> SegmentId {
        let id = self.segments.number(self.time.mono());
        let header = SegmentHeader {
            class,
            incompatible: if class == META_CLASS { PLACES } else { 0 },
            compatible: 0,
            shard: self.config.shard,
            cluster: self.config.cluster,
            node: self.config.node,
            segment: id,
            salt: salt_of(self.config.seed, id),
        };
        let mut segment = Segment::new(header);
        let name = segment.name.clone();
        let recycled = match class {
            META_CLASS | SYSTEM_CLASS => None,
            _ => self.segments.take_free(),
        };
        let op = match recycled {
            Some((free, end)) => {
                segment.fill = Fill::found(FileOffset(end.0 - end.0 % FILL_ALIGNED_BYTES));
                FileOp::Rename {
                    from: free_name(free),
                    to: name,
                }
            }
            None => FileOp::Create { name },
        };
        self.segments.insert(segment);
        self.effects.submit(Purpose::Made(id), op);
        id
    }

    /// A segment's file is made: it is filled before it takes batches.
    fn made(&mut self, id: SegmentId) {
        let probing = self.faults.is_full();
        let of = self.segments.get(id);
        let limit = of.map_or(0, |of| self.config.segment_limit(of.header.class).0);
        let Some(segment) = self.segments.get_mut(id) else {
            bug!("segment {id} was made and is gone");
            return;
        };
        let ahead = if segment.header.class == META_CLASS && self.config.fill_bytes > 0 {
            limit
        } else {
            self.config.fill_bytes.min(limit)
        };
        let to = if probing {
            ahead.max(PROBE_BYTES)
        } else {
            ahead
        };
        let to = FileOffset(to).next_multiple_of(FILL_ALIGNED_BYTES);
        if segment.fill.end() >= to {
            return self.ready(id);
        }
        let (name, from) = (segment.name.clone(), segment.fill.end());
        segment.fill.begun(from, to);
        self.effects
            .submit(Purpose::Filled(id, to), fill(name, from, to));
    }

    fn ready(&mut self, id: SegmentId) {
        if let Some(segment) = self.segments.get_mut(id)
            && segment.opened()
        {
            self.faults.has_room();
        }
    }

    /// A fill has ended: the failure, if it failed.
    fn filled(
        &mut self,
        id: SegmentId,
        to: FileOffset,
        result: io::Result<()>,
    ) -> Option<Unfilled> {
        let Some(segment) = self.segments.get_mut(id) else {
            bug!("segment {id} was filled and is gone");
            return None;
        };
        segment.fill.ended();
        match result {
            Ok(()) => {
                segment.fill.filled_to(to);
                self.ready(id);
            }
            Err(error) if segment.state() == State::Making => return Some(Unfilled::New(error)),
            Err(error) => {
                segment.fill.fail(error);
                return Some(Unfilled::Written);
            }
        }
        None
    }

    /// Fills on, if the writing end has come near to the end of the fill; and has the next segment
    /// made, if this one is nearly full.
    pub(super) fn fill_ahead(&mut self, id: SegmentId) {
        let step = self.config.fill_bytes;
        let Some(segment) = self.segments.get(id) else {
            bug!("segment {id} was written and is gone");
            return;
        };
        let class = segment.header.class;
        let limit = self.config.segment_limit(class);
        let (written, filled) = (segment.written(), segment.fill.end());
        let fills = step > 0
            && !segment.fill.is_under_way()
            && filled < limit
            && !segment.fill.has_failed();
        if fills && written + step / 2 > filled {
            // A write ends with the page that it ends in.
            let from = filled.max(written.next_multiple_of(FILL_ALIGNED_BYTES));
            let to = (from + step).min(limit);
            let to = to.next_multiple_of(FILL_ALIGNED_BYTES);
            if from < to
                && let Some(segment) = self.segments.get_mut(id)
            {
                segment.fill.begun(from, to);
                let name = segment.name.clone();
                self.effects
                    .submit(Purpose::Filled(id, to), fill(name, from, to));
            }
        }
        let nearly_full = written.0 > limit.0 / 4 * 3;
        let of = self.segments.class(class);
        let unprepared = of.prepared.is_none() && of.spared != Some(id);
        if nearly_full && unprepared && self.faults.trouble().is_none() && !self.calls.is_closing()
        {
            let prepared = self.make(class);
            self.segments.class_mut(class).prepared = Some(prepared);
        }
    }
}
