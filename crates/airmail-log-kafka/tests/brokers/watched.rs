//! Brokers of which it is known whether anything is under way, so that a test can tell "later" from "never".
//!
//! Something is under way while a record, a question or an order has no answer, and while a consumer has not come to the
//! end, as far as this client knows the ends: by the reports of its own records.

use airmail_log_kafka::brokers::{
    Brokers, ConsumerId, NewRecord, NotTaken, Order, Partition, Question, Slot, Taken, Token, Told,
};
use airmail_log_kafka::place::Offset;
use airmail_log_kafka::shell::LibrdkafkaBrokers;
use airmail_model::{Mono, Now};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A consumer, as far as it has come.
#[derive(Debug)]
struct Reading {
    partition: Partition,
    next: Offset,
    /// It was told an end, behind its last record.
    has_ended: bool,
    /// It has something that nobody has taken yet.
    is_readable: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// Partition of each record, and none of a question or an order.
    tokens: BTreeMap<Token, Option<Partition>>,
    /// The offset behind the last record that is known of each partition.
    ends: BTreeMap<Partition, Offset>,
    readings: BTreeMap<ConsumerId, Reading>,
}

impl UnderWay {
    pub(crate) fn is_any(&self) -> bool {
        let is_behind = |reading: &Reading| {
            let end = self.ends.get(&reading.partition);
            !reading.has_ended || end.is_some_and(|end| reading.next < *end)
        };
        let mut readings = self.readings.values();
        !self.tokens.is_empty() || readings.any(|of| !of.is_readable && is_behind(of))
    }

    fn hear(&mut self, told: &Told) {
        match told {
            Told::Produced { token, result } => {
                let partition = self.tokens.remove(token).flatten();
                if let (Some(partition), Ok(produced)) = (partition, result) {
                    let end = self.ends.entry(partition).or_default();
                    *end = Offset(produced.offset.0 + 1).max(*end);
                }
            }
            Told::Answered { token, .. } => {
                self.tokens.remove(token);
            }
            Told::Readable { consumer } => {
                if let Some(reading) = self.readings.get_mut(consumer) {
                    reading.is_readable = true;
                }
            }
            Told::OutOfRange { consumer }
            | Told::Truncated { consumer, .. }
            | Told::Ended { consumer, .. } => {
                self.readings.remove(consumer);
            }
        }
    }
}

/// Brokers, watched.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) brokers: LibrdkafkaBrokers,
    pub(crate) under_way: Arc<Mutex<UnderWay>>,
}

impl Brokers for Watched {
    fn produce(
        &mut self,
        token: Token,
        partition: &Partition,
        record: NewRecord,
    ) -> Result<(), NotTaken> {
        self.brokers.produce(token, partition, record)?;
        let mut under_way = self.under_way.lock();
        under_way.tokens.insert(token, Some(partition.clone()));
        Ok(())
    }

    fn consume(&mut self, consumer: ConsumerId, slot: Slot, partition: &Partition, from: Offset) {
        let reading = Reading {
            partition: partition.clone(),
            next: from,
            has_ended: false,
            is_readable: false,
        };
        self.under_way.lock().readings.insert(consumer, reading);
        self.brokers.consume(consumer, slot, partition, from);
    }

    fn stop(&mut self, consumer: ConsumerId) {
        self.under_way.lock().readings.remove(&consumer);
        self.brokers.stop(consumer);
    }

    fn take(&mut self, consumer: ConsumerId, bytes_max: u64, taken: &mut Vec<Taken>) -> bool {
        let before = taken.len();
        let is_more = self.brokers.take(consumer, bytes_max, taken);
        if let Some(reading) = self.under_way.lock().readings.get_mut(&consumer) {
            reading.is_readable = is_more;
            for one in &taken[before..] {
                match one {
                    Taken::Record(record) => {
                        reading.has_ended = false;
                        reading.next = Offset(record.offset.0 + 1);
                    }
                    Taken::End { next } => {
                        reading.has_ended = true;
                        reading.next = *next.max(&reading.next);
                    }
                }
            }
        }
        is_more
    }

    fn ask(&mut self, token: Token, partition: &Partition, question: Question) {
        self.under_way.lock().tokens.insert(token, None);
        self.brokers.ask(token, partition, question);
    }

    fn order(&mut self, token: Token, order: Order) {
        self.under_way.lock().tokens.insert(token, None);
        self.brokers.order(token, order);
    }

    fn poll(&mut self, now: Now, told: &mut Vec<Told>) -> Option<Mono> {
        let before = told.len();
        let deadline = self.brokers.poll(now, told);
        let mut under_way = self.under_way.lock();
        told[before..].iter().for_each(|one| under_way.hear(one));
        if self.brokers.is_closed() {
            under_way.readings.clear();
        }
        deadline
    }

    fn close(&mut self, now: Now) {
        self.brokers.close(now);
    }

    fn is_closed(&self) -> bool {
        self.brokers.is_closed()
    }

    fn trouble(&self) -> Option<String> {
        self.brokers.trouble()
    }
}
