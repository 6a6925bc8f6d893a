//! Bugs that the simulator plants, to see that it finds them. In no build but its own.

use crate::brokers::{Brokers, NewRecord, Order};
use crate::layout::log_settings;
use crate::log::Scan;
use crate::place::Offset;
use crate::producers::{Producers, RecordFacts};
use crate::storage::{KafkaStorage, Purpose};
use airmail_log::Refusal;
use airmail_model::LogId;

/// A bug to plant. Each is a mistake that is easily made on Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A record is left out unless it is exactly the next of its producer: what was acknowledged behind a hole is lost.
    HoleLeftOut,
    /// An error in a delivery report is told as a refusal, after which the batch may be sent again.
    ReportRetriable,
    /// A record that was appended long after it was handed over is taken as any other.
    StragglerTaken,
    /// A log is served from its end on, before its beginning is read through: nobody knows what is a copy.
    HomeWithoutTable,
    /// A high watermark below what was read is taken for a truncation.
    LowWatermarkTruncates,
    /// Numbers without a message are told as removed by retention.
    HoleIsRetention,
    /// The birth record is not looked at: a topic that was made again gives its numbers once more.
    BirthNotRead,
    /// A topic that is not there is made again under its name.
    MissingTopicMade,
    /// A topic that log 0 is not known to name is removed, whether it may be named yet or not.
    UnheardRemoved,
    /// The end that was read up to answers the question for a log's end.
    CachedEnd,
    /// A statement about any life of a log is taken for one about this one, and is not compared with what is stored.
    StatementTrusted,
    /// Producers are forgotten by the node's clock, and not by the log.
    ForgottenByTimer,
    /// A batch is acknowledged by its report, whether its producer's epoch is whole here or not.
    SoleAfterAMove,
}

/// Number of a record's first messages that are left out where only the next of a producer is taken.
pub(crate) fn unless_next(known: &Producers, record: &RecordFacts) -> Option<u32> {
    let stamp = record.stamp?;
    let (epoch, last) = known.last(stamp.id)?;
    let is_behind_hole = epoch == stamp.epoch && stamp.sequence.0 > last.saturating_add(1);
    is_behind_hole.then_some(record.messages)
}

impl<B: Brokers> KafkaStorage<B> {
    /// Begins to read a log at its end.
    pub(crate) fn scan_from_end(&mut self, id: LogId, high: Offset) {
        self.stop_scan(id);
        if let Some(log) = self.logs.get_mut(&id) {
            log.scan = Scan::new(high, &self.config.statements);
        }
        self.consume_log(id);
    }

    /// Makes a topic that is not there, with its births, to be described again.
    pub(crate) fn make_again(&mut self, id: LogId) -> Result<(), Refusal> {
        let (Some(target), true) = (self.target(id), id != LogId::SYSTEM) else {
            return Err(Refusal::NoLog);
        };
        let topic = target.partition.topic.clone();
        let create = Order::Create {
            topic: topic.clone(),
            partitions: target.topics.map_or(1, |topics| topics.logs),
            replicas: self.config.replicas,
            settings: log_settings(&self.config, &target.spec.retention),
        };
        self.order(Purpose::Nothing, create);
        if let Some(topics) = target.topics {
            let record = NewRecord {
                key: None,
                value: Some(topics.birth()),
                sent_ms: self.wall_ms(),
            };
            let token = self.token(Purpose::Nothing);
            if self
                .brokers
                .produce(token, &target.partition, record)
                .is_err()
            {
                self.untoken(token);
            }
        }
        Err(KafkaStorage::<B>::busy())
    }
}
