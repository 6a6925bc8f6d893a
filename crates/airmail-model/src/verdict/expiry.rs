//! The age of a record, by the clock that made its append time.

use crate::time::AppendTime;

/// Whether a record appended at `appended` that lives for `ttl_ms` milliseconds is too old at `now`: its age is
/// `ttl_ms` or more. `now` must not be before what the clock that made the append time shows; then no record is
/// taken for younger than it is. A record from after `now` has no age.
///
/// ```
/// use airmail_model::AppendTime;
/// use airmail_model::verdict::expired;
/// let appended = AppendTime(5_000_000);
/// assert!(!expired(AppendTime(5_199_999), appended, 200));
/// assert!(expired(AppendTime(5_200_000), appended, 200));
/// ```
#[must_use]
pub fn expired(now: AppendTime, appended: AppendTime, ttl_ms: u32) -> bool {
    let age_us = now.0.saturating_sub(appended.0).max(0);
    age_us >= i64::from(ttl_ms) * 1000
}

/// The time at which the records of one log are judged, by whoever judges them. It never goes back: not when the
/// log's clock is set back, and not when the log is now of a machine whose clock is behind. So what has expired
/// for one is not handed over to another afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogTime(Option<AppendTime>);

impl LogTime {
    /// The time to judge by, now that the clock of the log is at most `bound` ([`super::ClockBound`]).
    pub fn advance(&mut self, bound: AppendTime) -> AppendTime {
        let now = self.0.map_or(bound, |judged| judged.max(bound));
        self.0 = Some(now);
        now
    }

    /// The latest time that was judged by; `None` before the first.
    #[must_use]
    pub fn latest(self) -> Option<AppendTime> {
        self.0
    }
}
