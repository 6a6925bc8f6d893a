//! A timetable: when each message is due, whatever happened to those before it.
//!
//! Latency counts from the time in the timetable, so that a node that stalls is charged for every
//! message that had to wait, not only for the one that was under way.

/// When a publisher's messages are due.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    start_us: u64,
    /// Messages per second of all publishers together; none: each is due when its turn comes.
    rate: Option<u64>,
    publisher: u32,
    publishers: u32,
}

impl Pace {
    /// The timetable of one of the publishers, whose messages are interleaved.
    #[must_use]
    pub fn new(start_us: u64, rate: Option<u64>, publisher: u32, publishers: u32) -> Pace {
        Pace {
            start_us,
            rate,
            publisher,
            publishers,
        }
    }

    /// When message `number` is due, in microseconds; nothing without a rate.
    #[must_use]
    pub fn due_us(&self, number: u64) -> Option<u64> {
        let rate = self.rate?;
        let place = number
            .saturating_mul(self.publishers.into())
            .saturating_add(self.publisher.into());
        let offset_us = match place.checked_mul(1_000_000) {
            Some(micros) => micros / rate,
            // Rounded to a second, after more messages than a run will have.
            None => (place / rate).saturating_mul(1_000_000),
        };
        Some(self.start_us.saturating_add(offset_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishers_share_the_rate() {
        let due = |publisher, number| Pace::new(100, Some(1000), publisher, 2).due_us(number);
        assert_eq!(due(0, 0), Some(100));
        assert_eq!(due(1, 0), Some(1100));
        assert_eq!(due(0, 1), Some(2100));
        assert_eq!(due(1, 499), Some(999_100));
    }

    #[test]
    fn without_a_rate_nothing_is_due() {
        assert_eq!(Pace::new(100, None, 0, 1).due_us(5), None);
    }
}
