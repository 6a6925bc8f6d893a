//! Giving up old records: by time, by size, by trim. At once for readers, later on disk.
//!
//! A log's first number moves at once; that it has moved is a command; when that is durable the
//! blocks are let go, and a segment in which no log keeps anything is removed or recycled.
//! Retention goes by batch: the table of the block in which a log's first record is too old, or too
//! much, is held in memory until that block is given up.
//!
//! What goes by time goes by the trusted time: see [`clock_guard`](super::clock_guard).

use super::Journal;
use super::log::LogState;
use super::meta::Meta;
use super::segment::Segment;
use super::table::Location;
use crate::contract::{Completion, Tag};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::{AppendTime, LogId, Sequence};
use std::collections::{BTreeMap, BTreeSet};

/// A block of less than this part of a log's bound on bytes is given up whole.
const SMALL_PART: u64 = 16;

/// The batches of a log in a block whose table is in memory.
fn list(segments: &BTreeMap<u64, Segment>, slot: u32, segment: u64, block: u32) -> &[Location] {
    let block = segments
        .get(&segment)
        .and_then(|segment| segment.blocks.get(block as usize));
    let table = block.and_then(|block| block.table.as_ref());
    table
        .and_then(|table| table.logs.get(&slot))
        .map_or(&[], |list| list)
}

impl Journal {
    /// Gives up everything of a log before `before`. False: nothing changes.
    pub(super) fn trim_to(&mut self, slot: u32, before: u64, t: Option<Tag>) -> bool {
        let Some(log) = self.logs.get_mut(&slot) else {
            return false;
        };
        let first = before.min(log.visible);
        if first <= log.first {
            return false;
        }
        log.first = first;
        log.copies.forget(first);
        while let Some(place) = log.places.front_mut() {
            if place.last < first {
                log.bytes -= place.bytes;
                log.leaving.push(*place);
                log.places.pop_front();
                continue;
            }
            if place.first < first {
                let list = list(&self.segments, slot, place.segment, place.block);
                let kept = &list[list.partition_point(|location| location.last() < first)..];
                if let Some(oldest) = kept.first() {
                    let bytes = kept.iter().map(Location::stored_bytes).sum();
                    log.bytes -= place.bytes - bytes;
                    place.bytes = bytes;
                    place.time_min = oldest.time;
                }
                place.first = first;
            }
            break;
        }
        self.metas.push_back((Meta::Trim { slot, first }, t));
        true
    }

    /// Applies each log's retention, and gives room back, if it is time.
    pub(super) fn retain_in_time(&mut self) {
        if self.now.mono >= self.retention_at {
            self.sweep_due = true;
            self.retain();
            self.give_back();
            self.retention_at = self.now.mono.plus(self.config.retention_interval);
        }
    }

    /// Applies each log's retention.
    pub(super) fn retain(&mut self) {
        let now = self.clock.trusted(self.now).0;
        #[cfg(feature = "sabotage")]
        let now = match self.config.bug {
            Some(Bug::JumpBelieved) => self.now.wall.0,
            _ => now,
        };
        let since = now.saturating_sub_unsigned(self.config.producer_age.as_micros() as u64);
        self.producers.forget(since, self.config.producers_max);
        let mut trims = Vec::new();
        let mut wanted = BTreeSet::new();
        for log in self.logs.values() {
            let (first, block) = self.retained_from(log, now);
            if first > log.first {
                trims.push((log.slot, first));
            }
            wanted.extend(block);
        }
        for (slot, first) in trims {
            self.trim_to(slot, first, None);
        }
        self.hold_tables(&wanted);
    }

