//! A node's wall clock, and whether the node trusts it.

use airmail_model::Wall;
use airmail_proto::v1;
use std::time::Duration;

/// State of a node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClock {
    /// Time that its wall clock shows.
    pub wall: Wall,
    /// Time that it trusts, by which it applies retention.
    pub trusted: Wall,
    /// Jump of the wall clock that the node does not trust yet, if there is one.
    pub held: Option<ClockJump>,
    /// Number of jumps noticed since the node began.
    pub jumps: u64,
}

/// A jump of a node's wall clock that the node does not trust yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// Distance in microseconds; negative if the clock went back.
    pub by_us: i64,
    /// Trusted time at which it was noticed.
    pub noticed: Wall,
    /// Time until the node trusts it, if the wall clock goes on steadily.
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
