//! Places: how Kafka's offsets become a log's numbers, and back.
//!
//! A record of Kafka holds one batch of 1 to 4,096 messages, and its *place* is its offset and one. A message
//! has the number `place << 12 | index`, where `index` is its place in the batch. So a number needs no table: it
//! follows from what Kafka has decided, for every reader alike, and the messages of one batch are side by side.
//! A record that holds no message (a copy that is left out, a record of the storage's own) leaves its 4,096
//! numbers unused.
//!
//! Offset 0 is place 1, so the least number is 4,096: the numbers below belong to no place.

use airmail_model::{Extent, Sequence};
use std::fmt;

/// Number of bits of a number that are the message's index in its batch.
pub const INDEX_BITS: u32 = 12;
/// The most messages in a batch: as many as there are numbers in a place.
pub const INDEXES: u32 = 1 << INDEX_BITS;
/// The highest offset whose numbers are below [`Sequence::MAX`].
pub const OFFSET_MAX: Offset = Offset((u64::MAX >> INDEX_BITS) - 2);

/// Offset of a record in its partition, as Kafka gives it: from 0, strictly rising, with holes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Offset {
    /// The offset `n` further on; stops at [`OFFSET_MAX`].
    #[must_use]
    pub const fn plus(self, n: u64) -> Offset {
        let offset = self.0.saturating_add(n);
        if offset > OFFSET_MAX.0 {
            OFFSET_MAX
        } else {
            Offset(offset)
        }
    }

    /// The first number of the record at this offset. An offset above [`OFFSET_MAX`] counts as that.
    #[must_use]
    pub const fn number(self) -> Sequence {
        let offset = if self.0 > OFFSET_MAX.0 {
            OFFSET_MAX.0
        } else {
            self.0
        };
        Sequence((offset + 1) << INDEX_BITS)
    }

    /// All numbers of the record at this offset, used or not.
    #[must_use]
    pub const fn numbers(self) -> Extent {
        Extent::starting_at(self.number(), INDEXES)
    }
}

/// The offset and the index that a number stands for. Numbers below the first place count as the beginning of
/// that.
#[must_use]
pub const fn place_of(number: Sequence) -> (Offset, u32) {
    let place = number.0 >> INDEX_BITS;
    if place == 0 {
        return (Offset(0), 0);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves 12 bits")]
    let index = (number.0 & (INDEXES as u64 - 1)) as u32;
    (Offset(place - 1), index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn place_and_number_are_a_bijection(offset in 0..=OFFSET_MAX.0, index in 0..INDEXES) {
            let number = Offset(offset).number().plus(index.into());
            prop_assert_eq!(place_of(number), (Offset(offset), index));
        }

        #[test]
        fn every_number_from_the_first_place_on_is_of_one_place(number in 4096_u64..=u64::MAX - 8192) {
            let (offset, index) = place_of(Sequence(number));
            prop_assert_eq!(offset.number().plus(index.into()), Sequence(number));
            prop_assert!(offset.numbers().contains(Sequence(number)));
        }

        #[test]
        fn numbers_keep_the_order_of_offsets(one in 0..=OFFSET_MAX.0, other in 0..=OFFSET_MAX.0) {
            let numbers = (Offset(one).number(), Offset(other).number());
            prop_assert_eq!(one.cmp(&other), numbers.0.cmp(&numbers.1));
        }
    }

    #[test]
    fn the_numbers_of_neighbours_meet_and_do_not_overlap() {
        assert_eq!(Offset(0).number(), Sequence(4096));
        assert_eq!(Offset(0).numbers().next(), Offset(1).number());
        assert_eq!(place_of(Sequence(0)), (Offset(0), 0));
        assert_eq!(place_of(Sequence(4095)), (Offset(0), 0));
        assert!(Offset(u64::MAX).number() < Sequence::MAX);
    }
}
