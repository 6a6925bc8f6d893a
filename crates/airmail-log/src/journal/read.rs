//! Readers: each goes through one log, from memory where it can, from the segments where it must.
//!
//! A reader accounts for every number from its start on, in order: batches, or gaps with a reason
//! (`gap` and `give_piece` assert that each delivery begins where the one before ended). Its plan
//! classifies the next numbers; batches that have to come from a segment are read in runs.

use super::block::Block;
use super::effects::Effects;
use super::faults::Faults;
use super::id::{FileOffset, SegmentId, Slot};
use super::indexing::Indexer;
use super::log::LogState;
use super::logs::Logs;
use super::lookup::Lookup;
use super::reader_turns::Standing;
use super::readers::Readers;
use super::scan::Sound;
use super::segment_set::SegmentSet;
use super::table::Location;
use super::topics::TopicsJob;
use super::{Journal, JournalConfig};
use crate::contract::{Completion, Direction, GapWhy, ReaderId, Refusal, Scope, ScopeFilter};
#[cfg(feature = "sabotage")]
use crate::sabotage::Bug;
use airmail_model::{Extent, Lane, LogId, Sequence, TopicHash, bug};
use bytes::Bytes;
use std::collections::VecDeque;

/// Bytes that a reader gives before others have their turn.
const TURN_BYTES: u64 = 1 << 20;

/// One reader's plan for a stretch of a log's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// A batch in a segment.
    Read(SegmentId, Location),
    /// Numbers up to this one that are not in the reader's scope.
    Unused(Sequence),
    /// Lost, up to this number.
    Lost(Sequence),
}

/// Bytes of a segment.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) segment: SegmentId,
    pub(super) at: FileOffset,
    pub(super) bytes: Bytes,
    /// Batches already found sound, in order.
    pub(super) sound: VecDeque<Sound>,
    /// Nothing of it was taken yet.
    pub(super) fresh: bool,
}

/// One reader.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) id: ReaderId,
    pub(super) slot: Slot,
    /// The first number not yet accounted for.
    pub(super) next: Sequence,
    /// The first number not wanted.
    pub(super) until: Sequence,
    pub(super) gives: Gives,
    pub(super) credit: i64,
    pub(super) stopped: bool,
    pub(super) told: Told,
    /// A read of a segment or an index is under way, or waits for its turn.
    pub(super) reading: bool,
    /// Reads that failed in a row.
    pub(super) read_failures: u32,
    pub(super) plan: VecDeque<Item>,
    /// Its search in a block's index.
    pub(super) lookup: Option<Lookup>,
    pub(super) loaded: Option<Loaded>,
    /// A block that was read ahead of the reader.
    pub(super) ahead: Option<Loaded>,
    /// Receives what the reader gives, in place of the storage's owner.
    pub(super) job: Option<Box<TopicsJob>>,
}

/// Record of what a reader was told beside its batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// First of the numbers, up to the reader's next, in which nothing was in scope and which are
    /// not yet told.
    pub(super) unused_from: Option<Sequence>,
    /// The last `Tail` told.
    pub(super) tail: Option<Sequence>,
    pub(super) sealed: bool,
}

/// Records that a reader gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    All,
    Topic(TopicHash),
    /// None: it is not known yet what is wanted of it.
    Nothing,
}

impl Gives {
    /// The only topic that is given, if it is one.
    pub(super) fn topic(self) -> Option<TopicHash> {
        match self {
            Gives::Topic(topic) => Some(topic),
            Gives::All | Gives::Nothing => None,
        }
    }
}

/// End of a reader's turn.
enum Turn {
    /// It waits: for credit, a read, or the log.
    Waits,
    /// There is more to do.
    More,
    /// It is gone.
    Ended(Option<Refusal>),
}

impl Reader {
    pub(super) fn new(
        id: ReaderId,
        slot: Slot,
        from: Sequence,
        scope: &Scope,
        credit: u32,
    ) -> Reader {
        Reader {
            id,
            slot,
            next: from.max(Sequence::FIRST),
            until: scope.until.unwrap_or(Sequence::MAX),
            gives: match scope.filter {
                ScopeFilter::All => Gives::All,
                ScopeFilter::Topic(topic) => Gives::Topic(topic),
                ScopeFilter::Wanted => Gives::Nothing,
            },
            credit: i64::from(credit),
            stopped: false,
            told: Told::default(),
            reading: false,
            read_failures: 0,
            plan: VecDeque::new(),
            lookup: None,
            loaded: None,
            ahead: None,
            job: None,
        }
    }

    /// Asserts that skipped numbers lie before the next one, and that the block read ahead lies
    /// behind the loaded one.
    pub(super) fn check(&self) {
        let (r, next) = (self.id, self.next);
        assert!(next >= Sequence::FIRST, "{r:?} is at {next}");
        assert!(
            self.told.unused_from.is_none_or(|from| from <= next),
            "{r:?} skipped from {:?}, and is at {next}",
            self.told.unused_from
        );
        assert!(
            self.told.tail.is_none_or(|told| told <= next),
            "{r:?} was told the tail at {:?}, and is at {next}",
            self.told.tail
        );
        assert!(
            self.ahead.is_none() || self.loaded.is_some(),
            "{r:?} has read ahead of nothing"
        );
    }

