//! Search for lost segments: those that are known to have been there, and are gone or end too
//! early.
//!
//! The durable data is known from the newest checkpoint (its segments, and the data that logs have
//! in them), from the file of durable ends, and from the commands that record a segment's end. A
//! segment that is known and not there was let go if no log keeps anything in it; that is certain
//! where the checkpoint lists its contents. Where the segment held more than the checkpoint knows,
//! numbers that no file has reveal the loss.

use super::Journal;
use super::checkpoint::{Checkpoint, SegmentPart};
use super::damage::{Problem, Reason};
use super::faults::Faults;
use super::format::{DATA_START, META_CLASS};
use super::id::{FileOffset, SegmentId, Slot};
use super::known::Known;
use super::log::LogState;
use super::logs::Logs;
use super::names::segment_name;
use super::segment_set::SegmentSet;
use airmail_model::{Extent, LogId, Sequence, Synced};
use std::collections::BTreeSet;

/// A log and the numbers that no file has of it.
pub(super) struct Holes {
    pub(super) slot: Slot,
    pub(super) log: LogId,
    pub(super) extents: Vec<Extent>,
}

/// Evidence that holes in the logs give.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// There are some behind the checkpoint: an unclean stop may have skipped them.
    behind: bool,
    /// There are some that can only be a loss.
    sure: bool,
}

/// The numbers from `from` to `until`, exclusive, that are in none of these extents, which are in
/// order of their first numbers.
pub(super) fn between(
    covered: impl Iterator<Item = (Sequence, Sequence)>,
    mut from: Sequence,
    until: Sequence,
) -> Vec<Extent> {
    let mut holes = Vec::new();
    for (first, last) in covered.chain([(until, until)]) {
        let first = first.min(until);
        if from < first {
            holes.push(Extent {
                first: from,
                last: first.before(),
            });
        }
        from = from.max(last.plus(1));
    }
    holes
}

/// The parts of the journal that the search reads; none of them is changed.
pub(super) struct Missing<'j> {
    logs: &'j Logs,
    segments: &'j SegmentSet,
}

impl Journal {
    pub(super) fn missing(&self) -> Missing<'_> {
        Missing {
            logs: &self.logs,
            segments: &self.segments,
        }
    }

    /// Notes the segments and data that are known to have been there, and are not.
    pub(super) fn find_missing(&mut self, known: &Known) {
        let missing = Missing {
            logs: &self.logs,
            segments: &self.segments,
        };
        missing.find(known, &mut self.faults);
    }
}

