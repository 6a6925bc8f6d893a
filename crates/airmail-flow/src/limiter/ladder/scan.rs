//! A scan: the order in which `ladder` looks at the rungs when it knows nothing.
//!
//! One window a rung, in four legs: up by two rungs, until messages take longer than the budget or eight
//! times the bound have gained nothing, so that a flat piece of the curve does not end it; down again over
//! the rungs between, while they have enough; further down, while the lowest has enough; and once more where
//! the end depends on few looks.

use super::Ends;
use super::knowledge::Knowledge;
use super::rungs::{Rung, Step};
use crate::rule::LadderRule as R;
use std::f64::consts::SQRT_2;

/// Rungs between the looks of one leg.
const STRIDE: u8 = 2;
/// Rungs that must together gain [`GAIN`] for the way up to go on: eight times the bound.
const FLAT: u8 = 6;
const GAIN: f64 = 1.05;
/// Looks at a rung on which the end depends.
const AGAIN: u32 = 3;

/// Where a scan stands: it looks at `rung`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scan {
    pub(super) rung: Rung,
    leg: Leg,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leg {
    /// Up, by [`STRIDE`].
    Up,
    /// Down again, over the rungs between.
    Between,
    /// Below the rung where it began.
    Down,
    /// Once more, where the end depends on few looks.
    Again,
}

impl Scan {
    /// Begins at this rung.
    pub(super) fn from(rung: Rung) -> Scan {
        Scan { rung, leg: Leg::Up }
    }

    /// The rule by which this look is taken.
    pub(super) fn rule(self) -> R {
        match self.leg {
            Leg::Up => R::ScanUp,
            Leg::Between => R::ScanBetween,
            Leg::Down => R::ScanDown,
            Leg::Again => R::LookAgain,
        }
    }

    /// The next look, when this one has been noted; `None` at the end.
    pub(super) fn next(self, known: &Knowledge, ends: Ends) -> Option<Scan> {
        let steps = known.rungs.isotonic();
        let next = match self.leg {
            Leg::Up => self.up(known, &steps, ends),
            Leg::Between => self.between(known, &steps),
            Leg::Down | Leg::Again => None,
        };
        let next = next.or_else(|| down(known, &steps, ends));
        next.or_else(|| again(known, &steps))
    }

    /// Two rungs higher; or, where the way up ends, the first of the rungs between.
    fn up(self, known: &Knowledge, steps: &[Step], ends: Ends) -> Option<Scan> {
        let last = steps.last()?;
        // Where nothing is gained, W grows as the bound does.
        let over = !known.within(last.in_flight * SQRT_2, last.value, 1.0);
        let before = self.rung.below(FLAT);
        let before = steps.iter().find(|step| Some(step.rung) == before);
        let flat = before.is_some_and(|before| last.value - before.value < GAIN.ln());
        let next = self.rung.above(STRIDE);
        if !over && !flat && next <= ends.highest() {
            return Some(Scan::from(next));
        }
        let rung = known.allowed(steps).last()?.rung.below(1)?;
        (rung > steps.first()?.rung).then_some(Scan {
            rung,
            leg: Leg::Between,
        })
    }

    fn between(self, known: &Knowledge, steps: &[Step]) -> Option<Scan> {
        let rung = self.rung.below(STRIDE)?;
        let here = steps.iter().find(|step| step.rung == self.rung)?;
        let enough = here.value >= known.enough(steps)?;
        (enough && rung > steps.first()?.rung).then_some(Scan { rung, ..self })
    }
}

/// Two rungs below the lowest, if that has enough throughput, and latency to spare.
fn down(known: &Knowledge, steps: &[Step], ends: Ends) -> Option<Scan> {
    let lowest = steps.first()?;
    let lower = lowest.rung.below(STRIDE);
    let rung = lower.map_or(ends.lowest(), |rung| rung.max(ends.lowest()));
    let enough = lowest.value >= known.enough(steps)?;
    let worth = lowest.rung > known.floor(lowest.value);
    (enough && worth && rung < lowest.rung).then_some(Scan {
        rung,
        leg: Leg::Down,
    })
}

/// The rung that has enough or the one that has the most, if it has been looked at seldom.
fn again(known: &Knowledge, steps: &[Step]) -> Option<Scan> {
    let most = **known.allowed(steps).last()?;
    let looks = |step: &Step| known.rungs.get(step.rung).map_or(0, |seen| seen.count);
    let depends = [known.least(steps)?, most];
    let seldom = depends.iter().find(|step| looks(step) < AGAIN);
    seldom.map(|step| Scan {
        rung: step.rung,
        leg: Leg::Again,
    })
}
