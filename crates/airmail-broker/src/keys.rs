//! Places in the tables of gateway and tower: small numbers instead of pointers, so that a live
//! subscription costs tens of bytes. None is zero, so that an option of one costs no more.
//!
//! Each side has keys of its own; what one tells the other names logs by their ids. Only the key of a
//! subscription that is behind goes to the tower and back, within a [`crate::link::MemberId`], and the
//! tower looks nothing up by it.

use airmail_model::Lane;
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
    /// A tail: where the live subscriptions of an index's logs meet, one log a lane. Below 2^29.
    TailKey
);
key!(
    /// The record of a part of a subscription that is not live. Below 2^31.
    BehindKey
);
key!(
    /// A selector of topics, which subscriptions of the gateway have.
    SelectorKey
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

/// A tail, and the lanes in which a subscription is live there: two bits above the tail's key. The one between says whether
/// it is a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveAt(NonZeroU32);

impl LiveAt {
    /// The lowest of the lanes' bits.
    const LANES_SHIFT: u32 = 30;

    /// The bit of selections.
    const SELECTS: u32 = 1 << (LiveAt::LANES_SHIFT - 1);

    /// At a tail, live in no lane.
    pub(crate) fn not_live(tail: TailKey, selects: bool) -> LiveAt {
        debug_assert!(
            tail.0.get() < LiveAt::SELECTS,
            "logs are bounded far below 2^29"
        );
        let selects = if selects { LiveAt::SELECTS } else { 0 };
        LiveAt(tail.0 | selects)
    }

    /// Whether it is a selection that is there, and no topic's subscription.
    pub(crate) fn selects(self) -> bool {
        self.0.get() & LiveAt::SELECTS != 0
    }

    /// The tail.
    pub(crate) fn tail(self) -> TailKey {
        let key = self.0.get() & (LiveAt::SELECTS - 1);
        TailKey(NonZeroU32::new(key).unwrap_or(NonZeroU32::MIN))
    }

    /// Whether it is live in a lane.
    pub(crate) fn is_in(self, lane: Lane) -> bool {
        self.0.get() & LiveAt::bit(lane) != 0
    }

    /// Whether it is live in any lane.
    pub(crate) fn is_in_any(self) -> bool {
        self.0.get() >> LiveAt::LANES_SHIFT != 0
    }

    /// The same, and live in a lane.
    pub(crate) fn with(self, lane: Lane) -> LiveAt {
        LiveAt(self.0 | LiveAt::bit(lane))
    }

    /// The same, and not live in a lane.
    pub(crate) fn without(self, lane: Lane) -> LiveAt {
        let rest = self.0.get() & !LiveAt::bit(lane);
        LiveAt(NonZeroU32::new(rest).unwrap_or(self.0))
    }

    fn bit(lane: Lane) -> u32 {
        1 << (LiveAt::LANES_SHIFT + lane as u32)
    }
}

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

/// The mark of keys that are none of the table's: whose low bits are a log's.
const OF_TURNS: u32 = 1 << 31;

impl BehindKey {
    /// The key under which the tower reads for all who are served in turns at a log's tail.
    pub(crate) fn of_turns(log: LogKey) -> BehindKey {
        BehindKey(log.0 | OF_TURNS)
    }

    /// The log of a key that is that of its turns.
    pub(crate) fn turns_log(self) -> Option<LogKey> {
        let marked = self.0.get() & OF_TURNS > 0;
        let log = NonZeroU32::new(self.0.get() & !OF_TURNS);
        log.filter(|_| marked).map(LogKey)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_come_and_go_above_every_key_of_a_tail() {
        let places = [0, 1, 77, (1 << 29) - 2];
        for (place, selects) in places.into_iter().flat_map(|at| [(at, false), (at, true)]) {
            let tail = TailKey::new(place);
            let mut at = LiveAt::not_live(tail, selects);
            for (normal, high) in [(true, false), (true, true), (false, true), (false, false)] {
                for (lane, is_in) in [(Lane::Normal, normal), (Lane::High, high)] {
                    at = if is_in {
                        at.with(lane)
                    } else {
                        at.without(lane)
                    };
                    assert_eq!((at.tail(), at.is_in(lane)), (tail, is_in));
                    assert_eq!(at.selects(), selects);
                }
                assert_eq!(at.is_in_any(), normal || high);
            }
            assert_eq!(at, LiveAt::not_live(tail, selects));
        }
    }
}
