//! A consumer: what librdkafka has fetched of one partition, taken without waiting.
//!
//! librdkafka puts what it fetches of a partition, the end of it and its errors into one queue, in order. The owner's end
//! ([`Reader`]) empties that; the slot's thread makes it, and takes it back when the consumer is stopped ([`Cell`]).
//!
//! Where the end is, and where a partition was cut, stands in the texts of librdkafka's events alone, as far as its
//! safe interface goes. They are read from there, which holds as long as librdkafka is built from the sources that
//! are named in the lock file; where a text is another one, the end is taken to be behind the last record, and a cut to
//! be a failure without a place.

use super::error::{failure_of, passes};
use super::news::News;
use super::producer::{SENT_HEADER, VERSION_HEADER};
use crate::brokers::{ConsumerId, Failure, Partition, Record, Taken, Told};
use crate::place::Offset;
use bytes::Bytes;
use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Text before the offset at which a partition ends.
const END_AT: &str = "end of partition at offset ";
/// Text before the offset at which a partition was cut.
const CUT_AT: &str = "truncation detected at";
/// And before the offset itself.
const CUT_END: &str = "broker end offset is ";

thread_local! {
    /// Text of the last error that librdkafka has told this thread while it looked into a queue.
    static REASON: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Receiver of the events of a slot's client.
#[derive(Debug)]
pub(super) struct Events;

impl ClientContext for Events {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log("consumer", level, facility, message);
    }

    fn error(&self, _error: KafkaError, reason: &str) {
        REASON.with_borrow_mut(|text| {
            text.clear();
            text.push_str(reason);
        });
    }
}

impl ConsumerContext for Events {}

/// A queue of what was fetched of a partition.
pub(super) type Queue = PartitionQueue<Events>;

/// Whether the owner knows that there is something to take.
#[derive(Debug)]
pub(super) struct Flag {
    consumer: ConsumerId,
    is_raised: AtomicBool,
}

impl Flag {
    /// Tells that there is something to take, unless that was told and nothing was taken since.
    pub(super) fn raise(&self, news: &News) {
        if !self.is_raised.swap(true, Ordering::AcqRel) {
            let consumer = self.consumer;
            news.tell(Told::Readable { consumer });
        }
    }

    fn lower(&self) {
        self.is_raised.store(false, Ordering::Release);
    }
}

/// State that the owner and the slot's thread have in common of a consumer.
pub(super) struct Cell {
    pub(super) consumer: ConsumerId,
    pub(super) partition: Partition,
    pub(super) from: Offset,
    pub(super) flag: Arc<Flag>,
    /// Its queue, from when the partition is assigned until it is stopped. The owner holds the lock while it takes.
    pub(super) queue: Mutex<Option<Queue>>,
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell")
            .field("consumer", &self.consumer)
            .field("partition", &self.partition)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// The owner's end of a consumer.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) cell: Arc<Cell>,
    /// The offset behind the last record that was taken.
    next: Offset,
    is_ended: bool,
}

impl Reader {
    /// A consumer that is not assigned yet.
    pub(super) fn new(consumer: ConsumerId, partition: &Partition, from: Offset) -> Reader {
        let flag = Flag {
            consumer,
            is_raised: AtomicBool::new(false),
        };
        let cell = Cell {
            consumer,
            partition: partition.clone(),
            from,
            flag: Arc::new(flag),
            queue: Mutex::new(None),
        };
        Reader {
            cell: Arc::new(cell),
            next: from,
            is_ended: false,
        }
    }

    /// Takes records until they are `bytes_max` or more together, and the end where it is reached.
    pub(super) fn take(&mut self, bytes_max: u64, taken: &mut Vec<Taken>, news: &News) -> bool {
        self.cell.flag.lower();
        let cell = Arc::clone(&self.cell);
        let queue = cell.queue.lock();
        let Some(queue) = queue.as_ref() else {
            // Input: the slot's thread has not assigned the partition yet.
            return false;
        };
        let mut bytes = 0;
        while !self.is_ended {
            if bytes >= bytes_max {
                // librdkafka tells of a queue that was empty alone.
                self.cell.flag.raise(news);
                return true;
            }
            match queue.poll(Duration::ZERO) {
                None => return false,
                Some(Ok(message)) => {
                    if let Some(record) = self.record(&message) {
                        bytes += record.bytes();
                        taken.push(Taken::Record(record));
                    }
                }
                Some(Err(error)) => self.meet(&error, taken, news),
            }
        }
        false
    }

    /// Copies a record, unless it is one before where the consumer is.
    fn record(&mut self, message: &BorrowedMessage<'_>) -> Option<Record> {
        let offset = Offset(u64::try_from(message.offset()).ok()?);
        if offset < self.next {
            return None;
        }
        self.next = Offset(offset.0 + 1);
        Some(Record {
            offset,
            appended_ms: message.timestamp().to_millis().unwrap_or(0),
            sent_ms: sent(message),
            key: message.key().map(Bytes::copy_from_slice),
            value: message.payload().map(Bytes::copy_from_slice),
        })
    }

