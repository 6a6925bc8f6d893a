//! Bugs that can be planted, to see that the simulator finds them.

use std::fmt;

/// A bug to plant. Each is a mistake that is easily made, and that no user may ever meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Plant {
    /// The disk says that a sync is done, and has not done it.
    AckBeforeSync,
    /// A delivery's range is taken to begin one number later than it does.
    RangeOffByOne,
    /// A producer's batch that leaves numbers out is taken for the next one.
    ProducerGreaterIsNext,
}

impl Plant {
    /// Every one of them.
    pub const ALL: [Plant; 3] = [
        Plant::AckBeforeSync,
        Plant::RangeOffByOne,
        Plant::ProducerGreaterIsNext,
    ];
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Plant::AckBeforeSync => "ack-before-sync",
            Plant::RangeOffByOne => "range-off-by-one",
            Plant::ProducerGreaterIsNext => "producer-greater-is-next",
        })
    }
}