impl Missing<'_> {
    /// The segments that are missing or cut, as far as holes in the logs or the checkpoint show that
    /// something is lost with them.
    pub(super) fn segments(&self, known: &Known, holes: &[Holes]) -> Vec<Problem> {
        let holed = holes.iter().filter(|log| !log.extents.is_empty());
        let shown = Shown {
            behind: holed.clone().any(|log| {
                let next = known.checkpoint_next.get(&log.slot).copied();
                let next = next.unwrap_or(Sequence::FIRST);
                log.extents.iter().any(|extent| extent.last >= next)
            }),
            sure: holed.clone().any(|log| self.never_skips(log.slot)),
        };
        let ends = known.durable.iter().chain(&known.sealed);
        let ids: BTreeSet<SegmentId> = ends.map(|(id, _)| *id).collect();
        let mut problems = Vec::new();
        for id in ids {
            let end = known.end_of(id);
            match self.segments.get(id) {
                Some(segment) if segment.is_leaving() || segment.fill.end() >= end => {}
                Some(_) if end == DATA_START => {}
                Some(_) if is_told_by(&known.checkpoint, id) => {}
                Some(segment) => {
                    problems.push(Problem::of(
                        &segment.name,
                        segment.fill.end().0,
                        Reason::Cut,
                    ));
                }
                None if end > DATA_START && self.is_lost(id, end, known, shown) => {
                    problems.push(Problem::of(&segment_name(id), 0, Reason::Missing));
                }
                None => {}
            }
        }
        problems
    }

    /// Whether an unclean stop skips no numbers of a log, so that every hole is a loss.
    fn never_skips(&self, slot: Slot) -> bool {
        let log = self.logs.get(slot);
        log.is_some_and(|log| log.life.spec.durability.synced == Synced::Fsync)
    }

    /// Whether a segment that is not there was not let go.
    fn is_lost(&self, id: SegmentId, end: FileOffset, known: &Known, shown: Shown) -> bool {
        let checkpoint = &known.checkpoint;
        // What got data behind a checkpoint is let go only by the next one, unless that is damaged, or
        // the disk was full. That data has numbers behind those that the checkpoint knows.
        let behind = shown.behind && !known.fell_back;
        let Some(part) = part_of(checkpoint, id) else {
            // Input: a segment that the checkpoint does not know.
            let lost = shown.sure || behind || known.misses_commands();
            return id >= checkpoint.next_segment && lost;
        };
        if part.class == META_CLASS {
            // It goes when it has ended and two checkpoints have what it says: with the writing of this
            // one, even, if nothing came behind what this one knows of it.
            let all_told = known.sealed.get(&id) == Some(&part.durable);
            return !all_told && !known.fell_back;
        }
        let kept = known.missed_places.iter().any(|(slot, place)| {
            let first = self
                .logs
                .get(*slot)
                .map_or(Sequence::MAX, |log| log.numbers.first);
            place.block.segment == id && place.last >= first
        });
        let told = part.blocks.last().map(|block| block.end);
        let unknown = told.unwrap_or(DATA_START) < end;
        kept || (unknown && shown.sure) || (end > part.durable && behind)
    }

    /// Numbers of each log that were durable and are nowhere now, as far as that is known when the
    /// journal has opened: indexed blocks are not read.
    fn opening_holes(&self, known: &Known) -> Vec<Holes> {
        let hole = |log: &LogState| {
            let mut covered: Vec<(Sequence, Sequence)> = log
                .kept
                .iter()
                .map(|place| (place.first, place.last))
                .collect();
            let recent = log.recent.iter();
            covered.extend(recent.map(|recent| (recent.first, recent.next().before())));
            covered.sort_unstable();
            let until = known
                .next
                .get(&log.slot)
                .copied()
                .unwrap_or(log.numbers.next);
            Holes {
                slot: log.slot,
                log: log.id,
                extents: between(covered.into_iter(), log.numbers.first, until),
            }
        };
        self.logs.iter().map(hole).collect()
    }

    /// Losses of the logs, each with the file that it was in, as far as that can be known: `files`
    /// are those that have lost something, in order.
    pub(super) fn lost(&self, known: &Known, files: &[Problem], holes: &[Holes]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for Holes { slot, log, extents } in holes {
            for extent in extents {
                let file = self.file_of(known, files, *slot, extent);
                let Some(file) = file else {
                    // Input: files of which none is damaged: a stop has skipped the numbers.
                    continue;
                };
                let lost = Problem::of(&file, 0, Reason::Lost(extent.numbers()));
                problems.push(lost.at_number(*log, extent.first));
            }
        }
        problems
    }

    /// Finds the file of a hole: segments are filled one after the other, so it is in the first of
    /// them behind the numbers before the hole.
    fn file_of(
        &self,
        known: &Known,
        files: &[Problem],
        slot: Slot,
        extent: &Extent,
    ) -> Option<String> {
        let places = known.missed_places.iter();
        let told = places
            .filter(|(of, _)| *of == slot)
            .find(|(_, place)| place.first <= extent.last && extent.first <= place.last);
        if let Some((_, place)) = told {
            return Some(segment_name(place.block.segment).to_string());
        }
        let log = self.logs.get(slot)?;
        let mut places = log.kept.iter().rev();
        let before = places.find(|place| place.last < extent.first);
        let before = before.map_or_else(|| "".into(), |place| segment_name(place.block.segment));
        let behind = files.iter().find(|problem| *problem.file >= *before);
        behind.or(files.last()).map(|problem| problem.file.clone())
    }

    /// Notes the data that is known to have been there, and is not.
    fn find(&self, known: &Known, faults: &mut Faults) {
        for id in &known.headless {
            let segment = self.segments.get(*id).filter(|of| !of.is_leaving());
            let has_data = segment.is_some_and(|of| of.durable() > DATA_START);
            if has_data {
                let header = Problem::of(&segment_name(*id), 0, Reason::Header);
                faults.found(header);
            }
        }
        let holes = self.opening_holes(known);
        for problem in self.segments(known, &holes) {
            faults.found(problem);
        }
        let files = faults.damage().news.iter();
        let mut files: Vec<Problem> = files.filter(|one| one.reason.loses()).cloned().collect();
        files.sort_by(|a, b| a.file.cmp(&b.file));
        for problem in self.lost(known, &files, &holes) {
            faults.found(problem);
        }
    }
}

/// Whether a segment of commands took its last before the checkpoint, which includes them. After a
/// kill, the end of such a segment may have been in the system's cache alone; its commands were
/// given again elsewhere.
fn is_told_by(checkpoint: &Checkpoint, id: SegmentId) -> bool {
    part_of(checkpoint, id).is_some_and(|part| part.class == META_CLASS && part.sealed)
}

fn part_of(checkpoint: &Checkpoint, id: SegmentId) -> Option<&SegmentPart> {
    checkpoint.segments.iter().find(|segment| segment.id == id)
}
