//! Batches for tests.

use airmail_model::batch::BatchTarget;
use airmail_model::{Batch, BatchEncoder, Checked, Limits, LogId, MapEpoch, Message, TopicName};

/// A batch of a log, with an empty message to each of these topics.
pub(crate) fn batch_in<T: AsRef<str>>(
    log: LogId,
    topics: impl IntoIterator<Item = T>,
) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(log.namespace);
    for topic in topics {
        let topic = TopicName::new(topic.as_ref(), &Limits::DEFAULT).expect("a good name");
        let pushed = encoder.push(&Message::new(topic, Vec::new()), 0, &Limits::DEFAULT);
        pushed.expect("it fits");
    }
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    })
}
