//! A log's ends, and the calls that need them: they are asked, always.
//!
//! The end is the partition's high watermark, asked of its leader when the call comes; what the tail has fetched is no
//! answer. It is never below what this node has read or had acknowledged: an old leader may say less. The bytes and
//! the time of the first record are known from reading, so the answer waits until the log is read up to the end, for
//! a bounded time.

use crate::asking::{REST, Waiter};
use crate::brokers::{Answer, Brokers, Failure, Question};
use crate::place::Offset;
use crate::soundness::Suspicion;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::{Completion, Refusal, Tag, TopicPage};
use airmail_model::{AppendTime, LogId, Mono};
use std::time::Duration;

/// Longest time that an answer waits for the log to be read up to its end. Longer than gateways wait for a tower that may
/// hang in its reading: one that answered sooner, with an end that it cannot give, would keep its logs.
const ARRIVE: Duration = Duration::from_millis(1_500);

/// Purpose for which the log is read up to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arriving {
    /// Answers `Bounds`.
    Bounds(Tag),
    /// Goes on with the change of the log.
    Change,
}

/// An answer that waits until a log is read up to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    log: LogId,
    high: Offset,
    until: Mono,
    what: Arriving,
}

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn tell_bounds(&mut self, t: Tag, id: LogId) {
        #[cfg(feature = "sabotage")]
        if self.config.has_bug(crate::sabotage::Bug::CachedEnd)
            && let Ok(log) = self.open_log(id)
        {
            let bounds = log.bounds(log.scan.next());
            return self.out.push(Completion::Bounds { t, bounds });
        }
        self.wait_or_refuse(t, id, Waiter::Bounds(t));
    }

    /// Tells this node's own clock: that of the brokers is within the settings' skew of it.
    pub(crate) fn tell_clock(&mut self, t: Tag, id: LogId) {
        match self.open_log(id) {
            Ok(_) => {
                let at = AppendTime(self.now.wall.0);
                self.out.push(Completion::Clock { t, at });
            }
            Err(why) => self.refuse(t, why),
        }
    }

    pub(crate) fn list_topics(&mut self, t: Tag, id: LogId, page: Box<TopicPage>) {
        self.wait_or_refuse(t, id, Waiter::Topics(t, page));
    }

    pub(crate) fn find_time(&mut self, t: Tag, id: LogId, at: AppendTime) {
        let skew_us = i64::try_from(self.config.skew.as_micros()).unwrap_or(i64::MAX);
        let at_ms = at.0.saturating_sub(skew_us).div_euclid(1000).max(0);
        let found = self.open_log(id);
        match found.map(|log| (log.partition.clone(), log.scan.next())) {
            Ok((partition, read)) => {
                let question = Question::OffsetAt { at_ms };
                self.ask(Purpose::Found(id, t, read), &partition, question);
            }
            Err(why) => self.refuse(t, why),
        }
    }

    /// Tells a time's place. If the leader has nothing so late, that is the place to which the log was read when it was
    /// asked: what comes while the log's end is asked may be of that time.
    pub(crate) fn time_answered(&mut self, (id, t, read): (LogId, Tag, Offset), answer: &Answer) {
        match answer {
            Answer::Offset(at) => {
                let at = at.unwrap_or(read);
                self.wait_or_refuse(t, id, Waiter::Found(t, at));
            }
            Answer::Failed(Failure::TimedOut) => self.refuse(t, KafkaStorage::<B>::busy()),
            other => self.refuse(t, Refusal::Io(format!("the brokers said {other:?}"))),
        }
    }

    fn wait_or_refuse(&mut self, t: Tag, id: LogId, waiter: Waiter) {
        let now = self.now.mono;
        match self.open_log(id) {
            Ok(log) if log.asking.is_resting(now) => self.refuse(t, KafkaStorage::<B>::busy()),
            Ok(_) => self.wait_for_bounds(id, waiter),
            Err(why) => self.refuse(t, why),
        }
    }

    /// Asks for a log's bounds, for this purpose.
    pub(crate) fn wait_for_bounds(&mut self, id: LogId, waiter: Waiter) {
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return self.unanswered(id, vec![waiter], &Refusal::NoLog);
        };
        if log.asking.add(waiter) {
            let partition = log.partition.clone();
            self.ask(Purpose::Bounds(id), &partition, Question::Watermarks);
        }
    }

    pub(crate) fn bounds_answered(&mut self, id: LogId, answer: &Answer) {
        let now = self.now.mono;
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: an answer about a log that was deleted.
            return;
        };
        match answer {
            #[cfg(feature = "sabotage")]
            Answer::Watermarks { high, .. }
                if *high < log.scan.next()
                    && self
                        .config
                        .has_bug(crate::sabotage::Bug::LowWatermarkTruncates) =>
            {
                let waiters = log.asking.give_up();
                self.conclude(id, Some(*high));
                self.unanswered(id, waiters, &KafkaStorage::<B>::busy());
            }
            Answer::Watermarks { low, high } => {
                log.kept_from(*low);
                let waiters = log.asking.answered();
                let end = log.scan.next().max(log.sending.end()).max(*high);
                for waiter in waiters {
                    self.bounded(id, waiter, end, *high);
                }
                self.stirred.insert(id);
            }
            Answer::Failed(Failure::NoTopic) => {
                let waiters = log.asking.give_up();
                let why = format!("topic {} is not there", log.partition.topic);
                self.doubt(id, Suspicion::Another);
                self.unanswered(id, waiters, &Refusal::Io(why));
            }
            _ => {
                let waiters = log.asking.failed(now);
                self.unanswered(id, waiters, &KafkaStorage::<B>::busy());
            }
        }
        if let Some(log) = self.logs.get_mut(&id)
            && log.asking.begin()
        {
            let partition = log.partition.clone();
            self.ask(Purpose::Bounds(id), &partition, Question::Watermarks);
        }
    }

    /// The log's end is known, for this purpose. `high` is what the leader has said.
    fn bounded(&mut self, id: LogId, waiter: Waiter, end: Offset, high: Offset) {
        match waiter {
            Waiter::Bounds(t) => self.arrive_at(id, end, Arriving::Bounds(t)),
            Waiter::Change => self.arrive_at(id, end, Arriving::Change),
            Waiter::Found(t, at) => {
                if let Some(log) = self.logs.get(&id) {
                    let bounds = log.bounds(end);
                    let at = at.number().min(bounds.next).max(bounds.first);
                    self.out.push(Completion::Found { t, at });
                }
            }
            Waiter::Topics(t, page) => self.look_for_topics(t, id, *page, end),
            Waiter::Reader(key) => self.reader_bounded(key, end),
            Waiter::OutOfRange => self.scan_again(id, high),
        }
    }

    /// Nobody has said where the log ends.
    pub(crate) fn unanswered(&mut self, id: LogId, waiters: Vec<Waiter>, why: &Refusal) {
        for waiter in waiters {
            match waiter {
                Waiter::Bounds(t) | Waiter::Found(t, _) | Waiter::Topics(t, _) => {
                    self.refuse(t, why.clone());
                }
                Waiter::Change => self.refuse_change(id, why.clone()),
                // It waits where it begins.
                Waiter::Reader(key) => self.reader_bounded(key, Offset(u64::MAX)),
                Waiter::OutOfRange => self.look_again_later(id),
            }
        }
    }

    /// Answers when the log is read up to `high`, or a while later.
    pub(crate) fn arrive_at(&mut self, log: LogId, high: Offset, what: Arriving) {
        let until = self.now.mono.plus(ARRIVE);
        self.work.arrivals.push(Arrival {
            log,
            high,
            until,
            what,
        });
    }

    /// Answers whatever has waited for reading; whether there was anything.
    pub(crate) fn arrive(&mut self) -> bool {
        let now = self.now.mono;
        let mut has_come = false;
        let due = |storage: &Self, arrival: &Arrival| {
            let log = storage.logs.get(&arrival.log);
            log.is_none_or(|log| {
                let is_sure = log.is_open || log.scan.awaited.is_none();
                let is_there = log.scan.next() >= arrival.high && is_sure;
                is_there || log.suspended.is_some() || now >= arrival.until
            })
        };
        let all = std::mem::take(&mut self.work.arrivals);
        for arrival in all {
            if !due(self, &arrival) {
                self.work.arrivals.push(arrival);
                continue;
            }
            has_come = true;
            match arrival.what {
                Arriving::Change => self.change_bounded(arrival.log, arrival.high),
                Arriving::Bounds(t) => match self.open_log(arrival.log) {
                    Ok(log) => {
                        let bounds = log.bounds(arrival.high.max(log.scan.next()));
                        self.out.push(Completion::Bounds { t, bounds });
                    }
                    Err(why) => self.refuse(t, why),
                },
            }
        }
        let due: Vec<LogId> = {
            let retries = self.work.retries.iter();
            retries
                .filter(|(_, at)| **at <= now)
                .map(|(log, _)| *log)
                .collect()
        };
        for id in due {
            self.work.retries.remove(&id);
            if self.logs.contains_key(&id) {
                self.wait_for_bounds(id, Waiter::OutOfRange);
            }
        }
        has_come
    }

    /// Looks again, after a rest, where a log begins.
    pub(crate) fn look_again_later(&mut self, id: LogId) {
        self.work.retries.insert(id, self.now.mono.plus(REST));
    }

    pub(crate) fn arrivals_deadline(&self) -> Option<Mono> {
        let arrivals = self.work.arrivals.iter().map(|arrival| arrival.until);
        arrivals.chain(self.work.retries.values().copied()).min()
    }
}
