//! One log that many write to: what stands at each place, and what readers are given of it.
//!
//! Which records are given is decided when a batch gets its place, from all that stands before it: those whose epoch and
//! sequence are above the last that was given of their producer. So every reader is given the same.

use crate::contract::{Bounds, GapWhy, LogSpec, Stored, TopicSeen};
use airmail_model::batch::ProducerStamp;
use airmail_model::{
    AppendTime, Batch, Checked, Extent, Incarnation, ProducerEpoch, ProducerId, Sequence, Wall,
};
use std::collections::BTreeMap;

/// Most records of a place.
const PLACE_NUMBERS: u64 = 4096;

/// A batch at its place.
#[derive(Debug)]
struct Placed {
    base: Sequence,
    appended: AppendTime,
    batch: Checked<Batch>,
    /// Index of the first record that readers are given. `None`: none is.
    given: Option<u16>,
}

impl Placed {
    fn extent(&self) -> Extent {
        Extent::starting_at(self.base, self.batch.numbers())
    }

    /// The part that readers are given.
    fn stored(&self) -> Option<Stored> {
        let from = self.given?;
        let batch = if from == 0 {
            self.batch.clone()
        } else {
            self.batch.slice(|index, _| index >= from)?.to_batch()
        };
        Some(Stored {
            base: self.base,
            extent: Extent {
                first: self.base.plus(from.into()),
                last: self.extent().last,
            },
            appended: self.appended,
            batch,
        })
    }
}

/// The next that a reader comes upon.
#[derive(Debug)]
pub(super) enum Next {
    Batch(Stored),
    Gap(Extent, GapWhy),
    End,
}

/// A log. See the module's documentation.
#[derive(Debug)]
pub(super) struct SharedLog {
    pub(super) spec: LogSpec,
    pub(super) incarnation: Incarnation,
    placed: Vec<Placed>,
    /// Index of the first batch that is kept.
    kept: usize,
    first: Sequence,
    next: Sequence,
    place: u64,
    latest: AppendTime,
    producers: BTreeMap<ProducerId, (ProducerEpoch, u64)>,
    topics: BTreeMap<String, Sequence>,
}

impl SharedLog {
    pub(super) fn new(spec: LogSpec, incarnation: Incarnation) -> SharedLog {
        SharedLog {
            spec,
            incarnation,
            placed: Vec::new(),
            kept: 0,
            first: Sequence::FIRST,
            next: Sequence::FIRST,
            place: 0,
            latest: AppendTime(i64::MIN),
            producers: BTreeMap::new(),
            topics: BTreeMap::new(),
        }
    }

    pub(super) fn next(&self) -> Sequence {
        self.next
    }

    /// Gives a batch the next place, after some void ones, and a time by a clock that is this much behind the latest.
    pub(super) fn append(
        &mut self,
        batch: Checked<Batch>,
        wall: Wall,
        behind_us: i64,
        void: u64,
    ) -> (Extent, AppendTime) {
        self.place += 1 + void;
        self.latest = self.latest.max(AppendTime(wall.0));
        let appended = AppendTime(self.latest.0 - behind_us);
        let base = Sequence(self.place * PLACE_NUMBERS);
        let given = self.verdict(batch.producer(), batch.numbers());
        if let Some(from) = given {
            for record in batch.iter().filter(|record| record.index >= from) {
                let last = base.plus(record.index.into());
                self.topics.insert(record.topic_name.to_owned(), last);
            }
        }
        let placed = Placed {
            base,
            appended,
            batch,
            given,
        };
        let extent = placed.extent();
        self.next = extent.next();
        self.placed.push(placed);
        (extent, appended)
    }

    /// The first index of a batch at the next place that is given.
    fn verdict(&mut self, stamp: Option<ProducerStamp>, numbers: u32) -> Option<u16> {
        let Some(stamp) = stamp else {
            return Some(0);
        };
        let (first, next) = (stamp.sequence.0, stamp.sequence.0 + u64::from(numbers));
        let known = self.producers.get(&stamp.id);
        let old = match known {
            Some((epoch, _)) if *epoch > stamp.epoch => return None,
            Some((epoch, known)) if *epoch == stamp.epoch => known.saturating_sub(first),
            _ => 0,
        };
        if old >= u64::from(numbers) {
            return None;
        }
        self.producers.insert(stamp.id, (stamp.epoch, next));
        u16::try_from(old).ok()
    }

