//! One log of a journal: its bounds, its newest batches, its answers, and the places of the rest.
//!
//! Invariants, held by [`LogState::check`]:
//! - Batches in memory are in order of number, never overlap, and end before the next number.
//! - The invariants of its parts: [`numbers`](super::numbers), [`life`](super::life),
//!   [`places`](super::places), [`copies`](super::copies).

use super::copies::Copies;
use super::entry::Recent;
use super::id::{BlockId, ClassId, Slot};
use super::life::Life;
use super::numbers::Numbers;
use super::places::Places;
use super::stamp_clock::StampClock;
use crate::contract::{Bounds, Completion, LogSpec, ReaderId, Refusal, Tag};
use airmail_model::{AppendTime, Extent, Incarnation, LogId, MapEpoch, Sequence};
use std::collections::VecDeque;

/// The answer to an append, in its turn.
#[derive(Debug)]
pub(super) enum Answer {
    /// Given when the log's readers can see the extent.
    Waiting {
        t: Tag,
        extent: Extent,
        at: AppendTime,
        duplicate: bool,
    },
    /// Could not be stored; said so once no crash can bring it back.
    Failed { t: Tag },
    /// Refused by a seal; said so once no crash can take the seal back, or bring more before it.
    Sealed { t: Tag, next: MapEpoch },
    /// Known; waits for those before it.
    Ready(Completion),
}

/// One log. See the module's documentation.
#[derive(Debug)]
pub(super) struct LogState {
    pub(super) id: LogId,
    pub(super) slot: Slot,
    pub(super) life: Life,
    pub(super) numbers: Numbers,
    /// Clock of its append times.
    pub(super) clock: StampClock,
    /// The class of segments that it was last written to.
    pub(super) class: Option<ClassId>,
    /// The durable batches of log 0, once more.
    pub(super) copies: Copies,
    pub(super) kept: Places,
    pub(super) recent: VecDeque<Recent>,
    pub(super) answers: VecDeque<Answer>,
    /// Readers that have given everything.
    pub(super) at_tail: Vec<ReaderId>,
}

impl LogState {
    pub(super) fn new(id: LogId, slot: Slot, spec: LogSpec, incarnation: Incarnation) -> LogState {
        LogState {
            id,
            slot,
            life: Life::new(spec, incarnation),
            numbers: Numbers::default(),
            clock: StampClock::new(),
            class: None,
            copies: Copies::default(),
            kept: Places::default(),
            recent: VecDeque::new(),
            answers: VecDeque::new(),
            at_tail: Vec::new(),
        }
    }

    /// Gives the answers whose turn has come.
    pub(super) fn answer(&mut self, out: &mut Vec<Completion>) {
        while let Some(front) = self.answers.front() {
            match front {
                Answer::Waiting { extent, .. } if extent.last >= self.numbers.visible => return,
                Answer::Sealed { .. } if !self.life.tells_seal() => return,
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
                    at,
                    held: self.life.spec.durability,
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

    /// Where a seal cannot be told yet, turns the refusals that wait for it into ones that say why.
    pub(super) fn seal_failed(&mut self, why: &Refusal) {
        if self.life.tells_seal() {
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
    pub(super) fn in_memory(&self, number: Sequence) -> Option<&Recent> {
        self.recent_at(number).or_else(|| self.copies.at(number))
    }

    /// The newest batches are in memory: that which holds `number`.
    pub(super) fn recent_at(&self, number: Sequence) -> Option<&Recent> {
        let recent = self.recent.get(self.recent_from(number));
        recent.filter(|recent| recent.first <= number)
    }

    /// Among the batches in memory, the place of that which holds `number`, or of the next after
    /// it. A reader at the tail asks for the last ones: the search begins there.
    fn recent_from(&self, number: Sequence) -> usize {
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
    pub(super) fn has(&self, first: Sequence, next: Sequence) -> bool {
        let placed = self.kept.from(first);
        let recent = self.recent.get(self.recent_from(first));
        placed.is_some_and(|place| place.first < next)
            || recent.is_some_and(|recent| recent.first < next)
    }

    /// Whether it keeps anything in a block.
    pub(super) fn keeps_of(&self, block: BlockId) -> bool {
        let mut places = self.kept.iter();
        let first = self.numbers.first;
        places.any(|place| place.last >= first && place.block == block)
    }

    /// Asserts the invariants of the module's documentation, but for those that hold when the journal has
    /// opened.
    pub(super) fn check(&self) {
        self.numbers.check(self.slot);
        self.life.check(self.slot);
        self.kept.check(self.slot);
        self.check_recent();
        self.copies.check();
    }

    fn check_recent(&self) {
        let slot = self.slot;
        let mut pairs = self.recent.iter().zip(self.recent.iter().skip(1));
        assert!(
            pairs.all(|(one, next)| one.next() <= next.first),
            "slot {slot}: batches in memory overlap"
        );
        let end = self.recent.back().map(Recent::next);
        assert!(
            end.is_none_or(|end| end <= self.numbers.next),
            "slot {slot}: in memory up to {end:?}, and the next is {}",
            self.numbers.next
        );
    }

    /// The map of its successors, if it is told to be sealed and all that it has taken is visible: nothing comes any
    /// more.
    pub(super) fn sealed_at_end(&self) -> Option<MapEpoch> {
        let is_at_end = self.numbers.visible == self.numbers.next;
        let sealed = self.life.sealed;
        sealed.filter(|_| is_at_end && self.life.tells_seal())
    }

    /// Bounds of the log as a caller is told them.
    pub(super) fn bounds(&self) -> Bounds {
        let first = self.numbers.first.min(self.numbers.visible);
        let kept = self.kept.from(first).map(|place| place.time_min);
        let recent = || self.recent.iter().find(|recent| recent.next() > first);
        let first_time = match self.recent_at(first) {
            Some(recent) => Some(recent.time),
            None => kept.or_else(|| recent().map(|recent| recent.time)),
        };
        let pending = self
            .recent
            .iter()
            .filter(|r| r.first >= self.numbers.durable && r.first >= first);
        let pending: u64 = pending.map(|r| r.batch.bytes().len() as u64).sum();
        Bounds {
            first,
            next: self.numbers.visible,
            reach: self.numbers.visible.max(self.numbers.went_on_at),
            incarnation: self.life.incarnation,
            first_time: first_time.filter(|_| first < self.numbers.visible),
            bytes: self.kept.bytes() + pending,
            sealed: self.sealed_at_end(),
        }
    }
}