    /// Meets an event that is no record.
    fn meet(&mut self, error: &KafkaError, taken: &mut Vec<Taken>, news: &News) {
        let reason = REASON.with_borrow(String::clone);
        if matches!(error, KafkaError::PartitionEOF(_)) {
            let next = number_behind(&reason, END_AT).map_or(self.next, Offset);
            self.next = self.next.max(next);
            taken.push(Taken::End { next: self.next });
            return;
        }
        let code = error.rdkafka_error_code();
        if code.is_some_and(passes) {
            let partition = &self.cell.partition;
            tracing::debug!(%partition, %error, reason, "a consumer meets what passes");
            return;
        }
        self.is_ended = true;
        news.tell(end(self.cell.consumer, code, &reason));
    }
}

/// News of a consumer that can give nothing more, by its error.
fn end(consumer: ConsumerId, code: Option<Code>, reason: &str) -> Told {
    match code {
        Some(Code::AutoOffsetReset) if reason.contains(CUT_AT) => {
            match number_behind(reason, CUT_END) {
                Some(at) => Told::Truncated {
                    consumer,
                    at: Offset(at),
                },
                None => ended(consumer, Failure::Cut(reason.to_owned())),
            }
        }
        Some(Code::AutoOffsetReset) if reason.contains("epoch") => {
            ended(consumer, Failure::Cut(reason.to_owned()))
        }
        Some(Code::AutoOffsetReset) => Told::OutOfRange { consumer },
        Some(code) => match failure_of(code) {
            Failure::NoTopic => ended(consumer, Failure::NoTopic),
            _ => ended(consumer, Failure::Other(format!("{code}: {reason}"))),
        },
        None => ended(consumer, Failure::Other(reason.to_owned())),
    }
}

/// News of a consumer that has failed.
pub(super) fn ended(consumer: ConsumerId, why: Failure) -> Told {
    Told::Ended { consumer, why }
}

/// The number that stands in a text right behind another.
fn number_behind(text: &str, before: &str) -> Option<u64> {
    let (_, behind) = text.split_once(before)?;
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// When a record was handed over, if it is one of ours.
fn sent(message: &BorrowedMessage<'_>) -> Option<i64> {
    let headers = message.headers()?;
    let value = |name: &str| {
        let mut found = headers.iter().filter(|header| header.key == name);
        found.next().and_then(|header| header.value)
    };
    if value(VERSION_HEADER.0)? != VERSION_HEADER.1.as_bytes() {
        return None;
    }
    std::str::from_utf8(value(SENT_HEADER)?).ok()?.parse().ok()
}

/// Passes librdkafka's own log on.
pub(super) fn log(client: &str, level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(client, facility, message, "librdkafka");
        }
        // A remark about settings of ours, which are as they are to be.
        _ if facility == "CONFWARN" => {}
        RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
            tracing::warn!(client, facility, message, "librdkafka");
        }
        _ => tracing::debug!(client, facility, message, "librdkafka"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConsumerId = ConsumerId(7);
    const RESET: Option<Code> = Some(Code::AutoOffsetReset);

    #[test]
    fn the_end_stands_in_the_text_of_its_event() {
        let text = "Fetch from broker 1 reached end of partition at offset 42 (HighwaterMark 42)";
        assert_eq!(number_behind(text, END_AT), Some(42));
        assert_eq!(number_behind("Fetch reached the end", END_AT), None);
        assert_eq!(number_behind("end of partition at offset -1", END_AT), None);
    }

    #[test]
    fn a_cut_is_told_apart_from_an_offset_that_is_not_there() {
        let cut = "Partition log truncation detected at offset 100 (leader epoch 3): broker end offset is 64 \
                   (offset leader epoch 2). Reset to INVALID.: Local: Log truncated (broker 2)";
        let at = Offset(64);
        assert_eq!(end(ID, RESET, cut), Told::Truncated { consumer: ID, at });
        let gone = "fetch failed due to requested offset not available on the broker: Broker: Offset out of \
                    range (broker 1)";
        assert_eq!(end(ID, RESET, gone), Told::OutOfRange { consumer: ID });
        let unclear = "Partition log truncation detected at INVALID";
        let told = end(ID, RESET, unclear);
        assert!(matches!(
            told,
            Told::Ended {
                why: Failure::Cut(_),
                ..
            }
        ));
        let told = end(
            ID,
            Some(Code::UnknownTopicOrPartition),
            "topic does not exist",
        );
        assert_eq!(told, ended(ID, Failure::NoTopic));
    }
}
