//! Shares of what goes wrong in the model.

use std::time::Duration;

/// Shares of what goes wrong, and how slow everything is. Shares are of 1,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Shortest time that anything takes.
    pub delay_min: Duration,
    /// Longest time that anything takes. Partitions, reports, fetches and answers each draw their own.
    pub delay_max: Duration,
    /// Records that are stored, and told as of unknown outcome.
    pub unknown_stored: u16,
    /// Records that are not stored, after which the client fails: everything that it has under way is told as of unknown
    /// outcome, and it takes nothing until then.
    pub unknown_lost: u16,
    /// Records that another producer stores once more, some time later.
    pub twice: u16,
    /// Records before which the leader changes, and with it the clock.
    pub leader_moves: u16,
    /// Most that a leader's clock differs from true time, in milliseconds, to either side.
    pub skew_ms: u16,
    /// Questions that an old leader answers, with a high watermark that was.
    pub old_answers: u16,
    /// Questions that nobody answers in time.
    pub unanswered: u16,
    /// Records that are refused at once because the queue is full.
    pub full: u16,
    /// Records before which an offset holds nothing that a consumer is given, as behind a marker of a transaction.
    pub holes: u16,
}

impl Faults {
    /// Nothing goes wrong, and everything happens at once.
    pub const NONE: Faults = Faults {
        delay_min: Duration::ZERO,
        delay_max: Duration::ZERO,
        unknown_stored: 0,
        unknown_lost: 0,
        twice: 0,
        leader_moves: 0,
        skew_ms: 0,
        old_answers: 0,
        unanswered: 0,
        full: 0,
        holes: 0,
    };
}
