//! Giving batches to readers: from a segment's bytes to what can be trusted of them.

use super::format::{ENVELOPE_BYTES, Envelope, Kind};
use super::read::{Item, Loaded, Reader};
use super::scan::{Body, body_of};
use super::table::Location;
use super::{Journal, Purpose};
use crate::contract::{Completion, GapWhy, ReaderId, ScopeFilter, Stored};
use crate::files::FileOp;
use airmail_model::{AppendTime, Batch, Checked, Extent, Sequence};
use bytes::Bytes;
use std::io;

/// Bytes between two batches that are read along, rather than left out by a read of its own.
const SKIP_BYTES: u64 = 32 << 10;
/// How often a failing read is tried.
const READ_ATTEMPTS: u32 = 3;

impl Journal {
    /// Goes on by the plan, from the segments. False: a read is under way.
    pub(super) fn go_on(&mut self, reader: &mut Reader) -> bool {
        if reader.reading {
            return false;
        }
        let Some(item) = reader.plan.front().copied() else {
            return self.make_plan(reader);
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
            Item::Unused(last) => reader.skip(last.min(reader.until - 1)),
            Item::Lost(last) => self.gap(reader, last, GapWhy::Loss),
            Item::Read(segment, location) => return self.serve(reader, segment, location),
        }
        true
    }

    fn serve(&mut self, reader: &mut Reader, segment: u64, location: Location) -> bool {
        if location.first > reader.next || !self.segments.contains_key(&segment) {
            reader.plan.clear();
            return true;
        }
        let Some(bytes) = covering(reader.loaded.as_ref(), segment, &location) else {
            if reader.read_failures >= READ_ATTEMPTS {
                reader.read_failures = 0;
                self.gap(reader, location.last(), GapWhy::Loss);
                return true;
            }
            return self.ask(reader, segment, location);
        };
        let salt = self
            .segments
            .get(&segment)
            .map_or(0, |segment| segment.header.salt);
        match sound(&bytes, salt, reader.slot, &location) {
            Some((batch, damaged)) => {
                self.give(reader, location.first, location.time, batch, &damaged);
            }
            None => self.gap(reader, location.last(), GapWhy::Loss),
        }
        true
    }

    /// Has the plan's next run of batches read.
    fn ask(&mut self, reader: &mut Reader, segment: u64, location: Location) -> bool {
        reader.loaded = None;
        reader.reading = true;
        if self.reads >= self.config.reads_max.max(1) {
            self.read_queue.push_back(reader.id);
            return false;
        }
        let mut end = location.end();
        if reader.read_failures == 0 {
            for item in &reader.plan {
                let Item::Read(other, next) = item else {
                    continue;
                };
                let near = next.offset <= end + SKIP_BYTES;
                let small = next.end() - location.offset <= u64::from(self.config.read_bytes);
                if *other != segment || !near || !small {
                    break;
                }
                end = end.max(next.end());
            }
        }
        let Some(from) = self.segments.get_mut(&segment) else {
            return false;
        };
        from.reads += 1;
        self.reads += 1;
        let length = u32::try_from(end - location.offset).unwrap_or(u32::MAX);
        let op = FileOp::Read {
            name: from.name.clone(),
            at: location.offset,
            length,
        };
        self.submit(Purpose::Read(reader.id, segment, location.offset), op);
        false
    }

    /// A read has ended, well or not.
    pub(super) fn read_done(
        &mut self,
        r: ReaderId,
        segment: u64,
        at: u64,
        result: io::Result<Bytes>,
    ) {
        self.reads -= 1;
        if let Some(from) = self.segments.get_mut(&segment) {
            from.reads -= 1;
            self.sweep_due |= from.reads == 0;
        }
        if let Some(reader) = self.readers.get_mut(&r)
            && reader.reading
        {
            reader.reading = false;
            match result {
                Ok(bytes) => {
                    reader.read_failures = 0;
                    reader.loaded = Some(Loaded { segment, at, bytes });
                }
                Err(_) => reader.read_failures += 1,
            }
            self.runnable.insert(r);
        }
    }

