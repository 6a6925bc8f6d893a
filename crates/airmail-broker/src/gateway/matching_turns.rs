//! Turns in which what the tower gives of a log is held against the filters of those who are live there.
//!
//! A batch may have thousands of records, and a place thousands of filters, so nobody else waits until all are held against
//! each other: a turn has so many units of work, and the next one goes on, even within a batch. What comes meanwhile waits
//! here, in order, as far as there is room. Where there is none, it is left to the storage, and read from there for all of them at
//! once when there is room again, until the turns have got to the tail ([`Source`]).
//!
//! A batch is served in pieces. Records are held against the filters until all have been, or so much was found that it is to be
//! handed over before more is sought; then each session is given its part of the piece, and the next piece begins.

use super::filters::Looked;
use super::matched::{Found, Recipients};
use airmail_log::Stored;
use airmail_model::frame::GapReason;
use airmail_model::{Extent, Sequence};
use std::collections::VecDeque;

/// Something that the tower has given, and that waits for its turn.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    Batch(Stored),
    Gap(Extent, GapReason),
}

impl Turn {
    /// Numbers that it accounts for.
    pub(super) fn extent(&self) -> Extent {
        match self {
            Turn::Batch(stored) => stored.extent,
            Turn::Gap(extent, _) => *extent,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Turn::Batch(stored) => stored.batch.bytes().len(),
            Turn::Gap(..) => size_of::<Turn>(),
        }
    }
}

/// A batch whose turn it is.
#[derive(Debug)]
pub(super) struct BatchTurn {
    pub(super) stored: Stored,
    /// The first number of the piece.
    pub(super) from: Sequence,
    /// Place of the first record that was not yet held against the filters everywhere.
    pub(super) record: u16,
    /// Place of the first record of the piece.
    first: u16,
    /// Where it is held against them: at its topic first, then at the selections.
    pub(super) is_at_selections: bool,
    pub(super) found: Found,
    /// Records and subscriptions that were held against each other in the piece.
    pub(super) asked: u64,
    /// Those that match.
    pub(super) given: u64,
    /// Those of the piece who were not yet served, as far as they are known: all, once nothing of what was found is left.
    pub(super) recipients: Recipients,
}

impl BatchTurn {
    /// Begins with a batch, of which whoever is there has been given nothing before `from`.
    pub(super) fn new(stored: Stored, from: Sequence) -> BatchTurn {
        BatchTurn {
            stored,
            from,
            record: 0,
            first: 0,
            is_at_selections: false,
            found: Found::default(),
            asked: 0,
            given: 0,
            recipients: Recipients::default(),
        }
    }

    /// Whether all records were held against the filters.
    pub(super) fn is_found(&self) -> bool {
        self.record == self.stored.batch.records()
    }

    /// The first number behind the piece, whose records were all held against the filters.
    pub(super) fn piece_end(&self) -> Sequence {
        if self.is_found() {
            return self.stored.extent.next();
        }
        let (index, _) = self.stored.batch.head(self.record);
        self.stored.base.plus(index.into())
    }

    /// Whether nothing of the piece was held against filters yet, or is still to be handed over.
    fn is_fresh(&self) -> bool {
        let is_at_first = self.record == self.first && !self.is_at_selections;
        is_at_first && self.found.is_empty() && self.recipients.is_empty()
    }

    /// Records and subscriptions of the piece that do not match.
    pub(super) fn unmatched(&self) -> u64 {
        self.asked.saturating_sub(self.given)
    }

    /// Begins the next piece.
    pub(super) fn begin_piece(&mut self) {
        self.from = self.piece_end();
        self.first = self.record;
        self.asked = 0;
        self.given = 0;
        self.found.clear();
    }
}

/// Source of what comes to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// The tail: everything that the tower gives there.
    #[default]
    Tail,
    /// The storage, from this number on.
    Storage {
        next: Sequence,
        /// The attempt to read, if one is under way.
        ticket: Option<u64>,
    },
}

/// Turns of a log. See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct MatchingTurns {
    pub(super) source: Source,
    waiting: VecDeque<Turn>,
    /// Memory of those that wait.
    bytes: usize,
    /// The first that waits, if it is a batch and has its turn.
    pub(super) batch: Option<BatchTurn>,
    /// The look at the batch's record.
    pub(super) looked: Looked,
}

impl MatchingTurns {
    /// Whether nothing waits.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether something was left to the storage.
    pub(super) fn are_behind(&self) -> bool {
        self.source != Source::Tail
    }

    /// Whether nothing waits, and nothing was left to the storage: the turns are at the tail.
    pub(super) fn are_at_tail(&self) -> bool {
        self.is_done() && self.source == Source::Tail
    }

    /// The first number of the piece that is handed over; `None` while no batch has its turn.
    pub(super) fn begun(&self) -> Option<Sequence> {
        self.batch.as_ref().map(|batch| batch.from)
    }

    /// Whether a piece is under way: some of its records have been held against filters, and not all of what was found has
    /// been handed over.
    pub(super) fn is_under_way(&self) -> bool {
        let batch = self.batch.as_ref();
        batch.is_some_and(|batch| !batch.is_fresh() || self.looked.is_begun())
    }

    /// Memory of all that waits.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts something at the end.
    pub(super) fn push(&mut self, turn: Turn) {
        self.bytes += turn.bytes();
        self.waiting.push_back(turn);
    }

    /// The first that waits. It waits until it is said to be done.
    pub(super) fn first(&self) -> Option<&Turn> {
        self.waiting.front()
    }

    /// The first that waits has been given to everyone, or forgotten.
    pub(super) fn first_is_done(&mut self) {
        self.batch = None;
        self.looked.end();
        if let Some(turn) = self.waiting.pop_front() {
            self.bytes -= turn.bytes();
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = MatchingTurns::default();
    }
}
