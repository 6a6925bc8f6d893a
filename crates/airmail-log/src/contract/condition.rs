//! Condition of a storage: the fault that keeps it from storing, and the clock that it believes.

use airmail_model::Wall;
use std::time::Duration;

/// A fault for which a storage stores nothing at the moment. Reading goes on; it heals by itself if
/// it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// True for want of room, false if something failed.
    pub full: bool,
    /// Message of the system.
    pub error: String,
}

/// A jump of the wall clock that is not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldJump {
    /// Distance that the wall clock has jumped, in microseconds; below 0: back.
    pub by_us: i64,
    /// The trusted time when it was noticed.
    pub noticed: Wall,
    /// Time for which it is still held, if the wall clock goes on to agree with it.
    pub left: Duration,
}

/// Whether the wall clock is believed, and what retention by time goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// Reading of the wall clock.
    pub wall: Wall,
    /// Time that retention goes by.
    pub trusted: Wall,
    /// The jump that is held, if one is.
    pub held: Option<HeldJump>,
    /// Jumps noticed since the start.
    pub jumps: u64,
    /// Jumps believed since the start: because their time was over, or because somebody said so.
    pub believed: u64,
}
