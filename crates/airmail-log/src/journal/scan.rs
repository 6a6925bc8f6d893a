//! Reads a segment from its file, record by record, and finds its way past damage.

use super::damage::{Problem, Reason};
use super::format::{DATA_START, ENVELOPE_BYTES, Envelope, Kind};
use super::id::FileOffset;
use super::meta::Meta;
use super::segment::Segment;
use super::segments::is_own_salt;
use crate::files::{FileName, Files};
use airmail_model::{Batch, Checked};
use bytes::Bytes;
use std::io;

/// Size of one read, in bytes.
const CHUNK_BYTES: u64 = 1 << 20;

/// Where a scanner's bytes come from.
pub(super) trait Load {
    /// Reads up to `length` bytes at `at`.
    fn load(&mut self, name: &FileName, at: FileOffset, length: u32) -> io::Result<Bytes>;
}

impl<F: Files> Load for F {
    fn load(&mut self, name: &FileName, at: FileOffset, length: u32) -> io::Result<Bytes> {
        Files::load(self, name, at.0, length)
    }
}

/// Bytes of a segment that are in memory, from byte `at` on.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) at: FileOffset,
    pub(super) bytes: Bytes,
}

impl Load for Loaded {
    fn load(&mut self, _: &FileName, at: FileOffset, length: u32) -> io::Result<Bytes> {
        let end = self.bytes.len();
        let start = usize::try_from(at.since(self.at)).map_or(end, |at| at.min(end));
        Ok(self
            .bytes
            .slice(start..end.min(start.saturating_add(length as usize))))
    }
}

/// A sound record.
#[derive(Debug)]
pub(super) enum Body {
    /// A batch, and the places of its records whose checksums fail.
    Batch(Checked<Batch>, Vec<u16>),
    /// A command.
    Meta(Meta),
}

/// Findings at one place of a segment.
#[derive(Debug)]
pub(super) enum Found {
    /// A sound record, from `at` to `end`.
    Record {
        at: FileOffset,
        end: FileOffset,
        envelope: Envelope,
        body: Body,
    },
    /// No sound record begins here. `envelope` if at least that is sound.
    Nothing {
        at: FileOffset,
        envelope: Option<Envelope>,
    },
}

/// Goes through one segment's file.
#[derive(Debug)]
pub(super) struct Scanner<'a, F> {
    files: &'a mut F,
    name: FileName,
    end: FileOffset,
    salt: u32,
    at: FileOffset,
    chunk: Bytes,
    chunk_at: FileOffset,
}

impl<'a, F: Load> Scanner<'a, F> {
    /// A scanner of a file that ends at `end`, from `at` on.
    pub(super) fn new(
        files: &'a mut F,
        name: FileName,
        end: FileOffset,
        salt: u32,
        at: FileOffset,
    ) -> Self {
        Scanner {
            files,
            name,
            end,
            salt,
            at,
            chunk: Bytes::new(),
            chunk_at: FileOffset::START,
        }
    }

    /// Where it is.
    pub(super) fn at(&self) -> FileOffset {
        self.at
    }

    /// Goes to a place; false if that is not further on, or beyond the end.
    pub(super) fn go_to(&mut self, at: FileOffset) -> bool {
        let further = at > self.at && at < self.end;
        if further {
            self.at = at;
        }
        further
    }

    /// Reads the record at this place and goes on behind it; stays if there is none.
    pub(super) fn next(&mut self) -> io::Result<Found> {
        let at = self.at;
        let nothing = Found::Nothing { at, envelope: None };
        let Some(envelope) = self.envelope_at(at)? else {
            // Input: the end of the data, or damage.
            return Ok(nothing);
        };
        let nothing = Found::Nothing {
            at,
            envelope: Some(envelope),
        };
        let body_at = at + ENVELOPE_BYTES as u64;
        let Some(bytes) = self.bytes(body_at, u64::from(envelope.length))? else {
            // Input: a file that was cut, or is damaged.
            return Ok(nothing);
        };
        let Some(body) = body_of(&envelope, bytes) else {
            // Input: damage to the body.
            return Ok(nothing);
        };
        self.at = at + envelope.stored_bytes();
        Ok(Found::Record {
            at,
            end: self.at,
            envelope,
            body,
        })
    }

    /// Goes to the next place from `from` on, and before `until`, where a sound envelope begins.
    pub(super) fn resync(&mut self, from: FileOffset, until: FileOffset) -> io::Result<bool> {
        let mut at = from.next_multiple_of(8);
        while at + ENVELOPE_BYTES as u64 <= until.min(self.end) {
            if self.envelope_at(at)?.is_some() {
                self.at = at;
                return Ok(true);
            }
            at += 8;
        }
        Ok(false)
    }

    fn envelope_at(&mut self, at: FileOffset) -> io::Result<Option<Envelope>> {
        let Some(bytes) = self.bytes(at, ENVELOPE_BYTES as u64)? else {
            // Input: the end of the file.
            return Ok(None);
        };
        Ok(Envelope::decode(&bytes).filter(|envelope| envelope.salt == self.salt))
    }

    fn bytes(&mut self, at: FileOffset, length: u64) -> io::Result<Option<Bytes>> {
        if at + length > self.end {
            return Ok(None);
        }
        let inside = at >= self.chunk_at && at + length <= self.chunk_at + self.chunk.len() as u64;
        if !inside {
            let wanted = length.max(CHUNK_BYTES).min(self.end - at);
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
            self.chunk = self.files.load(&self.name, at, wanted)?;
            self.chunk_at = at;
            if (self.chunk.len() as u64) < length {
                return Ok(None);
            }
        }
        let start = (at - self.chunk_at) as usize;
        Ok(Some(self.chunk.slice(start..start + length as usize)))
    }
}

