//! One log of a journal: its bounds, its newest batches, its answers, and where the rest is.

use super::copies::Copies;
use super::format::Envelope;
use super::producers::Undo;
use super::table::Location;
use crate::contract::{Bounds, Completion, LogSpec, ReaderId, Refusal, Tag};
use airmail_model::batch::ProducerStamp;
use airmail_model::{
    AppendTime, Batch, Checked, Durability, Extent, Incarnation, LogId, MapEpoch, Sequence,
};
use std::collections::VecDeque;

/// A batch with its numbers, on its way to the disk.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) slot: u32,
    pub(super) first: u64,
    pub(super) numbers: u32,
    pub(super) time: i64,
    pub(super) batch: Checked<Batch>,
    /// Where it was written, in its segment.
    pub(super) offset: u64,
    /// How to take back what it has done to its producer. `None`: it has no producer, or it has
    /// been answered.
    pub(super) undo: Option<(ProducerStamp, Undo)>,
    /// Found when the journal opened, or answered before its segment failed: written once more,
    /// and never refused.
    pub(super) copy: bool,
}

impl Entry {
    /// A batch that was found in a segment, to be written once more elsewhere.
    pub(super) fn again(envelope: &Envelope, batch: Checked<Batch>) -> Entry {
        Entry {
            slot: envelope.slot,
            first: envelope.first,
            numbers: envelope.numbers,
            time: envelope.append_time,
            batch,
            offset: 0,
            undo: None,
            copy: true,
        }
    }

    /// The number after its last.
    pub(super) fn next(&self) -> u64 {
        self.first + u64::from(self.numbers)
    }
}

/// A batch that readers can have from memory.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    pub(super) first: u64,
    pub(super) numbers: u32,
    pub(super) time: i64,
    pub(super) batch: Checked<Batch>,
}

impl Recent {
    /// The number after its last.
    pub(super) fn next(&self) -> u64 {
        self.first + u64::from(self.numbers)
    }
}

/// What one block holds of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) segment: u64,
    pub(super) block: u32,
    /// Of the batches, with their envelopes.
    pub(super) bytes: u64,
    pub(super) time_min: i64,
    pub(super) time_max: i64,
    /// In the block's index: the first of the log's entries, and how many there are.
    pub(super) entries_at: u32,
    pub(super) entries: u32,
}

impl Place {
    /// Whether a block can hold this: a file may say anything, with a good checksum as well.
    pub(super) fn is_possible(&self) -> bool {
        let numbers = 0 < self.first && self.first <= self.last && self.last < u64::MAX;
        numbers && self.entries_at.checked_add(self.entries).is_some()
    }

    /// Whether these batches hold every number of it.
    pub(super) fn is_covered_by(&self, list: &[Location]) -> bool {
        let begins = list.first().is_some_and(|one| one.first <= self.first);
        let ends = list.last().is_some_and(|one| one.last() >= self.last);
        let follow = |pair: &[Location]| pair[0].last() + 1 == pair[1].first;
        begins && ends && list.windows(2).all(follow)
    }
}

/// The answer to an append, in its turn.
#[derive(Debug)]
pub(super) enum Answer {
    /// Given when the log's readers can see the extent.
    Waiting {
        t: Tag,
        extent: Extent,
        at: i64,
        duplicate: bool,
    },
    /// Could not be stored; said so once no crash can bring it back.
    Failed { t: Tag },
    /// Refused by a seal; said so once no crash can take the seal back, or bring more before it.
    Sealed { t: Tag, next: MapEpoch },
    /// Known; waits for those before it.
    Ready(Completion),
}

