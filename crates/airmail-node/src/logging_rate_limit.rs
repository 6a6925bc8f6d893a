//! Limits how often the log tells of something that happens again and again, and counts it meanwhile.

use std::time::Duration;
use tokio::time::Instant;

/// Time between two lines of the log about the same thing.
const PAUSE: Duration = Duration::from_secs(10);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct LoggingRateLimit {
    told: Option<Instant>,
    times: u64,
}

impl LoggingRateLimit {
    /// Counts it once more. Gives how often it has happened since it was last told, if it is to be told now.
    pub(super) fn happened(&mut self, now: Instant) -> Option<u64> {
        self.times += 1;
        if self.told.is_some_and(|told| now < told + PAUSE) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_told_once_in_a_while_with_how_often() {
        let begun = Instant::now();
        let mut limit = LoggingRateLimit::default();
        assert_eq!(limit.happened(begun), Some(1));
        for _ in 0..99 {
            assert_eq!(limit.happened(begun + PAUSE / 2), None);
        }
        assert_eq!(limit.happened(begun + PAUSE), Some(100));
        assert_eq!(limit.happened(begun + PAUSE * 3), Some(1));
    }
}
