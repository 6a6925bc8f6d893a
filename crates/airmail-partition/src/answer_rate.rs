//! Bytes that a node acknowledges in a second, over about the last one.
//!
//! The rate is computed when a partition is chosen, and not updated by every acknowledgement: their
//! sum is read at most ten times a second.

use std::time::Duration;

/// The shortest time between two readings.
const READ: Duration = Duration::from_millis(100);
/// Time in which an older observation loses weight to 1/e.
const MEMORY_S: f64 = 1.0;

/// One node's.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerRate {
    /// Time of the last reading, and bytes acknowledged until then.
    last: Option<(Duration, u64)>,
    bytes_per_s: Option<f64>,
}

impl AnswerRate {
    /// The rate, where one is known yet; `acknowledged` counts up.
    pub(crate) fn bytes_per_s(&mut self, acknowledged: u64, now: Duration) -> Option<f64> {
        let age = self.last.map(|(at, _)| now.saturating_sub(at));
        if age.is_none_or(|age| age >= READ) {
            let before = self.last.replace((now, acknowledged));
            if let Some((at, before)) = before {
                let seconds = now.saturating_sub(at).as_secs_f64();
                let latest = acknowledged.saturating_sub(before) as f64 / seconds;
                let known = self.bytes_per_s.unwrap_or(latest);
                self.bytes_per_s = Some(latest + (known - latest) * (-seconds / MEMORY_S).exp());
            }
        }
        self.bytes_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_rate_is_known_after_two_readings_and_follows_within_seconds() {
        let mut rate = AnswerRate::default();
        assert_eq!(rate.bytes_per_s(0, MS), None);
        assert_eq!(rate.bytes_per_s(50, 51 * MS), None, "too soon");
        assert_eq!(rate.bytes_per_s(100, 101 * MS), Some(1_000.0));
        let after = rate.bytes_per_s(100, 1_101 * MS);
        assert_eq!(
            after,
            Some(1_000.0 / 1_f64.exp()),
            "nothing came for a second"
        );
        let back = rate.bytes_per_s(10_100, 11_101 * MS);
        assert!(
            back.is_some_and(|rate| (rate - 1_000.0).abs() < 1.0),
            "{back:?}"
        );
    }
}
