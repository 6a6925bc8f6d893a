//! When a core looks at its own invariants: after each step, where bugs panic.
//!
//! A look costs as much as the core holds. So that a test with very much in it does not stand still, a
//! look at more than [`PARTS_A_STEP`] parts is followed by steps without one, so many that a step looks at
//! no more than that on average. What holds less is looked at after each step.

use airmail_model::bug;

/// Parts that a step may look at, on average.
const PARTS_A_STEP: usize = 128;

/// Says which steps are looked at.
#[derive(Debug, Default)]
pub(super) struct Checking {
    /// Steps that still go without a look.
    skip: usize,
}

impl Checking {
    /// A step begins: whether it is looked at when it is done.
    #[inline]
    pub(super) fn begins(&mut self) -> bool {
        bug::is_checking() && self.is_due()
    }

    fn is_due(&mut self) -> bool {
        let skipped = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        !skipped
    }

    /// A step was looked at, which has so many parts.
    pub(super) fn looked_at(&mut self, parts: usize) {
        self.skip = parts / PARTS_A_STEP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_little_is_looked_at_after_each_step_and_the_rest_in_proportion() {
        let mut checking = Checking::default();
        for _ in 0..3 {
            assert!(checking.begins());
            checking.looked_at(PARTS_A_STEP - 1);
        }
        assert!(checking.begins());
        checking.looked_at(3 * PARTS_A_STEP);
        let looks = (0..4).map(|_| checking.begins());
        assert_eq!(looks.collect::<Vec<_>>(), [false, false, false, true]);
    }
}
