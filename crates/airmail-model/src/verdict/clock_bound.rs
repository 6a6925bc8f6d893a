//! A clock that is somewhere else, from above.
//!
//! The age of a record is by the clock that made its append time, and whoever judges it is one or two hops away
//! from that clock. It asks, and the answer was read after the question was sent. So the clock is now at
//! most what the answer says and the time since the *question*, by the own monotone time, and a ten-thousandth
//! of that because two machines do not count time alike. That bound is never too low while the clock runs, and
//! too high by the way of the question at most. Who has such a bound may tell it on as if it were the clock: a
//! bound of a bound is one.
//!
//! Some answers are slow, so the last few are kept, and the lowest of their bounds counts. A clock that is set
//! forward makes bounds from before too low. What shows that drops them: an answer, or an append time, above a
//! bound. As only a few are kept, none from before is left after so many answers even if nothing showed it.

use crate::time::{AppendTime, Mono};

/// Answers that are kept.
const KEPT: usize = 4;
/// The part by which a clock may run faster than one's own: a ten-thousandth, 100 ppm.
const DRIFT_PART: u128 = 10_000;

/// Knowledge of a clock that is somewhere else; none at first.
///
/// ```
/// use airmail_model::verdict::ClockBound;
/// use airmail_model::{AppendTime, Mono};
/// let mut bound = ClockBound::default();
/// assert_eq!(bound.at(Mono(0)), None);
/// // Asked at 1 ms, answered at 3 ms: what it showed may have been so since 1 ms.
/// bound.heard(Mono(1_000_000), Mono(3_000_000), AppendTime(700));
/// assert_eq!(bound.at(Mono(3_000_000)), Some(AppendTime(700 + 2_000 + 1)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockBound {
    /// From the newest to the oldest.
    answers: [Option<ClockReading>; KEPT],
}

/// A reading of a clock that is somewhere else: at most `clock`, when one's own monotone time was `at`.
///
/// Who hands records on says by it when they are too old; whoever gets them turns it into a reading at a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The highest that the clock showed.
    pub clock: AppendTime,
    /// When it did not show more.
    pub at: Mono,
}

impl ClockReading {
    /// The highest that the clock can show at `now`.
    #[must_use]
    pub fn reaches(self, now: Mono) -> AppendTime {
        // One nanosecond more, as both readings were rounded down.
        let passed_ns = u128::from(now.0.saturating_sub(self.at.0)) + 1;
        let passed_us = (passed_ns + passed_ns.div_ceil(DRIFT_PART)).div_ceil(1000);
        let passed_us = i64::try_from(passed_us).unwrap_or(i64::MAX);
        AppendTime(self.clock.0.saturating_add(passed_us))
    }
}

impl ClockBound {
    /// Takes an answer: to a question that was sent at `asked`, heard at `now`, the clock was shown as `clock`.
    /// Both times are one's own. What answers may know only a bound of the clock itself, and tell that; it is taken
    /// for a proof all the same, so a bound that is lax drops tighter ones: too high then, and not too low.
    pub fn heard(&mut self, asked: Mono, now: Mono, clock: AppendTime) {
        self.shown(now, clock);
        self.answers.rotate_right(1);
        self.answers[0] = Some(ClockReading { clock, at: asked });
    }

    /// Takes a proof that at `now` the clock is not before `clock`, such as the append time of a record that has
    /// come: answers by which it cannot be so far are dropped. So it may be that nothing is known until the next
    /// answer.
    pub fn shown(&mut self, now: Mono, clock: AppendTime) {
        for answer in &mut self.answers {
            *answer = answer.filter(|answer| answer.reaches(now) >= clock);
        }
    }

    /// The highest that the clock can show at `now`; `None` if nothing is known: then ask, and hand over nothing
    /// that expires before there is an answer.
    #[must_use]
    pub fn at(&self, now: Mono) -> Option<AppendTime> {
        let answers = self.answers.iter().flatten();
        answers.map(|answer| answer.reaches(now)).min()
    }
}
