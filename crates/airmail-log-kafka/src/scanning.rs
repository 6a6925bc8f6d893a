//! Reading logs through: once, in order, as the tail.

use crate::asking::{Asking, Waiter};
use crate::brokers::{Brokers, ConsumerId, Partition, Record, Taken};
use crate::entry::{Entry, read};
use crate::layout::MapTopics;
use crate::log::Log;
use crate::place::Offset;
use crate::producers::RecordFacts;
use crate::reader::ReaderKey;
#[cfg(feature = "sabotage")]
use crate::sabotage::{Bug, unless_next};
use crate::sending::Sending;
use crate::soundness::{Suspicion, Unsound};
use crate::storage::KafkaStorage;
use airmail_log::{Completion, LogSpec, Refusal};
use airmail_model::{Batch, LogId};
use std::collections::BTreeSet;

/// Bytes that are taken of a log at a time, before another log has its turn.
const TAKE_BYTES: u64 = 256 << 10;

impl<B: Brokers> KafkaStorage<B> {
    pub(crate) fn begin_scan(
        &mut self,
        id: LogId,
        partition: Partition,
        topics: Option<MapTopics>,
        spec: LogSpec,
        low: Offset,
    ) {
        let sending = Sending::default();
        #[cfg(feature = "sabotage")]
        let sending = sending.with_bug(self.config.bug);
        let nonce = topics.map_or(0, |topics| topics.nonce);
        let incarnation = self.life(id, nonce);
        let (cuts, _) = self.rows.of(id).cuts(nonce);
        let scan = self.scan_from((id, nonce), incarnation, low);
        let log = Log {
            id,
            partition,
            topics,
            spec,
            incarnation,
            is_open: false,
            cuts,
            suspended: None,
            low,
            scan,
            sending,
            asking: Asking::default(),
            readers: BTreeSet::new(),
            #[cfg(feature = "sabotage")]
            bug: self.config.bug,
        };
        self.logs.insert(id, log);
        self.consume_log(id);
    }

    pub(crate) fn readable(&mut self, consumer: ConsumerId) {
        if let Some(log) = self.scans.get(&consumer) {
            self.work.readable.insert(*log);
        } else if self.start.is_consumer(consumer) {
            self.start.readable();
            self.go_on_starting();
        } else if self.work.doubts.of_consumer(consumer).is_some() {
            self.look_readable(consumer);
        } else {
            self.sweep_readable(consumer);
        }
    }

    /// Takes what logs have; whether there may be more.
    pub(crate) fn scan(&mut self) -> bool {
        let readable = std::mem::take(&mut self.work.readable);
        for id in readable {
            if self.scan_log(id) {
                self.work.readable.insert(id);
            }
        }
        !self.work.readable.is_empty()
    }

    /// Takes what a log has, up to its share of a turn; whether there may be more.
    fn scan_log(&mut self, id: LogId) -> bool {
        let Some(log) = self.logs.get_mut(&id).filter(|log| log.suspended.is_none()) else {
            // Input: a log that was deleted or stopped meanwhile.
            return false;
        };
        let Some(consumer) = log.scan.consumer else {
            // Input: a consumer that was stopped meanwhile.
            return false;
        };
        #[cfg(feature = "sabotage")]
        if self.config.bug == Some(crate::sabotage::Bug::ForgottenByTimer) {
            let wall_ms = self.now.wall.0.div_euclid(1000);
            log.scan.producers.forget_by(wall_ms);
        }
        let since = log.scan.next();
        let mut taken = Vec::new();
        let has_more = self.brokers.take(consumer, TAKE_BYTES, &mut taken);
        for taken in taken {
            match taken {
                Taken::Record(record) => {
                    let is_new = record.offset >= log.scan.next();
                    let result = if is_new {
                        log.scan_record(record, &mut self.counts)
                    } else {
                        log.meet(record)
                    };
                    if let Err(why) = result {
                        match why {
                            Unsound::BornAgain => self.conclude(id, None),
                            Unsound::Another => self.doubt(id, Suspicion::Another),
                        }
                        return false;
                    }
                }
                Taken::End { .. } if log.scan.awaited.is_some() => {
                    self.unmet(id);
                    return false;
                }
                Taken::End { next } => {
                    log.scan.newest.known_to(next);
                    log.scan.is_at_end = true;
                }
            }
        }
        self.read_on(id, since);
        self.stirred.insert(id);
        if self.work.awaited.contains_key(&id) {
            self.answer_appends(id);
        }
        has_more
    }

    pub(crate) fn out_of_range(&mut self, consumer: ConsumerId) {
        if self.start.is_consumer(consumer) {
            return self.rows_ended();
        }
        if self.work.doubts.of_consumer(consumer).is_some() {
            return self.doubt_of(consumer, Suspicion::Another);
        }
        let Some(id) = self
            .scans
            .get(&consumer)
            .copied()
            .or_else(|| self.end_sweep(consumer))
        else {
            // Input: a consumer that was stopped meanwhile.
            return;
        };
        if self.scans.contains_key(&consumer) {
            self.stop_scan(id);
        }
        self.wait_for_bounds(id, Waiter::OutOfRange);
    }