    /// Gives the turn to readers that wait for a read, as many as may read. One that is gone, or
    /// that wants nothing any more, gives its turn to the next.
    pub(super) fn wake_reading(&mut self) {
        let mut free = self.config.reads_max.max(1).saturating_sub(self.reads);
        while free > 0
            && let Some(next) = self.read_queue.pop_front()
        {
            if let Some(reader) = self.readers.get_mut(&next) {
                reader.reading = false;
                self.runnable.insert(next);
                free -= 1;
            }
        }
    }

    /// Gives a batch, or as much of it as the reader wants and damage has left.
    pub(super) fn give(
        &mut self,
        reader: &mut Reader,
        base: u64,
        time: i64,
        batch: Checked<Batch>,
        damaged: &[u16],
    ) {
        let last = base + u64::from(batch.numbers()) - 1;
        let end = last.min(reader.until - 1);
        if let ScopeFilter::Topic(topic) = reader.filter
            && !batch.topics().any(|entry| entry.hash == topic)
        {
            return reader.skip(end);
        }
        if let Some(job) = &mut reader.job {
            job.take(base, &batch);
            reader.credit = reader.credit.saturating_sub(batch.bytes().len() as i64);
            reader.next = end + 1;
            return;
        }
        let mut lost: Vec<u64> = Vec::new();
        if !damaged.is_empty() {
            let heads = batch.heads().enumerate();
            let hit = heads.filter(|(place, _)| damaged.contains(&(*place as u16)));
            lost = hit.map(|(_, (index, _))| base + u64::from(index)).collect();
        }
        let mut lost = lost.into_iter().filter(|number| *number <= end).peekable();
        while reader.next <= end {
            let from = reader.next;
            while lost.next_if(|number| *number < from).is_some() {}
            match lost.peek().copied() {
                Some(number) if number == from => {
                    let mut to = number;
                    lost.next();
                    while lost.next_if_eq(&(to + 1)).is_some() {
                        to += 1;
                    }
                    self.gap(reader, to, GapWhy::Loss);
                }
                hit => {
                    let to = hit.map_or(end, |number| number - 1);
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
        base: u64,
        time: i64,
        batch: &Checked<Batch>,
        to: u64,
        whole: bool,
    ) {
        let from = reader.next;
        let piece = if whole {
            Some(batch.clone())
        } else {
            let inside = |index: u16, _| (from..=to).contains(&(base + u64::from(index)));
            batch.slice(inside).map(|slice| slice.to_batch())
        };
        let Some(piece) = piece else {
            return reader.skip(to);
        };
        self.flush_unused(reader);
        reader.credit -= piece.bytes().len() as i64;
        reader.next = to + 1;
        let stored = Stored {
            base: Sequence(base),
            extent: Extent {
                first: Sequence(from),
                last: Sequence(to),
            },
            appended: AppendTime(time),
            batch: piece,
        };
        self.out.push(Completion::Batch {
            r: reader.id,
            stored,
        });
    }
}

/// The loaded bytes of a batch with its envelope, if they are there.
fn covering(loaded: Option<&Loaded>, segment: u64, location: &Location) -> Option<Bytes> {
    let loaded = loaded.filter(|loaded| loaded.segment == segment)?;
    let start = usize::try_from(location.offset.checked_sub(loaded.at)?).ok()?;
    // What was asked for and is not there is beyond the file's end: damage, which is told below.
    if start > loaded.bytes.len() || (start > 0 && start == loaded.bytes.len()) {
        return None;
    }
    let end = start + ENVELOPE_BYTES + location.length as usize;
    if end > loaded.bytes.len() && start > 0 {
        return None;
    }
    Some(loaded.bytes.slice(start..end.min(loaded.bytes.len())))
}

/// A batch from its bytes, if it is the one that is wanted; and which records are damaged.
fn sound(
    bytes: &Bytes,
    salt: u32,
    slot: u32,
    location: &Location,
) -> Option<(Checked<Batch>, Vec<u16>)> {
    let envelope = Envelope::decode(bytes)?;
    let expected = Envelope {
        kind: Kind::Batch,
        length: location.length,
        salt,
        first: location.first,
        numbers: location.numbers,
        slot,
        append_time: location.time,
    };
    if envelope != expected || bytes.len() < ENVELOPE_BYTES + location.length as usize {
        return None;
    }
    match body_of(&envelope, bytes.slice(ENVELOPE_BYTES..))? {
        Body::Batch(batch, damaged) => Some((batch, damaged)),
        Body::Meta(_) => None,
    }
}
