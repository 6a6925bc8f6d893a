//! Statements about a log's prefix: all that reading it through has left, written down, to go on from there.
//!
//! A statement says of one place *exactly* what the fold of everything before it is: which producers are known, which
//! records are marked as copies, how much there is. It is a head and *parts*: the producers in parts by a hash of their
//! ids, the marks in their segments. A statement is whole or nothing: the head names each part by a digest of its bytes,
//! and counts only with all of them. Parts of different places could not be put together one producer at a time,
//! because whom a table forgets depends on how many it knows in all.
//!
//! A part that has not changed is the same bytes under the same name, so that it is written once, by whichever node.
//! For that, the number of parts follows from the log alone, too: from the most producers that were known at a time. It
//! only grows, and what a part says of producers never comes back once it has changed, for places only rise.
//!
//! The head also names the last record before its place, the *witness*. A log that has another record there, or none
//! though it begins before, is not the one that was read: it was cut, or made again.

use crate::brokers::Record;
use crate::contents::Contents;
use crate::log::Scan;
use crate::marks::Segment;
use crate::place::Offset;
use crate::producers::{HOLES_MAX, Known};
use airmail_model::{ProducerEpoch, ProducerId, random};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The form of heads and parts.
pub(crate) const VERSION: u8 = 1;
/// Most bytes of a part.
pub(crate) const PART_BYTES: u64 = 256 << 10;
/// Most bytes of a producer in a part: one with all its holes.
const KNOWN_BYTES: u64 = 37 + 16 * HOLES_MAX as u64;
/// Most samples of a log's contents in a head.
const SAMPLES: usize = 1024;

/// Kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartKind {
    /// Producers, by a hash of their ids.
    Producers = 1,
    /// A segment of marks.
    Marks = 2,
}

/// Name of a part among those of one life of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartId {
    pub(crate) kind: PartKind,
    /// The number of parts and which of them, or the number of the segment.
    pub(crate) number: u64,
    pub(crate) digest: u64,
}

impl PartId {
    fn new(kind: PartKind, number: u64, bytes: &[u8]) -> PartId {
        let digest = digest(bytes);
        PartId {
            kind,
            number,
            digest,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.extend(self.number.to_be_bytes());
        out.extend(self.digest.to_be_bytes());
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<PartId> {
        Some(PartId {
            kind: match fields.u8()? {
                1 => PartKind::Producers,
                2 => PartKind::Marks,
                _ => return None,
            },
            number: fields.u64()?,
            digest: fields.u64()?,
        })
    }
}

/// A number that other bytes hardly have.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_be_bytes(word)
    });
    let begin = random::mixed(random::STEP ^ bytes.len() as u64);
    words.fold(begin, |digest, word| {
        random::mixed(digest.rotate_left(23) ^ word).wrapping_add(random::STEP)
    })
}

/// The last record before a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) offset: Offset,
    appended_ms: i64,
    digest: u64,
}

impl Witness {
    pub(crate) fn of(record: &Record) -> Witness {
        Witness {
            offset: record.offset,
            appended_ms: record.appended_ms,
            digest: digest(record.value.as_deref().unwrap_or_default()),
        }
    }
}

/// The head of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The offset before which everything is in it.
    pub(crate) next: Offset,
    pub(crate) witness: Option<Witness>,
    pub(crate) parts: Vec<PartId>,
    latest_ms: i64,
    /// The most producers that were known at a time.
    most: u64,
    /// The offset before which marks are gone.
    floor: Offset,
    /// The number of the segment of marks that is not full.
    segment: u64,
    contents: Contents,
}

impl Head {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = vec![VERSION];
        for field in [self.next.0, self.most, self.floor.0, self.segment] {
            out.extend(field.to_be_bytes());
        }
        out.extend(self.latest_ms.to_be_bytes());
        out.push(u8::from(self.witness.is_some()));
        if let Some(witness) = &self.witness {
            out.extend(witness.offset.0.to_be_bytes());
            out.extend(witness.appended_ms.to_be_bytes());
            out.extend(witness.digest.to_be_bytes());
        }
        let count = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        out.extend(count.to_be_bytes());
        for part in &self.parts {
            part.encode(&mut out);
        }
        self.contents.encode(SAMPLES, &mut out);
        out.into()
    }

    /// Reads a head; `None` for one of another version.
    pub(crate) fn decode(value: &[u8]) -> Option<Head> {
        let mut fields = Fields(value);
        if fields.u8()? != VERSION {
            return None;
        }
        let next = Offset(fields.u64()?);
        let most = fields.u64()?;
        let floor = Offset(fields.u64()?);
        let segment = fields.u64()?;
        let latest_ms = fields.i64()?;
        let witness = match fields.u8()? {
            0 => None,
            _ => Some(Witness {
                offset: Offset(fields.u64()?),
                appended_ms: fields.i64()?,
                digest: fields.u64()?,
            }),
        };
        let count = fields.u32()?;
        let parts = (0..count).map(|_| PartId::decode(&mut fields));
        let parts = parts.collect::<Option<Vec<_>>>()?;
        Some(Head {
            next,
            witness,
            parts,
            latest_ms,
            most,
            floor,
            segment,
            contents: Contents::decode(fields.0)?,
        })
    }
}