    /// A consumer has ended for a reason that may pass: its log is read on from its place, after a while.
    pub(crate) fn ended(&mut self, consumer: ConsumerId) {
        if self.start.is_consumer(consumer) {
            return self.rows_ended();
        }
        if self.work.doubts.of_consumer(consumer).is_some() {
            return self.doubt_of(consumer, Suspicion::Another);
        }
        let of_scan = self.scans.get(&consumer).copied();
        if let Some(id) = of_scan {
            self.stop_scan(id);
        }
        if let Some(id) = of_scan.or_else(|| self.end_sweep(consumer)) {
            self.look_again_later(id);
        }
    }

    /// Stops a log: nothing of it is given or taken, and everybody is told why.
    pub(crate) fn stop_log(&mut self, id: LogId, why: &Refusal) {
        self.stop_reading(id, why);
        if let Some(log) = self.logs.get_mut(&id) {
            log.suspended = Some(why.clone());
            // Nothing more of it is read: nobody will know what has become of these.
            self.work.under_way_bytes -= log.sending.bytes();
            log.sending.give_up();
        }
        self.answer_appends(id);
    }

    /// Ends a log here.
    pub(crate) fn close_log(&mut self, id: LogId, why: &Refusal) {
        self.end_doubt(id);
        self.stop_reading(id, why);
        let Some(mut log) = self.logs.remove(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        self.work.under_way_bytes -= log.sending.bytes();
        log.sending.give_up();
        let seen = (&log.scan.producers, log.scan.next());
        let held = self.config.durability();
        log.sending.answer(held, seen, self.now.mono, &mut self.out);
        self.work.awaited.remove(&id);
        let waiters = log.asking.give_up();
        self.unanswered(id, waiters, why);
        self.work.retries.remove(&id);
        self.work.stating.forget(id);
    }

    /// Ends the consumers and readers of a log.
    fn stop_reading(&mut self, id: LogId, why: &Refusal) {
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let readers = std::mem::take(&mut log.readers);
        self.stop_scan(id);
        self.end_sweeps_of(id);
        for key in readers {
            self.readers.remove(&key);
            self.work.behind.remove(&key);
            match key {
                ReaderKey::Owner(r) => {
                    let why = Some(why.clone());
                    self.out.push(Completion::Ended { r, why });
                }
                ReaderKey::Own(t) => self.look_ended(t, why),
            }
        }
    }
}

impl Log {
    /// Takes the next record of the partition.
    ///
    /// # Errors
    /// Why the log must stop: the partition is not the one that was made for it.
    fn scan_record(
        &mut self,
        record: Record,
        counts: &mut crate::storage::Counts,
    ) -> Result<(), Unsound> {
        if self.scan.awaited.is_some() {
            return Err(Unsound::Another);
        }
        self.scan.is_at_end = false;
        self.scan.unstated_bytes += record.bytes();
        let result = self.scan_next(&record, counts);
        self.scan.last = Some(record);
        result
    }

    fn scan_next(
        &mut self,
        record: &Record,
        counts: &mut crate::storage::Counts,
    ) -> Result<(), Unsound> {
        let birth = self.topics.filter(|_| record.offset == Offset(0));
        #[cfg(feature = "sabotage")]
        let birth = birth.filter(|_| self.bug != Some(Bug::BirthNotRead));
        if let Some(topics) = birth {
            if record.value.as_ref() != Some(&topics.birth()) {
                return Err(Unsound::BornAgain);
            }
            self.scan.newest.push(Entry::void(record));
            return Ok(());
        }
        let Some(found) = read(record, self.id) else {
            // Input: bytes that are no batch of the log.
            counts.damage += 1;
            self.scan.newest.push(Entry::lost(record));
            return Ok(());
        };
        let left_out = self.verdict(&facts(record, &found.batch));
        if left_out > 0 {
            counts.left_out += u64::from(left_out);
            self.scan.marks.push(record.offset, left_out);
        }
        let entry = Entry::of(record, &found, left_out);
        if !entry.tiles.is_empty() {
            let bytes = record.bytes();
            self.scan
                .contents
                .take(record.offset, record.appended_ms, bytes);
        }
        self.scan.newest.push(entry);
        Ok(())
    }

    /// Number of the next record's first messages that are left out.
    fn verdict(&mut self, record: &RecordFacts) -> u32 {
        #[cfg(feature = "sabotage")]
        let record = &match self.bug {
            Some(Bug::HoleLeftOut) => {
                if let Some(left_out) = unless_next(&self.scan.producers, record) {
                    return left_out;
                }
                *record
            }
            Some(Bug::StragglerTaken) => RecordFacts {
                sent_ms: record.appended_ms,
                ..*record
            },
            _ => *record,
        };
        self.scan.producers.take(record)
    }
}

fn facts(record: &Record, batch: &Batch) -> RecordFacts {
    RecordFacts {
        offset: record.offset,
        appended_ms: record.appended_ms,
        sent_ms: record.sent_ms.unwrap_or(record.appended_ms),
        stamp: batch.producer(),
        messages: batch.numbers(),
    }
}
