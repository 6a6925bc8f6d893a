//! Deliveries to readers: from memory, or from a segment's bytes to the batches that can be trusted.

use super::damage::{Problem, Reason, lost_numbers};
use super::effects::Purpose;
use super::entry::Recent;
use super::format::{ENVELOPE_BYTES, Envelope};
use super::id::{FileOffset, SegmentId};
use super::names::segment_name;
use super::read::{Gives, Item, Loaded, Reader, Reading};
use super::scan::{Body, Sound, body_of};
use super::segment::Segment;
use super::table::Location;
use crate::contract::{Completion, GapWhy, ReaderId, Stored};
use crate::files::FileOp;
use airmail_model::{AppendTime, Batch, Checked, Extent, Lane, Sequence, bug};
use bytes::Bytes;
use std::io;
use std::ops::Range;

/// Bytes between two batches that are read along, rather than left out by a read of its own.
const SKIP_BYTES: u64 = 32 << 10;
/// Number of attempts at a failing read.
const READ_ATTEMPTS: u32 = 3;

impl Reading<'_> {
    /// Gives a batch that is still in memory.
    pub(super) fn give_recent(&mut self, reader: &mut Reader, recent: Recent) {
        let (base, time) = (recent.first, recent.time);
        self.give(reader, base, time, recent.batch, &[]);
    }

    /// Goes on by the plan, from the segments. False: a read is under way.
    pub(super) fn go_on(&mut self, reader: &mut Reader) -> bool {
        let Some(item) = reader.plan.front().copied() else {
            // Input: a reader that has had all that was planned for it.
            return !reader.reading && self.make_plan(reader);
        };
        let last = match item {
            Item::Read(_, location) => location.last(),
            Item::Unused(last) | Item::Lost(last) => last,
        };
        if last < reader.next {
            reader.plan.pop_front();
            return true;
        }
        match item {
            Item::Unused(last) => reader.skip(last.min(reader.until.before())),
            Item::Lost(last) => {
                self.note_hole(reader, last);
                self.gap(reader, last, GapWhy::Loss);
            }
            Item::Read(segment, location) => return self.serve(reader, segment, location),
        }
        true
    }

    fn serve(&mut self, reader: &mut Reader, segment: SegmentId, location: Location) -> bool {
        // What was there when the plan was made may have been moved since.
        let of = self.segments.get(segment);
        if location.first > reader.next || of.is_none_or(Segment::is_leaving) {
            reader.plan.clear();
            return true;
        }
        if !self.has_loaded(reader, segment, &location) {
            if reader.reading {
                return false;
            }
            if reader.read_failures >= READ_ATTEMPTS {
                reader.read_failures = 0;
                self.note(reader, segment, &location, Reason::Unreadable);
                self.gap(reader, location.last(), GapWhy::Loss);
                return true;
            }
            (reader.loaded, reader.ahead) = (self.found(reader, segment, &location), None);
            if reader.loaded.is_none() {
                self.ask(reader, segment, location);
                return false;
            }
        }
        let from = self.segments.get(segment);
        let (first, numbers) = (location.first, location.numbers);
        let expected = Envelope {
            salt: from.map_or(0, |segment| segment.header.salt),
            ..Envelope::of_batch(reader.slot, first, numbers, location.time, location.length)
        };
        let loaded = reader.loaded.as_mut();
        match loaded.and_then(|loaded| loaded.batch(segment, &location, &expected)) {
            Some((batch, damaged)) => {
                for number in lost_numbers(location.first, &batch, &damaged) {
                    let first = number;
                    let record = Location { first, ..location };
                    self.note(reader, segment, &record, Reason::Body);
                }
                self.give(reader, location.first, location.time, batch, &damaged);
            }
            None => {
                let damaged = Reason::Record(location.stored_bytes());
                self.note(reader, segment, &location, damaged);
                self.gap(reader, location.last(), GapWhy::Loss);
            }
        }
        true
    }

    /// Damage that a reader has met, at a place of a segment.
    fn note(&mut self, reader: &Reader, segment: SegmentId, at: &Location, reason: Reason) {
        if let Some(log) = self.logs.get(reader.slot) {
            let problem = Problem::of(&segment_name(segment), at.offset.0, reason);
            self.faults.found(problem.at_number(log.id, at.first));
        }
    }

    /// Numbers that are in no file. Where nothing is damaged, an unclean stop has skipped them.
    fn note_hole(&mut self, reader: &Reader, last: Sequence) {
        if let Some(log) = self
            .logs
            .get(reader.slot)
            .filter(|_| self.faults.damage().loses)
        {
            let lost = Reason::Lost(last.0.saturating_sub(reader.next.0) + 1);
            let problem = Problem::of("(no file)", 0, lost);
            self.faults.found(problem.at_number(log.id, reader.next));
        }
    }

    /// Whether a batch's bytes are there. When the first of a run are taken, the next run is read.
    fn has_loaded(&mut self, reader: &mut Reader, segment: SegmentId, location: &Location) -> bool {
        let covers = |of: &Option<Loaded>| {
            let of = of.as_ref();
            of.is_some_and(|of| of.place_of(segment, location).is_some())
        };
        if !covers(&reader.loaded) {
            if !covers(&reader.ahead) {
                return false;
            }
            reader.loaded = reader.ahead.take();
        }
        let fresh = reader.loaded.as_mut().map(|loaded| &mut loaded.fresh);
        if fresh.is_some_and(std::mem::take) {
            self.read_ahead(reader);
        }
        true
    }

    /// Reads ahead, by the plan and behind the loaded part, if the reader's credit allows it.
    fn read_ahead(&mut self, reader: &mut Reader) {
        let Some(loaded) = &reader.loaded else {
            bug!("{:?} reads ahead of nothing", reader.id);
            return;
        };
        let end = loaded.at + loaded.bytes.len() as u64;
        let behind = reader.plan.iter().find_map(|item| match *item {
            Item::Read(segment, location) => {
                (segment != loaded.segment || location.offset >= end).then_some((segment, location))
            }
            _ => None,
        });
        let wanted = reader.credit > loaded.bytes.len() as i64;
        let idle = !reader.reading && reader.ahead.is_none() && reader.read_failures == 0;
        if let Some((segment, location)) = behind
            && wanted
            && idle
            && self.readers.may_read(reader.id, self.config.reads_max)
        {
            reader.ahead = self.found(reader, segment, &location);
            if reader.ahead.is_none() {
                self.ask(reader, segment, location);
            }
        }
    }

    /// A run with a batch that another reader has had read, unless this one's own reads fail.
    fn found(&self, reader: &Reader, segment: SegmentId, location: &Location) -> Option<Loaded> {
        if reader.read_failures > 0 {
            return None;
        }
        let run = self.readers.find_run(segment, location);
        run.map(|run| Loaded { fresh: true, ..run })
    }

    /// Has a run of the plan's batches read, from one of them on.
    fn ask(&mut self, reader: &mut Reader, segment: SegmentId, location: Location) {
        reader.reading = true;
        if !self
            .readers
            .may_read(reader.id, self.config.reads_max.max(1))
        {
            let log = self.logs.get(reader.slot);
            let lane = log.map_or(Lane::Normal, |log| log.id.lane);
            self.readers.queue(reader.id, lane);
            return;
        }
        let (mut end, mut records) = (location.end(), vec![0]);
        if reader.read_failures == 0 {
            let plan = reader.plan.iter().filter_map(|item| match item {
                Item::Read(segment, location) => Some((*segment, location)),
                _ => None,
            });
            let run = plan.skip_while(|(of, first)| (*of, *first) != (segment, &location));
            for (other, next) in run.skip(1) {
                let near = (location.offset..=end + SKIP_BYTES).contains(&next.offset);
                let run_bytes = next.end().since(location.offset);
                if other != segment || !near || run_bytes > u64::from(self.config.read_bytes) {
                    break;
                }
                end = end.max(next.end());
                records.push((next.offset - location.offset) as u32);
            }
        }
        let Some(from) = self.segments.get(segment) else {
            bug!(
                "{:?} wants a batch of segment {segment}, which is gone",
                reader.id
            );
            reader.reading = false;
            return;
        };
        self.readers.read_begun(reader.id);
        let length = u32::try_from(end - location.offset).unwrap_or(u32::MAX);
        let op = FileOp::Read {
            name: from.name.clone(),
            at: location.offset.0,
            length,
            records,
        };
        self.segments.read_begun(segment);
        self.effects
            .submit(Purpose::Read(reader.id, segment, location.offset), op);
    }

    /// A read has ended, well or not.
    pub(super) fn read_done(
        &mut self,
        r: ReaderId,
        segment: SegmentId,
        at: FileOffset,
        result: io::Result<Bytes>,
        sound: Vec<Sound>,
    ) {
        self.readers
            .read_ended(result.as_ref().map_or(0, Bytes::len));
        self.segments.read_ended(segment);
        let max = self.config.run_cache_bytes;
        let mut run = None;
        if let Some(reader) = self.readers.get_mut(r)
            && reader.reading
        {
            reader.reading = false;
            match result {
                Ok(bytes) => {
                    reader.read_failures = 0;
                    let read = Loaded {
                        segment,
                        at,
                        bytes,
                        sound: sound.into(),
                        fresh: true,
                    };
                    if reader.gives == Gives::All {
                        run = Some(read.clone());
                    }
                    match reader.loaded {
                        None => reader.loaded = Some(read),
                        Some(_) => reader.ahead = Some(read),
                    }
                }
                Err(_) => reader.read_failures += 1,
            }
            self.readers.wake(r);
        }
        if let Some(run) = run {
            self.readers.keep_run(&run, max);
        }
    }

    /// Gives a batch, or as much of it as the reader wants and damage has left.
    fn give(
        &mut self,
        reader: &mut Reader,
        base: Sequence,
        time: AppendTime,
        batch: Checked<Batch>,
        damaged: &[u16],
    ) {
        let last = Extent::starting_at(base, batch.numbers()).last;
        let end = last.min(reader.until.before());
        if let Some(topic) = reader.gives.topic()
            && !batch.topic_hashes().any(|hash| hash == topic)
        {
            return reader.skip(end);
        }
        if let Some(job) = &mut reader.job {
            job.take(base, &batch);
            reader.credit = reader.credit.saturating_sub(batch.bytes().len() as i64);
            reader.next = end.plus(1);
            return;
        }
        let lost = lost_numbers(base, &batch, damaged);
        let mut lost = lost.into_iter().filter(|number| *number <= end).peekable();
        while reader.next <= end {
            let from = reader.next;
            while lost.next_if(|number| *number < from).is_some() {}
            match lost.peek().copied() {
                Some(number) if number == from => {
                    let mut to = number;
                    lost.next();
                    while lost.next_if_eq(&to.plus(1)).is_some() {
                        to = to.plus(1);
                    }
                    self.gap(reader, to, GapWhy::Loss);
                }
                hit => {
                    let to = hit.map_or(end, Sequence::before);
                    let whole = damaged.is_empty() && from == base && to == last;
                    self.give_piece(reader, base, time, &batch, to, whole);
                }
            }
        }
    }

    /// Gives the records from the reader's next number to `to`.
    fn give_piece(
        &mut self,
        reader: &mut Reader,
        base: Sequence,
        time: AppendTime,
        batch: &Checked<Batch>,
        to: Sequence,
        whole: bool,
    ) {
        let from = reader.next;
        if from < base || to < from {
            bug!("{:?} is at {from} and gets {base} to {to}", reader.id);
        }
        let piece = if whole {
            Some(batch.clone())
        } else {
            let inside = |index: u16, _| (from..=to).contains(&base.plus(index.into()));
            batch.slice(inside).map(|slice| slice.to_batch())
        };
        let Some(piece) = piece else {
            // Input: numbers of which the batch has no records.
            return reader.skip(to);
        };
        self.flush_unused(reader);
        reader.credit -= piece.bytes().len() as i64;
        reader.next = to.plus(1);
        let stored = Stored {
            base,
            extent: Extent {
                first: from,
                last: to,
            },
            appended: time,
            batch: piece,
        };
        self.effects.tell(Completion::Batch {
            r: reader.id,
            stored,
        });
    }
}

