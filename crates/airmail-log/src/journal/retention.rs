//! Giving up of old records: by time, by size, by trim. At once for readers, later on disk.
//!
//! A log's first number moves at once; a command records the move; when that is durable the blocks
//! are dropped ([`carrying_out`](super::carrying_out)), and a segment in which no log keeps
//! anything is removed or recycled. Retention goes by batch: the table of the block in which a
//! log's first record is too old, or which takes the log beyond its size, is held in memory until
//! that block is given up.
//!
//! Retention by time goes by the trusted time: see [`clock_guard`](super::clock_guard).

use super::block::Block;
use super::commands::Commands;
use super::id::{BlockId, Slot};
use super::log::LogState;
use super::logs::Logs;
use super::meta::Meta;
use super::producers::Producers;
use super::segment_set::SegmentSet;
use super::table::Location;
use super::time::Time;
use super::{Journal, JournalConfig};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::{AppendTime, Sequence, bug};
use std::collections::BTreeSet;

/// A block of less than this part of a log's bound on bytes is given up whole.
const SMALL_PART: u64 = 16;

/// The batches of a log in a block whose table is in memory.
pub(super) fn list(segments: &SegmentSet, slot: Slot, block: BlockId) -> &[Location] {
    let table = segments.block(block).and_then(Block::table);
    table
        .and_then(|table| table.logs.get(&slot))
        .map_or(&[], |list| list)
}

/// Gives up everything of a log before `before`: the command that says so. `None`: nothing changes.
pub(super) fn trim(log: &mut LogState, segments: &SegmentSet, before: Sequence) -> Option<Meta> {
    let first = before.min(log.numbers.visible);
    if first <= log.numbers.first {
        return None;
    }
    log.numbers.first = first;
    log.copies.forget(first);
    let slot = log.slot;
    log.kept.trim(first, |block| list(segments, slot, block));
    Some(Meta::Trim { slot, first })
}

/// The parts of the journal that applying retention reads or changes.
struct Retaining<'j> {
    config: &'j JournalConfig,
    time: &'j Time,
    segments: &'j SegmentSet,
    logs: &'j mut Logs,
    producers: &'j mut Producers,
    commands: &'j mut Commands,
}

impl Journal {
    fn retaining(&mut self) -> Retaining<'_> {
        Retaining {
            config: &self.config,
            time: &self.time,
            segments: &self.segments,
            logs: &mut self.logs,
            producers: &mut self.producers,
            commands: &mut self.commands,
        }
    }

    /// Applies each log's retention, and gives room back, if it is time.
    pub(super) fn retain_in_time(&mut self) {
        if self.time.mono() >= self.upkeep.retain_at() {
            self.segments.want_sweep();
            let wanted = self.retaining().retain();
            self.reading().hold_tables(&wanted);
            self.give_back();
            let next = self.time.mono().plus(self.config.retention_interval);
            self.upkeep.set_retain_at(next);
        }
    }
}

impl Retaining<'_> {
    /// Applies each log's retention. Gives the blocks whose tables are needed to know exactly which
    /// batches it keeps.
    fn retain(&mut self) -> BTreeSet<BlockId> {
        let now = self.time.trusted();
        #[cfg(feature = "sabotage")]
        let now = match self.config.bug {
            Some(Bug::JumpBelieved) => self.time.wall(),
            _ => now,
        };
        let age = self.config.producer_age.as_micros() as u64;
        let since = AppendTime(now.0.saturating_sub_unsigned(age));
        self.producers.forget(since, self.config.producers_max);
        let mut trims = Vec::new();
        let mut wanted = BTreeSet::new();
        for log in self.logs.iter() {
            let (first, block) = self.retained_from(log, now);
            if first > log.numbers.first {
                trims.push((log.slot, first));
            }
            wanted.extend(block);
        }
        for (slot, first) in trims {
            let Some(log) = self.logs.get_mut(slot) else {
                bug!("slot {slot} is trimmed and has no log");
                continue;
            };
            if let Some(trim) = trim(log, self.segments, first) {
                self.commands.give(trim, None);
            }
        }
        wanted
    }

    /// The first number that a log's retention keeps, and the block whose table says it exactly.
    fn retained_from(&self, log: &LogState, now: AppendTime) -> (Sequence, Option<BlockId>) {
        let mut first = log.numbers.first;
        let max = log.life.spec.retention.bytes;
        let mut over = max.map_or(0, |max| log.kept.bytes().saturating_sub(max));
        let micros = log
            .life
            .spec
            .retention
            .time_ms
            .map(|ms| ms.saturating_mul(1000));
        let oldest = micros.map_or(i64::MIN, |micros| now.0.saturating_sub_unsigned(micros));
        let oldest = AppendTime(oldest);
        for place in log.kept.iter() {
            let small = over > 0 && max.is_some_and(|max| place.bytes <= max / SMALL_PART);
            if place.time_max < oldest || over >= place.bytes || small {
                over = over.saturating_sub(place.bytes);
                first = place.last.plus(1);
                continue;
            }
            if place.time_min >= oldest && over == 0 {
                return (first, None);
            }
            for location in list(self.segments, log.slot, place.block) {
                if location.last() < place.first {
                    continue;
                }
                if location.time >= oldest && over == 0 {
                    break;
                }
                over = over.saturating_sub(location.stored_bytes());
                first = location.last().plus(1);
            }
            return (first, Some(place.block));
        }
        (first, None)
    }
}