/// A statement: its head, and the parts that it names.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) head: Head,
    pub(crate) parts: BTreeMap<PartId, Bytes>,
}

impl Statement {
    /// The statement about a log as far as it was read through.
    pub(crate) fn of(scan: &Scan) -> Statement {
        let mut parts = BTreeMap::new();
        let count = producer_parts(scan.producers.most());
        let mut of_producers = BTreeMap::<u64, Vec<u8>>::new();
        for known in scan.producers.known() {
            let at = random::mixed(known.id.0) % count;
            encode_known(&known, of_producers.entry(at).or_default());
        }
        for (at, bytes) in of_producers {
            let id = PartId::new(PartKind::Producers, count << 32 | at, &bytes);
            parts.insert(id, bytes.into());
        }
        for Segment { number, marks } in scan.marks.segments() {
            parts.insert(PartId::new(PartKind::Marks, number, &marks), marks);
        }
        let head = Head {
            next: scan.next(),
            witness: scan.last.as_ref().map(Witness::of),
            parts: parts.keys().copied().collect(),
            latest_ms: scan.producers.latest_ms(),
            most: scan.producers.most(),
            floor: scan.marks.floor(),
            segment: scan.marks.number(),
            contents: scan.contents.clone(),
        };
        Statement { head, parts }
    }

    /// Goes back to where it was made. `None`: it says what cannot be.
    pub(crate) fn scan(&self, bounds: &crate::config::StatementConfig) -> Option<Scan> {
        let head = &self.head;
        let mut stated = Vec::new();
        let mut segments = Vec::new();
        for id in &head.parts {
            let bytes = self.parts.get(id)?;
            if digest(bytes) != id.digest {
                return None;
            }
            match id.kind {
                PartKind::Marks => segments.push(Segment {
                    number: id.number,
                    marks: bytes.clone(),
                }),
                PartKind::Producers => {
                    let mut fields = Fields(bytes);
                    while !fields.0.is_empty() {
                        stated.push(decode_known(&mut fields)?);
                    }
                }
            }
        }
        let producers =
            crate::producers::Producers::restore(bounds.known, head.latest_ms, head.most, stated)?;
        let marks = crate::marks::Marks::restore(bounds.marks, head.segment, head.floor, segments)?;
        let is_before = marks.last().is_none_or(|last| last < head.next);
        is_before.then(|| Scan {
            producers,
            marks,
            contents: head.contents.clone(),
            awaited: head.witness,
            ..Scan::new(head.next, bounds)
        })
    }
}

/// Number of parts that so many producers are stated in, a power of two: none is above its bound, even if each producer
/// has all its holes, and the hash puts a quarter more into one part than into the others.
fn producer_parts(most: u64) -> u64 {
    let bytes = most.saturating_mul(KNOWN_BYTES * 5 / 4);
    bytes.div_ceil(PART_BYTES).max(1).next_power_of_two()
}

fn encode_known(known: &Known, out: &mut Vec<u8>) {
    out.extend(known.id.0.to_be_bytes());
    out.extend(known.epoch.0.to_be_bytes());
    out.extend(known.sequence.to_be_bytes());
    out.extend(known.at.0.to_be_bytes());
    out.extend(known.seen_ms.to_be_bytes());
    let holes = u8::try_from(known.holes.len()).unwrap_or(u8::MAX);
    out.push(holes);
    for (first, last) in known.holes.iter().take(holes.into()) {
        out.extend(first.to_be_bytes());
        out.extend(last.to_be_bytes());
    }
}

fn decode_known(fields: &mut Fields<'_>) -> Option<Known> {
    let mut known = Known {
        id: ProducerId(fields.u64()?),
        epoch: ProducerEpoch(fields.u32()?),
        sequence: fields.u64()?,
        at: Offset(fields.u64()?),
        seen_ms: fields.i64()?,
        holes: Vec::new(),
    };
    for _ in 0..fields.u8()? {
        known.holes.push((fields.u64()?, fields.u64()?));
    }
    Some(known)
}

