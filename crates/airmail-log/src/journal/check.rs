//! Check of a whole journal without changing anything: its contents, and the damage.
//!
//! The journal is opened as it would be for serving, which says what each log must hold, and in
//! which files; then every segment is read from its beginning to its known end, and every checksum
//! is verified, those of the indexes too. Memory is bounded by an index and the list of findings.
//!
//! Numbers that no file has are lost if anything is damaged, and each is reported with its file. If
//! nothing is damaged, an unclean stop has skipped them: a log weaker than `fsync` goes on above
//! its reservation. So sound files have lost nothing.

use super::checkpoint::Checkpoint;
use super::damage::{Problem, Reason, lost_numbers};
use super::format::{DATA_START, HEADER_BYTES, SegmentHeader};
use super::id::{BlockId, FileOffset, SegmentId, Slot};
use super::index::{self, Layout};
use super::known::Known;
use super::log::LogState;
use super::missing::{Holes, between};
use super::moving::is_elsewhere;
use super::names::{index_name, number_of, segment_name};
use super::recover::{OpenError, failed, open_and_know};
use super::scan::{Body, Found, Scanner};
use super::segment::Segment;
use super::table::Location;
use super::{Journal, JournalConfig};
use crate::files::{FileName, Files};
use airmail_model::{Extent, LogId, Now, Sequence, bug};
use std::collections::{BTreeMap, BTreeSet};

/// Findings about a journal's files.
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
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Place behind the last byte that is known to be data.
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
    /// Its name.
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
    /// Numbers kept that are lost by damage.
    pub lost: Vec<Extent>,
    /// Numbers that an unclean stop has skipped: readers are told that they are lost, as nobody can
    /// know whether something weaker than `fsync` had them.
    pub skipped: Vec<Extent>,
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
    let (journal, known) = open_and_know(files, config, Now::default())?;
    checker.checkpoints(files, &list)?;
    checker.commands(&known);
    for segment in journal
        .segments
        .iter()
        .filter(|segment| !segment.is_leaving())
    {
        checker.segment(files, &journal, &known, segment)?;
    }
    checker.pending(&journal);
    checker.logs(&journal, &known);
    Ok(checker.report)
}

/// The owner of the files, by the first sound header.
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
    extents: Vec<(Sequence, Sequence)>,
    /// Numbers whose damage has been told.
    damaged: BTreeSet<Sequence>,
    batches: u64,
    records: u64,
    bytes: u64,
}

struct Checker {
    report: CheckReport,
    covered: BTreeMap<Slot, Covered>,
}

impl Checker {
    fn problem(&mut self, file: &str, at: u64, reason: Reason) {
        self.report.problems.push(Problem::of(file, at, reason));
    }

    fn checkpoints<F: Files>(
        &mut self,
        files: &mut F,
        list: &[(FileName, u64)],
    ) -> Result<(), OpenError> {
        let all = list
            .iter()
            .filter(|(name, _)| number_of(name, "checkpoint-").is_some());
        for (name, length) in all {
            let length = u32::try_from(*length).unwrap_or(u32::MAX);
            let bytes = files.load(name, 0, length).map_err(failed(name))?;
            if Checkpoint::decode(&bytes).is_none() {
                self.problem(name, 0, Reason::Checkpoint);
            }
        }
        Ok(())
    }

    /// Commands are gone only when a checkpoint includes them.
    fn commands(&mut self, known: &Known) {
        let first = known.counts.first().copied().unwrap_or(1);
        let told = known.checkpoint.meta_count.max(1);
        if first > told {
            let file = segment_name(known.first_meta.unwrap_or(SegmentId::FIRST));
            self.problem(&file, 0, Reason::Commands(first - told));
        }
    }

    fn segment<F: Files>(
        &mut self,
        files: &mut F,
        journal: &Journal,
        known: &Known,
        segment: &Segment,
    ) -> Result<(), OpenError> {
        let name = &segment.name;
        let empty = segment.durable() == DATA_START;
        let head = files
            .load(name, 0, HEADER_BYTES as u32)
            .map_err(failed(name))?;
        if !empty && SegmentHeader::decode(&head).is_err() {
            self.problem(name, 0, Reason::Header);
        }
        self.records(files, journal, known, segment)?;
        for (id, block) in segment.named_blocks() {
            // Where nothing is kept, it may be gone before its segment is.
            let kept = |log: &LogState| log.keeps_of(id);
            if let Some(layout) = block.layout().filter(|_| journal.logs.iter().any(kept)) {
                self.index(files, id, layout)?;
            }
        }
        Ok(())
    }

