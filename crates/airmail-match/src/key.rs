//! Values as numbers that keep their order, and intervals of them.
//!
//! A key has 64 bits: two for the type, then the value: of a number its float, of a text its first bytes.
//! What does not fit is left out, so that neighbours may have one key; but a value above another one never has a
//! lower key. Hence the rule that the index lives by: with a key strictly inside of an interval's keys, the value
//! is strictly inside of the interval; with one outside, it is outside; on an edge, the key does not tell.

use airmail_model::batch::{AttributeRef, AttributeValue};
use airmail_model::filter::{Check, Comparison};

const NUMBERS: u64 = 1 << 62;
const TEXTS: u64 = 2 << 62;
/// Bits of a value that its type takes.
const TYPE_BITS: u32 = 2;

/// A value as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// The key of an attribute that is not there: outside of every interval.
    pub(crate) const ABSENT: Key = Key(0);
    /// Below the key of every value.
    const LEAST: Key = Key(1);
    /// Above the key of every value.
    const GREATEST: Key = Key(u64::MAX);

    /// The key of a value.
    #[inline]
    pub(crate) fn of(value: AttributeRef<'_>) -> Key {
        match value {
            AttributeRef::Bool(bit) => Key(2 + u64::from(bit)),
            #[expect(
                clippy::cast_precision_loss,
                reason = "rounding keeps the order, and that is all that is wanted"
            )]
            AttributeRef::Integer(number) => Key::of_number(number as f64),
            AttributeRef::Float(number) => Key::of_number(number),
            AttributeRef::String(text) => Key::of_text(text.as_bytes(), 0),
        }
    }

    /// The float's bits in their order: of negative ones all are turned round, of others the sign.
    fn of_number(number: f64) -> Key {
        // Makes a zero of a negative zero, which equals it.
        let bits = (number + 0.0).to_bits();
        let sign = 1 << 63;
        let ordered = if bits & sign == 0 { bits | sign } else { !bits };
        Key(NUMBERS | ordered >> TYPE_BITS)
    }

    /// The key of a text's first 8 bytes; `behind` a shorter one, this byte.
    fn of_text(text: &[u8], behind: u8) -> Key {
        let head = match text.first_chunk() {
            Some(head) => *head,
            None => {
                let mut head = [behind; 8];
                head[..text.len()].copy_from_slice(text);
                head
            }
        };
        Key(TEXTS | u64::from_be_bytes(head) >> TYPE_BITS)
    }

    /// The next greater key.
    pub(crate) fn next(self) -> Key {
        Key(self.0.saturating_add(1))
    }
}

/// Keys from `low` to `high`, both included. Empty where `low` is above `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) low: Key,
    pub(crate) high: Key,
}

impl Interval {
    /// Every value, of whatever type.
    const ALL: Interval = Interval {
        low: Key::LEAST,
        high: Key::GREATEST,
    };
    /// Every number. No number's key is an end of it: a finite float's bits are none of the extremes.
    const NUMBERS: Interval = Interval {
        low: Key(NUMBERS),
        high: Key(TEXTS - 1),
    };
    /// Every text. No text's key is an end of it: no UTF-8 has a byte of ones.
    const TEXTS: Interval = Interval {
        low: Key(TEXTS - 1),
        high: Key(TEXTS | (u64::MAX >> TYPE_BITS)),
    };
    /// The interval of no bound: no key is outside of it.
    pub(crate) const UNBOUNDED: Interval = Interval {
        low: Key::ABSENT,
        high: Key::GREATEST,
    };

    /// The interval that holds every value for which a check is true; `None` where that says nothing.
    pub(crate) fn of(check: &Check) -> Option<Interval> {
        match check {
            Check::Compare(comparison, value) => Interval::of_comparison(*comparison, value),
            Check::Between(low, high) => Some(Interval {
                low: key(low),
                high: key(high),
            }),
            Check::In(values) => Some(Interval {
                low: values.iter().map(key).min()?,
                high: values.iter().map(key).max()?,
            }),
            Check::StartsWith(text) => Some(Interval {
                low: Key::of_text(text.as_bytes(), 0),
                high: Key::of_text(text.as_bytes(), u8::MAX),
            }),
            Check::Has => Some(Interval::ALL),
            Check::NotIn(_) => None,
        }
    }

