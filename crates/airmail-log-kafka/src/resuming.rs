//! Beginning to read a log through, and going on after an interruption: from where, and with what is known there.
//!
//! A log is read from the place of the newest statement about its life. What a node has read itself is as good as a
//! statement about that place. If the log begins behind both, the records between are gone, and with them what they
//! say of producers: then there is a newer statement, because whoever trims a log states it first, and whoever reads it
//! does so long before retention removes what was read. So the topic of rows is followed to the end that it has now and
//! for a while on, and only if there is still no statement that reaches the log's beginning, because no node has run for
//! as long as records are kept, reading goes on at the beginning with what is known: as the log says.
//!
//! The first record that is read is the last one that was read before, or the witness of the statement. If the log has
//! another one there, it was cut below, or made again, and stops. A log that ends before it may have an old leader, so
//! it is looked at again; a log that is not open yet is then refused by name.

use crate::asking::Waiter;
use crate::brokers::{Answer, Brokers, ConsumerId, Question, Record, Slot};
use crate::changing::Step;
use crate::layout::MapTopics;
use crate::log::{Log, Scan};
use crate::place::Offset;
use crate::soundness::Unsound;
use crate::start::state_partition;
use crate::statement::Witness;
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::Refusal;
use airmail_model::{Incarnation, LogId, Mono};
use std::time::Duration;

/// Longest time for which the newest statements are waited for.
const FOLLOW: Duration = Duration::from_secs(5);
/// Number of times, a second apart, that the end of a log is found before what was read of it.
const LOOKS_MAX: u32 = 10;

/// A log that waits for the newest statements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    topics: Option<MapTopics>,
    /// The first offset that is kept, to which a statement has to reach.
    low: Offset,
    /// The end of the topic of rows, when it has been told.
    end: Option<Offset>,
    pub(crate) until: Mono,
}

impl<B: Brokers> KafkaStorage<B> {
    /// Reads the newest statement about a life of a log that can be read, if there is one; else about the life before, if it
    /// is of a place before the one at which that was cut.
    fn stated(&self, (id, nonce): (LogId, u64), life: Incarnation) -> Option<Scan> {
        let statements = &self.work.stating.statements;
        #[cfg(feature = "sabotage")]
        if self.config.has_bug(crate::sabotage::Bug::StatementTrusted) {
            let lives = statements.lives(id).into_iter();
            let all = lives.flat_map(|life| statements.statements(id, life));
            let newest = all.max_by_key(|statement| statement.head.next)?;
            let scan = newest.scan(&self.config.statements)?;
            return Some(Scan {
                awaited: None,
                ..scan
            });
        }
        let whole = statements.statements(id, life);
        let before = self
            .life_before(id, nonce)
            .filter(|_| life == self.life(id, nonce));
        let before = before.into_iter().flat_map(|(life, at)| {
            let whole = statements.statements(id, life);
            whole.filter(move |statement| statement.head.next <= at)
        });
        let mut all = whole.chain(before);
        all.find_map(|statement| statement.scan(&self.config.statements))
    }

    /// Whether there is a statement from which a log that begins here can be read, or none is needed.
    pub(crate) fn is_reached(&self, id: LogId, topics: Option<MapTopics>, low: Offset) -> bool {
        // A birth record says nothing of producers.
        let birthless = Offset(u64::from(topics.is_some()));
        let nonce = topics.map_or(0, |topics| topics.nonce);
        let statements = &self.work.stating.statements;
        let place = statements.place(id, self.life(id, nonce));
        let before = self.life_before(id, nonce).and_then(|(life, at)| {
            let places = statements.statements(id, life).map(|of| of.head.next);
            places.filter(|place| *place <= at).max()
        });
        low <= birthless || place.max(before) >= Some(low)
    }

    /// Begins a log that is kept from `low` on: at the place of a statement, or there.
    pub(crate) fn scan_from(&self, log: (LogId, u64), life: Incarnation, low: Offset) -> Scan {
        let stated = self.stated(log, life);
        let mut scan = stated.unwrap_or_else(|| Scan::new(low, &self.config.statements));
        scan.begins_at(low);
        scan
    }

    /// Waits until all statements that are there now are known, and for a while until one of them reaches where the log
    /// begins.
    pub(crate) fn follow(&mut self, id: LogId, topics: Option<MapTopics>, low: Offset) {
        let follower = Follower {
            topics,
            low,
            end: None,
            until: self.now.mono.plus(FOLLOW),
        };
        self.work.stating.followers.insert(id, follower);
        let partition = state_partition(&self.config);
        self.ask(Purpose::Rows(id), &partition, Question::Watermarks);
    }

    pub(crate) fn rows_bounded(&mut self, id: LogId, answer: &Answer) {
        let Some(follower) = self.work.stating.followers.get_mut(&id) else {
            // Input: an answer for which nobody waits any more.
            return;
        };
        match answer {
            Answer::Watermarks { high, .. } => follower.end = Some(*high),
            _ => follower.until = self.now.mono,
        }
    }

