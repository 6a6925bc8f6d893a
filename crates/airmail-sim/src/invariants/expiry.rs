//! Expiry: no message is handed over at its time to live or later, by the clock of its log; and none is left out before
//! that.
//!
//! The clock of a log is that of the machine that has it, which may be wrong. By how much an ack shows: it was appended
//! before it was acknowledged. So the clock is known from below, by a little: it goes on as the wall clock does, and
//! where that is set back by itself, a hundredth slower, until its process ends. No log's clock goes faster than time
//! where the run has one machine; so what was published not so long ago cannot have expired, and it is the wall clock
//! while that is not set back. Where times may go back, nothing is said.

use super::{Checked, Violation};
use crate::entropy::Entropy;
use crate::ledger::Entry;
use crate::message::MessageId;
use airmail_model::verdict::{ClockReading, expired};
use airmail_model::{AppendTime, LogId, Mono, NamespaceId, Now};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest time to live that is drawn, in milliseconds.
const TTL_MS_MAX: u64 = 4_000;
/// Part of the messages that expire where some do, in parts of a million.
const EXPIRING: u32 = 300_000;
/// Time by which a message may be left out too early: that of a turn between question and answer.
const EARLY: Duration = Duration::from_millis(300);

/// The part by which a log's clock is slower that waits for the wall clock.
const SLOWER_PART: i64 = 100;

/// Facts of the run by which it is judged.
#[derive(Debug)]
pub struct Expiry {
    chance: Entropy,
    /// Messages of some namespaces expire.
    is_on: bool,
    /// The clocks, as they are.
    now: Now,
    /// Microseconds by which logs' clocks are ahead, at least, while the wall clock is not set back.
    ahead: BTreeMap<LogId, i64>,
    /// Least that logs' clocks have shown in this process, from when the wall clock was set back.
    shown: BTreeMap<LogId, ClockReading>,
    /// When the last process ended.
    ended: Mono,
    /// The wall clock has been set back.
    is_set_back: bool,
    /// Nothing can be said of the logs' clocks.
    pub is_astray: bool,
    /// All logs have the clock of the run.
    pub is_exact: bool,
}

impl Expiry {
    /// The facts of a run that has not begun.
    #[must_use]
    pub fn new(seed: u64) -> Expiry {
        let mut chance = Entropy::new(seed ^ 0x7e47_1e55);
        Expiry {
            is_on: chance.chance(300_000),
            chance,
            now: Now::default(),
            ahead: BTreeMap::new(),
            shown: BTreeMap::new(),
            ended: Mono(0),
            is_set_back: false,
            is_astray: false,
            is_exact: false,
        }
    }

    /// The time to live of a new message, if it has one.
    #[must_use]
    pub fn ttl_ms(&self, id: MessageId, namespace: NamespaceId) -> Option<u32> {
        // Drawn from the message alone, so that no other draw depends on it.
        let mut of_space = self.chance.clone();
        let of_space = Entropy::new(of_space.next() ^ u64::from(namespace.0)).coin();
        let mut chance = Entropy::new(self.chance.clone().next() ^ id.0 << 8);
        if !self.is_on || !of_space || !chance.chance(EXPIRING) {
            return None;
        }
        u32::try_from(chance.between(1, TTL_MS_MAX)).ok()
    }

    /// The clocks, as they were told last.
    #[must_use]
    pub const fn now(&self) -> Now {
        self.now
    }

    /// Time has passed.
    pub fn pass(&mut self, now: Now) {
        let passed_us = now.mono.since(self.now.mono).as_micros();
        let passed_us = i64::try_from(passed_us).unwrap_or(i64::MAX);
        let expected = self.now.wall.0.saturating_add(passed_us);
        // Both are rounded.
        self.is_set_back |= now.wall.0 < expected.saturating_sub(1_000);
        self.now = now;
    }

    /// A process has ended. How long the stop was only the wall clock can say, and that is not known where it was set
    /// back.
    pub fn ended(&mut self) {
        self.shown.clear();
        self.ended = self.now.mono;
    }

    /// An ack has come of what was published then. One may outlive the process that has given it, in a node below: it says
    /// nothing of the next one's clock.
    pub fn acked(&mut self, log: LogId, appended: AppendTime, published: Mono) {
        let (clock, at) = (appended, self.now.mono);
        let is_of_this_process = published > self.ended;
        if is_of_this_process && self.low(log).is_none_or(|low| clock > low) {
            self.shown.insert(log, ClockReading { clock, at });
        }
        if self.is_set_back {
            return;
        }
        let by = appended.0.saturating_sub(self.now.wall.0);
        let ahead = self.ahead.entry(log).or_insert(by);
        *ahead = by.max(*ahead);
    }

    /// Least that a log's clock shows, if that is known.
    fn low(&self, log: LogId) -> Option<AppendTime> {
        if !self.is_set_back {
            let ahead = self.ahead.get(&log)?;
            return Some(AppendTime(self.now.wall.0.saturating_add(*ahead)));
        }
        let shown = self.shown.get(&log)?;
        let passed = self.now.mono.since(shown.at).as_micros();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let by_itself = passed - passed / SLOWER_PART - 1;
        Some(AppendTime(shown.clock.0.saturating_add(by_itself)))
    }

    /// A message is handed over.
    ///
    /// # Errors
    /// It has expired.
    pub fn check_given(
        &self,
        (id, entry): (MessageId, &Entry),
        (log, appended): (LogId, AppendTime),
        who: &str,
    ) -> Checked {
        let (Some(ttl_ms), Some(clock)) = (entry.ttl_ms, self.low(log)) else {
            return Ok(());
        };
        if self.is_astray || !expired(clock, appended, ttl_ms) {
            return Ok(());
        }
        let age_us = clock.0 - appended.0;
        let detail = format!(
            "{who} gets message {} of {ttl_ms} ms after {age_us} us",
            id.0
        );
        Err(Violation::new(
            "expiry: nothing is handed over late",
            detail,
        ))
    }

    /// Whether a message that was not given may have expired.
    #[must_use]
    pub fn excuses(&self, entry: &Entry) -> bool {
        let (Some(ttl_ms), Some(acked)) = (entry.ttl_ms, entry.acked) else {
            return false;
        };
        if self.is_astray || !self.is_exact {
            return true;
        }
        let lived = self.now.mono.since(entry.published) + EARLY;
        let clock = self.now.wall.0.saturating_add(EARLY.as_micros() as i64);
        lived >= Duration::from_millis(ttl_ms.into())
            && (self.is_set_back || expired(AppendTime(clock), acked.appended, ttl_ms))
    }
}

/// Nothing expires.
impl Default for Expiry {
    fn default() -> Expiry {
        Expiry {
            is_on: false,
            ..Expiry::new(0)
        }
    }
}
