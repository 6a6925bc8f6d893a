//! Places in the shard's tables: small numbers instead of pointers, so that a live subscription
//! costs tens of bytes. None is zero, so that an option of one costs no more.

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
    /// An open session.
    SessionKey
);
key!(
    /// A subscription of an open session.
    SubKey
);
key!(
    /// A log. Never reused, unlike the others.
    LogKey
);
key!(
    /// The record of a subscription that is not live.
    LateKey
);
key!(
    /// A reader for late subscribers, and those aboard.
    CaravanKey
);

impl SubKey {
    /// No subscription: the end of a list.
    pub(crate) const NONE: SubKey = SubKey(NonZeroU32::MAX);
    /// In place of the next in a list: the subscription is in none, for it is not live.
    pub(crate) const LATE: SubKey = SubKey(NonZeroU32::MIN.saturating_add(u32::MAX - 2));

    /// The record whose number is kept in place of a neighbour.
    pub(crate) fn to_late(self) -> LateKey {
        LateKey(self.0)
    }
}

impl LateKey {
    /// Below every key.
    pub(crate) const MIN: LateKey = LateKey(NonZeroU32::MIN);
    /// Above every key.
    pub(crate) const MAX: LateKey = LateKey(NonZeroU32::MAX);

    /// To be kept in place of a neighbour.
    pub(crate) fn to_neighbour(self) -> SubKey {
        SubKey(self.0)
    }
}
