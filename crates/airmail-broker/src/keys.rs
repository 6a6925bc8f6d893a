//! Places in the tables of gateway and tower: small numbers instead of pointers, so that a live
//! subscription costs tens of bytes. None is zero, so that an option of one costs no more.
//!
//! Each side has keys of its own; what one tells the other names logs by their ids. Only the key of a
//! subscription that is behind goes to the tower and back, within a [`crate::link::MemberId`], and the
//! tower looks nothing up by it.

use std::num::NonZeroU32;

/// Places in any table; what lies above are marks.
const PLACES: usize = u32::MAX as usize - 2;

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(NonZeroU32);

        impl $name {
            /// The key of a place in a table.
            pub(crate) fn new(place: usize) -> $name {
                debug_assert!(place < PLACES, "tables are bounded below 2^32");
                let place = u32::try_from(place).unwrap_or(u32::MAX);
                $name(NonZeroU32::MIN.saturating_add(place))
            }

            /// The place in the table.
            pub(crate) fn place(self) -> usize {
                self.0.get() as usize - 1
            }
        }
    };
}

key!(
    /// An open session of the gateway.
    SessionKey
);
key!(
    /// A subscription of an open session.
    SubKey
);
key!(
    /// A log as the gateway knows it. Never reused, unlike the others.
    LogKey
);
key!(
    /// The record of a subscription that is not live.
    BehindKey
);
key!(
    /// A log as the tower knows it. Never reused.
    TowerLogKey
);
key!(
    /// A catch-up reader of the tower.
    ReaderKey
);
key!(
    /// A member of the tower: somebody for whom it reads, or is about to.
    MemberKey
);

impl SubKey {
    /// No subscription: the end of a list.
    pub(crate) const NONE: SubKey = SubKey(NonZeroU32::MAX);
    /// In place of the next in a list: the subscription is in none, for it is not live.
    pub(crate) const BEHIND: SubKey = SubKey(NonZeroU32::MIN.saturating_add(u32::MAX - 2));

    /// The record whose number is kept in place of a neighbour.
    pub(crate) fn to_behind(self) -> BehindKey {
        BehindKey(self.0)
    }
}

impl BehindKey {
    /// The same number, to be kept in place of a neighbour.
    pub(crate) fn to_neighbour(self) -> SubKey {
        SubKey(self.0)
    }
}

impl MemberKey {
    /// Below every key.
    pub(crate) const MIN: MemberKey = MemberKey(NonZeroU32::MIN);
    /// Above every key.
    pub(crate) const MAX: MemberKey = MemberKey(NonZeroU32::MAX);
}
