//! Comparison of two values, exactly.
//!
//! An integer and a float are compared as the numbers that they are: neither is rounded to the other's
//! type, for a float has 53 bits and an integer 64. Values of different types have no order and are not
//! equal.

use crate::batch::AttributeRef;
use std::cmp::Ordering;

/// 2^63, the least float above every integer.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

/// The order of two values; `None` if their types differ.
#[inline]
pub(super) fn compare(a: AttributeRef<'_>, b: AttributeRef<'_>) -> Option<Ordering> {
    match (a, b) {
        (AttributeRef::Integer(a), AttributeRef::Integer(b)) => Some(a.cmp(&b)),
        (AttributeRef::Float(a), AttributeRef::Float(b)) => a.partial_cmp(&b),
        (AttributeRef::Integer(a), AttributeRef::Float(b)) => Some(integer_with_float(a, b)),
        (AttributeRef::Float(a), AttributeRef::Integer(b)) => {
            Some(integer_with_float(b, a).reverse())
        }
        (AttributeRef::String(a), AttributeRef::String(b)) => Some(a.cmp(b)),
        (AttributeRef::Bool(a), AttributeRef::Bool(b)) => Some(a.cmp(&b)),
        _ => None,
    }
}

/// The order of an integer and a finite float.
fn integer_with_float(integer: i64, float: f64) -> Ordering {
    if float >= INTEGERS_END {
        return Ordering::Less;
    }
    if float < -INTEGERS_END {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number in an integer's range"
    )]
    let order = integer.cmp(&(whole as i64));
    // Of equal whole parts the fraction decides, which has the float's sign.
    let fraction = whole.partial_cmp(&float).unwrap_or(Ordering::Equal);
    order.then(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_are_compared_without_rounding() {
        let order = integer_with_float;
        assert_eq!(order(2, 2.0), Ordering::Equal);
        assert_eq!(order(2, 2.5), Ordering::Less);
        assert_eq!(order(3, 2.5), Ordering::Greater);
        assert_eq!(order(-2, -2.5), Ordering::Greater);
        assert_eq!(order(-3, -2.5), Ordering::Less);
        assert_eq!(order(0, -0.0), Ordering::Equal);
        // 2^53 + 1 is no float.
        assert_eq!(
            order(9_007_199_254_740_993, 9_007_199_254_740_992.0),
            Ordering::Greater
        );
        assert_eq!(order(i64::MAX, INTEGERS_END), Ordering::Less);
        assert_eq!(order(i64::MIN, -INTEGERS_END), Ordering::Equal);
        assert_eq!(order(i64::MIN, -1e300), Ordering::Greater);
    }
}
