//! Reading of everything that a batch's accessors give.

use airmail_model::{Batch, Checked};

/// Reads all of it; gives what it read a use, so that nothing is optimised away.
///
/// # Panics
/// If two ways to read one thing disagree, or a record brings along what the batch denies.
pub fn read(batch: &Checked<Batch>) -> usize {
    let marks = (batch.is_expiring(), batch.is_restricted());
    assert_eq!(batch.is_plain(), marks == (false, false));
    let mut seen = batch.topics().map(|topic| topic.name.len()).sum::<usize>();
    seen += batch
        .extensions()
        .map(|(_, value)| value.len())
        .sum::<usize>();
    for (record, (index, topic)) in batch.iter().zip(batch.heads()) {
        assert_eq!((record.index, record.topic), (index, topic));
        assert!(u32::from(record.index) < batch.numbers());
        assert_eq!(batch.topic(topic).name, record.topic_name);
        // A body that is damaged may not show what its record's flags announce.
        assert!(record.ttl_ms.is_none() || marks.0);
        assert!(record.audience.is_empty() || marks.1);
        assert!(record.payload.is_empty() || !batch.is_headers());
        seen += record.payload.len() + record.attributes.count() + record.audience.count();
        seen += record.key.map_or(0, <[u8]>::len);
    }
    seen + usize::from(batch.producer().is_some()) + usize::from(batch.is_control())
}

/// Checks that a batch without damage says of its records what they say.
///
/// # Panics
/// If it does not.
pub fn expect_true_marks(batch: &Checked<Batch>) {
    let expiring = batch.iter().any(|record| record.ttl_ms.is_some());
    let restricted = batch.iter().any(|record| !record.audience.is_empty());
    let marks = (batch.is_expiring(), batch.is_restricted());
    assert_eq!(marks, (expiring, restricted));
}
