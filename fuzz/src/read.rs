//! Reading of everything that a batch's accessors give.

use airmail_model::{Batch, Checked};

/// Reads all of it; gives what it read a use, so that nothing is optimised away.
pub fn read(batch: &Checked<Batch>) -> usize {
    let mut seen = batch.topics().map(|topic| topic.name.len()).sum::<usize>();
    seen += batch
        .extensions()
        .map(|(_, value)| value.len())
        .sum::<usize>();
    for (record, (index, topic)) in batch.iter().zip(batch.heads()) {
        assert_eq!((record.index, record.topic), (index, topic));
        assert!(u32::from(record.index) < batch.numbers());
        assert_eq!(batch.topic(topic).name, record.topic_name);
        seen += record.payload.len() + record.attributes.count() + record.audience.count();
        seen += record.key.map_or(0, <[u8]>::len);
    }
    seen + usize::from(batch.producer().is_some()) + usize::from(batch.is_control())
}