    fn of_comparison(comparison: Comparison, value: &AttributeValue) -> Option<Interval> {
        let key = key(value);
        let all = match value {
            AttributeValue::String(_) => Interval::TEXTS,
            AttributeValue::Integer(_) | AttributeValue::Float(_) => Interval::NUMBERS,
            AttributeValue::Bool(_) => Interval::ALL,
        };
        match comparison {
            Comparison::Equal => Some(Interval {
                low: key,
                high: key,
            }),
            Comparison::Less | Comparison::LessOrEqual => Some(Interval { high: key, ..all }),
            Comparison::Greater | Comparison::GreaterOrEqual => Some(Interval { low: key, ..all }),
            Comparison::Unequal => None,
        }
    }

    /// The keys that are in both.
    pub(crate) fn and(self, other: Interval) -> Interval {
        Interval {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.low > self.high
    }

    /// The first key inside and the first one behind, but for those that are an end of a whole type.
    pub(crate) fn ends(self) -> impl Iterator<Item = Key> {
        let open = [Interval::ALL, Interval::NUMBERS, Interval::TEXTS];
        let is_low_open = open.iter().any(|all| all.low == self.low);
        let is_high_open = open.iter().any(|all| all.high == self.high);
        let low = (!is_low_open).then_some(self.low);
        let behind = (!is_high_open).then(|| self.high.next());
        low.into_iter().chain(behind)
    }
}

/// The key of a filter's value.
fn key(value: &AttributeValue) -> Key {
    Key::of(borrowed(value))
}

/// A value by reference.
pub(crate) fn borrowed(value: &AttributeValue) -> AttributeRef<'_> {
    match value {
        AttributeValue::String(text) => AttributeRef::String(text),
        AttributeValue::Integer(number) => AttributeRef::Integer(*number),
        AttributeValue::Float(number) => AttributeRef::Float(*number),
        AttributeValue::Bool(bit) => AttributeRef::Bool(*bit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_keep_the_order_of_floats(a in any::<f64>(), b in any::<f64>()) {
            let finite = a.is_finite() && b.is_finite();
            if finite && a <= b {
                prop_assert!(Key::of(AttributeRef::Float(a)) <= Key::of(AttributeRef::Float(b)));
            }
        }

        #[test]
        fn keys_keep_the_order_of_integers(a in any::<i64>(), b in any::<i64>()) {
            let keys = [a.min(b), a.max(b)].map(|number| Key::of(AttributeRef::Integer(number)));
            prop_assert!(keys[0] <= keys[1]);
        }

        #[test]
        fn keys_keep_the_order_of_texts(a in "[aä\u{10ffff}\0]{0,10}", b in "[aä\u{10ffff}\0]{0,10}") {
            let (low, high) = if a <= b { (&a, &b) } else { (&b, &a) };
            prop_assert!(Key::of(AttributeRef::String(low)) <= Key::of(AttributeRef::String(high)));
        }
    }

    #[test]
    fn every_value_is_strictly_inside_of_its_type() {
        let strictly = |interval: Interval, value| {
            let key = Key::of(value);
            interval.low < key && key < interval.high
        };
        for number in [f64::MIN, -0.0, 0.0, f64::MAX] {
            assert!(strictly(Interval::NUMBERS, AttributeRef::Float(number)));
            assert!(strictly(Interval::ALL, AttributeRef::Float(number)));
        }
        for number in [i64::MIN, i64::MAX] {
            assert!(strictly(Interval::NUMBERS, AttributeRef::Integer(number)));
        }
        for text in ["", "\u{10ffff}\u{10ffff}\u{10ffff}"] {
            assert!(strictly(Interval::TEXTS, AttributeRef::String(text)));
            assert!(strictly(Interval::ALL, AttributeRef::String(text)));
            assert!(!strictly(Interval::NUMBERS, AttributeRef::String(text)));
        }
        for bit in [false, true] {
            assert!(strictly(Interval::ALL, AttributeRef::Bool(bit)));
            assert!(!strictly(Interval::TEXTS, AttributeRef::Bool(bit)));
        }
        assert!(Key::ABSENT < Interval::ALL.low);
    }

    #[test]
    fn an_integer_and_the_float_that_equals_it_have_one_key() {
        let (integer, float) = (AttributeRef::Integer(7), AttributeRef::Float(7.0));
        assert_eq!(Key::of(integer), Key::of(float));
        let (zero, minus_zero) = (AttributeRef::Float(0.0), AttributeRef::Float(-0.0));
        assert_eq!(Key::of(zero), Key::of(minus_zero));
    }
}