    /// Accounts for the numbers up to `last` as not in scope.
    pub(super) fn skip(&mut self, last: Sequence) {
        self.told.unused_from.get_or_insert(self.next);
        self.next = last.plus(1);
    }
}

/// The parts of the journal that the readers' turns read or change, and no more.
pub(super) struct Reading<'j> {
    pub(super) config: &'j JournalConfig,
    pub(super) logs: &'j mut Logs,
    pub(super) segments: &'j mut SegmentSet,
    pub(super) readers: &'j mut Readers,
    pub(super) indexer: &'j mut Indexer,
    pub(super) effects: &'j mut Effects,
    pub(super) faults: &'j mut Faults,
}

impl Journal {
    pub(super) fn reading(&mut self) -> Reading<'_> {
        Reading {
            config: &self.config,
            logs: &mut self.logs,
            segments: &mut self.segments,
            readers: &mut self.readers,
            indexer: &mut self.indexer,
            effects: &mut self.effects,
            faults: &mut self.faults,
        }
    }

    pub(super) fn start_reader(
        &mut self,
        r: ReaderId,
        log: LogId,
        from: Sequence,
        scope: Scope,
        credit: u32,
    ) {
        let why = match self.logs.slot_of(log) {
            None => Refusal::NoLog,
            Some(_) if scope.direction == Direction::Backward => {
                Refusal::Unsupported("direction backward".into())
            }
            Some(slot) => {
                self.readers
                    .start(Reader::new(r, slot, from, &scope, credit));
                return;
            }
        };
        self.effects.tell(Completion::Ended { r, why: Some(why) });
    }

    pub(super) fn add_credit(&mut self, r: ReaderId, bytes: u32) {
        if let Some(reader) = self.readers.get_mut(r) {
            reader.credit = reader.credit.saturating_add(i64::from(bytes));
            self.readers.wake(r);
        }
    }

    /// Says what is wanted of a reader, which gives everything once that is known.
    pub(super) fn want(&mut self, r: ReaderId, edit: u32, more: bool) {
        if more {
            return;
        }
        let Some(mut reader) = self.readers.take(r) else {
            // Input: a reader that has ended.
            return;
        };
        self.reading().flush_unused(&mut reader);
        reader.gives = Gives::All;
        let at = Some(reader.next);
        self.effects.tell(Completion::Effective { r, edit, at });
        self.readers.put_back(reader);
        self.readers.wake(r);
    }

    pub(super) fn stop_reader(&mut self, r: ReaderId) {
        if let Some(reader) = self.readers.get_mut(r) {
            reader.stopped = true;
            self.readers.wake(r);
        }
    }
}

/// Where a reader stands among those that have a turn.
fn standing(logs: &Logs, reader: &Reader) -> Standing {
    let Some(log) = logs.get(reader.slot) else {
        // Input: a log that was deleted while it was read: its reader has only to be told.
        return Standing {
            at_tail: true,
            lane: Lane::Normal,
        };
    };
    let nothing_behind = reader.next >= log.numbers.visible;
    Standing {
        at_tail: nothing_behind || log.in_memory(reader.next).is_some(),
        lane: log.id.lane,
    }
}