/// Fields that are read one after the other; `None` where there is nothing more.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, left) = self.0.split_first_chunk()?;
        self.0 = left;
        Some(*field)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes().map(u8::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.bytes().map(i64::from_be_bytes)
    }

    pub(crate) fn log(&mut self) -> Option<airmail_model::LogId> {
        self.bytes().and_then(crate::rows::read_log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StatementConfig;
    use crate::marks::MarkBounds;
    use crate::producers::{KnownBounds, RecordFacts, YOUNG_MS};
    use airmail_model::ProducerSequence;
    use airmail_model::batch::ProducerStamp;
    use proptest::prelude::*;

    fn small() -> StatementConfig {
        StatementConfig {
            known: KnownBounds { soft: 3, hard: 5 },
            marks: MarkBounds {
                in_segment: 4,
                segments: 2,
            },
            ..StatementConfig::default()
        }
    }

    fn facts(offset: u64, at_ms: i64, (id, epoch, sequence): (u64, u32, u64)) -> RecordFacts {
        RecordFacts {
            offset: Offset(offset),
            appended_ms: at_ms,
            sent_ms: at_ms,
            stamp: Some(ProducerStamp {
                id: ProducerId(id),
                epoch: ProducerEpoch(epoch),
                sequence: ProducerSequence(sequence),
            }),
            messages: 2,
        }
    }

    /// Takes a record; what is left out of it.
    fn take(scan: &mut Scan, record: &RecordFacts) -> u32 {
        let left_out = scan.producers.take(record);
        if left_out > 0 {
            scan.marks.push(record.offset, left_out);
        }
        scan.newest.known_to(record.offset.plus(1));
        scan.contents.take(record.offset, record.appended_ms, 100);
        left_out
    }

    fn again(scan: &Scan, bounds: &StatementConfig) -> Scan {
        let statement = Statement::of(scan);
        let head = Head::decode(&statement.head.encode()).unwrap();
        assert_eq!(head, statement.head);
        Statement { head, ..statement }.scan(bounds).unwrap()
    }

    proptest! {
        #[test]
        fn whoever_goes_on_from_a_statement_gives_every_verdict_that_the_whole_log_gives(
            records in prop::collection::vec(
                ((1_u64..9, 1_u32..3, 0_u64..12), 0_i64..3 * YOUNG_MS, any::<bool>()),
                0..80,
            ),
        ) {
            let bounds = small();
            let mut whole = Scan::new(Offset(0), &bounds);
            let mut going_on = Scan::new(Offset(0), &bounds);
            let mut at_ms = 0;
            for (offset, (stamp, step, is_stated)) in (0..).zip(records) {
                at_ms += if step % 2 == 0 { step } else { -(step % 4000) };
                if is_stated {
                    going_on = again(&going_on, &bounds);
                }
                let record = facts(offset, at_ms, stamp);
                prop_assert_eq!(take(&mut whole, &record), take(&mut going_on, &record));
                prop_assert_eq!(&whole.producers, &going_on.producers);
                prop_assert_eq!(&whole.marks, &going_on.marks);
                prop_assert_eq!(&whole.contents, &going_on.contents);
            }
        }
    }

    #[test]
    fn only_what_has_changed_has_another_name() {
        let bounds = StatementConfig::default();
        let mut scan = Scan::new(Offset(0), &bounds);
        for n in 0..5_000 {
            take(&mut scan, &facts(n, 0, (n, 1, 0)));
        }
        let before = Statement::of(&scan);
        assert_eq!(before.parts.len(), 4);
        take(&mut scan, &facts(5_000, 0, (17, 1, 2)));
        let after = Statement::of(&scan);
        let is_new = |id: &&PartId| !before.parts.contains_key(id);
        assert_eq!(after.parts.keys().filter(is_new).count(), 1);
    }

    #[test]
    fn no_part_is_above_its_bound_however_many_producers_have_however_many_holes() {
        assert_eq!(producer_parts(0), 1);
        let most = crate::producers::KNOWN_HARD_MAX as u64;
        let parts = producer_parts(most);
        let mut fullest = vec![0_u64; usize::try_from(parts).unwrap()];
        for id in 0..most {
            fullest[usize::try_from(random::mixed(id) % parts).unwrap()] += KNOWN_BYTES;
        }
        assert!(fullest.iter().max() <= Some(&PART_BYTES));
        let segment = MarkBounds::default().in_segment as u64;
        assert!(segment * 10 <= PART_BYTES);
    }

    #[test]
    fn a_statement_that_lacks_a_part_or_has_another_one_is_none() {
        let bounds = StatementConfig::default();
        let mut scan = Scan::new(Offset(0), &bounds);
        for n in 0..10 {
            take(&mut scan, &facts(n, 0, (n % 3, 1, 0)));
        }
        let statement = Statement::of(&scan);
        assert!(statement.scan(&bounds).is_some());
        for id in statement.parts.keys() {
            let mut other = statement.clone();
            let bytes = other.parts.remove(id).unwrap();
            assert!(other.scan(&bounds).is_none());
            let mut changed = bytes.to_vec();
            changed[0] ^= 1;
            other.parts.insert(*id, changed.into());
            assert!(other.scan(&bounds).is_none());
        }
    }

    #[test]
    fn bytes_that_differ_have_other_digests() {
        let texts: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"abcdefgh", b"abcdefg", b"hgfedcba"];
        for (n, text) in texts.iter().enumerate() {
            assert!(texts[..n].iter().all(|other| digest(other) != digest(text)));
        }
    }
}
