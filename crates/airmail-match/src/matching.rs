//! The way of a record through the index, in units.
//!
//! A unit is a line of the grid in one block, a word of its summaries, a row that is compared, a match. Lists
//! can be left at any row, the grid before any block; one block is 512 rows at most.

use crate::cursor::{Cursor, Progress};
use crate::index::Index;
use crate::key::Key;
use crate::lists::ListKey;
use crate::name_table::NameTable;
use crate::row::{Row, Verdict};
use crate::slots::Slots;
use airmail_model::bug;
use airmail_model::filter::Facts;

/// The parts of a matcher that a record is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matching<'a> {
    pub(crate) names: &'a NameTable,
    pub(crate) slots: &'a Slots,
    pub(crate) index: &'a Index,
    pub(crate) version: u64,
}

/// Work done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Rows that were compared.
    pub(crate) candidates: u64,
    pub(crate) matches: u64,
    /// Whether the record has been held against everything.
    pub(crate) is_all: bool,
}

impl Matching<'_> {
    /// Sets a cursor before a record.
    pub(crate) fn begin(self, facts: &Facts<'_>, cursor: &mut Cursor) {
        cursor.clear(self.names.numbers(), self.slots.count());
        cursor.begun = self.slots.insertions();
        for (name, value) in facts.iter() {
            if let Some(name) = self.names.find(name) {
                cursor.set(name, Key::of(value));
            }
        }
        self.set_out(facts, cursor);
    }

    /// Chooses the lists and the lines of a record, and stands before the first.
    fn set_out(self, facts: &Facts<'_>, cursor: &mut Cursor) {
        cursor.version = self.version;
        let Progress {
            lists,
            list,
            left,
            picks,
            block,
        } = &mut cursor.at;
        (*list, *left, *block) = (0, None, 0);
        lists.clear();
        if !self.index.lists.is_empty() {
            lists.push(ListKey::RESIDUAL);
            for (name, value) in facts.iter() {
                if let Some(name) = self.names.find(name) {
                    lists.extend([ListKey::present(name), ListKey::equal(name, value)]);
                }
            }
            lists.retain(|list| self.index.lists.len(*list) > 0);
        }
        self.index.grid.pick(&cursor.keys, picks);
    }

    /// Goes on, until there are no units left.
    pub(crate) fn advance(self, facts: &Facts<'_>, cursor: &mut Cursor, units: &mut u32) -> Done {
        if cursor.version != self.version {
            // The index has been made anew, and the place is one of the old.
            cursor.begin_again();
            self.set_out(facts, cursor);
        }
        let mut done = Done::default();
        let found = cursor.matches.len();
        done.is_all = self.through_lists(facts, cursor, units, &mut done)
            && self.through_grid(facts, cursor, units, &mut done);
        done.matches = (cursor.matches.len() - found) as u64;
        done
    }

    fn through_lists(
        self,
        facts: &Facts<'_>,
        cursor: &mut Cursor,
        units: &mut u32,
        done: &mut Done,
    ) -> bool {
        while let Some(list) = cursor.at.lists.get(cursor.at.list).copied() {
            let rows = self.index.lists.rows(list);
            let mut left = cursor.at.left.unwrap_or(rows.len()).min(rows.len());
            while left > 0 {
                if *units == 0 {
                    cursor.at.left = Some(left);
                    return false;
                }
                left -= 1;
                done.candidates += 1;
                let row = self.index.lists.row(rows[left]);
                let matched = self.judge(row, false, facts, cursor);
                *units = units.saturating_sub(1 + u32::from(matched));
            }
            cursor.at.list += 1;
            cursor.at.left = None;
        }
        true
    }

    fn through_grid(
        self,
        facts: &Facts<'_>,
        cursor: &mut Cursor,
        units: &mut u32,
        done: &mut Done,
    ) -> bool {
        let grid = &self.index.grid;
        loop {
            if *units == 0 {
                return false;
            }
            let (block, words) = grid.next_block(&cursor.at.picks, cursor.at.block);
            let Some(block) = block else {
                // Input: a record that no further row is possible for.
                return true;
            };
            let (rows, lines) = grid.in_all(&cursor.at.picks, block);
            *units = units.saturating_sub(words + lines);
            for (word, mut bits) in rows.into_iter().enumerate() {
                while bits != 0 {
                    let bit = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    done.candidates += 1;
                    let row = grid.row_in(block, bit);
                    let matched = self.judge(row, row.is_only(), facts, cursor);
                    *units = units.saturating_sub(1 + u32::from(matched));
                }
            }
            cursor.at.block = block + 1;
        }
    }

    /// Holds a record against a row, and against its filter where the row does not tell. Whether it matches, and
    /// was not known to. A row that is met `once` at most needs no look at whether its filter was judged.
    #[inline]
    fn judge(self, row: &Row, is_once: bool, facts: &Facts<'_>, cursor: &mut Cursor) -> bool {
        let verdict = row.verdict(&cursor.keys);
        let id = row.id();
        if verdict == Verdict::No || !(is_once || cursor.is_first_look(id.slot)) {
            return false;
        }
        // Input: a filter that came after the record was begun.
        if !self.slots.was_there(id.slot, cursor.begun) {
            return false;
        }
        if verdict == Verdict::Maybe {
            let Some(filter) = self.slots.get(id) else {
                bug!("a row of {id:?}, which is not there");
                return false;
            };
            if !filter.matches_facts(facts) {
                return false;
            }
        }
        cursor.matches.push(id);
        true
    }
}
