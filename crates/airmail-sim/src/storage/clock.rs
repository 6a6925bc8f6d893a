//! The wall clock that goes astray: for a while it is hours or days ahead, and then right again.
//!
//! A process that sees it must not give up by it what retention keeps by the true time, whether it
//! goes on, stops or is killed meanwhile. Not where files fail: what was last known of the time is
//! in one of them.

use super::StorageRun;
use crate::census::Kind;
use airmail_model::{Now, Wall};
use std::time::Duration;

/// How far it is ahead, at least: as far as two of the clock's leaps, and far more than a jump is.
const HOURS_MIN: u64 = 3;
const HOURS_MAX: u64 = 72;
/// How long it is wrong at most, but for a leap of up to an hour.
const WRONG_MICROS_MAX: u64 = 1_000_000;
/// What has to have passed before: what was known at the start is on the disk by then.
const SETTLED: Duration = Duration::from_millis(200);

impl StorageRun {
    /// What the process sees of both clocks.
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
