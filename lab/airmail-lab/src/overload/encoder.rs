//! A stream's batches: stamped messages, so that each is known again when it is read back.

use super::generator::Load;
use airmail_bench::stamp::Stamp;
use airmail_model::batch::{BatchTarget, PushError};
use airmail_model::{Batch, BatchEncoder, Checked, Lane, Limits, LogMap, TopicName};
use anyhow::{Context as _, bail};

/// Makes a stream's batches.
#[derive(Debug)]
pub(super) struct Encoder {
    stream: u32,
    run: u32,
    messages: u64,
    size: usize,
    topic: TopicName,
    map: LogMap,
    encoder: BatchEncoder,
}

impl Encoder {
    /// Encodes batches of one of a load's streams, by the node's map.
    pub(super) fn new(load: &Load, stream: u32, map: &LogMap) -> anyhow::Result<Encoder> {
        Ok(Encoder {
            stream,
            run: load.run,
            messages: load.batch.into(),
            size: load.size,
            topic: TopicName::new(&load.topic(stream), &Limits::DEFAULT)?,
            map: map.clone(),
            encoder: BatchEncoder::new(map.namespace),
        })
    }

    /// Batch `number` of the stream: messages `number * messages` and so on.
    pub(super) fn batch(&mut self, number: u64, due_us: u64) -> anyhow::Result<Checked<Batch>> {
        let hash = self.topic.hash(self.map.namespace);
        for message in number * self.messages..(number + 1) * self.messages {
            let stamp = Stamp {
                run: self.run,
                publisher: self.stream,
                number: message,
                sent_us: due_us,
            };
            let payload = stamp.payload(self.size);
            let pushed =
                (self.encoder).push_payload(&self.topic, &payload, hash, 0, &Limits::DEFAULT);
            match pushed {
                Ok(()) => {}
                Err(PushError::Full) => bail!("a batch cannot hold so many messages of that size"),
                Err(PushError::Refused(error)) => return Err(error).context("a message"),
            }
        }
        Ok(self.encoder.finish(&BatchTarget {
            log: self.map.log(hash, Lane::Normal),
            epoch: self.map.epoch,
            producer: None,
            producer_time: 0,
        }))
    }
}
