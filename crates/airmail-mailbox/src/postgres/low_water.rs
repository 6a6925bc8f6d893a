//! Low-water marks: the place in each inbox below which it has no messages. While somebody holds an old
//! snapshot, index entries of messages long gone stay before those of messages that are there; a read
//! that begins at the mark skips them, and is as quick as ever.
//!
//! A mark is proven, not guessed. Every sender of an id up to the last settled one has ended
//! (`settled_ids`), and a snapshot taken afterwards saw nothing of the inbox below the mark. A message that
//! comes back from `later` gets a place before 0, so nothing appears between 0 and the mark any more. A
//! connection that was lost may lead to another database, or to an older state of this one: then all marks
//! are forgotten.

use crate::message::Inbox;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Inboxes whose marks are kept. Beyond it, an inbox gets a mark when one that is not used goes.
const INBOXES_MAX: usize = 100_000;
/// Rounds of maintenance after which the mark of an inbox that nobody read is forgotten.
const IDLE_ROUNDS_MAX: u32 = 100;

#[derive(Debug, Default)]
struct LowWaterMark {
    place: i64,
    /// Rounds of maintenance since the inbox was last read.
    idle_rounds: u32,
}

/// The marks, and the generation that they belong to.
#[derive(Debug, Default)]
struct Marks {
    generation: u64,
    by_inbox: BTreeMap<Inbox, LowWaterMark>,
}

/// The low-water marks of the inboxes that this node reads.
#[derive(Debug, Default)]
pub(super) struct LowWaterMarks {
    marks: Mutex<Marks>,
}

impl LowWaterMarks {
    /// Returns the inbox's mark: from it down to 0 there are no messages. Keeps the mark in use.
    pub(super) fn of(&self, inbox: Inbox) -> i64 {
        let mut marks = self.marks.lock();
        let is_full = marks.by_inbox.len() >= INBOXES_MAX;
        if is_full && !marks.by_inbox.contains_key(&inbox) {
            return 0;
        }
        let mark = marks.by_inbox.entry(inbox).or_default();
        mark.idle_rounds = 0;
        mark.place
    }

    /// Returns the marks of inboxes that were read since the last call, with the generation under which
    /// they may be raised. Forgets marks that have not been used for long.
    pub(super) fn take_used(&self) -> (u64, Vec<(Inbox, i64)>) {
        let mut marks = self.marks.lock();
        let mut used = Vec::new();
        marks.by_inbox.retain(|inbox, mark| {
            if mark.idle_rounds == 0 {
                used.push((*inbox, mark.place));
            }
            mark.idle_rounds += 1;
            mark.idle_rounds <= IDLE_ROUNDS_MAX
        });
        (marks.generation, used)
    }

    /// Raises marks, unless all were forgotten since `generation`.
    pub(super) fn raise(&self, generation: u64, proven: impl Iterator<Item = (Inbox, i64)>) {
        let mut marks = self.marks.lock();
        if marks.generation != generation {
            return;
        }
        for (inbox, place) in proven {
            if let Some(mark) = marks.by_inbox.get_mut(&inbox) {
                mark.place = mark.place.max(place);
            }
        }
    }

    /// Forgets all marks.
    pub(super) fn forget_all(&self) {
        let mut marks = self.marks.lock();
        marks.generation += 1;
        marks.by_inbox.clear();
    }
}
