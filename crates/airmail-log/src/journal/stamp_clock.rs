//! The clock of a log's append times: the wall clock, but never back.
//!
//! Where the wall clock is set back, a log's clock goes on from where it was, by the monotone clock and a
//! hundredth slower, until the wall clock has come up to it: an hour is made up for in some four days. So what is
//! appended meanwhile grows old as it should. Were the times of all of it the last one before, nothing of it could
//! expire until the wall clock was there again.
//!
//! What was told counts as what was appended: nobody hears of an earlier time after a later one. A start goes on from
//! the newest append time: what was told beyond that, and how long the stop was, only the wall clock can say.

use airmail_model::{AppendTime, Mono, Now};
use std::time::Duration;

/// The part of time by which a clock is slower that waits for the wall clock.
const SLOWER_PART: u32 = 100;

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct StampClock {
    /// The highest that it has shown; `i64::MIN` before the first.
    shown: AppendTime,
    /// When it showed the wall clock last, or began, and with what.
    base: (Mono, AppendTime),
}

impl StampClock {
    /// A clock that has shown nothing yet.
    pub(super) const fn new() -> StampClock {
        StampClock {
            shown: AppendTime(i64::MIN),
            base: (Mono(0), AppendTime(i64::MIN)),
        }
    }

    /// The highest that it has shown, as far as is known.
    pub(super) const fn shown(&self) -> AppendTime {
        self.shown
    }

    /// Before the start it has shown `time`.
    pub(super) fn found(&mut self, time: AppendTime) {
        self.shown = self.shown.max(time);
    }

    /// Begins `at`, with what was found.
    pub(super) fn begin(&mut self, at: Mono) {
        self.base = (at, self.shown);
    }

    /// Shows the time.
    pub(super) fn read(&mut self, now: Now) -> AppendTime {
        let wall = AppendTime(now.wall.0);
        let own = self.by_itself(now.mono);
        if wall >= own {
            self.base = (now.mono, wall);
        }
        self.shown = wall.max(own);
        self.shown
    }

    /// The time without the wall clock.
    fn by_itself(&self, now: Mono) -> AppendTime {
        let (since, from) = self.base;
        let passed = now.since(since);
        let passed: Duration = passed - passed / SLOWER_PART;
        let passed_us = i64::try_from(passed.as_micros()).unwrap_or(i64::MAX);
        AppendTime(from.0.saturating_add(passed_us)).max(self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_model::Wall;

    const SECOND: i64 = 1_000_000;

    /// After so many seconds; the wall clock is off by `off_s`.
    fn at(seconds: i64, off_s: i64) -> Now {
        Now {
            mono: Mono(seconds as u64 * 1_000_000_000),
            wall: Wall((10_000 + seconds + off_s) * SECOND),
        }
    }

    fn shown(seconds: i64) -> AppendTime {
        AppendTime((10_000 + seconds) * SECOND)
    }

    #[test]
    fn it_shows_the_wall_clock_where_that_goes_on_or_is_set_ahead() {
        let mut clock = StampClock::new();
        assert_eq!(clock.read(at(0, 0)), shown(0));
        assert_eq!(clock.read(at(100, 0)), shown(100));
        assert_eq!(clock.read(at(101, 3600)), shown(3701));
    }

    #[test]
    fn it_goes_on_where_the_wall_clock_is_set_back_until_that_has_come_up() {
        let mut clock = StampClock::new();
        clock.read(at(0, 0));
        assert_eq!(clock.read(at(100, -10)), shown(99));
        assert_eq!(clock.read(at(200, -10)), shown(198));
        // Ten seconds in a thousand.
        assert_eq!(clock.read(at(999, -10)).0, shown(989).0 + SECOND / 100);
        assert_eq!(clock.read(at(1001, -10)), shown(991));
        assert_eq!(clock.read(at(1002, -10)), shown(992));
    }

    #[test]
    fn short_steps_are_not_lost() {
        let mut clock = StampClock::new();
        clock.read(at(1, 0));
        let mut now = at(1, -3600);
        for _ in 0..10_000 {
            now.mono = Mono(now.mono.0 + 150);
            clock.read(now);
        }
        assert_eq!(clock.shown().0 - shown(1).0, 1500 - 15);
    }

    #[test]
    fn it_goes_on_from_what_is_known_of_the_time_before_a_start() {
        let mut clock = StampClock::new();
        clock.found(shown(3600));
        clock.found(shown(3500));
        clock.begin(at(5, 0).mono);
        assert_eq!(clock.shown(), shown(3600));
        assert_eq!(clock.read(at(105, 0)), shown(3699));
        let mut behind = StampClock::new();
        behind.found(shown(-3600));
        behind.begin(at(5, 0).mono);
        assert_eq!(behind.read(at(6, 0)), shown(6));
    }
}
