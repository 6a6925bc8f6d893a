//! Marks of a batch: whether some record in it expires, or is for some roles only.
//!
//! The header has them as two flags, so whoever hands batches on looks once at each batch and at none
//! of its records. They are always computed from the records' own flags, by the encoder, by both checks
//! and by a slice. A client whose header says something else is refused. Storage may hold what another
//! program wrote: there the records count, so a header that lies can neither show a record to
//! who may not have it nor cost a batch. That is why a batch keeps its marks beside its bytes.

use super::layout::{FLAG_EXPIRING, FLAG_RESTRICTED, HAS_AUDIENCE, HAS_TTL};
use std::fmt;

/// The marks, as the header's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    const ALL: u16 = FLAG_EXPIRING | FLAG_RESTRICTED;

    /// The marks of a batch whose header has these flags, as far as the header can be believed.
    pub(super) fn of_header(flags: u16) -> Marks {
        Marks(flags & Marks::ALL)
    }

    /// The marks of a batch whose records have these flags, all of them together.
    pub(super) fn of_records(flags: u16) -> Marks {
        let when = |record: u16, batch: u16| if flags & record == 0 { 0 } else { batch };
        Marks(when(HAS_TTL, FLAG_EXPIRING) | when(HAS_AUDIENCE, FLAG_RESTRICTED))
    }

    /// These flags of a header, with the marks in their places.
    pub(super) fn in_flags(self, flags: u16) -> u16 {
        flags & !Marks::ALL | self.0
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether some record has a `ttl_ms`.
    #[inline]
    pub(super) fn is_expiring(self) -> bool {
        self.0 & FLAG_EXPIRING != 0
    }

    /// Whether some record has an audience.
    #[inline]
    pub(super) fn is_restricted(self) -> bool {
        self.0 & FLAG_RESTRICTED != 0
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_expiring(), self.is_restricted()) {
            (false, false) => "neither expiring nor restricted",
            (true, false) => "expiring",
            (false, true) => "restricted",
            (true, true) => "expiring and restricted",
        })
    }
}
