//! Guard against a wrong wall clock: retention by time deletes for good by its reading.
//!
//! The monotone clock does not jump. From a moment at which both were believed it says what the
//! wall clock should show; a difference of `jump` or more is a jump, forward or back. While a jump
//! is held, the time that retention goes by, the *trusted* time, goes on as if nothing had
//! happened, or follows the wall clock if that is behind: so nothing goes too early, whichever of
//! the two is right. The jump is believed when the wall clock has agreed with it for as long as the
//! jump was wide, at most for [`HELD_MAX`], or when the operator says so; it is over when the wall
//! clock comes back.
//!
//! A start is a step like any other, from the time that was last known before the stop: only the
//! wall clock can say how long a stop has been, so a long one is held as a jump forward.
//!
//! Invariants, held by [`ClockGuard::check`]:
//! - The trusted time is never later than the wall clock, but for less than a jump.
//! - No jump is held for longer than [`HELD_MAX`], and each held one is at least `jump` wide.

use crate::contract::{ClockState, HeldJump};
use airmail_model::{Mono, Now, Wall};
use std::time::Duration;

/// Longest time that a jump is held, however far it was.
pub const HELD_MAX: Duration = Duration::from_secs(24 * 3600);

/// A jump that is not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    /// The wall clock less the time that it should have shown, in microseconds.
    by_us: i64,
    /// Time that the wall clock should have shown when the jump was noticed.
    noticed: Wall,
    /// When it is believed.
    until: Mono,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct ClockGuard {
    jump_us: i64,
    /// When the wall clock was believed last.
    anchor: Now,
    held: Option<Held>,
    jumps: u64,
    believed: u64,
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl ClockGuard {
    /// Begins `now`, with the last time that was known before; the wall clock is believed where
    /// none is.
    pub(super) fn new(jump: Duration, known: Option<Wall>, now: Now) -> ClockGuard {
        let wall = known.unwrap_or(now.wall);
        let mut guard = ClockGuard {
            jump_us: micros(jump).max(1),
            anchor: Now { wall, ..now },
            held: None,
            jumps: 0,
            believed: 0,
        };
        guard.step(now);
        guard
    }

    /// Time that the wall clock should show now, in microseconds.
    fn expected(&self, now: Now) -> i64 {
        let passed = micros(now.mono.since(self.anchor.mono));
        self.anchor.wall.0.saturating_add(passed)
    }

    /// Looks at both clocks.
    pub(super) fn step(&mut self, now: Now) {
        let expected = self.expected(now);
        let by_us = now.wall.0.saturating_sub(expected);
        let is_jump = |by_us: i64| by_us.unsigned_abs() >= self.jump_us.unsigned_abs();
        if !is_jump(by_us) {
            self.held = None;
            self.anchor = now;
            return;
        }
        match self.held {
            Some(held) if !is_jump(by_us.saturating_sub(held.by_us)) => {
                if held.until <= now.mono {
                    self.believe(now);
                }
            }
            _ => {
                let long = Duration::from_micros(by_us.unsigned_abs()).min(HELD_MAX);
                self.jumps += 1;
                self.held = Some(Held {
                    by_us,
                    noticed: Wall(expected),
                    until: now.mono.plus(long),
                });
            }
        }
    }

    /// The wall clock is right, whatever it has done.
    pub(super) fn believe(&mut self, now: Now) {
        self.believed += u64::from(self.held.take().is_some());
        self.anchor = now;
    }

    /// The time that nothing that cannot be undone goes beyond.
    pub(super) fn trusted(&self, now: Now) -> Wall {
        match self.held {
            None => now.wall,
            Some(_) => Wall(self.expected(now).min(now.wall.0)),
        }
    }

    /// Asserts the invariants of the module's documentation.
    pub(super) fn check(&self, now: Now) {
        let later_us = self.trusted(now).0.saturating_sub(now.wall.0);
        assert!(
            later_us < self.jump_us,
            "the trusted time is {later_us} µs later than the wall clock"
        );
        if let Some(held) = self.held {
            assert!(
                held.by_us.unsigned_abs() >= self.jump_us.unsigned_abs(),
                "{held:?} is no jump"
            );
            let left = held.until.since(now.mono);
            assert!(left <= HELD_MAX, "a jump is held for {left:?} yet");
        }
    }

    /// Reports the state of the clock.
    pub(super) fn state(&self, now: Now) -> ClockState {
        let held = self.held.map(|held| HeldJump {
            by_us: held.by_us,
            noticed: held.noticed,
            left: held.until.since(now.mono),
        });
        ClockState {
            wall: now.wall,
            trusted: self.trusted(now),
            held,
            jumps: self.jumps,
            believed: self.believed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    /// Times of both clocks after `hours`; the wall clock is off by `off` hours.
    fn at(hours: f64, off: i64) -> Now {
        Now {
            mono: Mono(7 + (hours * 3.6e12) as u64),
            wall: Wall(1_000 * HOUR + (hours * HOUR as f64) as i64 + off * HOUR),
        }
    }

    fn guard() -> ClockGuard {
        ClockGuard::new(Duration::from_secs(3600), None, at(0.0, 0))
    }

    #[test]
    fn a_clock_that_goes_on_or_is_set_by_less_than_a_jump_is_believed() {
        let mut guard = guard();
        let mut now = at(0.0, 0);
        for minutes in [0, 59, 1, -30, 58] {
            now.mono = now.mono.plus(Duration::from_secs(60));
            now.wall.0 += (minutes + 1) * 60_000_000;
            guard.step(now);
            assert_eq!(guard.trusted(now), now.wall);
        }
        assert_eq!((guard.jumps, guard.state(now).held), (0, None));
    }

    #[test]
    fn a_jump_is_held_for_as_long_as_it_was_and_then_believed() {
        let mut guard = guard();
        for tenths in 10..59 {
            let now = at(f64::from(tenths) / 10.0, 5);
            guard.step(now);
            assert_eq!(guard.trusted(now).0, now.wall.0 - 5 * HOUR);
        }
        let held = guard.state(at(5.0, 5)).held.unwrap();
        assert_eq!(
            (held.by_us, held.left),
            (5 * HOUR, Duration::from_secs(3600))
        );
        let now = at(6.1, 5);
        guard.step(now);
        assert_eq!(
            (guard.trusted(now), guard.jumps, guard.believed),
            (now.wall, 1, 1)
        );
    }

    #[test]
    fn no_jump_is_held_for_longer_than_a_day() {
        let mut guard = guard();
        guard.step(at(1.0, 24 * 365));
        guard.step(at(24.9, 24 * 365));
        assert!(guard.state(at(24.9, 24 * 365)).held.is_some());
        guard.step(at(25.1, 24 * 365));
        assert_eq!(guard.state(at(25.1, 24 * 365)).held, None);
    }

    #[test]
    fn a_clock_that_comes_back_was_never_believed() {
        let mut guard = guard();
        guard.step(at(1.0, 24));
        let now = at(2.0, 0);
        guard.step(now);
        assert_eq!(
            (guard.trusted(now), guard.state(now).held),
            (now.wall, None)
        );
        assert_eq!((guard.jumps, guard.believed), (1, 0));
    }

    #[test]
    fn a_second_jump_is_held_from_its_beginning() {
        let mut guard = guard();
        guard.step(at(1.0, 3));
        guard.step(at(3.9, 8));
        let now = at(11.8, 8);
        guard.step(now);
        assert_eq!(guard.trusted(now).0, now.wall.0 - 8 * HOUR);
        guard.step(at(12.0, 8));
        assert_eq!((guard.jumps, guard.believed), (2, 1));
    }

    #[test]
    fn a_clock_that_is_set_back_is_followed_at_once_and_its_way_back_is_no_jump() {
        let mut guard = guard();
        let now = at(1.0, -10);
        guard.step(now);
        assert_eq!(guard.trusted(now), now.wall);
        assert_eq!(
            guard.state(now).held.map(|held| held.by_us),
            Some(-10 * HOUR)
        );
        let now = at(2.0, 0);
        guard.step(now);
        assert_eq!((guard.trusted(now), guard.jumps), (now.wall, 1));
    }

    #[test]
    fn who_says_so_is_believed_at_once() {
        let mut guard = guard();
        let now = at(1.0, 24);
        guard.step(now);
        guard.believe(now);
        assert_eq!(
            (guard.trusted(now), guard.state(now).held),
            (now.wall, None)
        );
        guard.step(at(1.1, 24));
        assert_eq!((guard.jumps, guard.believed), (1, 1));
    }

    #[test]
    fn a_start_long_after_what_was_last_known_is_a_jump_and_soon_after_is_none() {
        let jump = Duration::from_secs(3600);
        let now = at(0.0, 0);
        let known = |hours: i64| Some(Wall(now.wall.0 - hours * HOUR));
        let late = ClockGuard::new(jump, known(24), now);
        assert_eq!(Some(late.trusted(now)), known(24));
        assert_eq!(late.state(now).held.map(|held| held.by_us), Some(24 * HOUR));
        let soon = ClockGuard::new(jump, known(0), now);
        assert_eq!((soon.trusted(now), soon.jumps), (now.wall, 0));
        let behind = ClockGuard::new(jump, known(-24), now);
        assert_eq!((behind.trusted(now), behind.jumps), (now.wall, 1));
    }
}
