//! One quantity, measured several times.

use serde::Serialize;
use std::fmt;

/// The median, the least and the greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; the mean of the two in the middle where their number is even.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

impl Spread {
    /// Spread of measured values; `None` of no values. NaN is left out.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let values = values.into_iter().filter(|value| !value.is_nan());
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let high = values.get(values.len() / 2)?;
        let low = values.get((values.len() - 1) / 2)?;
        Some(Spread {
            median: low.midpoint(*high),
            least,
            most,
        })
    }
}

/// `median (least-most)`, with as many digits after the point as the format asks for.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        let Spread {
            median,
            least,
            most,
        } = self;
        write!(f, "{median:.digits$} ({least:.digits$}-{most:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_middle_and_the_ends() {
        let spread = Spread::of([9.0, 1.0, f64::NAN, 4.0, 2.0]);
        let expected = Spread {
            median: 3.0,
            least: 1.0,
            most: 9.0,
        };
        assert_eq!(spread, Some(expected));
        assert_eq!(format!("{expected:.1}"), "3.0 (1.0-9.0)");
        assert_eq!(Spread::of([]), None);
    }
}