impl Reading<'_> {
    /// Gives every reader that can go on its turn.
    pub(super) fn run_readers(&mut self) {
        let logs = &*self.logs;
        self.readers.begin_turns(|reader| standing(logs, reader));
        while let Some((r, standing)) = self.readers.next_turn() {
            let Some(mut reader) = self.readers.take(r) else {
                bug!("{r:?} has a turn, and is gone");
                continue;
            };
            let before = reader.credit;
            let turn = self.turn(&mut reader);
            let bytes = before.saturating_sub(reader.credit).unsigned_abs();
            self.readers.had_turn(r, standing, bytes);
            match turn {
                Turn::Waits => {}
                Turn::More => self.readers.wake(r),
                Turn::Ended(why) => {
                    self.flush_unused(&mut reader);
                    match reader.job.take() {
                        Some(job) => self.effects.tell(job.finish(why)),
                        None => self.effects.tell(Completion::Ended { r, why }),
                    }
                    continue;
                }
            }
            self.readers.put_back(reader);
        }
    }

    fn turn(&mut self, reader: &mut Reader) -> Turn {
        let before = reader.credit;
        loop {
            if reader.stopped {
                return Turn::Ended(None);
            }
            let Some(log) = self.logs.get(reader.slot) else {
                // Input: a log that was deleted while it was read.
                return Turn::Ended(Some(Refusal::NoLog));
            };
            if reader.next >= reader.until {
                return Turn::Ended(None);
            }
            if reader.gives == Gives::Nothing {
                return Turn::Waits;
            }
            let (first, visible) = (log.numbers.first, log.numbers.visible);
            if reader.next >= visible {
                return self.at_tail(reader);
            }
            if reader.credit <= 0 {
                self.flush_unused(reader);
                return Turn::Waits;
            }
            #[cfg(feature = "sabotage")]
            let first =
                first.plus((self.config.has_bug(Bug::GapTooLong) && reader.next < first).into());
            if reader.next < first {
                let last = first.before().min(reader.until.before());
                self.gap(reader, last, GapWhy::Retention);
                continue;
            }
            if (before - reader.credit).unsigned_abs() >= TURN_BYTES {
                return Turn::More;
            }
            if let Some(recent) = log.in_memory(reader.next).cloned() {
                self.give_recent(reader, recent);
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
        let Some(log) = self.logs.get_mut(reader.slot) else {
            bug!(
                "{:?} is at the tail of slot {}, which has no log",
                reader.id,
                reader.slot
            );
            return Turn::Waits;
        };
        if reader.job.is_some() {
            return Turn::Ended(None);
        }
        let r = reader.id;
        if reader.told.tail != Some(reader.next) {
            reader.told.tail = Some(reader.next);
            self.effects.tell(Completion::Tail {
                r,
                next: reader.next,
            });
        }
        if let Some(next) = log.sealed_at_end()
            && !reader.told.sealed
        {
            reader.told.sealed = true;
            let last = log.numbers.next.before();
            self.effects.tell(Completion::Sealed { r, last, next });
        }
        log.at_tail.push(r);
        Turn::Waits
    }

    /// Tells the numbers that were skipped as not in scope.
    pub(super) fn flush_unused(&mut self, reader: &mut Reader) {
        if let Some(from) = reader.told.unused_from.take()
            && reader.job.is_none()
            && from < reader.next
        {
            let extent = Extent {
                first: from,
                last: reader.next.before(),
            };
            let r = reader.id;
            self.effects.tell(Completion::Gap {
                r,
                extent,
                why: GapWhy::Unused,
            });
        }
    }

    /// Tells that the reader will not get the numbers up to `last`.
    pub(super) fn gap(&mut self, reader: &mut Reader, last: Sequence, why: GapWhy) {
        let last = last.min(reader.until.before());
        if last < reader.next {
            let (r, next) = (reader.id, reader.next);
            bug!("{r:?} is at {next} and gets a gap to {last}");
        }
        self.flush_unused(reader);
        if reader.job.is_none() {
            let extent = Extent {
                first: reader.next,
                last,
            };
            self.effects.tell(Completion::Gap {
                r: reader.id,
                extent,
                why,
            });
        }
        reader.next = last.plus(1);
    }

    /// Plans the numbers from the reader's next on. False: a page or block has to be read first.
    pub(super) fn make_plan(&mut self, reader: &mut Reader) -> bool {
        let Some(log) = self.logs.get(reader.slot) else {
            bug!(
                "{:?} reads slot {}, which has no log",
                reader.id,
                reader.slot
            );
            return true;
        };
        let number = reader.next;
        let hole = |log: &LogState, until: Sequence| {
            let recent = log.recent.partition_point(|recent| recent.first < number);
            let recent = log
                .recent
                .get(recent)
                .map_or(Sequence::MAX, |recent| recent.first);
            Item::Lost(until.min(recent).min(log.numbers.visible).before())
        };
        let Some(place) = log.kept.from(number).filter(|place| place.first <= number) else {
            // Input: a hole in the log, by damage or an unclean stop.
            let until = log.kept.from(number);
            let until = until.map_or(Sequence::MAX, |place| place.first);
            reader.plan.push_back(hole(log, until));
            return true;
        };
        let block = self.segments.block(place.block);
        let Some(table) = block.and_then(Block::table) else {
            // Input: what is old: the block's table is on the disk alone.
            let place = *place;
            return self.look_up(reader, place);
        };
        let mut expected = number;
        let topic = reader.gives.topic();
        let matching = topic.map(|topic| table.with_topic(reader.slot, topic));
        let all = table.logs.get(&reader.slot).map_or(&[][..], |list| list);
        let start = all.partition_point(|location| location.last() < number);
        for (at, location) in all.iter().enumerate().skip(start).take(PLAN_MAX) {
            if location.first > expected {
                reader.plan.push_back(Item::Lost(location.first.before()));
            }
            expected = location.last().plus(1);
            let wanted = match &matching {
                None => true,
                Some(places) => places.binary_search(&(at as u32)).is_ok(),
            };
            reader.plan.push_back(if wanted {
                Item::Read(place.block.segment, *location)
            } else {
                Item::Unused(location.last())
            });
        }
        if reader.plan.is_empty() {
            let item = hole(log, place.last.plus(1));
            reader.plan.push_back(item);
        }
        true
    }
}

/// Batches in one plan, at most.
const PLAN_MAX: usize = 1024;
