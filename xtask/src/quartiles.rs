//! A figure over several rounds: its median and quartiles.
//!
//! On machines that are shared a single figure says little, and a mean is carried off by one bad
//! minute; so the median counts, and its quartiles are always printed with it.
//!
//! The load tool's `Spread` has median, least and most. This stands by itself because the workshop uses no crate
//! of ours (`tidy/edges.rs`): it has to run on a tree that does not compile, and is not built anew with each
//! change there.

use serde::Serialize;

/// The quartiles of a figure over the rounds; zeros where there are no rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Quartiles {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// A quarter of the rounds are below.
    pub(crate) lower_quartile: f64,
    /// A quarter of the rounds are above.
    pub(crate) upper_quartile: f64,
}

impl Quartiles {
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Quartiles {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let at = |part: f64| between(&figures, part);
        Quartiles {
            median: at(0.5),
            least: at(0.0),
            most: at(1.0),
            lower_quartile: at(0.25),
            upper_quartile: at(0.75),
        }
    }
}

/// The figure at a part of the way from the least to the most; between two, in proportion.
fn between(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = part * last as f64;
    let (below, above) = (place.floor(), place.ceil());
    let (low, high) = (sorted[below as usize], sorted[above as usize]);
    low + (high - low) * (place - below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let of = |figures: &[f64]| Quartiles::of(figures.iter().copied()).median.to_bits();
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]), 2.5f64.to_bits());
        assert_eq!(of(&[3.0, 1.0, 2.0]), 2.0f64.to_bits());
    }

    #[test]
    fn half_of_the_rounds_lie_between_the_quartiles() {
        let quartiles = Quartiles::of([5.0, 1.0, 2.0, 4.0, 3.0]);
        let told = [
            quartiles.least,
            quartiles.lower_quartile,
            quartiles.upper_quartile,
            quartiles.most,
        ];
        assert_eq!(
            told.map(f64::to_bits),
            [1.0f64, 2.0, 4.0, 5.0].map(f64::to_bits)
        );
    }

    #[test]
    fn one_round_has_no_spread_and_none_is_zero() {
        let one = Quartiles::of([7.0]);
        assert_eq!(one.least.to_bits(), one.most.to_bits());
        assert_eq!(Quartiles::of([]), Quartiles::default());
    }
}
