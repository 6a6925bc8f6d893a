//! Decides after which steps a core checks its invariants: after each one, where bugs panic.
//!
//! A check costs as much as the core has parts. So that a test with a great many of them still gets
//! on, a check of more than [`PARTS_A_STEP`] parts is followed by steps without a check, so many
//! that a step checks no more than that on average. A core with fewer parts is checked after each
//! step.

use airmail_model::bug;

/// Number of parts that a step may check, on average.
const PARTS_A_STEP: usize = 128;

/// Schedule of the checks of one core.
#[derive(Debug, Default)]
pub(super) struct CheckSchedule {
    /// Number of coming steps that are not checked.
    skip: usize,
}

impl CheckSchedule {
    /// Begins a step; returns whether it is to be checked when it is done.
    #[inline]
    pub(super) fn begin_step(&mut self) -> bool {
        bug::is_checking() && self.is_due()
    }

    fn is_due(&mut self) -> bool {
        let skipped = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        !skipped
    }

    /// Takes note that a step was checked, and how many parts it had.
    pub(super) fn checked(&mut self, parts: usize) {
        self.skip = parts / PARTS_A_STEP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_core_is_checked_after_each_step_and_a_large_one_in_proportion() {
        let mut schedule = CheckSchedule::default();
        for _ in 0..3 {
            assert!(schedule.begin_step());
            schedule.checked(PARTS_A_STEP - 1);
        }
        assert!(schedule.begin_step());
        schedule.checked(3 * PARTS_A_STEP);
        let checked = (0..4).map(|_| schedule.begin_step());
        assert_eq!(checked.collect::<Vec<_>>(), [false, false, false, true]);
    }
}