    /// Reads a segment's records.
    fn records<F: Files>(
        &mut self,
        files: &mut F,
        journal: &Journal,
        known: &Known,
        segment: &Segment,
    ) -> Result<(), OpenError> {
        let name = &segment.name;
        let mut file = FileReport {
            name: name.to_string(),
            bytes: segment.fill.end().0,
            end: segment.durable().0,
            ..FileReport::default()
        };
        let end = segment.durable().max(known.end_of(segment.id));
        let end = end.min(segment.fill.end());
        let start = DATA_START;
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
                        first: envelope.sequence(),
                        numbers: envelope.numbers,
                        offset: at,
                        length: envelope.length,
                        time: envelope.append_time,
                    };
                    file.batches += 1;
                    file.records += u64::from(batch.records());
                    let lost = lost_numbers(envelope.sequence(), &batch, &damaged);
                    self.bodies(name, at.0, batch.log(), &lost);
                    if is_elsewhere(&journal.logs, segment.id, envelope.slot, &location) {
                        continue;
                    }
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
                    self.problem(name, at.0, Reason::Record(next - at));
                    if !found {
                        break;
                    }
                }
            }
        }
        self.report.files.push(file);
        Ok(())
    }

    fn bodies(&mut self, name: &str, at: u64, log: LogId, lost: &[Sequence]) {
        self.report
            .problems
            .extend(lost.iter().map(|number| Problem {
                file: name.to_owned(),
                at,
                log: Some(log),
                number: Some(*number),
                reason: Reason::Body,
            }));
    }

    /// Verifies the index of a block.
    fn index<F: Files>(
        &mut self,
        files: &mut F,
        block: BlockId,
        layout: Layout,
    ) -> Result<(), OpenError> {
        let name = index_name(block);
        let length = u64::from(layout.pages()) * index::PAGE_BYTES as u64;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        match files.load(&name, 0, length) {
            Ok(bytes) => {
                if let Some(at) = index::damage(&bytes, layout) {
                    self.problem(&name, at, Reason::Index);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.problem(&name, 0, Reason::IndexMissing);
            }
            Err(error) => return Err(failed(&name)(error)),
        }
        Ok(())
    }

    fn cover(
        &mut self,
        journal: &Journal,
        slot: Slot,
        location: &Location,
        records: u64,
        lost: &[Sequence],
    ) {
        let Some(log) = journal
            .logs
            .get(slot)
            .filter(|log| location.last() >= log.numbers.first)
        else {
            // Input: a batch of a log that was deleted, or that was trimmed.
            return;
        };
        let covered = self.covered.entry(slot).or_default();
        covered.damaged.extend(lost);
        covered.batches += 1;
        covered.records += records - lost.len() as u64;
        covered.bytes += location.stored_bytes();
        let mut from = location.first.max(log.numbers.first);
        for number in lost.iter().chain([&location.last().plus(1)]) {
            if from < *number {
                covered.extents.push((from, number.before()));
            }
            from = from.max(number.plus(1));
        }
    }

    /// Counts batches that may not be durable: they are served all the same, once the journal has
    /// opened.
    fn pending(&mut self, journal: &Journal) {
        for entry in journal.commits.waiting().iter() {
            let location = Location {
                first: entry.first,
                numbers: entry.numbers,
                offset: FileOffset::START,
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

    /// Reports for each log its records and its losses, with the file that had them.
    fn logs(&mut self, journal: &Journal, known: &Known) {
        let mut before = Vec::new();
        let mut behind = BTreeMap::new();
        for (log, slot) in journal.logs.names() {
            let Some(state) = journal.logs.get(slot) else {
                bug!("{log} has slot {slot} and no log");
                continue;
            };
            let covered = self.covered.entry(slot).or_default();
            covered.extents.sort_unstable();
            // From here on no number was given to anything that is known.
            let told = known.next.get(&slot).copied().unwrap_or(state.numbers.next);
            let extents = covered.extents.iter().copied();
            before.push(Holes {
                slot,
                log,
                extents: between(extents, state.numbers.first, told),
            });
            behind.insert(
                slot,
                between(
                    [].into_iter(),
                    told.max(state.numbers.first),
                    state.numbers.next,
                ),
            );
        }
        let missing = journal.missing().segments(known, &before);
        self.report.problems.extend(missing);
        let problems = self.report.problems.iter();
        let files = problems.filter(|one| one.reason.loses() && one.reason != Reason::Body);
        let mut files: Vec<Problem> = files.cloned().collect();
        files.sort_by(|a, b| a.file.cmp(&b.file));
        for holes in before {
            let Some(state) = journal.logs.get(holes.slot) else {
                bug!("slot {} has holes and no log", holes.slot);
                continue;
            };
            let skipped = behind.remove(&holes.slot).unwrap_or_default();
            self.log(journal, known, state, (&files, holes, skipped));
        }
    }

    fn log(
        &mut self,
        journal: &Journal,
        known: &Known,
        state: &LogState,
        (files, holes, mut skipped): (&[Problem], Holes, Vec<Extent>),
    ) {
        let covered = self.covered.remove(&state.slot).unwrap_or_default();
        let damaged = covered.damaged.iter().map(|number| (*number, *number));
        let damaged = damaged.filter(|(number, _)| *number >= state.numbers.first);
        let mut lost: Vec<Extent> = damaged
            .clone()
            .map(|(number, _)| Extent::starting_at(number, 1))
            .collect();
        // What is told record by record is not told again.
        let rest = holes.extents.iter().flat_map(|hole| {
            let inside = damaged.clone().filter(|(number, _)| *number >= hole.first);
            between(inside, hole.first, hole.next())
        });
        let extents: Vec<Extent> = rest.collect();
        if files.is_empty() {
            skipped.splice(0..0, extents);
        } else {
            let holes = Holes {
                extents: extents.clone(),
                ..holes
            };
            let told = journal.missing().lost(known, files, &[holes]);
            self.report.problems.extend(told);
            lost.extend(extents);
        }
        lost.sort_unstable_by_key(|extent| extent.first);
        self.report.logs.push(LogReport {
            log: state.id,
            first: state.numbers.first,
            next: state.numbers.next,
            batches: covered.batches,
            records: covered.records,
            bytes: covered.bytes,
            lost,
            skipped,
        });
    }
}
