//! Readers, and what each is given of a window of entries.
//!
//! A reader is a place and a credit. Whatever it is given comes from a window in which everything is known: the newest
//! entries of its log, or the part that a sweep has fetched. Its numbers are tiled: batches, losses, and unused
//! numbers between them, in order, without holes.
//!
//! Invariant `until_is_kept`: no gap that a reader is told of goes beyond the number at which it ends.

use crate::entry::{Tile, Window};
use crate::place::place_of;
use airmail_log::{Completion, GapWhy, ReaderId, Scope, ScopeFilter, Tag};
use airmail_model::{Extent, LogId, Sequence};

/// A reader of the owner's, or one of the storage's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReaderKey {
    /// The owner's.
    Owner(ReaderId),
    /// Looks through a log for the answer to a call.
    Own(Tag),
}

/// Result of giving a reader what a window has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// It has everything before the end of the window.
    All,
    /// It has no credit, or does not want anything yet.
    Waits,
    /// It has come to the number at which it ends.
    Ends,
}

/// Something that a reader is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gift {
    Tile(Tile),
    Gap(Extent, GapWhy),
    Tail(Sequence),
}

impl Gift {
    /// The completion that tells the owner.
    pub(crate) fn completion(self, r: ReaderId) -> Completion {
        match self {
            Gift::Tile(Tile::Batch(stored)) => Completion::Batch { r, stored },
            Gift::Tile(Tile::Lost(extent)) => Completion::Gap {
                r,
                extent,
                why: GapWhy::Loss,
            },
            Gift::Gap(extent, why) => Completion::Gap { r, extent, why },
            Gift::Tail(next) => Completion::Tail { r, next },
        }
    }
}

/// A reader.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) log: LogId,
    /// The first number not accounted for.
    pub(crate) next: Sequence,
    pub(crate) until: Option<Sequence>,
    /// Bytes that it may be given. Below 0: overdrawn by a batch.
    pub(crate) credit: i64,
    /// Whether it gives anything: not before it was said what is wanted, where that matters.
    pub(crate) is_wanting: bool,
    /// It is asked whether the log has come to where it begins.
    pub(crate) is_checked: bool,
    /// The end of which it was told.
    tail: Option<Sequence>,
}

impl Reader {
    pub(crate) fn new(log: LogId, from: Sequence, scope: &Scope, credit: u32) -> Reader {
        Reader {
            log,
            next: from.max(Sequence::FIRST),
            until: scope.until,
            credit: credit.into(),
            is_wanting: scope.filter != ScopeFilter::Wanted,
            is_checked: false,
            tail: None,
        }
    }

    /// Whether it would take what comes.
    pub(crate) fn is_hungry(&self) -> bool {
        self.credit > 0 && self.is_wanting && !self.is_checked
    }

    /// Whether it lacks nothing but credit.
    pub(crate) fn is_sated(&self) -> bool {
        self.credit <= 0 && self.is_wanting && !self.is_checked
    }

    fn is_at_until(&self) -> bool {
        self.until.is_some_and(|until| self.next >= until)
    }

    /// Accounts for the numbers before `to`, or before the reader's own end.
    pub(crate) fn gap(&mut self, to: Sequence, why: GapWhy, out: &mut Vec<Gift>) {
        let to = self.until.map_or(to, |until| to.min(until));
        if to > self.next {
            let extent = Extent {
                first: self.next,
                last: to.before(),
            };
            out.push(Gift::Gap(extent, why));
            self.next = to;
        }
    }

    /// Gives what a window has from the reader's place on, which is in the window or at its end. Whether there is more
    /// behind the window is not known, unless `is_end`.
    pub(crate) fn give(&mut self, window: &Window, is_end: bool, out: &mut Vec<Gift>) -> Given {
        if !self.is_wanting || self.is_checked {
            return Given::Waits;
        }
        loop {
            if self.is_at_until() {
                return Given::Ends;
            }
            let (offset, _) = place_of(self.next);
            let tile = window.from(offset).and_then(|entry| {
                let later = |tile: &&Tile| tile.extent().last >= self.next;
                entry.tiles.iter().find(later).or_else(|| {
                    let next = window.from(entry.offset.plus(1))?;
                    next.tiles.first()
                })
            });
            let Some(tile) = tile else {
                // Input: a window without anything from the reader on.
                return self.give_end(window, is_end, out);
            };
            if self.credit <= 0 {
                return Given::Waits;
            }
            let extent = tile.extent();
            self.gap(extent.first, GapWhy::Unused, out);
            if self.is_at_until() {
                return Given::Ends;
            }
            if let Tile::Batch(stored) = tile {
                let bytes = stored.batch.bytes().len();
                self.credit -= i64::try_from(bytes).unwrap_or(i64::MAX);
            }
            out.push(Gift::Tile(tile.clone()));
            self.next = extent.next();
        }
    }

    /// Nothing is left in the window: what lies between is unused, where that is worth a word.
    fn give_end(&mut self, window: &Window, is_end: bool, out: &mut Vec<Gift>) -> Given {
        let end = window.next.number();
        if is_end {
            self.gap(end, GapWhy::Unused, out);
            if self.is_at_until() {
                return Given::Ends;
            }
            if self.next == end && self.tail != Some(end) {
                self.tail = Some(end);
                out.push(Gift::Tail(end));
            }
        } else if self.credit > 0 {
            self.gap(end, GapWhy::Unused, out);
            if self.is_at_until() {
                return Given::Ends;
            }
        }
        Given::All
    }
}