    /// The next for a reader at `at`.
    pub(super) fn read(&self, at: Sequence) -> Next {
        let gap = |last: Sequence, why| Next::Gap(Extent { first: at, last }, why);
        if at < self.first {
            return gap(self.first.before(), GapWhy::Retention);
        }
        if at >= self.next {
            return Next::End;
        }
        let found = self.placed.partition_point(|one| one.extent().last < at);
        let Some(placed) = self.placed.get(found) else {
            return gap(self.next.before(), GapWhy::Unused);
        };
        let extent = placed.extent();
        if at < extent.first {
            return gap(extent.first.before(), GapWhy::Unused);
        }
        let Some(stored) = placed.stored() else {
            return gap(extent.last, GapWhy::Unused);
        };
        if at < stored.extent.first {
            return gap(stored.extent.first.before(), GapWhy::Unused);
        }
        Next::Batch(stored)
    }

    fn kept(&self) -> &[Placed] {
        &self.placed[self.kept..]
    }

    fn bytes(&self) -> u64 {
        let kept = self.kept().iter();
        kept.map(|one| one.batch.bytes().len() as u64).sum()
    }

    pub(super) fn bounds(&self) -> Bounds {
        let mut given = self.kept().iter().filter(|one| one.given.is_some());
        Bounds {
            first: self.first,
            next: self.next,
            reach: self.next,
            incarnation: self.incarnation,
            first_time: given.next().map(|one| one.appended),
            bytes: self.bytes(),
            sealed: None,
        }
    }

    /// The first number that is kept of this time or later, or the end.
    pub(super) fn find_time(&self, at: AppendTime) -> Sequence {
        let mut kept = self.kept().iter();
        let found = kept.find(|one| one.appended >= at && one.given.is_some());
        match found {
            Some(one) if self.kept().first().is_some_and(|of| of.base == one.base) => self.first,
            Some(one) => one.base,
            None => self.next,
        }
    }

    /// Gives up everything before a number, but for the batch that has it.
    pub(super) fn trim(&mut self, before: Sequence) {
        let goes = |one: &&Placed| one.extent().last < before;
        let gone = self.kept().iter().take_while(goes).count();
        self.give_up(gone);
    }

    fn give_up(&mut self, batches: usize) {
        if batches > 0 {
            self.kept += batches;
            let first = self.kept().first().map(|one| one.base);
            self.first = first.unwrap_or(self.next);
        }
    }

    /// Gives up what is not to be kept any longer.
    pub(super) fn retain(&mut self, wall: Wall) {
        if let Some(ms) = self.spec.retention.time_ms {
            let age = i64::try_from(ms.saturating_mul(1_000)).unwrap_or(i64::MAX);
            let before = AppendTime(wall.0.saturating_sub(age));
            let goes = |one: &&Placed| one.appended < before;
            let gone = self.kept().iter().take_while(goes).count();
            self.give_up(gone);
        }
        if let Some(most) = self.spec.retention.bytes {
            let mut bytes = self.bytes();
            let mut gone = 0;
            for one in self.kept() {
                if bytes <= most {
                    break;
                }
                bytes -= one.batch.bytes().len() as u64;
                gone += 1;
            }
            self.give_up(gone);
        }
    }

    pub(super) fn topics(&self, prefix: &str, after: &str, limit: u32) -> Vec<TopicSeen> {
        let named = self.topics.iter().map(|(name, last)| TopicSeen {
            name: name.clone(),
            last: *last,
        });
        named
            .filter(|seen| seen.name.starts_with(prefix) && seen.name.as_str() > after)
            .take(limit as usize)
            .collect()
    }

    pub(super) fn given(&self, from: usize) -> (Vec<Stored>, usize) {
        let batches = self.placed.iter().skip(from);
        (
            batches.filter_map(Placed::stored).collect(),
            self.placed.len(),
        )
    }
}
