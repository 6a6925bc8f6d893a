//! Bugs that the simulator plants, to see that it finds them. In no build but its own.

/// A bug to plant. Each is a mistake that is easily made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A reader is told that one number more has gone by retention than has.
    GapTooLong,
    /// Batches are answered and seen when they have numbers, not when they are stored.
    SeenBeforeSync,
    /// A checkpoint is written without the producers.
    ProducersForgotten,
    /// A topic's last batch in a block is not found by the index.
    IndexMissesOne,
    /// A block is let go though the log keeps a part of it.
    BlockGoneEarly,
    /// A log goes on at its last number, not above its reservation.
    NumbersReused,
    /// A sealed log takes batches.
    SealForgotten,
    /// A deleted log comes back when the journal opens.
    DeleteForgotten,
    /// A spec of an earlier place in log 0 is taken over.
    OlderSpecObeyed,
    /// Retention by time goes by a wall clock that has jumped.
    JumpBelieved,
}
