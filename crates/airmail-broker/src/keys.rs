//! Places in the shard's tables: small numbers instead of pointers, so that a live subscription
//! costs tens of bytes.

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl $name {
            /// The key of a place in a table.
            pub(crate) fn new(place: usize) -> $name {
                debug_assert!(u32::try_from(place).is_ok(), "tables are bounded below 2^32");
                $name(u32::try_from(place).unwrap_or(u32::MAX))
            }

            /// The place in the table.
            pub(crate) fn place(self) -> usize {
                self.0 as usize
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
    pub(crate) const NONE: SubKey = SubKey(u32::MAX);
}

impl LateKey {
    /// Below every key.
    pub(crate) const MIN: LateKey = LateKey(0);
    /// No record: the subscription is live. Above every key.
    pub(crate) const NONE: LateKey = LateKey(u32::MAX);
}
