//! Reading a whole journal without changing anything: what is there, and what is damaged.
//!
//! The journal is opened as it would be for serving, which says what each log must hold; then every
//! segment is read from its beginning to its known end, and every checksum is verified, those of the
//! indexes too. Memory is bounded by an index and the list of what is found.

use super::checkpoint::Checkpoint;
use super::format::{HEADER_BYTES, SegmentHeader};
use super::index::{self, Layout};
use super::recover::{OpenError, failed, open};
use super::scan::{Body, Found, Scanner};
use super::segment::{Segment, index_name, number_of};
use super::table::Location;
use super::{Journal, JournalConfig};
use crate::files::{FileName, Files};
use airmail_model::{Extent, LogId, Now, Sequence};
use std::collections::BTreeMap;
use std::fmt;

/// What was found in a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The segments' files, in order of name.
    pub files: Vec<FileReport>,
    /// The logs, in order of name.
    pub logs: Vec<LogReport>,
    /// All damage, in the order of the files.
    pub problems: Vec<Problem>,
}

/// One segment's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// Behind the last byte that is known to be data.
    pub end: u64,
    /// Sound batches.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Sound commands of the journal.
    pub commands: u64,
}

/// One log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogReport {
    /// Which.
    pub log: LogId,
    /// The first number kept.
    pub first: Sequence,
    /// The number of the next append.
    pub next: Sequence,
    /// Sound batches kept.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Their bytes, with envelopes.
    pub bytes: u64,
    /// Numbers kept that readers are told are lost. Not all of it is damage: after an unclean stop
    /// a log weaker than `fsync` goes on above its reservation.
    pub lost: Vec<Extent>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// In which file.
    pub file: String,
    /// At which byte.
    pub at: u64,
    /// The log concerned, where that is known.
    pub log: Option<LogId>,
    /// The number concerned, where that is known.
    pub number: Option<Sequence>,
    /// What is wrong.
    pub reason: Reason,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A segment's header. What is in the segment is read all the same.
    Header,
    /// No sound record for so many bytes.
    Record(u64),
    /// A record's body.
    Body,
    /// The file ends before what is known to have been written.
    Cut,
    /// The file is not there.
    Missing,
    /// A block's index; it is made again from its segment.
    Index,
    /// A checkpoint; an older one is used.
    Checkpoint,
    /// One of the directory's two identities; the other is used.
    Identity,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Header => f.write_str("the header is damaged"),
            Reason::Record(bytes) => write!(f, "no sound record for {bytes} bytes"),
            Reason::Body => f.write_str("a record's body is damaged"),
            Reason::Cut => f.write_str("the file ends before its data"),
            Reason::Missing => f.write_str("the file is missing"),
            Reason::Index => f.write_str("the index is damaged"),
            Reason::Checkpoint => f.write_str("the checkpoint is damaged"),
            Reason::Identity => f.write_str("the identity is damaged"),
        }
    }
}

impl CheckReport {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Reads everything in `files` and changes nothing.
///
/// # Errors
/// [`OpenError`]: the files cannot be read, or were written by a later version.
pub fn check<F: Files>(files: &mut F) -> Result<CheckReport, OpenError> {
    let mut list = files.list().map_err(failed("the directory"))?;
    list.sort();
    let mut checker = Checker {
        report: CheckReport::default(),
        covered: BTreeMap::new(),
    };
    let config = identity(files, &list)?;
    let journal = open(files, config, Now::default())?;
    checker.checkpoints(files, &list, &journal)?;
    for segment in journal.segments.values().filter(|segment| !segment.leaving) {
        checker.segment(files, &journal, segment)?;
    }
    checker.pending(&journal);
    checker.logs(&journal);
    Ok(checker.report)
}

/// Whose files they are, by the first sound header.
fn identity<F: Files>(files: &mut F, list: &[(FileName, u64)]) -> Result<JournalConfig, OpenError> {
    let mut config = JournalConfig::default();
    for (name, _) in list
        .iter()
        .filter(|(name, _)| number_of(name, "seg-").is_some())
    {
        let bytes = files
            .load(name, 0, HEADER_BYTES as u32)
            .map_err(failed(name))?;
        if let Ok(header) = SegmentHeader::decode(&bytes) {
            config.cluster = header.cluster;
            config.node = header.node;
            config.shard = header.shard;
            break;
        }
    }
    Ok(config)
}

/// A log's sound batches as they are found.
#[derive(Default)]
struct Covered {
    extents: Vec<(u64, u64)>,
    batches: u64,
    records: u64,
    bytes: u64,
}

struct Checker {
    report: CheckReport,
    covered: BTreeMap<u32, Covered>,
}

impl Checker {
    fn problem(&mut self, file: &str, at: u64, reason: Reason) {
        let file = file.to_owned();
        self.report.problems.push(Problem {
            file,
            at,
            log: None,
            number: None,
            reason,
        });
    }

