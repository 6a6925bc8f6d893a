//! The producer: hands records to librdkafka on the owner's thread, and has their delivery reports told by one thread
//! of its own.
//!
//! One thread alone takes reports, at the end as well, because two would tell those of a partition out of order.
//!
//! `Ok` of librdkafka is not enough for [`Produced`]: where a broker says that it has had a record before (the answer to
//! its first copy was lost), librdkafka counts it as stored and knows no offset. That is [`Unstored`]: it may be there,
//! and nobody can say where.

use super::news::News;
use crate::brokers::{NewRecord, NotTaken, Partition, Produced, Token, Told, Unstored};
use crate::place::Offset;
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::message::{DeliveryResult, Header, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext, PurgeConfig};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Header that names the form of a record, and its value.
pub(super) const VERSION_HEADER: (&str, &str) = ("v", "1");
/// Header of the time at which a record was handed over.
pub(super) const SENT_HEADER: &str = "sent";

/// The most time between looks at whether to end.
const LOOK: Duration = Duration::from_millis(50);
/// Time for the reports of records that were given up.
const PURGE: Duration = Duration::from_secs(5);

/// Receiver of reports and of the client's errors.
pub(super) struct Reports(Arc<News>);

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        super::consumer::log("producer", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            Some(Code::Fatal) => {
                tracing::error!(reason, "Kafka's producer has failed, and is made anew");
                self.0.note_fatal(reason);
            }
            Some(Code::AllBrokersDown) => self.0.note_down(reason),
            _ => tracing::debug!(%error, reason, "Kafka's producer reports an error"),
        }
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<Token>;

    fn delivery(&self, result: &DeliveryResult<'_>, token: Box<Token>) {
        let result = match result {
            Ok(message) => match u64::try_from(message.offset()) {
                Ok(offset) => {
                    self.0.note_answer();
                    Ok(Produced {
                        offset: Offset(offset),
                        appended_ms: message.timestamp().to_millis().unwrap_or(0),
                    })
                }
                Err(_) => Err(Unstored("stored, and nobody told where".to_owned())),
            },
            Err((error, _)) => Err(Unstored(error.to_string())),
        };
        let token = *token;
        self.0.tell(Told::Produced { token, result });
    }
}

/// The owner's end of the producer.
pub(super) struct Producer {
    client: Arc<BaseProducer<Reports>>,
    life: Arc<Life>,
}

/// End of a producer that has failed.
#[derive(Debug, Default)]
pub(super) struct Life {
    is_given_up: AtomicBool,
    is_over: AtomicBool,
}

impl Life {
    /// Whether everything that was handed over is told.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}

impl Producer {
    /// Makes the client, and starts the thread of its reports. The thread ends when closing has begun, after at
    /// most `flush` and what giving records up takes; the owner's end is dropped before.
    pub(super) fn start(
        config: &ClientConfig,
        news: &Arc<News>,
        flush: Duration,
    ) -> Result<Producer, super::OpenError> {
        let client: KafkaResult<BaseProducer<Reports>> =
            config.create_with_context(Reports(Arc::clone(news)));
        let client = Arc::new(client?);
        let (reporting, told) = (Arc::clone(&client), Arc::clone(news));
        let life = Arc::<Life>::default();
        let of_thread = Arc::clone(&life);
        news.spawn("kafka-reports", move || {
            report(reporting, (&told, &of_thread), flush);
        })?;
        Ok(Producer { client, life })
    }

    /// Has everything under way be told, whatever has become of it. This producer is of no use any more.
    pub(super) fn give_up(self) -> Arc<Life> {
        self.life.is_given_up.store(true, Ordering::Release);
        self.life
    }

    /// Hands a record over. It is copied.
    ///
    /// # Errors
    /// It is not taken.
    pub(super) fn produce(
        &self,
        token: Token,
        partition: &Partition,
        record: &NewRecord,
    ) -> Result<(), NotTaken> {
        let sent = record.sent_ms.to_string();
        let headers = OwnedHeaders::new_with_capacity(2)
            .insert(Header {
                key: VERSION_HEADER.0,
                value: Some(VERSION_HEADER.1),
            })
            .insert(Header {
                key: SENT_HEADER,
                value: Some(&sent),
            });
        let topic = partition.topic.as_str();
        let mut base = BaseRecord::<[u8], [u8], _>::with_opaque_to(topic, Box::new(token))
            .partition(partition.number.0.into())
            .headers(headers);
        base.key = record.key.as_deref();
        base.payload = record.value.as_deref();
        self.client
            .send(base)
            .map_err(|(error, _)| not_taken(&error))
    }
}

fn not_taken(error: &KafkaError) -> NotTaken {
    match error.rdkafka_error_code() {
        Some(Code::QueueFull) => NotTaken::Full,
        Some(
            Code::MessageSizeTooLarge
            | Code::UnknownPartition
            | Code::UnknownTopic
            | Code::UnknownTopicOrPartition
            | Code::InvalidTopic
            | Code::InvalidArgument,
        ) => NotTaken::Invalid(error.to_string()),
        _ => NotTaken::Failed(error.to_string()),
    }
}

/// Takes reports until closing begins, or the producer is given up; then waits for those that are missing, and gives up
/// the rest.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the client ends in this thread, where its end may last"
)]
fn report(client: Arc<BaseProducer<Reports>>, (news, life): (&News, &Life), flush: Duration) {
    let is_given_up = || life.is_given_up.load(Ordering::Acquire);
    while !news.is_closing() && !is_given_up() {
        client.poll(LOOK);
    }
    if is_given_up() || client.flush(flush).is_err() {
        client.purge(PurgeConfig::default().queue().inflight());
        if client.flush(PURGE).is_err() {
            let missing = client.in_flight_count();
            tracing::error!(missing, "Kafka's producer ends without all reports");
        }
    }
    life.is_over.store(true, Ordering::Release);
    news.wake();
}