/// One log. Numbers named `…next` or `visible` are the first not included.
#[derive(Debug)]
pub(super) struct LogState {
    pub(super) id: LogId,
    pub(super) slot: u32,
    pub(super) spec: LogSpec,
    /// The command with this spec and incarnation is durable.
    pub(super) spec_told: bool,
    /// Its life, as a durable command says.
    pub(super) incarnation: u64,
    /// Its life, as the newest command says.
    pub(super) incarnation_asked: u64,
    /// The first number kept.
    pub(super) first: u64,
    /// The first number kept, as a durable command says.
    pub(super) first_durable: u64,
    /// The number of the next append.
    pub(super) next: u64,
    /// Behind what is in the operating system's hands.
    pub(super) written: u64,
    /// Behind what is on the disk.
    pub(super) durable: u64,
    /// Behind what readers may see. Never goes back.
    pub(super) visible: u64,
    /// The end of the durable reservation.
    pub(super) reserved: u64,
    /// The end of the reservation asked for.
    pub(super) reserving: u64,
    /// Behind the numbers of which the last checkpoint knew that they were reserved.
    pub(super) reserved_surely: u64,
    /// Where it went on when the journal opened, above every number that it may have used. Readers
    /// see that far when the reservation is durable.
    pub(super) went_on_at: u64,
    pub(super) sealed: Option<MapEpoch>,
    /// The seal is durable.
    pub(super) seal_told: bool,
    /// Something was given up that a crash could bring back: where the log ends is not known.
    pub(super) unsettled: bool,
    pub(super) last_time: i64,
    /// The class of segments that it was last written to.
    pub(super) class: Option<u16>,
    /// Of log 0, its durable batches once more.
    pub(super) copies: Copies,
    /// Kept, by the places.
    pub(super) bytes: u64,
    pub(super) places: VecDeque<Place>,
    /// Given up, but the command that says so is not yet durable.
    pub(super) leaving: Vec<Place>,
    pub(super) recent: VecDeque<Recent>,
    pub(super) answers: VecDeque<Answer>,
    /// Readers that have given everything.
    pub(super) at_tail: Vec<ReaderId>,
}

impl LogState {
    pub(super) fn new(id: LogId, slot: u32, spec: LogSpec, incarnation: u64) -> LogState {
        LogState {
            id,
            slot,
            spec,
            spec_told: false,
            incarnation,
            incarnation_asked: incarnation,
            first: 1,
            first_durable: 1,
            next: 1,
            written: 1,
            durable: 1,
            visible: 1,
            reserved: 1,
            reserving: 1,
            reserved_surely: 1,
            went_on_at: 1,
            sealed: None,
            seal_told: false,
            unsettled: false,
            last_time: i64::MIN,
            class: None,
            copies: Copies::default(),
            bytes: 0,
            places: VecDeque::new(),
            leaving: Vec::new(),
            recent: VecDeque::new(),
            answers: VecDeque::new(),
            at_tail: Vec::new(),
        }
    }

    /// Moves `visible` as far as the log's durability allows; says whether it moved. With a
    /// `backlog`, who asks for no durability waits for the disk too, so that no more comes than it
    /// can take.
    pub(super) fn advance_visible(&mut self, backlog: bool) -> bool {
        let reached = match self.spec.durability {
            Durability::Fsync => self.durable,
            Durability::Os => self.written,
            Durability::Memory if self.next <= self.reserved && !backlog => self.next,
            Durability::Memory => self.written.min(self.reserved),
        };
        let moved = reached > self.visible;
        self.visible = self.visible.max(reached);
        moved
    }

    /// A reservation is durable. So is where the log went on when the journal opened, if that is
    /// within it.
    pub(super) fn reserve(&mut self, until: u64) {
        self.reserved = self.reserved.max(until);
        if self.went_on_at <= self.reserved {
            self.durable = self.durable.max(self.went_on_at);
            self.written = self.written.max(self.went_on_at);
        }
    }

    /// Gives the answers whose turn has come.
    pub(super) fn answer(&mut self, out: &mut Vec<Completion>) {
        while let Some(front) = self.answers.front() {
            match front {
                Answer::Waiting { extent, .. } if extent.last.0 >= self.visible => return,
                Answer::Sealed { .. } if !self.tells_seal() => return,
                Answer::Failed { .. } => return,
                _ => {}
            }
            let completion = match self.answers.pop_front() {
                Some(Answer::Waiting {
                    t,
                    extent,
                    at,
                    duplicate,
                }) => Completion::Appended {
                    t,
                    extent,
                    at: AppendTime(at),
                    held: self.spec.durability,
                    duplicate,
                    exact: true,
                },
                Some(Answer::Sealed { t, next }) => Completion::Refused {
                    t,
                    why: Refusal::Sealed { next },
                },
                Some(Answer::Ready(completion)) => completion,
                Some(Answer::Failed { .. }) | None => return,
            };
            out.push(completion);
        }
    }

    /// Refuses, in its turn.
    pub(super) fn refuse(&mut self, t: Tag, why: Refusal) {
        self.answers.push_back(match why {
            Refusal::Sealed { next } => Answer::Sealed { t, next },
            why => Answer::Ready(Completion::Refused { t, why }),
        });
    }

    /// Whether anyone may be told that the log is sealed: no crash can take the seal back, or bring
    /// anything behind what is there. Who was told so goes on elsewhere, with what is not here.
    pub(super) const fn tells_seal(&self) -> bool {
        self.seal_told && !self.unsettled
    }