    fn checkpoints<F: Files>(
        &mut self,
        files: &mut F,
        list: &[(FileName, u64)],
        journal: &Journal,
    ) -> Result<(), OpenError> {
        let all = list
            .iter()
            .filter(|(name, _)| number_of(name, "checkpoint-").is_some());
        let mut newest = None;
        for (name, length) in all {
            let length = u32::try_from(*length).unwrap_or(u32::MAX);
            let bytes = files.load(name, 0, length).map_err(failed(name))?;
            match Checkpoint::decode(&bytes) {
                Some(checkpoint) => newest = Some(checkpoint),
                None => self.problem(name, 0, Reason::Checkpoint),
            }
        }
        let Some(checkpoint) = newest else {
            return Ok(());
        };
        for segment in &checkpoint.segments {
            if journal.segments.contains_key(&segment.id) {
                continue;
            }
            let missed = checkpoint.logs.iter().any(|log| {
                let first = journal
                    .logs
                    .get(&log.slot)
                    .map_or(u64::MAX, |log| log.first);
                log.places
                    .iter()
                    .any(|place| place.segment == segment.id && place.last >= first)
            });
            if missed {
                self.problem(
                    &super::segment::segment_name(segment.id),
                    0,
                    Reason::Missing,
                );
            }
        }
        Ok(())
    }

    fn segment<F: Files>(
        &mut self,
        files: &mut F,
        journal: &Journal,
        segment: &Segment,
    ) -> Result<(), OpenError> {
        let name = &segment.name;
        let empty = segment.durable == HEADER_BYTES as u64;
        let head = files
            .load(name, 0, HEADER_BYTES as u32)
            .map_err(failed(name))?;
        if !empty && SegmentHeader::decode(&head).is_err() {
            self.problem(name, 0, Reason::Header);
        }
        if segment.filled < segment.durable && !empty {
            self.problem(name, segment.filled, Reason::Cut);
        }
        self.records(files, journal, segment)?;
        for (number, block) in segment.blocks.iter().enumerate() {
            if let Some(layout) = block.layout {
                self.index(files, segment.id, number as u32, layout)?;
            }
        }
        Ok(())
    }

    /// Reads a segment's records.
    fn records<F: Files>(
        &mut self,
        files: &mut F,
        journal: &Journal,
        segment: &Segment,
    ) -> Result<(), OpenError> {
        let name = &segment.name;
        let mut file = FileReport {
            name: name.to_string(),
            bytes: segment.filled,
            end: segment.durable,
            ..FileReport::default()
        };
        let end = segment.durable.min(segment.filled);
        let start = HEADER_BYTES as u64;
        let mut scanner = Scanner::new(files, name.clone(), end, segment.header.salt, start);
        while scanner.at() < end {
            let at = scanner.at();
            match scanner.next().map_err(failed(name))? {
                Found::Record {
                    envelope,
                    body: Body::Batch(batch, damaged),
                    ..
                } => {
                    let location = Location {
                        first: envelope.first,
                        numbers: envelope.numbers,
                        offset: at,
                        length: envelope.length,
                        time: envelope.append_time,
                    };
                    file.batches += 1;
                    file.records += u64::from(batch.records());
                    let lost = lost_numbers(envelope.first, &batch, &damaged);
                    self.bodies(name, at, batch.log(), &lost);
                    self.cover(
                        journal,
                        envelope.slot,
                        &location,
                        batch.records().into(),
                        &lost,
                    );
                }
                Found::Record { .. } => file.commands += 1,
                Found::Nothing { envelope, .. } => {
                    let behind = envelope.map_or(at + 8, |sound| at + sound.stored_bytes());
                    let found = scanner.resync(behind, end).map_err(failed(name))?;
                    let next = if found { scanner.at() } else { end };
                    self.problem(name, at, Reason::Record(next - at));
                    if !found {
                        break;
                    }
                }
            }
        }
        self.report.files.push(file);
        Ok(())
    }

