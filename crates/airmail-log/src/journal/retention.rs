//! Giving up old records: by time, by size, by trim. At once for readers, later on disk.
//!
//! A log's first number moves at once; that it has moved is a command; when that is durable the
//! blocks are let go, and a segment in which no log keeps anything is removed or recycled.
//! Retention goes by batch: the table of the block in which a log's first record is too old, or too
//! much, is held in memory until that block is given up.
//!
//! What goes by time goes by the trusted time: see [`clock_guard`](super::clock_guard).

use super::Journal;
use super::id::{BlockId, Slot};
use super::log::LogState;
use super::meta::Meta;
use super::segment_set::SegmentSet;
use super::table::Location;
use crate::contract::{Completion, Tag};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::{AppendTime, Sequence, bug};
use std::collections::BTreeSet;

/// A block of less than this part of a log's bound on bytes is given up whole.
const SMALL_PART: u64 = 16;

/// The batches of a log in a block whose table is in memory.
pub(super) fn list(segments: &SegmentSet, slot: Slot, block: BlockId) -> &[Location] {
    let table = segments.block(block).and_then(|block| block.table.as_ref());
    table
        .and_then(|table| table.logs.get(&slot))
        .map_or(&[], |list| list)
}

impl Journal {
    /// Gives up everything of a log before `before`. False: nothing changes.
    pub(super) fn trim_to(&mut self, slot: Slot, before: Sequence, t: Option<Tag>) -> bool {
        let Some(log) = self.logs.get_mut(slot) else {
            bug!("slot {slot} is trimmed and has no log");
            return false;
        };
        let first = before.min(log.numbers.visible);
        if first <= log.numbers.first {
            return false;
        }
        log.numbers.first = first;
        log.copies.forget(first);
        while let Some(place) = log.kept.list.front_mut() {
            if place.last < first {
                log.kept.bytes -= place.bytes;
                log.kept.leaving.push(*place);
                log.kept.list.pop_front();
                continue;
            }
            if place.first < first {
                let list = list(&self.segments, slot, place.block);
                let kept = &list[list.partition_point(|location| location.last() < first)..];
                if let Some(oldest) = kept.first() {
                    let bytes = kept.iter().map(Location::stored_bytes).sum();
                    log.kept.bytes -= place.bytes - bytes;
                    place.bytes = bytes;
                    place.time_min = oldest.time;
                }
                place.first = first;
            }
            break;
        }
        self.commands.give(Meta::Trim { slot, first }, t);
        true
    }

    /// Applies each log's retention, and gives room back, if it is time.
    pub(super) fn retain_in_time(&mut self) {
        if self.time.mono() >= self.upkeep.retain_at() {
            self.segments.want_sweep();
            self.retain();
            self.give_back();
            let next = self.time.mono().plus(self.config.retention_interval);
            self.upkeep.set_retain_at(next);
        }
    }

    /// Applies each log's retention.
    pub(super) fn retain(&mut self) {
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
            self.trim_to(slot, first, None);
        }
        self.reading().hold_tables(&wanted);
    }

    /// The first number that a log's retention keeps, and the block whose table says it exactly.
    fn retained_from(&self, log: &LogState, now: AppendTime) -> (Sequence, Option<BlockId>) {
        let mut first = log.numbers.first;
        let max = log.life.spec.retention.bytes;
        let mut over = max.map_or(0, |max| log.kept.bytes.saturating_sub(max));
        let micros = log
            .life
            .spec
            .retention
            .time_ms
            .map(|ms| ms.saturating_mul(1000));
        let oldest = micros.map_or(i64::MIN, |micros| now.0.saturating_sub_unsigned(micros));
        let oldest = AppendTime(oldest);
        for place in &log.kept.list {
            let small = over > 0 && max.is_some_and(|max| place.bytes <= max / SMALL_PART);
            if place.time_max < oldest || over >= place.bytes || small {
                over = over.saturating_sub(place.bytes);
                first = place.last.plus(1);
                continue;
            }
            if place.time_min >= oldest && over == 0 {
                return (first, None);
            }
            for location in list(&self.segments, log.slot, place.block) {
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

    /// A command is durable: what waited for it goes on.
    pub(super) fn meta_durable(&mut self, meta: &Meta, t: Option<Tag>, moved: &mut BTreeSet<Slot>) {
        let slot = match *meta {
            Meta::SegmentSealed { .. } => {
                self.segments.want_sweep();
                return;
            }
            Meta::Delete { slot } => {
                for block in self.upkeep.take_deleted(slot) {
                    self.let_go(block);
                }
                if let Some(t) = t {
                    self.effects.tell(Completion::Done { t });
                }
                return;
            }
            Meta::Open { slot, .. }
            | Meta::Trim { slot, .. }
            | Meta::Seal { slot, .. }
            | Meta::Reserve { slot, .. }
            | Meta::Copy { slot, .. }
            | Meta::TakenBack { slot, .. } => slot,
        };
        moved.insert(slot);
        let done = |t: Tag| Completion::Done { t };
        let Some(log) = self.logs.get_mut(slot) else {
            // Input: a log that was deleted before its command was durable.
            return self.effects.completions().extend(t.map(done));
        };
        match *meta {
            Meta::Open {
                spec, incarnation, ..
            } => {
                log.life.spec_told |=
                    (spec, incarnation) == (log.life.spec, log.life.incarnation_asked);
                log.life.incarnation = incarnation;
                let bounds = log.bounds();
                return self
                    .effects
                    .completions()
                    .extend(t.map(|t| Completion::Opened { t, bounds }));
            }
            Meta::Reserve { until, .. } => log.numbers.reserve(until),
            Meta::Seal { .. } => {
                log.life.seal_told = true;
                self.readers.wake_all(log.at_tail.drain(..));
            }
            Meta::Trim { first, .. } => {
                log.numbers.first_durable = log.numbers.first_durable.max(first);
                let durable = log.numbers.first_durable;
                let gone = log
                    .kept
                    .leaving
                    .extract_if(.., |place| place.last < durable);
                let gone = gone.collect::<Vec<_>>();
                #[cfg(feature = "sabotage")]
                let gone = match self.config.bug {
                    Some(Bug::BlockGoneEarly) => {
                        gone.into_iter().chain(log.kept.list.pop_front()).collect()
                    }
                    _ => gone,
                };
                for place in gone {
                    self.let_go(place.block);
                }
            }
            Meta::Copy { .. } | Meta::TakenBack { .. } => log.copies.apply(meta),
            Meta::Delete { .. } | Meta::SegmentSealed { .. } => {}
        }
        self.effects.completions().extend(t.map(done));
    }
}
