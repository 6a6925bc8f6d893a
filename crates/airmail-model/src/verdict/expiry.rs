//! The age of a record, by the clock that made its append time.

use crate::id::Sequence;
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

/// The time at which the records of one log are judged, by whoever judges them. For one and the same record it
/// never goes back: what has expired for one is not handed over to another afterwards. For records that are newer than
/// all that were judged it does, where the clock of the log has gone back: on a machine whose clock was set, or is
/// behind. If they were held to the later time, they would be taken for older than they are.
///
/// ```
/// use airmail_model::verdict::LogTime;
/// use airmail_model::{AppendTime, Sequence};
/// let mut time = LogTime::default();
/// assert_eq!(time.judge(AppendTime(9_000), Sequence(1), Sequence(5)), AppendTime(9_000));
/// // The clock has gone back: for what was judged before it has not.
/// assert_eq!(time.judge(AppendTime(4_000), Sequence(6), Sequence(7)), AppendTime(4_000));
/// assert_eq!(time.judge(AppendTime(4_001), Sequence(5), Sequence(5)), AppendTime(9_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogTime {
    /// The time by which was judged last.
    newest: Option<AppendTime>,
    /// The highest number of what was judged.
    judged: Sequence,
    /// The latest time before the clock went back, and the highest number of what was judged by then.
    floor: Option<(AppendTime, Sequence)>,
}

impl LogTime {
    /// The time to judge the records `first` to `last` by, now that the clock of the log is at most `bound`
    /// ([`super::ClockBound`]).
    pub fn judge(&mut self, bound: AppendTime, first: Sequence, last: Sequence) -> AppendTime {
        if let Some(newest) = self.newest.filter(|newest| *newest > bound) {
            let latest = self.floor.map_or(newest, |(time, _)| time.max(newest));
            self.floor = Some((latest, self.judged));
        }
        self.newest = Some(bound);
        self.judged = self.judged.max(last);
        match &mut self.floor {
            Some((time, up_to)) if first <= *up_to => {
                *up_to = last.max(*up_to);
                bound.max(*time)
            }
            _ => bound,
        }
    }
}
