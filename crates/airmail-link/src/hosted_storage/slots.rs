//! Slots of the calls and readers that the far end has asked of its storage for others: the place of one is its tag
//! or reader there.
//!
//! Tags and readers of the far end's own owner have neither of the two highest bits; those of a guest have the
//! highest. The next bit marks an append of the owner's own, so that these can be counted without a table.
//!
//! Invariant: a slot is used again only after the answer, or the reader's end, has come.

use airmail_log::{ReaderId, Tag};
use airmail_model::bug;

/// Marks what was asked for a guest.
const GUEST: u64 = 1 << 63;
/// Marks an append of the owner.
const APPEND: u64 = 1 << 62;

/// Place of a guest among those of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GuestPlace(pub(super) usize);

/// Something that was asked for a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) guest: GuestPlace,
    /// The guest's connection at the time.
    pub(super) connection: u64,
    /// Tag or reader of the link.
    pub(super) number: u64,
}

/// Slots. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Asked>>,
    free: Vec<usize>,
}

impl Slots {
    /// A number for something that is asked of the storage.
    pub(super) fn take(&mut self, asked: Asked) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[place] = Some(asked);
        GUEST | place as u64
    }

    /// Gives back the slot behind a number, whose answer has come.
    pub(super) fn answered(&mut self, number: u64) -> Option<Asked> {
        let place = place(number)?;
        let Some(asked) = self.slots.get_mut(place).and_then(Option::take) else {
            bug!("number {number:#x} was answered twice");
            return None;
        };
        self.free.push(place);
        Some(asked)
    }

    /// Looks at what is behind a number, if it is a guest's.
    pub(super) fn get(&self, number: u64) -> Option<Asked> {
        self.slots.get(place(number)?).copied().flatten()
    }
}

fn place(number: u64) -> Option<usize> {
    (number & GUEST != 0).then_some((number & !GUEST) as usize)
}

/// Whether a number is a guest's.
pub(super) fn is_guests(number: u64) -> bool {
    number & GUEST != 0
}

/// The tag of an append of the owner's, at the storage.
pub(super) fn of_append(t: Tag) -> Tag {
    Tag(t.0 | APPEND)
}

/// The owner's tag, and whether it is an append's.
pub(super) fn owners(t: Tag) -> (Tag, bool) {
    (Tag(t.0 & !APPEND), t.0 & APPEND != 0)
}

/// Asserts that the owner's numbers leave the marks alone.
pub(super) fn check_owners(number: u64) {
    if number & (GUEST | APPEND) != 0 {
        bug!("tag or reader {number:#x} of the owner is 2^62 or more");
    }
}

/// The reader behind a number.
pub(super) fn reader(number: u64) -> ReaderId {
    ReaderId(number)
}
