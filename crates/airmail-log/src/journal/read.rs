//! Readers: each goes through one log, from memory where it can, from the segments where it must.
//!
//! A reader accounts for every number from its start on, in order: batches, or gaps with a reason.
//! Its plan says what the next numbers are; what is to be read from a segment is read in runs.

use super::Journal;
use super::log::LogState;
use super::lookup::Lookup;
use super::scan::Sound;
use super::table::Location;
use super::topics::TopicsJob;
use crate::contract::{Completion, Direction, GapWhy, ReaderId, Refusal, Scope, ScopeFilter};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::{Extent, LogId, Sequence};
use bytes::Bytes;
use std::collections::VecDeque;

/// What a reader gives before others have their turn, in bytes.
const TURN_BYTES: u64 = 1 << 20;

/// What some numbers of a log are, for one reader.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// A batch in a segment.
    Read(u64, Location),
    /// Not in the reader's scope, up to this number.
    Unused(u64),
    /// Lost, up to this number.
    Lost(u64),
}

/// Bytes of a segment.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) segment: u64,
    pub(super) at: u64,
    pub(super) bytes: Bytes,
    /// What was looked at already, in order.
    pub(super) sound: VecDeque<Sound>,
    /// Nothing of it was taken yet.
    pub(super) fresh: bool,
}

/// One reader.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) id: ReaderId,
    pub(super) slot: u32,
    /// The first number not yet accounted for.
    pub(super) next: u64,
    /// The first number not wanted.
    pub(super) until: u64,
    pub(super) filter: ScopeFilter,
    pub(super) credit: i64,
    pub(super) stopped: bool,
    /// From here to `next` nothing was in scope, which is not yet told.
    pub(super) unused_from: Option<u64>,
    /// The last `Tail` told.
    pub(super) tail_told: Option<u64>,
    pub(super) sealed_told: bool,
    /// A read of a segment or an index is under way, or waits for its turn.
    pub(super) reading: bool,
    /// Reads that failed in a row.
    pub(super) read_failures: u32,
    pub(super) plan: VecDeque<Item>,
    /// Its search in a block's index.
    pub(super) lookup: Option<Lookup>,
    pub(super) loaded: Option<Loaded>,
    /// What was read ahead of it.
    pub(super) ahead: Option<Loaded>,
    /// What is given goes here, not to the storage's owner.
    pub(super) job: Option<Box<TopicsJob>>,
}

/// How a reader's turn ended.
enum Turn {
    /// It waits: for credit, a read, or the log.
    Waits,
    /// There is more to do.
    More,
    /// It is gone.
    Ended(Option<Refusal>),
}

impl Reader {
    pub(super) fn new(id: ReaderId, slot: u32, from: u64, scope: &Scope, credit: u32) -> Reader {
        Reader {
            id,
            slot,
            next: from.max(1),
            until: scope.until.map_or(u64::MAX, |until| until.0),
            filter: scope.filter,
            credit: i64::from(credit),
            stopped: false,
            unused_from: None,
            tail_told: None,
            sealed_told: false,
            reading: false,
            read_failures: 0,
            plan: VecDeque::new(),
            lookup: None,
            loaded: None,
            ahead: None,
            job: None,
        }
    }

    /// Accounts for the numbers up to `last` as not in scope.
    pub(super) fn skip(&mut self, last: u64) {
        self.unused_from.get_or_insert(self.next);
        self.next = last + 1;
    }
}

impl Journal {
    pub(super) fn start_reader(
        &mut self,
        r: ReaderId,
        log: LogId,
        from: Sequence,
        scope: Scope,
        credit: u32,
    ) {
        let why = match self.slots.get(&log) {
            None => Refusal::NoLog,
            Some(_) if scope.direction == Direction::Backward => {
                Refusal::Unsupported("direction backward")
            }
            Some(&slot) => {
                self.readers
                    .insert(r, Reader::new(r, slot, from.0, &scope, credit));
                self.runnable.insert(r);
                return;
            }
        };
        self.out.push(Completion::Ended { r, why: Some(why) });
    }

    pub(super) fn add_credit(&mut self, r: ReaderId, bytes: u32) {
        if let Some(reader) = self.readers.get_mut(&r) {
            reader.credit = reader.credit.saturating_add(i64::from(bytes));
            self.runnable.insert(r);
        }
    }

