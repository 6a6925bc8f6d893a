//! Lists of conjunctions that a record finds by one of its attributes.
//!
//! A list is known by a hash: of a name and a value, or of a name that has to be there. Two lists of one hash are
//! one; that costs comparisons and no mistake, for every row in a list is held against the record.
//!
//! An entry that is removed is replaced by the list's last. So a list is gone through from the end: what is moved
//! meanwhile is moved from where it was judged, or came later, to where it was not.

use crate::name_table::NameId;
use crate::row::Row;
use airmail_model::batch::AttributeRef;
use airmail_model::bug;
use airmail_model::random::mixed;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The name of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListKey(u64);

const PRESENT: u64 = 1 << 32;
const NUMBER: u64 = 2 << 32;
const BOOL: u64 = 3 << 32;
const TEXT: u64 = 4 << 32;

/// 2^63: floats below it, and not below its negative, that are whole are integers.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

impl ListKey {
    /// The list of what says nothing that the index can use.
    pub(crate) const RESIDUAL: ListKey = ListKey(0);

    /// The list of those that want a name there.
    #[inline]
    pub(crate) fn present(name: NameId) -> ListKey {
        ListKey(mixed(PRESENT | name.index() as u64))
    }

    /// The list of those that want a name to have this value. Equal numbers of either type have one.
    #[inline]
    pub(crate) fn equal(name: NameId, value: AttributeRef<'_>) -> ListKey {
        let name = name.index() as u64;
        let of = |kind: u64, bits: u64| ListKey(mixed(mixed(kind | name) ^ bits));
        match value {
            AttributeRef::Integer(number) => of(NUMBER, number.cast_unsigned()),
            AttributeRef::Float(number) => of(NUMBER, canonical(number)),
            AttributeRef::Bool(bit) => of(BOOL, bit.into()),
            AttributeRef::String(text) => {
                ListKey(xxh3_64_with_seed(text.as_bytes(), mixed(TEXT | name)))
            }
        }
    }
}

/// The bits of a float; those of the integer, if it is one.
fn canonical(number: f64) -> u64 {
    let is_integer = number.trunc() == number && (-INTEGERS_END..INTEGERS_END).contains(&number);
    #[expect(clippy::cast_possible_truncation, reason = "it is an integer")]
    if is_integer {
        (number as i64).cast_unsigned()
    } else {
        number.to_bits()
    }
}

/// A row in a list, by its place in the table of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedRow(pub(crate) u32);

/// Lists of rows.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    lists: HashMap<ListKey, Vec<ListedRow>, BuildHasherDefault<Unhashed>>,
    rows: Vec<Listed>,
    free: Vec<ListedRow>,
    /// Memory of the lists' entries, in bytes.
    entry_bytes: usize,
}

#[derive(Debug)]
struct Listed {
    row: Row,
    /// The lists that it stands in.
    lists: SmallVec<[ListKey; 2]>,
}

impl Lists {
    /// Rows in a list.
    pub(crate) fn len(&self, list: ListKey) -> usize {
        self.lists.get(&list).map_or(0, Vec::len)
    }

    /// The rows of a list.
    #[inline]
    pub(crate) fn rows(&self, list: ListKey) -> &[ListedRow] {
        self.lists.get(&list).map_or(&[], |rows| rows)
    }

    #[inline]
    pub(crate) fn row(&self, at: ListedRow) -> &Row {
        &self.rows[at.0 as usize].row
    }

    /// Whether there are no lists at all.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Puts a row into lists.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "four thousand million rows do not fit any bound of bytes"
    )]
    pub(crate) fn insert(&mut self, row: Row, lists: &[ListKey]) -> ListedRow {
        let listed = Listed {
            row,
            lists: lists.into(),
        };
        let at = if let Some(at) = self.free.pop() {
            self.rows[at.0 as usize] = listed;
            at
        } else {
            self.rows.push(listed);
            ListedRow(self.rows.len() as u32 - 1)
        };
        for list in lists {
            let entries = self.lists.entry(*list).or_default();
            let before = entries.capacity();
            entries.push(at);
            self.entry_bytes += (entries.capacity() - before) * size_of::<ListedRow>();
        }
        at
    }

    /// Takes a row out of its lists.
    pub(crate) fn remove(&mut self, at: ListedRow) {
        let listed = &mut self.rows[at.0 as usize];
        listed.row = Row::NONE;
        for list in std::mem::take(&mut listed.lists) {
            let Some(entries) = self.lists.get_mut(&list) else {
                bug!("the list {list:?} of row {at:?} is gone");
                continue;
            };
            match entries.iter().position(|entry| *entry == at) {
                Some(place) => {
                    entries.swap_remove(place);
                }
                None => bug!("row {at:?} is not in its list {list:?}"),
            }
            if entries.is_empty() {
                self.entry_bytes -= entries.capacity() * size_of::<ListedRow>();
                self.lists.remove(&list);
            }
        }
        self.free.push(at);
    }

    /// Rows in use.
    pub(crate) fn used(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Listed>()
            + self.free.capacity() * size_of::<ListedRow>()
            + self.lists.allocation_size()
            + self.entry_bytes
    }
}

/// Hashes what is a hash already.
#[derive(Default)]
pub(crate) struct Unhashed(u64);

impl Hasher for Unhashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
