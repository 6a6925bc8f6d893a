//! What a node makes of its wall clock.

use airmail_model::Wall;
use airmail_proto::v1;
use std::time::Duration;

/// A node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClock {
    /// What its wall clock shows.
    pub wall: Wall,
    /// What its retention by time goes by.
    pub trusted: Wall,
    /// The jump of the wall clock that is not believed yet, if there is one.
    pub held: Option<ClockJump>,
    /// Jumps noticed since the node began.
    pub jumps: u64,
}

/// A jump of a node's wall clock that is not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// How far, in microseconds. Less than 0: back.
    pub by_us: i64,
    /// The trusted time when it was noticed.
    pub noticed: Wall,
    /// How long it is held yet, if the wall clock goes on as it does.
    pub left: Duration,
}

impl From<v1::Clock> for NodeClock {
    fn from(clock: v1::Clock) -> NodeClock {
        NodeClock {
            wall: Wall(clock.wall_us),
            trusted: Wall(clock.trusted_us),
            held: clock.held.map(|held| ClockJump {
                by_us: held.by_us,
                noticed: Wall(held.noticed_at_us),
                left: Duration::from_millis(held.left_ms),
            }),
            jumps: clock.jumps,
        }
    }
}