    /// The first number that a log's retention keeps, and the block whose table says it exactly.
    fn retained_from(&self, log: &LogState, now: i64) -> (u64, Option<(u64, u32)>) {
        let mut first = log.first;
        let max = log.spec.retention.bytes;
        let mut over = max.map_or(0, |max| log.bytes.saturating_sub(max));
        let micros = log.spec.retention.time_ms.map(|ms| ms.saturating_mul(1000));
        let oldest = micros.map_or(i64::MIN, |micros| now.saturating_sub_unsigned(micros));
        for place in &log.places {
            let small = over > 0 && max.is_some_and(|max| place.bytes <= max / SMALL_PART);
            if place.time_max < oldest || over >= place.bytes || small {
                over = over.saturating_sub(place.bytes);
                first = place.last + 1;
                continue;
            }
            if place.time_min >= oldest && over == 0 {
                return (first, None);
            }
            for location in list(&self.segments, log.slot, place.segment, place.block) {
                if location.last() < place.first {
                    continue;
                }
                if location.time >= oldest && over == 0 {
                    break;
                }
                over = over.saturating_sub(location.stored_bytes());
                first = location.last() + 1;
            }
            return (first, Some((place.segment, place.block)));
        }
        (first, None)
    }

    /// A command is durable: what waited for it goes on.
    pub(super) fn meta_durable(&mut self, meta: &Meta, t: Option<Tag>, moved: &mut BTreeSet<u32>) {
        let slot = match *meta {
            Meta::SegmentSealed { .. } => {
                self.sweep_due = true;
                return;
            }
            Meta::Delete { slot } => {
                for (segment, block, of) in std::mem::take(&mut self.gone) {
                    match of == slot {
                        true => self.let_go(segment, block),
                        false => self.gone.push((segment, block, of)),
                    }
                }
                if let Some(t) = t {
                    self.out.push(Completion::Done { t });
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
        let Some(log) = self.logs.get_mut(&slot) else {
            return self.out.extend(t.map(done));
        };
        match *meta {
            Meta::Open {
                spec, incarnation, ..
            } => {
                log.spec_told |= (spec, incarnation) == (log.spec, log.incarnation_asked);
                log.incarnation = incarnation;
                let bounds = log.bounds();
                return self.out.extend(t.map(|t| Completion::Opened { t, bounds }));
            }
            Meta::Reserve { until, .. } => log.reserve(until),
            Meta::Seal { .. } => {
                log.seal_told = true;
                self.runnable.extend(log.at_tail.drain(..));
            }
            Meta::Trim { first, .. } => {
                log.first_durable = log.first_durable.max(first);
                let durable = log.first_durable;
                let gone = log.leaving.extract_if(.., |place| place.last < durable);
                let gone = gone.collect::<Vec<_>>();
                #[cfg(feature = "sabotage")]
                let gone = match self.config.bug {
                    Some(Bug::BlockGoneEarly) => {
                        gone.into_iter().chain(log.places.pop_front()).collect()
                    }
                    _ => gone,
                };
                for place in gone {
                    self.let_go(place.segment, place.block);
                }
            }
            Meta::Copy { .. } | Meta::TakenBack { .. } => log.copies.apply(meta),
            Meta::Delete { .. } | Meta::SegmentSealed { .. } => {}
        }
        self.out.extend(t.map(done));
    }

    pub(super) fn find_time(&mut self, t: Tag, id: LogId, at: AppendTime) {
        let log = self.slots.get(&id).and_then(|slot| self.logs.get(slot));
        let Some(log) = log else {
            let why = crate::contract::Refusal::NoLog;
            return self.out.push(Completion::Refused { t, why });
        };
        let start = log.places.partition_point(|place| place.time_max < at.0);
        let earlier = log.places.get(start.wrapping_sub(1));
        let mut found = earlier.map_or(log.first, |place| place.last + 1);
        // Behind the last one that is older, not at the first that is not: what was between may be
        // lost, and is told.
        if let Some(place) = log.places.get(start) {
            let list = list(&self.segments, log.slot, place.segment, place.block);
            let older = list.iter().take_while(|location| location.time < at.0);
            found = older.fold(found, |found, one| found.max(one.last() + 1));
        }
        let older = log.recent.iter().take_while(|recent| recent.time < at.0);
        found = older.fold(found, |found, one| {
            found.max(one.first + u64::from(one.numbers))
        });
        let at = Sequence(found.max(log.first).min(log.visible));
        self.out.push(Completion::Found { t, at });
    }
}