    /// Where a seal cannot be told, who was to be refused by it is told what is in the way.
    pub(super) fn seal_failed(&mut self, why: &Refusal) {
        if self.tells_seal() {
            return;
        }
        for answer in &mut self.answers {
            if let Answer::Sealed { t, .. } = *answer {
                let why = why.clone();
                *answer = Answer::Ready(Completion::Refused { t, why });
            }
        }
    }

    /// Turns every failed answer into a refusal.
    pub(super) fn settle_failed(&mut self, why: &Refusal) {
        for answer in &mut self.answers {
            if let Answer::Failed { t } = *answer {
                *answer = Answer::Ready(Completion::Refused {
                    t,
                    why: why.clone(),
                });
            }
        }
    }

    /// A batch is durable: of log 0 it is held twice. Whether it is log 0.
    pub(super) fn take_copy(&mut self, copy: impl FnOnce() -> Recent) -> bool {
        let held_twice = self.id == LogId::SYSTEM;
        if held_twice {
            self.copies.take(copy());
        }
        held_twice
    }

    /// The batch in memory that holds `number`.
    pub(super) fn in_memory(&self, number: u64) -> Option<&Recent> {
        self.recent_at(number).or_else(|| self.copies.at(number))
    }

    /// The newest batches are in memory: that which holds `number`.
    pub(super) fn recent_at(&self, number: u64) -> Option<&Recent> {
        let recent = self.recent.get(self.recent_from(number));
        recent.filter(|recent| recent.first <= number)
    }

    /// Among the batches in memory, the place of that which holds `number`, or of the next after
    /// it. Who reads at the tail asks for the last ones: it is looked for from there.
    fn recent_from(&self, number: u64) -> usize {
        let ends_before = |at: usize| self.recent[at].next() <= number;
        let (mut low, mut high, mut step) = (0, self.recent.len(), 1);
        while low == 0 && high > 0 {
            let at = high.saturating_sub(step);
            if ends_before(at) {
                low = at + 1;
            } else {
                high = at;
                step *= 2;
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            if ends_before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Whether any number from `first` on before `next` is known to be somewhere.
    pub(super) fn has(&self, first: u64, next: u64) -> bool {
        let placed = self.place_from(first);
        let recent = self.recent.get(self.recent_from(first));
        placed.is_some_and(|place| place.first < next)
            || recent.is_some_and(|recent| recent.first < next)
    }

    /// The place that holds `number`, or the next after it.
    pub(super) fn place_from(&self, number: u64) -> Option<&Place> {
        self.places
            .get(self.places.partition_point(|place| place.last < number))
    }

    /// Whether it keeps anything of what a block has.
    pub(super) fn keeps_of(&self, segment: u64, block: u32) -> bool {
        let mut places = self.places.iter().filter(|place| place.last >= self.first);
        places.any(|place| (place.segment, place.block) == (segment, block))
    }

    /// A batch is in a block; says whether it is the log's first there. Batches come in order of
    /// number, but for those of different classes when the journal opens.
    pub(super) fn take_place(&mut self, segment: u64, block: u32, location: &Location) -> bool {
        self.bytes += location.stored_bytes();
        let at = self
            .places
            .partition_point(|place| place.first < location.first);
        let before = at.checked_sub(1).and_then(|at| self.places.get_mut(at));
        if let Some(place) = before
            && (place.segment, place.block) == (segment, block)
        {
            place.last = location.last();
            place.bytes += location.stored_bytes();
            place.time_max = location.time;
            return false;
        }
        let place = Place {
            first: location.first,
            last: location.last(),
            segment,
            block,
            bytes: location.stored_bytes(),
            time_min: location.time,
            time_max: location.time,
            entries_at: 0,
            entries: 0,
        };
        self.places.insert(at, place);
        true
    }

    /// What is told of it.
    pub(super) fn bounds(&self) -> Bounds {
        let first = self.first.min(self.visible);
        let kept = self.place_from(first).map(|place| place.time_min);
        let recent = || {
            self.recent
                .iter()
                .find(|r| r.first + u64::from(r.numbers) > first)
        };
        let first_time = match self.recent_at(first) {
            Some(recent) => Some(recent.time),
            None => kept.or_else(|| recent().map(|recent| recent.time)),
        };
        let pending = self
            .recent
            .iter()
            .filter(|r| r.first >= self.durable && r.first >= first);
        let pending: u64 = pending.map(|r| r.batch.bytes().len() as u64).sum();
        Bounds {
            first: Sequence(first),
            next: Sequence(self.visible),
            reach: Sequence(self.visible.max(self.went_on_at)),
            incarnation: Incarnation(self.incarnation),
            first_time: first_time.filter(|_| first < self.visible).map(AppendTime),
            bytes: self.bytes + pending,
        }
    }
}
