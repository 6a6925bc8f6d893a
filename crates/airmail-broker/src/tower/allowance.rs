//! Allowance for late subscribers' reads: a share of the shard's work, and of the time that is left
//! over.
//!
//! Counted in bytes, because the shard has no clock. Late reading spends them; they come from three
//! sides: a part of the bytes that live traffic moves, so that late reading is a bounded share of a
//! shard that has no time left; time that nobody used, so that it goes fast where there is; and a
//! little for all time that passes, so that it never stands still (which a test here holds). Little is
//! saved up (`allowance`): live traffic may have to wait for everything that is read at a time.

use airmail_model::Mono;
use std::time::Duration;

/// Bytes that may be saved up, and so be read in one piece, about.
const MOST_BYTES: i64 = 512 << 10;
/// Live bytes for each late one where no time is left. A batch that comes in and goes out once
/// counts twice, a late one once; it has to be checked again, and a byte of it was measured to take
/// up to four times as long as a live one.
const LIVE_BYTES_EACH: i64 = 16;
/// For each microsecond that nobody used: about what a shard can read and send in it.
const IDLE_BYTES_EACH_US: u64 = 512;
/// For each microsecond in any case.
const LEAST_BYTES_EACH_US: u64 = 2;
/// After how long at most there is some allowance again. The node's timer has steps of one
/// millisecond and rounds up: in one of them little more comes in than may be saved up.
const PAUSE: Duration = Duration::from_micros(500);

/// Bytes that late reading may still read.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// May be overdrawn by what was granted before.
    bytes: i64,
    /// Live bytes that have not been counted yet.
    live: i64,
    /// Time that was used, and has not been taken off what passes. It may be told late.
    busy: Duration,
    /// Up to when time has been counted.
    at: Mono,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            bytes: MOST_BYTES,
            live: 0,
            busy: Duration::ZERO,
            at: Mono::default(),
        }
    }
}

impl Allowance {
    /// Live traffic has moved so much.
    pub(crate) fn live(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.live = self.live.saturating_add(bytes);
    }

    /// The shard's thread has worked so long, whatever on.
    pub(crate) fn worked(&mut self, time: Duration) {
        self.busy = self.busy.saturating_add(time);
    }

    /// Late reading has cost so much.
    pub(crate) fn spend(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Counts what has come in by now; whether anything may be read.
    pub(crate) fn is_open(&mut self, now: Mono) -> bool {
        let passed = now.since(self.at);
        let idle = passed.saturating_sub(self.busy);
        self.busy = self.busy.saturating_sub(passed);
        self.at = now;
        let bytes = |time: Duration, each: u64| {
            let bytes = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / 1_000;
            i64::try_from(bytes.saturating_mul(each)).unwrap_or(i64::MAX)
        };
        let income = bytes(idle, IDLE_BYTES_EACH_US)
            .saturating_add(bytes(passed, LEAST_BYTES_EACH_US))
            .saturating_add(std::mem::take(&mut self.live) / LIVE_BYTES_EACH);
        self.bytes = self.bytes.saturating_add(income).min(MOST_BYTES);
        self.bytes > 0
    }

    /// Whether no more is saved up than may be.
    pub(crate) fn is_bounded(&self) -> bool {
        self.bytes <= MOST_BYTES
    }

    /// When to look again, if it is not open now.
    pub(crate) fn again(&self) -> Mono {
        self.at.plus(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 64 << 10;

    /// Late bytes read in a second of turns of 100 us, each of which moves `live` bytes and uses
    /// `busy` of its time.
    fn late_bytes(live: usize, busy: Duration) -> u64 {
        let mut allowance = Allowance::default();
        let mut read = 0;
        for turn in 1..=10_000 {
            let now = Mono::default().plus(Duration::from_micros(100) * turn);
            allowance.live(live);
            allowance.worked(busy);
            if allowance.is_open(now) {
                allowance.spend(STEP);
                read += STEP;
            }
        }
        read
    }

    #[test]
    fn where_no_time_is_left_late_reading_is_a_bounded_share_of_the_work() {
        let live = 200 << 10;
        let read = late_bytes(live, Duration::from_micros(100));
        let share = read as f64 / (read + 10_000 * live as u64) as f64;
        assert!((0.04..=0.07).contains(&share), "{share}");
    }

    #[test]
    fn late_reading_never_stands_still() {
        let read = late_bytes(0, Duration::from_millis(1));
        assert!(read >= 1 << 20, "{read} bytes in a second");
    }

    #[test]
    fn time_that_nobody_uses_is_used() {
        let some = late_bytes(0, Duration::from_micros(50));
        let all = late_bytes(0, Duration::ZERO);
        assert!(
            some >= 128 << 20 && all >= some * 3 / 2,
            "{some} and {all} bytes"
        );
    }

    #[test]
    fn work_that_is_told_late_counts_all_the_same() {
        let mut allowance = Allowance::default();
        allowance.spend(8 * MOST_BYTES as u64);
        allowance.worked(Duration::from_secs(1));
        let at = |ms| Mono::default().plus(Duration::from_millis(ms));
        assert!((1..=1_000).all(|ms| !allowance.is_open(at(ms))));
        assert!((1_001..=1_020).any(|ms| allowance.is_open(at(ms))));
    }

    #[test]
    fn little_is_saved_up() {
        let mut allowance = Allowance::default();
        allowance.live(usize::MAX);
        assert!(allowance.is_open(Mono::NEVER));
        allowance.spend(MOST_BYTES as u64);
        assert!(!allowance.is_open(Mono::NEVER));
    }
}
