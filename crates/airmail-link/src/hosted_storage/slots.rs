//! Slots of the calls and readers that the far end has asked of its storage for others: the place of one is its tag
//! or reader there.
//!
//! Tags and readers of the far end's own owner have neither of two bits; those of a guest have the higher one. The other
//! one marks an append of the owner's own, so that these can be counted without a table. Which bits these are is a matter
//! of the far end's level: around one that has the two highest, another may stand, which has the next two.
//!
//! Invariant: a slot is used again only after the answer, or the reader's end, has come.

use airmail_log::{ReaderId, Tag};
use airmail_model::bug;

/// The marks of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// Mark of what was asked for a guest.
    guest: u64,
    /// Mark of an append of the owner.
    append: u64,
}

impl Marks {
    /// Marks of a far end whose storage has no guests of its own.
    pub(super) const INNER: Marks = Marks {
        guest: 1 << 63,
        append: 1 << 62,
    };
    /// Marks of one around such a far end.
    pub(super) const OUTER: Marks = Marks {
        guest: 1 << 61,
        append: 1 << 60,
    };

    /// Whether a number is a guest's.
    pub(super) fn is_guests(self, number: u64) -> bool {
        number & self.guest != 0
    }

    /// The tag of an append of the owner's, at the storage.
    pub(super) fn of_append(self, t: Tag) -> Tag {
        Tag(t.0 | self.append)
    }

    /// The owner's tag, and whether it is an append's.
    pub(super) fn owners(self, t: Tag) -> (Tag, bool) {
        (Tag(t.0 & !self.append), t.0 & self.append != 0)
    }

    /// Asserts that the owner's numbers leave the marks alone.
    pub(super) fn check_owners(self, number: u64) {
        if number & (self.guest | self.append) != 0 {
            bug!("tag or reader {number:#x} of the owner has a mark of {self:?}");
        }
    }

    fn place(self, number: u64) -> Option<usize> {
        self.is_guests(number)
            .then_some((number & !self.guest) as usize)
    }
}

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
#[derive(Debug)]
pub(super) struct Slots {
    marks: Marks,
    slots: Vec<Option<Asked>>,
    free: Vec<usize>,
}

impl Slots {
    pub(super) fn new(marks: Marks) -> Slots {
        Slots {
            marks,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The marks of its numbers.
    pub(super) fn marks(&self) -> Marks {
        self.marks
    }

    /// A number for something that is asked of the storage.
    pub(super) fn take(&mut self, asked: Asked) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[place] = Some(asked);
        self.marks.guest | place as u64
    }

    /// Gives back the slot behind a number, whose answer has come.
    pub(super) fn answered(&mut self, number: u64) -> Option<Asked> {
        let place = self.marks.place(number)?;
        let Some(asked) = self.slots.get_mut(place).and_then(Option::take) else {
            bug!("number {number:#x} was answered twice");
            return None;
        };
        self.free.push(place);
        Some(asked)
    }

    /// Looks at what is behind a number, if it is a guest's.
    pub(super) fn get(&self, number: u64) -> Option<Asked> {
        self.slots.get(self.marks.place(number)?).copied().flatten()
    }
}

/// The reader behind a number.
pub(super) fn reader(number: u64) -> ReaderId {
    ReaderId(number)
}
