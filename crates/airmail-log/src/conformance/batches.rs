//! Logs, specs and batches as the cases need them.

use crate::contract::{LogSpec, Soundness};
use airmail_model::batch::{BatchTarget, ProducerStamp};
use airmail_model::{
    Batch, BatchEncoder, Checked, Durability, Lane, Limits, LogId, LogIndex, MapEpoch, Message,
    NamespaceId, ProducerEpoch, ProducerId, ProducerSequence, Provisions, Retention, Sequence,
    StorageName, TopicName,
};
use bytes::Bytes;

/// The map epoch of every log and batch where a case does not say another.
pub const EPOCH: MapEpoch = MapEpoch(1);

/// A log of namespace 7.
#[must_use]
pub fn log(index: u16) -> LogId {
    LogId {
        namespace: NamespaceId(7),
        lane: Lane::Normal,
        index: LogIndex(index),
    }
}

/// Kept for ever, at `durability`, of map [`EPOCH`].
#[must_use]
pub fn spec(durability: Durability) -> LogSpec {
    LogSpec {
        durability,
        retention: Retention::default(),
        epoch: EPOCH,
        as_of: Sequence(0),
        storage: StorageName::FIRST,
        provisions: Provisions::NONE,
        soundness: Soundness::default(),
    }
}

/// Makes batches of one log, and of one producer if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    /// The log that they are for.
    pub log: LogId,
    /// The map by which the log is chosen.
    pub epoch: MapEpoch,
    /// The producer's stamp; the sequence is that of the next batch.
    pub producer: Option<ProducerStamp>,
}

impl Maker {
    /// Makes batches without a producer.
    #[must_use]
    pub fn new(log: LogId) -> Maker {
        Maker {
            log,
            epoch: EPOCH,
            producer: None,
        }
    }

    /// Makes batches of a producer, from sequence 0 on.
    #[must_use]
    pub fn of(log: LogId, producer: u64, epoch: u32) -> Maker {
        let producer = ProducerStamp {
            id: ProducerId(producer),
            epoch: ProducerEpoch(epoch),
            sequence: ProducerSequence(0),
        };
        Maker {
            log,
            epoch: EPOCH,
            producer: Some(producer),
        }
    }

    /// The same producer at another place in its sequence.
    #[must_use]
    pub fn at(mut self, sequence: u64) -> Maker {
        if let Some(producer) = &mut self.producer {
            producer.sequence = ProducerSequence(sequence);
        }
        self
    }

    /// A batch with a record for each (topic, payload).
    ///
    /// # Panics
    /// If there are no records, too many, or invalid ones.
    #[must_use]
    pub fn batch(&self, records: &[(&str, &str)]) -> Checked<Batch> {
        let records = records.iter();
        self.of_bytes(
            records.map(|(topic, text)| (*topic, Bytes::copy_from_slice(text.as_bytes()))),
        )
    }

    /// A batch with a record for each (topic, payload).
    ///
    /// # Panics
    /// As [`Maker::batch`].
    pub fn of_bytes<'a>(
        &self,
        records: impl IntoIterator<Item = (&'a str, Bytes)>,
    ) -> Checked<Batch> {
        // The suite asks what a storage does with a batch, not whether a client may send it.
        let limits = Limits {
            batch_bytes: u32::MAX,
            ..Limits::DEFAULT
        };
        let mut encoder = BatchEncoder::new(self.log.namespace);
        for (topic, payload) in records {
            let Ok(topic) = TopicName::new(topic, &limits) else {
                panic!("{topic:?} can be no topic");
            };
            let message = Message::new(topic, payload);
            if let Err(error) = encoder.push(&message, 0, &limits) {
                panic!("a record was not taken: {error:?}");
            }
        }
        encoder.finish(&BatchTarget {
            log: self.log,
            epoch: self.epoch,
            producer: self.producer,
            producer_time: 0,
        })
    }
}