    pub(super) fn stop_reader(&mut self, r: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&r) {
            reader.stopped = true;
            self.runnable.insert(r);
        }
    }

    /// Gives every reader that can go on its turn.
    pub(super) fn run_readers(&mut self) {
        for r in std::mem::take(&mut self.runnable) {
            let Some(mut reader) = self.readers.remove(&r) else {
                continue;
            };
            match self.turn(&mut reader) {
                Turn::Waits => {}
                Turn::More => drop(self.runnable.insert(r)),
                Turn::Ended(why) => {
                    self.flush_unused(&mut reader);
                    match reader.job.take() {
                        Some(job) => self.out.push(job.finish(why)),
                        None => self.out.push(Completion::Ended { r, why }),
                    }
                    continue;
                }
            }
            self.readers.insert(r, reader);
        }
    }

    fn turn(&mut self, reader: &mut Reader) -> Turn {
        let before = reader.credit;
        loop {
            if reader.stopped {
                return Turn::Ended(None);
            }
            let Some(log) = self.logs.get(&reader.slot) else {
                return Turn::Ended(Some(Refusal::NoLog));
            };
            if reader.next >= reader.until {
                return Turn::Ended(None);
            }
            let (first, visible) = (log.first, log.visible);
            if reader.next >= visible {
                return self.at_tail(reader);
            }
            if reader.credit <= 0 {
                self.flush_unused(reader);
                return Turn::Waits;
            }
            #[cfg(feature = "sabotage")]
            let first = first + u64::from(self.has_bug(Bug::GapTooLong) && reader.next < first);
            if reader.next < first {
                let last = (first - 1).min(reader.until - 1);
                self.gap(reader, last, GapWhy::Retention);
                continue;
            }
            if (before - reader.credit).unsigned_abs() >= TURN_BYTES {
                return Turn::More;
            }
            if let Some(recent) = log.in_memory(reader.next) {
                let recent = recent.clone();
                self.give(reader, recent.first, recent.time, recent.batch, &[]);
                continue;
            }
            if !self.go_on(reader) {
                self.flush_unused(reader);
                return Turn::Waits;
            }
        }
    }

    fn at_tail(&mut self, reader: &mut Reader) -> Turn {
        self.flush_unused(reader);
        let Some(log) = self.logs.get_mut(&reader.slot) else {
            return Turn::Waits;
        };
        if reader.job.is_some() {
            return Turn::Ended(None);
        }
        let r = reader.id;
        if reader.tail_told != Some(reader.next) {
            reader.tail_told = Some(reader.next);
            self.out.push(Completion::Tail {
                r,
                next: Sequence(reader.next),
            });
        }
        if let Some(next) = log.sealed
            && log.tells_seal()
            && log.visible == log.next
            && !reader.sealed_told
        {
            reader.sealed_told = true;
            let last = Sequence(log.next - 1);
            self.out.push(Completion::Sealed { r, last, next });
        }
        log.at_tail.push(r);
        Turn::Waits
    }

    /// Tells what was skipped as not in scope.
    pub(super) fn flush_unused(&mut self, reader: &mut Reader) {
        if let Some(from) = reader.unused_from.take()
            && reader.job.is_none()
            && from < reader.next
        {
            let extent = Extent {
                first: Sequence(from),
                last: Sequence(reader.next - 1),
            };
            let r = reader.id;
            self.out.push(Completion::Gap {
                r,
                extent,
                why: GapWhy::Unused,
            });
        }
    }

    /// Tells that the reader will not get the numbers up to `last`.
    pub(super) fn gap(&mut self, reader: &mut Reader, last: u64, why: GapWhy) {
        let last = last.min(reader.until - 1);
        self.flush_unused(reader);
        if reader.job.is_none() {
            let extent = Extent {
                first: Sequence(reader.next),
                last: Sequence(last),
            };
            self.out.push(Completion::Gap {
                r: reader.id,
                extent,
                why,
            });
        }
        reader.next = last + 1;
    }

    /// What the numbers from the reader's next on are. False: that has to be read first.
    pub(super) fn make_plan(&mut self, reader: &mut Reader) -> bool {
        let Some(log) = self.logs.get(&reader.slot) else {
            return true;
        };
        let number = reader.next;
        let hole = |log: &LogState, until: u64| {
            let recent = log.recent.partition_point(|recent| recent.first < number);
            let recent = log
                .recent
                .get(recent)
                .map_or(u64::MAX, |recent| recent.first);
            Item::Lost(until.min(recent).min(log.visible) - 1)
        };
        let Some(place) = log.place_from(number).filter(|place| place.first <= number) else {
            let until = log.place_from(number).map_or(u64::MAX, |place| place.first);
            reader.plan.push_back(hole(log, until));
            return true;
        };
        let block = self.segments.get(&place.segment);
        let block = block.and_then(|segment| segment.blocks.get(place.block as usize));
        let Some(table) = block.and_then(|block| block.table.as_ref()) else {
            let place = *place;
            return self.look_up(reader, place);
        };
        let mut expected = number;
        let matching = match reader.filter {
            ScopeFilter::All => None,
            ScopeFilter::Topic(topic) => Some(table.with_topic(reader.slot, topic)),
        };
        let all = table.logs.get(&reader.slot).map_or(&[][..], |list| list);
        let start = all.partition_point(|location| location.last() < number);
        for (at, location) in all.iter().enumerate().skip(start).take(PLAN_MAX) {
            if location.first > expected {
                reader.plan.push_back(Item::Lost(location.first - 1));
            }
            expected = location.last() + 1;
            let wanted = match &matching {
                None => true,
                Some(places) => places.binary_search(&(at as u32)).is_ok(),
            };
            reader.plan.push_back(match wanted {
                true => Item::Read(place.segment, *location),
                false => Item::Unused(location.last()),
            });
        }
        if reader.plan.is_empty() {
            let item = hole(log, place.last + 1);
            reader.plan.push_back(item);
        }
        true
    }
}

/// Batches in one plan, at most.
const PLAN_MAX: usize = 1024;
