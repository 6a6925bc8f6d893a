//! Lines of the log about a wall clock that jumps: one when it is noticed, and one when it is over.

use airmail_log::{ClockState, HeldJump};
use airmail_model::Wall;
use std::time::Duration;

/// The jumps that the log has told of.
#[derive(Debug, Default)]
pub(crate) struct ClockJumpLogger {
    jumps: u64,
    held: bool,
}

impl ClockJumpLogger {
    /// Tells what is new.
    pub(crate) fn tell(&mut self, clock: &ClockState) {
        let new = clock.jumps > self.jumps;
        match clock.held {
            Some(held) if new => tell_jump(clock, &held),
            None if self.held || new => tracing::info!(
                wall = %text(clock.wall),
                believed = clock.believed,
                "the wall clock is believed: retention by time goes by it"
            ),
            _ => {}
        }
        (self.jumps, self.held) = (clock.jumps, clock.held.is_some());
    }
}

fn tell_jump(clock: &ClockState, held: &HeldJump) {
    // In seconds: what is shorter is of no use to a reader, and differs each time.
    let seconds = |micros: u64| Duration::from_secs(micros / 1_000_000);
    tracing::warn!(
        wall = %text(clock.wall),
        trusted = %text(clock.trusted),
        by = %humantime::format_duration(seconds(held.by_us.unsigned_abs())),
        direction = if held.by_us < 0 { "back" } else { "ahead" },
        held_for = %humantime::format_duration(Duration::from_secs(held.left.as_secs())),
        "the wall clock has jumped: retention by time waits until it has agreed with this for as \
         long as held_for says, or until `airmail clock accept`; setting retention.clock_jump"
    );
}

/// A time, as people read it.
fn text(time: Wall) -> String {
    let stamp = jiff::Timestamp::from_microsecond(time.0);
    stamp.map_or_else(|_| time.0.to_string(), |stamp| format!("{stamp:.0}"))
}
