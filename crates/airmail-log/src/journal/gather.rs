//! The bytes of a commit's write to one segment: the header, if it is the first, and records.

use super::format::{ENVELOPE_BYTES, Envelope, HEADER_BYTES, padded, padding};
use super::id::FileOffset;
use super::segment::Segment;
use bytes::{Bytes, BytesMut};

/// Size of the system's pages, the unit of its page cache.
const PAGE_BYTES: u64 = 4096;
/// Largest batch that is copied: that costs less than a part of its own.
const COPIED_BYTES: usize = 1024;
static ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];

/// Gathers records into the parts of a write.
pub(super) struct Gather {
    head: BytesMut,
    parts: Vec<Bytes>,
    /// Where the next record goes.
    pub(super) at: FileOffset,
    start: FileOffset,
    salt: u32,
}

impl Gather {
    /// Begins a write of records with bodies of these lengths.
    pub(super) fn new(segment: &Segment, lengths: impl Iterator<Item = usize>) -> Gather {
        let copied = lengths.map(|length| match length {
            0..=COPIED_BYTES => padded((ENVELOPE_BYTES + length) as u64) as usize,
            _ => padded(ENVELOPE_BYTES as u64) as usize + 8,
        });
        let mut head = BytesMut::with_capacity(HEADER_BYTES + copied.sum::<usize>());
        let mut start = segment.written();
        if !segment.has_header() {
            head.extend_from_slice(&segment.header.encode());
            start = FileOffset::START;
        }
        let (at, salt) = (segment.written(), segment.header.salt);
        Gather {
            head,
            parts: Vec::new(),
            at,
            start,
            salt,
        }
    }

    pub(super) fn record(&mut self, envelope: Envelope, body: Bytes) {
        let envelope = Envelope {
            salt: self.salt,
            ..envelope
        };
        self.head.extend_from_slice(&envelope.encode());
        self.at += envelope.stored_bytes();
        let behind = padding((ENVELOPE_BYTES + body.len()) as u64);
        if body.len() <= COPIED_BYTES {
            self.head.extend_from_slice(&body);
        } else {
            self.parts.push(self.head.split().freeze());
            self.parts.push(body);
        }
        self.head.extend_from_slice(&behind);
    }

    /// Gives the write's first place, its bytes, and the end of the records. With `whole_pages`,
    /// zeros follow up to the end of the page: in a file that was filled past the page cache, a
    /// part of a page cannot be written before the rest is read from the disk.
    pub(super) fn finish(mut self, whole_pages: bool) -> (FileOffset, Vec<Bytes>, FileOffset) {
        if !self.head.is_empty() {
            self.parts.push(self.head.freeze());
        }
        let behind = self.at.next_multiple_of(PAGE_BYTES) - self.at;
        if whole_pages && behind > 0 {
            self.parts
                .push(Bytes::from_static(&ZEROS[..behind as usize]));
        }
        (self.start, self.parts, self.at)
    }
}
