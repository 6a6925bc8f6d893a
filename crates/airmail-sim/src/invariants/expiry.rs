//! Expiry: no message is handed over at its time to live or later, by the clock of its log; and none is left out before
//! that.
//!
//! The clock of a log is that of the machine that has it, which may be wrong. By how much an ack shows: it was appended
//! before it was acknowledged. So the clock is known from below, by a little; and from above where the run has one
//! machine. Where the wall clock is set back, or times may go back, nothing is said.

use super::{Checked, Violation};
use crate::entropy::Entropy;
use crate::ledger::Entry;
use crate::message::MessageId;
use airmail_model::verdict::expired;
use airmail_model::{AppendTime, LogId, NamespaceId, Now};
use std::collections::BTreeMap;

/// Longest time to live that is drawn, in milliseconds.
const TTL_MS_MAX: u64 = 4_000;
/// Part of the messages that expire where some do, in parts of a million.
const EXPIRING: u32 = 300_000;
/// Time by which a message may be left out too early, in microseconds: that of a turn between question and answer.
const EARLY_MICROS: i64 = 300_000;

/// Facts of the run by which it is judged.
#[derive(Debug)]
pub struct Expiry {
    chance: Entropy,
    /// Messages of some namespaces expire.
    is_on: bool,
    /// The clocks, as they are.
    now: Now,
    /// Microseconds by which logs' clocks are ahead, at least.
    ahead: BTreeMap<LogId, i64>,
    /// Nothing can be said of the logs' clocks.
    pub is_astray: bool,
    /// All logs have the clock of the run, and neither leaps.
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
        // It was set back; both are rounded.
        self.is_astray |= now.wall.0 < expected.saturating_sub(1_000);
        self.now = now;
    }

    /// An ack has come.
    pub fn acked(&mut self, log: LogId, appended: AppendTime) {
        let by = appended.0.saturating_sub(self.now.wall.0);
        let ahead = self.ahead.entry(log).or_insert(by);
        *ahead = by.max(*ahead);
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
        let (Some(ttl_ms), Some(ahead)) = (entry.ttl_ms, self.ahead.get(&log)) else {
            return Ok(());
        };
        let clock = AppendTime(self.now.wall.0.saturating_add(*ahead));
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
        let clock = self.now.wall.0.saturating_add(EARLY_MICROS);
        self.is_astray || !self.is_exact || expired(AppendTime(clock), acked.appended, ttl_ms)
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
