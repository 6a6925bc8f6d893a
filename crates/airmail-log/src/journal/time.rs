//! The journal's time: as it was last told, how far it is believed, and the file that keeps it for
//! the next start.
//!
//! The journal reads no clock. Time is what its owner says with each step, and data that must not
//! go too early goes by the trusted time ([`clock_guard`](super::clock_guard)).

use super::clock_file::ClockFile;
use super::clock_guard::ClockGuard;
use crate::contract::ClockState;
use airmail_model::{AppendTime, Mono, Now, Wall};
use std::time::Duration;

/// The journal's time. See the module's documentation.
#[derive(Debug)]
pub(super) struct Time {
    now: Now,
    guard: ClockGuard,
    file: ClockFile,
}

impl Time {
    /// Begins `now`; the wall clock is believed.
    pub(super) fn new(jump: Duration, now: Now) -> Time {
        Time {
            now,
            guard: ClockGuard::new(jump, None, now),
            file: ClockFile::default(),
        }
    }

    /// Begins once more, with the last time that was known before the start.
    pub(super) fn known(&mut self, jump: Duration, known: Option<Wall>) {
        self.guard = ClockGuard::new(jump, known, self.now);
    }

    /// Readings of both clocks.
    pub(super) const fn now(&self) -> Now {
        self.now
    }

    /// Reading of the monotone clock.
    pub(super) const fn mono(&self) -> Mono {
        self.now.mono
    }

    /// Reading of the wall clock: the time of commands given now.
    pub(super) const fn wall(&self) -> AppendTime {
        AppendTime(self.now.wall.0)
    }

    /// The time that nothing that cannot be undone goes beyond.
    pub(super) fn trusted(&self) -> AppendTime {
        AppendTime(self.guard.trusted(self.now).0)
    }

    /// Takes over the clocks' readings.
    pub(super) fn set(&mut self, now: Now) {
        self.now = now;
    }

    /// Looks whether the wall clock is to be believed.
    pub(super) fn step(&mut self, now: Now) {
        self.now = now;
        self.guard.step(now);
    }

    /// The wall clock is right, whatever it has done.
    pub(super) fn believe(&mut self, now: Now) {
        self.now = now;
        self.guard.believe(now);
    }

    /// Reports the state of the clock.
    pub(super) fn state(&self) -> ClockState {
        self.guard.state(self.now)
    }

    /// The file that keeps the trusted time.
    pub(super) const fn file(&mut self) -> &mut ClockFile {
        &mut self.file
    }

    /// Asserts the invariants of the clock and of its file.
    pub(super) fn check(&self) {
        self.guard.check(self.now);
        self.file.check();
    }
}
