//! The node's clock, as the client knows it: to judge for itself, when it hands a message over, whether that has expired.
//!
//! A delivery whose messages expire says what their log's clock showed, and when, by the node's own monotone clock. How
//! long ago that was the client can say because it asks for the node's clock: when such a delivery comes, and its last
//! question was long ago. What it knows is a bound that is never too low ([`ClockBound`]).

use airmail_model::frame::{Reply, Request};
use airmail_model::verdict::{ClockBound, ClockReading};
use airmail_model::{AppendTime, Mono};
use std::collections::VecDeque;
use std::time::Duration;

/// Interval at which the clock of a node is asked for whose messages expire.
const ASK_EVERY: Duration = Duration::from_secs(60);
/// Time after which an answer is so old that what expires is not judged by it.
const OLD_AFTER: Duration = Duration::from_secs(120);

/// The clock of the node at the other end of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamClock {
    /// The node's monotone clock, in microseconds.
    bound: ClockBound,
    /// When the newest answer was asked for.
    newest: Option<Mono>,
    /// When the question was sent that is under way.
    asked: Option<Mono>,
    /// It is to be asked for.
    is_wanted: bool,
    /// Replies that wait for the answer, from a delivery on whose messages expire: no more deliveries than there is credit
    /// for, and what comes between.
    pub(super) held: VecDeque<Reply>,
}

impl StreamClock {
    /// Tells whether there is a question to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.is_wanted
    }

    /// Gives the question that is to be sent now.
    pub(super) fn question(&mut self, now: Mono) -> Option<Request> {
        std::mem::take(&mut self.is_wanted).then(|| {
            self.asked = Some(now);
            Request::Clock { asked: now }
        })
    }

    /// Takes the node's answer to a question.
    pub(super) fn heard(&mut self, now: Mono, asked: Mono, node: Mono) {
        if self.asked == Some(asked) && now >= asked {
            self.asked = None;
            self.bound.heard(asked, now, microseconds(node));
            self.newest = Some(asked);
        }
    }

    /// Turns a reading of a log's clock by the node's into one by the client's own. `None`: nothing is known of the node's
    /// clock, or not enough to be near; an answer is to come.
    pub(super) fn reading(&mut self, now: Mono, of_log: ClockReading) -> Option<ClockReading> {
        let age = self.newest.map(|newest| now.since(newest));
        self.is_wanted |= self.asked.is_none() && age.is_none_or(|age| age > ASK_EVERY);
        if age.is_none_or(|age| age > OLD_AFTER) {
            return None;
        }
        let node_us = self.bound.at(now)?.0;
        let node = Mono(u64::try_from(node_us).ok()?.saturating_mul(1_000));
        Some(ClockReading {
            clock: of_log.reaches(node),
            at: now,
        })
    }
}

fn microseconds(time: Mono) -> AppendTime {
    AppendTime(i64::try_from(time.0 / 1_000).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Mono {
        Mono(seconds * SECOND)
    }

    /// A reading that a node has made when its clock showed so many seconds.
    fn of_log(clock: i64, node: u64) -> ClockReading {
        ClockReading {
            clock: AppendTime(clock * 1_000_000),
            at: at(node),
        }
    }

    #[test]
    fn a_reading_is_never_lower_than_the_logs_clock_whatever_the_way_takes() {
        // The node began 500 s before the client, and the log's clock is 70 s ahead of that.
        let (node_ahead, log_ahead) = (500, 570);
        let mut clock = StreamClock::default();
        let asked = at(10);
        assert!(clock.reading(asked, of_log(0, 0)).is_none());
        assert!(clock.question(asked).is_some());
        // The answer is read at 11 s, and comes at 14 s.
        clock.heard(at(14), asked, at(11 + node_ahead));
        for (judged, comes) in [(12, 15), (15, 15), (15, 60)] {
            let of_log = of_log(judged + log_ahead, judged.unsigned_abs() + node_ahead);
            let reading = clock.reading(at(comes), of_log).expect("it is known");
            let truth = (i64::try_from(comes).expect("small") + log_ahead) * 1_000_000;
            assert_eq!(reading.at, at(comes));
            let bound = truth..truth + 1_100_000;
            assert!(bound.contains(&reading.clock.0), "{reading:?}");
        }
    }

    #[test]
    fn it_is_asked_for_when_it_is_needed_and_again_before_it_is_too_old() {
        let mut clock = StreamClock::default();
        assert!(!clock.is_due());
        assert!(clock.reading(at(1), of_log(0, 1)).is_none());
        assert!(clock.is_due());
        assert!(clock.question(at(1)).is_some());
        assert!(!clock.is_due());
        assert!(clock.reading(at(2), of_log(0, 1)).is_none());
        assert!(!clock.is_due(), "the question is under way");
        clock.heard(at(3), at(1), at(1));
        assert!(clock.reading(at(50), of_log(0, 1)).is_some());
        assert!(!clock.is_due());
        assert!(clock.reading(at(100), of_log(0, 1)).is_some());
        assert!(clock.is_due());
        assert!(clock.question(at(100)).is_some());
        // One that is old is of no use until there is a new one; the answer to another question is none.
        assert!(clock.reading(at(200), of_log(0, 1)).is_none());
        clock.heard(at(200), at(99), at(99));
        assert!(clock.reading(at(200), of_log(0, 1)).is_none());
        clock.heard(at(201), at(100), at(100));
        assert!(clock.reading(at(201), of_log(0, 1)).is_some());
    }
}
