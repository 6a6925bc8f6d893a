//! Rungs of `ladder`: bounds √2 apart, and what was seen at each.
//!
//! Throughput never falls where more is in flight, but for noise. So what is known of the rungs is
//! taken together by isotonic regression (pool adjacent violators): neighbours that contradict it are
//! given their common mean. It is the only thing that is assumed of a system's curve: steps and flat
//! pieces are left as they are.
//!
//! Invariant: the values that [`Rungs::isotonic`] gives never fall.

use std::collections::BTreeMap;

/// Looks at a rung that count: what is older fades, so that a slow change is followed.
pub(super) const COUNT_MAX: u32 = 12;

/// The highest rung, 2^63.
const HIGHEST: u8 = 126;

/// One rung: √2 times the bound of the one below, and at least one message more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rung(u8);

impl Rung {
    /// The highest rung whose bound is at most this; the lowest if there is none.
    pub(super) fn at_most(bound: u64) -> Rung {
        let rungs = 1..=HIGHEST;
        let fits = rungs.take_while(|rung| Rung(*rung).bound() <= bound);
        Rung(fits.last().unwrap_or(0))
    }

    /// The lowest rung whose bound is at least this; the highest if there is none.
    pub(super) fn at_least(bound: u64) -> Rung {
        let rung = Rung::at_most(bound);
        if rung.bound() < bound {
            rung.above(1)
        } else {
            rung
        }
    }

    /// Its bound, in whatever the gate counts.
    pub(super) fn bound(self) -> u64 {
        let power = (f64::from(self.0) / 2.0).exp2().round() as u64;
        power.max(u64::from(self.0) + 1)
    }

    /// The rung so many above, or the highest.
    pub(super) fn above(self, rungs: u8) -> Rung {
        Rung(self.0.saturating_add(rungs).min(HIGHEST))
    }

    /// The rung so many below, if there is one.
    pub(super) fn below(self, rungs: u8) -> Option<Rung> {
        self.0.checked_sub(rungs).map(Rung)
    }
}

/// Knowledge of one rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// ln λ, less the level that all of the table is relative to.
    pub(super) value: f64,
    /// Number of looks, at most [`COUNT_MAX`].
    pub(super) count: u32,
    /// L as it was measured at the last of them.
    pub(super) in_flight: f64,
}

/// One rung of the isotonic estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) rung: Rung,
    /// ln λ, as [`Seen::value`]: the mean of those that were taken together.
    pub(super) value: f64,
    /// Number of looks of those together.
    pub(super) count: u32,
    /// L, as [`Seen::in_flight`].
    pub(super) in_flight: f64,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct Rungs {
    seen: BTreeMap<Rung, Seen>,
}

impl Rungs {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.seen.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Knowledge of a rung, if it has been looked at.
    pub(super) fn get(&self, rung: Rung) -> Option<Seen> {
        self.seen.get(&rung).copied()
    }

    /// The lowest rung that has been looked at.
    pub(super) fn lowest(&self) -> Option<(Rung, Seen)> {
        let first = self.seen.first_key_value();
        first.map(|(rung, seen)| (*rung, *seen))
    }

    /// Adds a look.
    pub(super) fn look(&mut self, rung: Rung, value: f64, in_flight: f64) {
        let seen = self.seen.entry(rung).or_insert(Seen {
            value,
            count: 0,
            in_flight,
        });
        seen.count = (seen.count + 1).min(COUNT_MAX);
        seen.value += (value - seen.value) / f64::from(seen.count);
        seen.in_flight = in_flight;
    }

    /// Replaces what is known of a rung.
    pub(super) fn set(&mut self, rung: Rung, seen: Seen) {
        self.seen.insert(rung, seen);
    }

    /// Makes all values relative to a level that is higher by `by`.
    pub(super) fn rebase(&mut self, by: f64) {
        for seen in self.seen.values_mut() {
            seen.value -= by;
        }
    }

    /// The isotonic estimate, from the lowest rung to the highest.
    pub(super) fn isotonic(&self) -> Vec<Step> {
        // Each pool: sum of the values, looks, and rungs.
        let mut pools: Vec<(f64, u32, usize)> = Vec::new();
        for seen in self.seen.values() {
            pools.push((seen.value * f64::from(seen.count), seen.count, 1));
            while let [.., before, last] = pools[..]
                && before.0 / f64::from(before.1) > last.0 / f64::from(last.1)
            {
                pools.truncate(pools.len() - 2);
                pools.push((before.0 + last.0, before.1 + last.1, before.2 + last.2));
            }
        }
        let each = pools.into_iter().flat_map(|(sum, count, rungs)| {
            std::iter::repeat_n((sum / f64::from(count), count), rungs)
        });
        let together = self.seen.iter().zip(each);
        together
            .map(|((rung, seen), (value, count))| Step {
                rung: *rung,
                value,
                count,
                in_flight: seen.in_flight,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_a_root_of_two_apart_and_never_the_same() {
        let bounds: Vec<u64> = (0..9).map(|rung| Rung(rung).bound()).collect();
        assert_eq!(bounds, [1, 2, 3, 4, 5, 6, 8, 11, 16]);
        for rung in 6..HIGHEST {
            let ratio = Rung(rung + 1).bound() as f64 / Rung(rung).bound() as f64;
            assert!((ratio - 2_f64.sqrt()).abs() < 0.06, "{rung}: {ratio}");
        }
    }

    #[test]
    fn a_bound_is_on_the_rung_that_is_no_higher() {
        for (bound, on) in [
            (0, 1),
            (1, 1),
            (2, 2),
            (7, 6),
            (8, 8),
            (545, 512),
            (1_000, 724),
        ] {
            assert_eq!(Rung::at_most(bound).bound(), on);
        }
        assert_eq!(Rung::at_most(u64::MAX).bound(), 1 << 63);
        for (bound, on) in [(0, 1), (1, 1), (7, 8), (8, 8), (1_635, 2_048)] {
            assert_eq!(Rung::at_least(bound).bound(), on);
        }
        assert_eq!(Rung::at_least(u64::MAX).bound(), 1 << 63);
    }

    #[test]
    fn what_falls_is_taken_together_and_what_rises_is_left() {
        let mut rungs = Rungs::default();
        for (rung, value, looks) in [
            (0, 1.0, 1),
            (1, 3.0, 1),
            (2, 2.0, 3),
            (3, 2.1, 1),
            (4, 5.0, 1),
        ] {
            for _ in 0..looks {
                rungs.look(Rung(rung), value, 1.0);
            }
        }
        let steps = rungs.isotonic();
        let values: Vec<f64> = steps.iter().map(|step| step.value).collect();
        let pooled = (3.0 + 3.0 * 2.0 + 2.1) / 5.0;
        for (value, expected) in values.iter().zip([1.0, pooled, pooled, pooled, 5.0]) {
            assert!((value - expected).abs() < 1e-12, "{values:?}");
        }
        assert_eq!(steps[2].count, 5);
    }

    #[test]
    fn old_looks_fade() {
        let mut rungs = Rungs::default();
        for _ in 0..100 {
            rungs.look(Rung(3), 0.0, 1.0);
        }
        for _ in 0..20 {
            rungs.look(Rung(3), 1.0, 1.0);
        }
        let seen = rungs.get(Rung(3)).unwrap();
        assert!(seen.value > 0.8 && seen.count == COUNT_MAX, "{seen:?}");
        rungs.rebase(0.5);
        assert!(rungs.get(Rung(3)).unwrap().value < 0.5);
    }
}