    /// Lets logs go on that have all statements, or have waited too long for them; whether there was one.
    pub(crate) fn go_on_following(&mut self) -> bool {
        let (now, next) = (self.now.mono, self.start.next());
        let has_all = |follower: &Follower| follower.end.is_some_and(|end| end <= next);
        let followers = self.work.stating.followers.iter();
        let due = followers.filter(|(id, follower)| {
            let is_reached = self.is_reached(**id, follower.topics, follower.low);
            has_all(follower) && is_reached || follower.until <= now
        });
        let due: Vec<(LogId, Follower)> = due.map(|(id, of)| (*id, *of)).collect();
        for (id, follower) in &due {
            self.work.stating.followers.remove(id);
            let has_come = has_all(follower);
            if has_come {
                self.work.stating.followed.insert(*id);
            }
            let changes = self.work.changes.get(id);
            let is_opening = changes.is_some_and(|of| of.step == Some(Step::Following));
            match self.target(*id).filter(|_| is_opening) {
                Some(_) if !has_come => self.refuse_change(*id, KafkaStorage::<B>::busy()),
                Some(target) => {
                    self.step(*id, Step::Begun);
                    let partition = &target.partition;
                    self.ask(Purpose::Change(*id), partition, Question::Watermarks);
                }
                None if has_come => self.wait_for_bounds(*id, Waiter::OutOfRange),
                None => self.look_again_later(*id),
            }
        }
        !due.is_empty()
    }

    /// Goes on reading a log through, where it was read to or behind what is gone. A leader that knows less than was read
    /// is old, or its partition was cut: neither can be told from its watermark, so it is asked again.
    pub(crate) fn scan_again(&mut self, id: LogId, high: Offset) {
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        if log.scan.consumer.is_some() || log.suspended.is_some() {
            return;
        }
        let (life, low, next) = (log.incarnation, log.low, log.scan.next());
        if next < low && !self.work.stating.followed.remove(&id) {
            let topics = log.topics;
            return self.follow(id, topics, low);
        }
        let nonce = log.topics.map_or(0, |topics| topics.nonce);
        let stated = self.stated((id, nonce), life).filter(|_| next < low);
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        if let Some(stated) = stated.filter(|stated| stated.next() > next) {
            log.scan = stated;
        } else if let Some(last) = &log.scan.last {
            log.scan.awaited.get_or_insert(Witness::of(last));
        }
        log.scan.begins_at(low);
        if high < log.scan.next() {
            return self.unmet(id);
        }
        self.consume_log(id);
    }

    /// Starts the consumer by which a log is read through.
    pub(crate) fn consume_log(&mut self, id: LogId) {
        let consumer = ConsumerId(self.id());
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        log.scan.consumer = Some(consumer);
        log.scan.is_at_end = false;
        let (partition, from) = (log.partition.clone(), log.scan.begin());
        self.scans.insert(consumer, id);
        self.brokers.consume(consumer, Slot::TAIL, &partition, from);
    }

    /// Stops the consumer by which a log is read through.
    pub(crate) fn stop_scan(&mut self, id: LogId) {
        let log = self.logs.get_mut(&id);
        if let Some(consumer) = log.and_then(|log| log.scan.consumer.take()) {
            self.scans.remove(&consumer);
            self.brokers.stop(consumer);
        }
    }

    /// A log ends before what was read of it, says its leader: it is looked at again later.
    pub(crate) fn unmet(&mut self, id: LogId) {
        self.stop_scan(id);
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        log.scan.looks += 1;
        if log.scan.looks > LOOKS_MAX && !log.is_open {
            let why = Refusal::Io(log.is_another());
            return self.stop_log(id, &why);
        }
        self.look_again_later(id);
    }
}

impl Scan {
    /// Takes note of the first offset that is kept: what is before it is not awaited.
    fn begins_at(&mut self, low: Offset) {
        if self.next() < low {
            self.newest.forget_before(low);
            self.marks.begin_at(low);
            self.last = None;
        }
        self.awaited = self.awaited.filter(|witness| witness.offset >= low);
        self.marks.forget_before(low);
        self.contents.forget_before(low);
    }
}

impl Log {
    /// Takes a record from before the place to which the log was read.
    ///
    /// # Errors
    /// Why the log must stop: it is not the one that was read.
    pub(crate) fn meet(&mut self, record: Record) -> Result<(), Unsound> {
        let Some(awaited) = self.scan.awaited else {
            // Input: a record that was there already.
            return Ok(());
        };
        let is_another = Witness::of(&record) != awaited;
        #[cfg(feature = "sabotage")]
        let is_another = is_another && self.bug != Some(crate::sabotage::Bug::BirthNotRead);
        if is_another {
            return Err(Unsound::Another);
        }
        self.scan.awaited = None;
        self.scan.looks = 0;
        self.scan.last = Some(record);
        Ok(())
    }

    /// Says that the log is not the one that was read.
    pub(crate) fn is_another(&self) -> String {
        let (partition, next) = (&self.partition, self.scan.next());
        format!(
            "partition {partition} is not what was read of it before offset {next}: it was cut by an unclean election, \
             or made again under its name"
        )
    }
}