/// A record as it was found.
pub(super) struct Seen {
    pub(super) at: FileOffset,
    pub(super) envelope: Envelope,
    pub(super) body: Body,
    /// It lies before the segment's known durable end.
    pub(super) certain: bool,
}

/// Knowledge of where a segment's data ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing behind it is data.
    Sealed(FileOffset),
    /// Everything before it was durable once.
    Durable(FileOffset),
    /// All of it was durable once, but it is not known where it ends.
    Somewhere,
}

/// Goes through the records of a segment from `from` on; gives the end of the certain data.
pub(super) fn scan<F: Files>(
    files: &mut F,
    segment: &Segment,
    length: FileOffset,
    from: FileOffset,
    end: End,
    damage: &mut Vec<Problem>,
    mut take: impl FnMut(Seen),
) -> Result<FileOffset, super::recover::OpenError> {
    let (durable, limit) = match end {
        End::Sealed(end) => (end, end.min(length)),
        End::Durable(end) => (end, length),
        End::Somewhere => (FileOffset(u64::MAX), length),
    };
    let error = super::recover::failed(&segment.name);
    let mut scanner = Scanner::new(
        files,
        segment.name.clone(),
        limit,
        segment.header.salt,
        from,
    );
    let mut certain_end = from;
    let mut go = || -> io::Result<()> {
        loop {
            match scanner.next()? {
                Found::Record {
                    at,
                    end,
                    envelope,
                    body,
                } => {
                    let certain = end <= durable;
                    let torn = matches!(&body, Body::Batch(_, damaged) if !damaged.is_empty());
                    if !certain && torn {
                        return Ok(());
                    }
                    if certain {
                        certain_end = end;
                    }
                    take(Seen {
                        at,
                        envelope,
                        body,
                        certain,
                    });
                }
                Found::Nothing { at, envelope } => {
                    if at >= durable.min(limit) {
                        return Ok(());
                    }
                    let behind = envelope.map_or(at + 8, |sound| at + sound.stored_bytes());
                    let until = durable.min(limit);
                    let goes_on = scanner.resync(behind, until)?;
                    if goes_on || end != End::Somewhere {
                        let bytes = if goes_on { scanner.at() } else { until } - at;
                        damage.push(Problem::of(&segment.name, at.0, Reason::Record(bytes)));
                    }
                    if !goes_on && !scanner.go_to(until) {
                        return Ok(());
                    }
                }
            }
        }
    };
    go().map_err(error)?;
    Ok(match end {
        End::Sealed(end) | End::Durable(end) => end.max(DATA_START),
        End::Somewhere => certain_end,
    })
}

/// The salt of a segment whose header and first record are damaged: that of the sound record which ends
/// where the segment's data is known to have ended. Wherever else one is found, it may be a payload's,
/// made by its publisher.
pub(super) fn salt_by_end<F: Files>(
    files: &mut F,
    segment: &Segment,
    end: FileOffset,
) -> io::Result<Option<u32>> {
    let mut scanner = Scanner::new(files, segment.name.clone(), end, 0, FileOffset::START);
    let mut at = DATA_START;
    while let Some(bytes) = scanner.bytes(at, ENVELOPE_BYTES as u64)? {
        let envelope = Envelope::decode(&bytes).filter(|envelope| {
            is_own_salt(envelope.salt, segment.id) && at + envelope.stored_bytes() == end
        });
        if let Some(envelope) = envelope {
            let length = u64::from(envelope.length);
            let body = scanner.bytes(at + ENVELOPE_BYTES as u64, length)?;
            if body.is_some_and(|bytes| body_of(&envelope, bytes).is_some()) {
                return Ok(Some(envelope.salt));
            }
        }
        at += 8;
    }
    Ok(None)
}

/// A sound batch of a segment, as it was read.
#[derive(Clone, Debug)]
pub struct Sound {
    /// Place of its envelope in the bytes that were read.
    pub(super) at: u32,
    pub(super) envelope: Envelope,
    pub(super) batch: Checked<Batch>,
    /// The places of its records whose checksums fail.
    pub(super) damaged: Vec<u16>,
}

impl Sound {
    /// Those batches that begin at `places` and are sound; in the same order.
    #[must_use]
    pub fn among(bytes: &Bytes, places: &[u32]) -> Vec<Sound> {
        let places = places.iter();
        places.filter_map(|&at| Sound::at(bytes, at)).collect()
    }

    fn at(bytes: &Bytes, at: u32) -> Option<Sound> {
        let start = usize::try_from(at).ok()?;
        let envelope = Envelope::decode(bytes.get(start..)?)?;
        let body = start + ENVELOPE_BYTES;
        let end = body.checked_add(envelope.length as usize)?;
        if end > bytes.len() {
            return None;
        }
        match body_of(&envelope, bytes.slice(body..end))? {
            Body::Batch(batch, damaged) => Some(Sound {
                at,
                envelope,
                batch,
                damaged,
            }),
            Body::Meta(_) => None,
        }
    }
}

/// Decodes an envelope's body, if it is sound and of the announced kind.
pub(super) fn body_of(envelope: &Envelope, bytes: Bytes) -> Option<Body> {
    match envelope.kind {
        Kind::Meta => Meta::decode(&bytes).map(Body::Meta),
        Kind::Batch => {
            let (batch, damaged) = Batch::check_stored(bytes).ok()?;
            (batch.numbers() == envelope.numbers).then_some(Body::Batch(batch, damaged))
        }
    }
}