    fn bodies(&mut self, name: &str, at: u64, log: LogId, lost: &[u64]) {
        self.report
            .problems
            .extend(lost.iter().map(|number| Problem {
                file: name.to_owned(),
                at,
                log: Some(log),
                number: Some(Sequence(*number)),
                reason: Reason::Body,
            }));
    }

    /// Verifies the index of a block.
    fn index<F: Files>(
        &mut self,
        files: &mut F,
        segment: u64,
        block: u32,
        layout: Layout,
    ) -> Result<(), OpenError> {
        let name = index_name(segment, block);
        let length = u64::from(layout.pages()) * index::PAGE_BYTES as u64;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        match files.load(&name, 0, length) {
            Ok(bytes) => {
                if let Some(at) = index::damage(&bytes, layout) {
                    self.problem(&name, at, Reason::Index);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.problem(&name, 0, Reason::Index);
            }
            Err(error) => return Err(failed(&name)(error)),
        }
        Ok(())
    }

    fn cover(
        &mut self,
        journal: &Journal,
        slot: u32,
        location: &Location,
        records: u64,
        lost: &[u64],
    ) {
        let Some(log) = journal
            .logs
            .get(&slot)
            .filter(|log| location.last() >= log.first)
        else {
            return;
        };
        let covered = self.covered.entry(slot).or_default();
        covered.batches += 1;
        covered.records += records - lost.len() as u64;
        covered.bytes += location.stored_bytes();
        let mut from = location.first.max(log.first);
        for number in lost.iter().chain([&(location.last() + 1)]) {
            if from < *number {
                covered.extents.push((from, number - 1));
            }
            from = from.max(number + 1);
        }
    }

    /// What may not be durable: it is served all the same, when the journal has opened.
    fn pending(&mut self, journal: &Journal) {
        for entry in &journal.pending {
            let location = Location {
                first: entry.first,
                numbers: entry.numbers,
                offset: 0,
                length: entry.batch.bytes().len() as u32,
                time: entry.time,
            };
            self.cover(
                journal,
                entry.slot,
                &location,
                entry.batch.records().into(),
                &[],
            );
        }
    }

    fn logs(&mut self, journal: &Journal) {
        for (log, slot) in &journal.slots {
            let Some(state) = journal.logs.get(slot) else {
                continue;
            };
            let mut covered = self.covered.remove(slot).unwrap_or_default();
            covered.extents.sort_unstable();
            let mut lost = Vec::new();
            let mut from = state.first;
            for (first, last) in covered
                .extents
                .into_iter()
                .chain([(state.next, state.next)])
            {
                if from < first {
                    lost.push(Extent {
                        first: Sequence(from),
                        last: Sequence(first - 1),
                    });
                }
                from = from.max(last + 1);
            }
            self.report.logs.push(LogReport {
                log: *log,
                first: Sequence(state.first),
                next: Sequence(state.next),
                batches: covered.batches,
                records: covered.records,
                bytes: covered.bytes,
                lost,
            });
        }
    }
}

/// The numbers of a batch's damaged records.
fn lost_numbers(base: u64, batch: &airmail_model::Batch, damaged: &[u16]) -> Vec<u64> {
    if damaged.is_empty() {
        return Vec::new();
    }
    let heads = batch.heads().enumerate();
    let hit = heads.filter(|(place, _)| damaged.contains(&(*place as u16)));
    hit.map(|(_, (index, _))| base + u64::from(index)).collect()
}
