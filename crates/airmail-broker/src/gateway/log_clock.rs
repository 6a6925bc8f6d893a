//! Clocks of logs: what messages that expire are judged by.
//!
//! The age of a message is by the clock that made its append time, which may be another machine's. So it is asked for
//! ([`Call::Clock`](airmail_log::Call::Clock)), and what is kept is a bound that is never too low ([`ClockBound`]): it is
//! too high by the time that question and answer took, and grows a little faster than time does. It is asked for when
//! something in the log is found that may expire, and again and again from then on while anybody reads the log. Where it
//! is not known, or was asked for too long ago to be near, whoever is to be given what may expire waits for an answer, and
//! is then read for from there on.
//!
//! What was judged by a time is never judged by an earlier one ([`LogTime`]): what has expired for one is not handed
//! over to another afterwards. What comes new goes by the clock as it is, which may have gone back: a storage that was
//! started anew, or another tower.

use super::behind::BehindState;
use super::{Gateway, GatewayEffects};
use crate::keys::{BehindKey, LogKey};
use crate::link::ToTower;
use airmail_log::AppendClock;
use airmail_model::verdict::{ClockBound, ClockReading, LogTime};
use airmail_model::{AppendTime, LogId, Mono, Sequence};
use std::collections::BTreeSet;
use std::time::Duration;

/// Interval at which the clocks of logs are asked for in which messages expire. A bound is too high by a
/// ten-thousandth of it.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// Time after which an answer is so old that a new one is waited for.
const OLD_AFTER: Duration = Duration::from_secs(60);

/// The clock of a log.
#[derive(Debug, Default)]
pub(crate) struct LogClock {
    bound: ClockBound,
    time: LogTime,
    /// When the newest answer was asked for.
    newest: Option<Mono>,
    /// When the question was sent that is under way.
    asked: Option<Mono>,
    /// Something in the log may expire.
    has_expiring: bool,
    /// Something was judged since it was last asked for.
    is_used: bool,
    /// Subscriptions that wait for an answer.
    pub(super) waiting: BTreeSet<BehindKey>,
}

impl LogClock {
    /// The time to judge these numbers by at `now`, if it is known. `shown`: an append time that the clock has surely got
    /// to.
    fn judge(
        &mut self,
        now: Mono,
        numbers: (Sequence, Sequence),
        shown: Option<AppendTime>,
    ) -> Option<ClockReading> {
        (self.has_expiring, self.is_used) = (true, true);
        if let Some(shown) = shown {
            self.bound.shown(now, shown);
        }
        let newest = self.newest?;
        if now.since(newest) > OLD_AFTER {
            return None;
        }
        let clock = self.time.judge(self.bound.at(now)?, numbers.0, numbers.1);
        Some(ClockReading { clock, at: now })
    }

    /// The log goes on in another life, whose records may be others than those that had the same numbers. (One that is
    /// renewed keeps its records.)
    pub(super) fn life_changed(&mut self) {
        self.time = LogTime::default();
    }

    /// Whether a question is under way.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }
}

impl Gateway {
    /// The time by which records of these numbers, the first and the last, that were appended at `appended` are judged in
    /// this step, if the log's clock is known.
    pub(super) fn log_time(
        &mut self,
        key: LogKey,
        numbers: (Sequence, Sequence),
        appended: AppendTime,
    ) -> Option<ClockReading> {
        self.ask_clocks_later();
        let now = self.now.mono;
        #[cfg(feature = "sabotage")]
        match self.config.bug {
            Some(crate::sabotage::Bug::OwnClock) => {
                let clock = AppendTime(self.now.wall.0);
                return Some(ClockReading { clock, at: now });
            }
            Some(crate::sabotage::Bug::ClockFromBelow) => {
                let of_log = &self.logs[key].clock;
                let clock = of_log.bound.at(of_log.newest?)?;
                return Some(ClockReading { clock, at: now });
            }
            _ => {}
        }
        // Where there are several clocks, an append time may be ahead of the one that is asked, for as long as it likes.
        let is_one_clock = self.logs.clock == AppendClock::Monotone;
        let shown = is_one_clock.then_some(appended);
        self.logs[key].clock.judge(now, numbers, shown)
    }

    /// Asks for a log's clock, unless it is asked for already.
    pub(super) fn ask_clock(&mut self, key: LogKey, out: &mut GatewayEffects) {
        let asked = self.now.mono;
        let log = &mut self.logs[key];
        log.clock.is_used = false;
        if log.clock.asked.is_none() {
            log.clock.asked = Some(asked);
            out.tell(ToTower::Clock { log: log.id, asked });
        }
    }

    /// Lets one wait for its log's clock, before what may expire. It waits for nothing else.
    pub(super) fn await_clock(&mut self, key: BehindKey, out: &mut GatewayEffects) {
        // Answers of the tower to the attempt before are dropped.
        self.behind[key].ticket = self.behind.ticket();
        let log = self.behind[key].log;
        self.behind[key].state = BehindState::AwaitingClock;
        self.logs[log].clock.waiting.insert(key);
        self.ask_clock(log, out);
    }

    /// The tower tells what a log's clock shows, as it was asked at `asked`, or that it cannot be known.
    pub(super) fn clock_told(
        &mut self,
        log: LogId,
        asked: Mono,
        clock: Option<AppendTime>,
        out: &mut GatewayEffects,
    ) {
        let Some(key) = self.logs.find(log) else {
            // Input: a log that was deleted meanwhile, with its subscriptions.
            return;
        };
        let of_log = &mut self.logs[key].clock;
        of_log.asked = None;
        if let Some(clock) = clock {
            of_log.bound.heard(asked, self.now.mono, clock);
            of_log.newest = of_log.newest.max(Some(asked));
        }
        for waiting in std::mem::take(&mut of_log.waiting) {
            self.behind[waiting].state = BehindState::Moving;
            self.follow(waiting, out);
        }
    }

    fn ask_clocks_later(&mut self) {
        let at = self.now.mono.plus(ASK_EVERY);
        self.timers.clocks.get_or_insert(at);
    }

    /// Asks for the clocks of logs that are read, and in which messages expire.
    pub(super) fn ask_clocks(&mut self, out: &mut GatewayEffects) {
        let keys: Vec<LogKey> = self.logs.keys().collect();
        for key in keys {
            let log = &self.logs[key];
            if log.clock.has_expiring && (log.tail.is_attached || log.clock.is_used) {
                self.ask_clock(key, out);
                self.ask_clocks_later();
            }
        }
    }
}
