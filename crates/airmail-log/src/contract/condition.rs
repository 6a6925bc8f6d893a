//! How a storage is, whatever it is asked: what keeps it from storing, and which clock it believes.

use airmail_model::Wall;
use std::time::Duration;

/// Why a storage stores nothing at the moment. Reading goes on; it heals by itself if it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// For want of room, rather than because something failed.
    pub full: bool,
    /// What the system says.
    pub error: String,
}

/// A jump of the wall clock that is not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldJump {
    /// How far the wall clock has jumped, in microseconds; less than 0: back.
    pub by_us: i64,
    /// The trusted time when it was noticed.
    pub noticed: Wall,
    /// How long it is held yet, if the wall clock goes on to agree with it.
    pub left: Duration,
}

/// Whether the wall clock is believed, and what retention by time goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// What the wall clock shows.
    pub wall: Wall,
    /// What retention by time goes by.
    pub trusted: Wall,
    /// The jump that is held, if one is.
    pub held: Option<HeldJump>,
    /// Jumps noticed since the start.
    pub jumps: u64,
    /// Jumps believed since the start: because their time was over, or because somebody said so.
    pub believed: u64,
}
