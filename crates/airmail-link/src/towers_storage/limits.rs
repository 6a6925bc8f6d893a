//! Bounds of takeovers.

use std::time::Duration;

/// Settings of how logs are spread over towers, and how they move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TowerLimits {
    /// Towers of each log, of which one is active. 1 to [`TowerLimits::TOWERS_PER_LOG_MAX`]. Default: 2.
    pub towers_per_log: usize,
    /// Takeovers that are under way at a tower at a time. Default: 64.
    pub takeover_logs: usize,
    /// Logs that are taken up at further towers in a second, and readers of which they are told what is wanted.
    /// Default: 20.
    pub uptake_logs_per_s: u32,
    /// Time for which a tower may say nothing of a log, or less than another, before it is stale. Default: 1 s.
    pub stale_after: Duration,
    /// Time for which a log does not go back by choice to a tower that it has left, and for which one that has no room
    /// for what is wanted is not told it again. Default: 10 s.
    pub rest: Duration,
    /// Interval at which towers are asked for the ends of logs. Default: 500 ms.
    pub ask_every: Duration,
    /// Logs whose ends are asked for at an interval. Default: 256.
    pub ask_logs: usize,
    /// Total size of the appends to a log that wait while it moves by choice, in bytes; beyond it, it stays. Default:
    /// 1 MiB.
    pub moving_bytes: u64,
    /// A planted bug.
    #[cfg(feature = "sabotage")]
    pub bug: Option<crate::sabotage::Bug>,
}

impl Default for TowerLimits {
    fn default() -> TowerLimits {
        TowerLimits {
            towers_per_log: 2,
            takeover_logs: 64,
            uptake_logs_per_s: 20,
            stale_after: Duration::from_secs(1),
            rest: Duration::from_secs(10),
            ask_every: Duration::from_millis(500),
            ask_logs: 256,
            moving_bytes: 1 << 20,
            #[cfg(feature = "sabotage")]
            bug: None,
        }
    }
}

impl TowerLimits {
    /// Most towers of a log.
    pub const TOWERS_PER_LOG_MAX: usize = 3;
}
