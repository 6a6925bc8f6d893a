//! The wall clock that goes astray: for a while it is hours or days ahead, and then right again.
//!
//! A process that sees it must not give up records by it that retention keeps by the true time,
//! whether it goes on, stops or is killed meanwhile. Runs with failing files have no such clock:
//! the last trusted time is in one of the files.

use super::StorageRun;
use crate::census::Kind;
use airmail_model::{Now, Wall};
use std::time::Duration;

/// Least time that it is ahead: as far as two of the clock's leaps, and far more than a jump is.
const HOURS_MIN: u64 = 3;
const HOURS_MAX: u64 = 72;
/// Longest time that it is wrong, but for a leap of up to an hour.
const WRONG_MICROS_MAX: u64 = 1_000_000;
/// Time that has to have passed before: the facts known at the start are on the disk by then.
const SETTLED: Duration = Duration::from_millis(200);

impl StorageRun {
    /// Times of both clocks as the process sees them.
    pub(super) fn shown(&self) -> Now {
        let wall = Wall(self.weather.now.wall.0.saturating_add(self.astray.0));
        Now {
            wall,
            ..self.weather.now
        }
    }

    /// Lets the clock go wrong, and come right when its time is over.
    pub(super) fn lead_astray(&mut self) {
        if self.astray.0 != 0 && self.astray.1 <= self.weather.now.mono {
            self.astray.0 = 0;
            self.evidence.note(format_args!("the wall clock is right"));
        }
        let swarm = &self.weather.swarm;
        let failing = swarm.sync_fails + swarm.write_fails + swarm.ails + swarm.fills_up;
        let settled = self.started.plus(SETTLED) <= self.weather.now.mono;
        if failing > 0 || !settled || !self.chance.chance(swarm.astray) || self.astray.0 != 0 {
            return;
        }
        self.evidence.count(Kind::ClockAstray);
        let hours = self.chance.between(HOURS_MIN, HOURS_MAX);
        let micros = self.chance.between(1, WRONG_MICROS_MAX);
        let until = self.weather.now.mono.plus(Duration::from_micros(micros));
        self.astray = (i64::try_from(hours).unwrap_or(0) * 3_600_000_000, until);
        self.evidence
            .note(format_args!("the wall clock is {hours} hours ahead"));
    }
}