impl Loaded {
    /// Where a batch with its envelope is in it, if it is there.
    fn place_of(&self, segment: SegmentId, location: &Location) -> Option<Range<usize>> {
        if self.segment != segment {
            return None;
        }
        let start = usize::try_from(location.offset.0.checked_sub(self.at.0)?).ok()?;
        // What was asked for and is not there is beyond the file's end: damage, which is told below.
        if start > self.bytes.len() || (start > 0 && start == self.bytes.len()) {
            return None;
        }
        let end = start + ENVELOPE_BYTES + location.length as usize;
        if end > self.bytes.len() && start > 0 {
            return None;
        }
        Some(start..end.min(self.bytes.len()))
    }

    /// A batch, if it is the one that is wanted; and which records are damaged.
    fn batch(
        &mut self,
        segment: SegmentId,
        location: &Location,
        expected: &Envelope,
    ) -> Option<(Checked<Batch>, Vec<u16>)> {
        let at = location.offset.0.checked_sub(self.at.0)?;
        while self.sound.front().is_some_and(|one| u64::from(one.at) < at) {
            self.sound.pop_front();
        }
        let found = self.sound.pop_front_if(|one| u64::from(one.at) == at);
        if let Some(found) = found.filter(|found| found.envelope == *expected) {
            return Some((found.batch, found.damaged));
        }
        let place = self.place_of(segment, location)?;
        sound(&self.bytes.slice(place), expected)
    }
}

/// Decodes the expected batch from its bytes; and lists its damaged records.
fn sound(bytes: &Bytes, expected: &Envelope) -> Option<(Checked<Batch>, Vec<u16>)> {
    let envelope = Envelope::decode(bytes)?;
    let end = ENVELOPE_BYTES + expected.length as usize;
    if envelope != *expected || bytes.len() < end {
        return None;
    }
    match body_of(&envelope, bytes.slice(ENVELOPE_BYTES..))? {
        Body::Batch(batch, damaged) => Some((batch, damaged)),
        Body::Meta(_) => None,
    }
}
