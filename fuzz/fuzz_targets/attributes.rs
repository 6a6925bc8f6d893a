//! Attributes: any bytes in their place in a batch that is otherwise good.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_model::batch::BatchTarget;
use airmail_model::{
    Batch, BatchEncoder, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName,
};

fuzz_target!(|data: &[u8]| {
    let Ok(length) = u16::try_from(data.len()) else {
        return;
    };
    let topic = TopicName::new("t", &Limits::DEFAULT).expect("a name");
    let message = Message::new(topic, data.to_vec());
    let mut encoder = BatchEncoder::new(NamespaceId(1));
    encoder
        .push(&message, 0, &Limits::DEFAULT)
        .expect("it fits");
    let log = LogId {
        namespace: NamespaceId(1),
        ..LogId::default()
    };
    let target = BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    };
    let mut bytes = encoder.finish(&target).bytes().to_vec();
    // All of the payload becomes attributes.
    let bodies = bytes.len() - data.len();
    bytes[bodies - 2..bodies].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[8..bodies]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    let Ok(batch) = Batch::check(bytes.clone().into(), &Limits::DEFAULT) else {
        let (_, damaged) = Batch::check_stored(bytes.into()).expect("the head is good");
        assert!(damaged.is_empty() || damaged == [0]);
        return;
    };
    let record = batch.record(0);
    assert!(record.payload.is_empty());
    let attributes: Vec<_> = record
        .attributes
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    // What is well formed has one encoding.
    let topic = TopicName::new("t", &Limits::DEFAULT).expect("a name");
    let message = Message {
        attributes,
        ..Message::new(topic, "")
    };
    encoder
        .push(&message, 0, &Limits::DEFAULT)
        .expect("it was taken before");
    assert_eq!(encoder.finish(&target).bytes()[..], bytes[..]);
});
