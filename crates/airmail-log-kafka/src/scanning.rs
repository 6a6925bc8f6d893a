//! Reading logs through: once, in order, as the tail.

use crate::asking::{Asking, Waiter};
use crate::brokers::{Brokers, ConsumerId, Partition, Record, Slot, Taken};
use crate::entry::{Entry, read};
use crate::layout::{MapTopics, incarnation};
use crate::log::{Log, Scan};
use crate::place::Offset;
use crate::producers::RecordFacts;
use crate::reader::ReaderKey;
use crate::sending::Sending;
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
        let consumer = ConsumerId(self.id());
        self.brokers.consume(consumer, Slot::TAIL, &partition, low);
        self.scans.insert(consumer, id);
        let nonce = topics.map_or(0, |topics| topics.nonce);
        let lives = self.rows.of(id).lives(nonce);
        let log = Log {
            id,
            partition,
            topics,
            spec,
            incarnation: incarnation(self.config.cluster, id, nonce, lives),
            is_open: false,
            suspended: None,
            low,
            scan: Scan::new(consumer, low),
            sending: Sending::default(),
            asking: Asking::default(),
            readers: BTreeSet::new(),
        };
        self.logs.insert(id, log);
    }

    pub(crate) fn readable(&mut self, consumer: ConsumerId) {
        if let Some(log) = self.scans.get(&consumer) {
            self.work.readable.insert(*log);
        } else if self.start.is_consumer(consumer) {
            self.start.readable();
            self.go_on_starting();
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
        let mut taken = Vec::new();
        let has_more = self.brokers.take(consumer, TAKE_BYTES, &mut taken);
        for taken in taken {
            match taken {
                Taken::Record(record) if record.offset >= log.scan.next() => {
                    if let Err(why) = log.scan_record(&record, &mut self.counts) {
                        self.suspend_log(id, why);
                        return false;
                    }
                }
                // Input: a record that was there already.
                Taken::Record(_) => {}
                Taken::End { next } => {
                    log.scan.newest.known_to(next);
                    log.scan.is_at_end = true;
                }
            }
        }
        self.stirred.insert(id);
        has_more
    }

    pub(crate) fn out_of_range(&mut self, consumer: ConsumerId) {
        if self.start.is_consumer(consumer) {
            return self.rows_ended();
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
        if self.scans.remove(&consumer).is_some() {
            self.brokers.stop(consumer);
            if let Some(log) = self.logs.get_mut(&id) {
                log.scan.consumer = None;
            }
        }
        self.wait_for_bounds(id, Waiter::OutOfRange);
    }

    /// Goes on reading a log through, behind what is gone. A leader that knows less than was read is old, or its
    /// partition was cut: neither can be told from its watermark, so it is asked again.
    pub(crate) fn scan_again(&mut self, id: LogId, high: Offset) {
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        if log.scan.consumer.is_some() || log.suspended.is_some() {
            return;
        }
        if high < log.scan.next() {
            return self.look_again_later(id);
        }
        if log.scan.next() < log.low {
            log.scan.newest.forget_before(log.low);
        }
        let (partition, from) = (log.partition.clone(), log.scan.next());
        let consumer = ConsumerId(self.id());
        if let Some(log) = self.logs.get_mut(&id) {
            log.scan.consumer = Some(consumer);
            log.scan.is_at_end = false;
        }
        self.scans.insert(consumer, id);
        self.brokers.consume(consumer, Slot::TAIL, &partition, from);
    }

    /// A consumer has come upon something that must not be: its log stops.
    pub(crate) fn suspend(&mut self, consumer: ConsumerId, why: &str) {
        if self.start.is_consumer(consumer) {
            return self.rows_ended();
        }
        let of_scan = self.scans.get(&consumer).copied();
        let Some(id) = of_scan.or_else(|| self.end_sweep(consumer)) else {
            // Input: a consumer that was stopped meanwhile.
            return;
        };
        if let Some(log) = self.logs.get(&id) {
            let why = format!("partition {} {why}", log.partition);
            self.suspend_log(id, why);
        }
    }

    /// Stops a log: nothing of it is given or taken, and everybody is told why.
    pub(crate) fn suspend_log(&mut self, id: LogId, why: String) {
        self.stop_reading(id, &Refusal::Io(why.clone()));
        if let Some(log) = self.logs.get_mut(&id) {
            log.suspended = Some(why);
        }
    }

    /// Ends a log here.
    pub(crate) fn close_log(&mut self, id: LogId, why: &Refusal) {
        self.stop_reading(id, why);
        let Some(mut log) = self.logs.remove(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        self.work.under_way_bytes -= log.sending.bytes();
        log.sending.give_up();
        let held = self.config.durability();
        log.sending.answer(held, self.now.mono, &mut self.out);
        self.work.awaited.remove(&id);
        let waiters = log.asking.give_up();
        self.unanswered(id, waiters, why);
        self.work.retries.remove(&id);
    }

    /// Ends the consumers and readers of a log.
    fn stop_reading(&mut self, id: LogId, why: &Refusal) {
        let Some(log) = self.logs.get_mut(&id) else {
            // Input: a log that was deleted meanwhile.
            return;
        };
        let readers = std::mem::take(&mut log.readers);
        if let Some(consumer) = log.scan.consumer.take() {
            self.scans.remove(&consumer);
            self.brokers.stop(consumer);
        }
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
        record: &Record,
        counts: &mut crate::storage::Counts,
    ) -> Result<(), String> {
        self.scan.is_at_end = false;
        if let Some(topics) = self.topics.filter(|_| record.offset == Offset(0)) {
            if record.value.as_ref() != Some(&topics.birth()) {
                let partition = &self.partition;
                return Err(format!(
                    "partition {partition} was made again under its name"
                ));
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
        let left_out = self.scan.producers.take(&facts(record, &found.batch));
        if left_out > 0 {
            counts.left_out += u64::from(left_out);
            self.scan.marks.insert(record.offset, left_out);
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
