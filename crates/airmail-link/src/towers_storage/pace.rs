//! The pace at which logs are taken up at further towers, and these are told what is wanted: so many a second, and as
//! many at once.

use airmail_model::Mono;
use std::time::Duration;

/// Paces of the two, each for itself.
#[derive(Debug)]
pub(super) struct Paces {
    pub(super) logs: Pace,
    /// Readers of which a tower is told what is wanted.
    pub(super) lists: Pace,
}

impl Paces {
    /// Paces of so many a second each; at least 1.
    pub(super) fn new(per_s: u32) -> Paces {
        Paces {
            logs: Pace::new(per_s),
            lists: Pace::new(per_s),
        }
    }
}

/// A pace. See the module's documentation.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    burst: u32,
    left: u32,
    since: Mono,
}

impl Pace {
    /// A pace of so many a second; at least 1.
    fn new(per_s: u32) -> Pace {
        let per_s = per_s.max(1);
        Pace {
            interval: Duration::from_secs(1) / per_s,
            burst: per_s,
            left: per_s,
            since: Mono(0),
        }
    }

    /// Whether one more is taken up now.
    pub(super) fn take(&mut self, now: Mono) -> bool {
        while self.left < self.burst && self.since.plus(self.interval) <= now {
            self.left += 1;
            self.since = self.since.plus(self.interval);
        }
        if self.left == self.burst {
            self.since = now;
        }
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_taken_up_at_once_and_as_many_in_each_second() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(20);
        let start = Mono(5_000_000_000);
        let taken = (0..100).filter(|_| pace.take(start)).count();
        assert_eq!(taken, 20);
        assert!(!pace.take(start.plus(second / 40)));
        assert!(pace.take(start.plus(second / 20)));
        let later = start.plus(second * 100);
        let taken = (0..100).filter(|_| pace.take(later)).count();
        assert_eq!(taken, 20);
    }
}
