//! What holds for every batch: what is encoded is read again, what is damaged is found, and a
//! slice has what was kept and nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use airmail_model::batch::{AttributeValue, BatchTarget, ProducerStamp, PushError, Record};
use airmail_model::{
    Batch, BatchEncoder, Checked, ErrorCode, Limits, LogId, LogIndex, MapEpoch, Message,
    NamespaceId, ProducerEpoch, ProducerId, ProducerSequence, TopicName,
};
use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

const NAMESPACE: NamespaceId = NamespaceId(7);
const LIMITS: Limits = Limits::DEFAULT;

fn topic() -> impl Strategy<Value = TopicName> {
    prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        "[^\\p{Cc}]{1,12}"
    ]
    .prop_map(|name| TopicName::new(&name, &LIMITS).unwrap())
}

fn value() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        ".{0,6}".prop_map(AttributeValue::String),
        any::<i64>().prop_map(AttributeValue::Integer),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(AttributeValue::Float),
        any::<bool>().prop_map(AttributeValue::Bool),
    ]
}

fn plain_message() -> impl Strategy<Value = Message> {
    (
        topic(),
        vec(any::<u8>(), 0..40),
        btree_map(".{1,6}", value(), 0..4),
    )
        .prop_map(|(topic, payload, attributes)| Message {
            // In reverse, so that the encoder has something to sort.
            attributes: attributes.into_iter().rev().collect(),
            ..Message::new(topic, payload)
        })
}

fn full_message() -> impl Strategy<Value = Message> {
    (
        plain_message(),
        option::of(vec(any::<u8>(), 0..5)),
        option::of(any::<u32>()),
        option::of(any::<i64>()),
        option::of(any::<u64>()),
        vec(any::<u32>(), 0..4),
    )
        .prop_map(
            |(message, key, ttl_ms, deliver_at, version, audience)| Message {
                key: key.map(Bytes::from),
                ttl_ms,
                deliver_at,
                version,
                audience,
                ..message
            },
        )
}

fn target() -> impl Strategy<Value = BatchTarget> {
    let producer = (1_u64.., any::<u32>(), 0..u64::MAX - 4096).prop_map(|(id, epoch, sequence)| {
        ProducerStamp {
            id: ProducerId(id),
            epoch: ProducerEpoch(epoch),
            sequence: ProducerSequence(sequence),
        }
    });
    (any::<u16>(), any::<u32>(), option::of(producer)).prop_map(|(index, epoch, producer)| {
        let log = LogId {
            namespace: NAMESPACE,
            index: LogIndex(index),
            ..LogId::default()
        };
        BatchTarget {
            log,
            epoch: MapEpoch(epoch),
            producer,
            producer_time: 5000,
        }
    })
}

/// Message n is made at n milliseconds.
fn encode(messages: &[Message], target: &BatchTarget) -> Checked<Batch> {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    for (message, n) in messages.iter().zip(0..) {
        encoder.push_reserved(message, n * 1000, &LIMITS).unwrap();
    }
    let length = encoder.len();
    let batch = encoder.finish(target);
    assert_eq!(batch.bytes().len(), length);
    assert!(encoder.is_empty());
    batch
}

fn read(record: &Record<'_>) -> Message {
    Message {
        topic: TopicName::new(record.topic_name, &LIMITS).unwrap(),
        payload: Bytes::copy_from_slice(record.payload),
        attributes: record
            .attributes
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        key: record.key.map(Bytes::copy_from_slice),
        ttl_ms: record.ttl_ms,
        deliver_at: record.deliver_at,
        version: record.version,
        audience: record.audience.collect(),
    }
}

/// As the encoder orders it.
fn canonical(message: &Message) -> Message {
    let mut message = message.clone();
    message.attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
    message.audience.sort_unstable();
    message.audience.dedup();
    message
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_again(
        messages in vec(full_message(), 1..12),
        target in target(),
    ) {
        let batch = encode(&messages, &target);
        let (checked, damaged) = Batch::check_stored(batch.bytes().clone()).unwrap();
        prop_assert!(damaged.is_empty());
        prop_assert_eq!(checked.log(), target.log);
        prop_assert_eq!(checked.map_epoch(), target.epoch);
        prop_assert_eq!(checked.producer(), target.producer);
        prop_assert_eq!(usize::from(checked.records()), messages.len());
        prop_assert_eq!(checked.numbers() as usize, messages.len());
        for (record, (n, message)) in checked.iter().zip((0_u16..).zip(&messages)) {
            prop_assert_eq!(read(&record), canonical(message));
            prop_assert_eq!(record.index, n);
            prop_assert_eq!(record.time, i64::from(n) * 1000);
            prop_assert_eq!(record.topic_hash, message.topic.hash(NAMESPACE));
            prop_assert_eq!(checked.topic(record.topic).name, record.topic_name);
        }
    }

    #[test]
    fn a_client_s_batch_of_plain_messages_is_taken(
        messages in vec(plain_message(), 1..12),
        target in target(),
    ) {
        let batch = encode(&messages, &target);
        prop_assert_eq!(Batch::check(batch.bytes().clone(), &LIMITS).unwrap(), batch);
    }

    #[test]
    fn every_truncation_is_refused(messages in vec(full_message(), 1..4), target in target()) {
        let batch = encode(&messages, &target);
        for length in 0..batch.bytes().len() {
            let cut = batch.bytes().slice(..length);
            prop_assert!(Batch::check(cut.clone(), &LIMITS).is_err());
            prop_assert!(Batch::check_stored(cut).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_is_found_and_costs_at_most_its_record(
        messages in vec(plain_message(), 1..4),
        target in target(),
    ) {
        let batch = encode(&messages, &target);
        let good = batch.bytes();
        let bodies = u32::from_le_bytes(good[16..20].try_into().unwrap()) as usize;
        let mut flipped = good.to_vec();
        for bit in 0..good.len() * 8 {
            flipped[bit / 8] ^= 1 << (bit % 8);
            let bytes = Bytes::copy_from_slice(&flipped);
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Batch::check(bytes.clone(), &LIMITS).is_err());
            let stored = Batch::check_stored(bytes);
            if bit / 8 < bodies {
                prop_assert!(stored.is_err());
                continue;
            }
            let (checked, damaged) = stored.unwrap();
            prop_assert_eq!(damaged.len(), 1);
            // Reading it must not fail, though it must not be served.
            prop_assert_eq!(checked.iter().count(), messages.len());
            let kept: Vec<u16> = (0..checked.records()).filter(|n| !damaged.contains(n)).collect();
            let Some(slice) = checked.slice_of(&kept) else { continue };
            for record in slice.to_batch().iter() {
                let message = &messages[usize::from(record.index)];
                prop_assert_eq!(read(&record), canonical(message));
            }
        }
    }

    #[test]
    fn a_slice_has_what_was_kept_and_nothing_else(
        messages in vec(full_message(), 1..12),
        target in target(),
        first: u16,
        second: u16,
    ) {
        let batch = encode(&messages, &target);
        let kept = |mask: u16, index: u16| mask & (1 << index) != 0;
        let slice = batch.slice(|index, _| kept(first, index));
        let expected: Vec<u16> =
            (0..batch.records()).filter(|&index| kept(first, index)).collect();
        let Some(slice) = slice else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        let sliced = slice.to_batch();
        prop_assert_eq!(slice.len(), sliced.bytes().len());
        prop_assert_eq!(usize::from(slice.records()), expected.len());
        let (checked, damaged) = Batch::check_stored(sliced.bytes().clone()).unwrap();
        prop_assert!(damaged.is_empty());
        prop_assert!(checked.is_sliced());
        prop_assert_eq!(checked.producer(), batch.producer());
        prop_assert_eq!(checked.heads().map(|(index, _)| index).collect::<Vec<_>>(), expected);
        for record in checked.iter() {
            let message = &messages[usize::from(record.index)];
            prop_assert_eq!(read(&record), canonical(message));
            prop_assert_eq!(record.time, i64::from(record.index) * 1000);
        }
        // Slicing twice is slicing once by both.
        let twice = checked.slice(|index, _| kept(second, index)).map(|slice| slice.to_batch());
        let once = batch.slice(|index, _| kept(first & second, index));
        prop_assert_eq!(twice, once.map(|slice| slice.to_batch()));
    }

    #[test]
    fn no_bytes_at_all_make_a_check_panic(bytes in vec(any::<u8>(), 0..300), records: u8) {
        let mut bytes = bytes;
        // Most random bytes would stop at the magic: get them past it.
        if bytes.len() >= 100 {
            let length = u32::try_from(bytes.len()).unwrap();
            bytes[..4].copy_from_slice(b"AMBT");
            bytes[8..12].copy_from_slice(&[1, 0, 0, 0]);
            bytes[12..16].copy_from_slice(&length.to_le_bytes());
            bytes[16..20].copy_from_slice(&90_u32.to_le_bytes());
            bytes[20..24].copy_from_slice(&[records % 3, 0, records % 2, 0]);
            bytes[64..66].copy_from_slice(&[0, 0]);
            let crc = crc32c::crc32c(&bytes[8..90]);
            bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        }
        let bytes = Bytes::from(bytes);
        let _ = Batch::check(bytes.clone(), &LIMITS);
        let _ = Batch::check_stored(bytes);
    }
}

fn message(topic: &str, bytes: usize) -> Message {
    Message::new(TopicName::new(topic, &LIMITS).unwrap(), vec![b'x'; bytes])
}

fn refusal(message: &Message, limits: &Limits) -> (ErrorCode, String) {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    match encoder.push(message, 0, limits) {
        Err(PushError::Refused(error)) => {
            assert!(encoder.is_empty());
            (error.code(), error.field_name().to_owned())
        }
        other => panic!("{other:?}"),
    }
}

fn a_target() -> BatchTarget {
    let log = LogId {
        namespace: NAMESPACE,
        ..LogId::default()
    };
    BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 0,
    }
}

#[test]
fn a_message_beyond_a_limit_is_refused_by_name() {
    let large = message("t", 1 << 20);
    assert!(large.check(&LIMITS).is_ok());
    let too_large = message("t", (1 << 20) + 1);
    assert_eq!(
        refusal(&too_large, &LIMITS),
        (ErrorCode::MessageTooLarge, "message".into())
    );
    let short = Limits {
        topic_bytes: 3,
        ..LIMITS
    };
    assert_eq!(
        refusal(&message("four", 1), &short),
        (ErrorCode::TopicInvalid, "topic".into())
    );
    let attribute = |name: &str, value| message("t", 1).attribute(name, value);
    let invalid = |field: &str| (ErrorCode::AttributesInvalid, field.to_owned());
    let nan = attribute("x", AttributeValue::Float(f64::NAN));
    assert_eq!(refusal(&nan, &LIMITS), invalid("attributes.x"));
    let nameless = attribute("", AttributeValue::Bool(true));
    assert_eq!(refusal(&nameless, &LIMITS), invalid("attributes[0].name"));
    let twice =
        attribute("x", AttributeValue::Bool(true)).attribute("x", AttributeValue::Bool(true));
    assert_eq!(refusal(&twice, &LIMITS), invalid("attributes.x"));
    let long = attribute("x", AttributeValue::String("x".repeat(65_536)));
    assert_eq!(refusal(&long, &LIMITS), invalid("attributes"));
    let none = Limits {
        attributes: 0,
        ..LIMITS
    };
    let one = attribute("x", AttributeValue::Bool(true));
    assert_eq!(refusal(&one, &none), invalid("attributes"));
}

#[test]
fn a_reserved_field_is_refused_by_name() {
    let with = |change: fn(&mut Message)| {
        let mut message = message("t", 1);
        change(&mut message);
        refusal(&message, &LIMITS)
    };
    let reserved = |field: &str| (ErrorCode::Unimplemented, field.to_owned());
    assert_eq!(
        with(|message| message.key = Some(Bytes::new())),
        reserved("key")
    );
    assert_eq!(with(|message| message.ttl_ms = Some(0)), reserved("ttl"));
    assert_eq!(
        with(|message| message.deliver_at = Some(0)),
        reserved("deliver_at")
    );
    assert_eq!(
        with(|message| message.version = Some(0)),
        reserved("version")
    );
    assert_eq!(
        with(|message| message.audience = vec![1]),
        reserved("audience")
    );
}

#[test]
fn a_full_batch_says_so_and_one_large_message_is_alone() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    encoder.push(&message("t", 100_000), 0, &LIMITS).unwrap();
    assert_eq!(
        encoder.push(&message("t", 1), 0, &LIMITS),
        Err(PushError::Full)
    );
    let alone = encoder.finish(&a_target());
    assert!(Batch::check(alone.bytes().clone(), &LIMITS).is_ok());

    while encoder.push(&message("t", 1000), 0, &LIMITS).is_ok() {}
    assert!(encoder.len() <= LIMITS.batch_bytes as usize);
    assert!(encoder.len() + 1020 > LIMITS.batch_bytes as usize);
    let full = encoder.finish(&a_target());
    assert!(Batch::check(full.bytes().clone(), &LIMITS).is_ok());
    let tight = Limits {
        batch_bytes: 60_000,
        ..LIMITS
    };
    let error = Batch::check(full.bytes().clone(), &tight).unwrap_err();
    assert_eq!(
        (error.code(), error.field_name()),
        (ErrorCode::BatchTooLarge, "batch")
    );

    let wide = Limits {
        batch_bytes: u32::MAX,
        ..LIMITS
    };
    for _ in 0..4096 {
        encoder.push(&message("t", 0), 0, &wide).unwrap();
    }
    assert_eq!(
        encoder.push(&message("t", 0), 0, &wide),
        Err(PushError::Full)
    );
    assert_eq!(encoder.finish(&a_target()).numbers(), 4096);
}

#[test]
fn a_client_s_limits_are_held_when_its_batch_is_checked() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    for n in 0..40 {
        let topic = format!("topic-{n}");
        let message = message(&topic, 10).attribute("x", AttributeValue::Bool(true));
        encoder.push(&message, 0, &LIMITS).unwrap();
    }
    let bytes = encoder.finish(&a_target()).bytes().clone();
    let check = |limits: Limits| {
        let error = Batch::check(bytes.clone(), &limits).unwrap_err();
        (error.code(), error.field_name().to_owned())
    };
    let records = Limits {
        batch_records: 39,
        ..LIMITS
    };
    assert_eq!(check(records), (ErrorCode::BatchTooLarge, "batch".into()));
    let small = Limits {
        message_bytes: 13,
        ..LIMITS
    };
    assert_eq!(
        check(small),
        (ErrorCode::MessageTooLarge, "batch.record[0]".into())
    );
    let short = Limits {
        topic_bytes: 7,
        ..LIMITS
    };
    assert_eq!(
        check(short),
        (ErrorCode::TopicInvalid, "batch.topic[10].name".into())
    );
    let bare = Limits {
        attributes: 0,
        ..LIMITS
    };
    assert_eq!(
        check(bare),
        (
            ErrorCode::AttributesInvalid,
            "batch.record[0].attributes".into()
        )
    );
}

#[test]
fn a_topic_twice_is_found_among_many() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    for n in 0..40 {
        encoder
            .push(&message(&format!("t{n:02}"), 1), 0, &LIMITS)
            .unwrap();
    }
    let mut bytes = encoder.finish(&a_target()).bytes().to_vec();
    let names = 66 + 40 * 20;
    bytes[names + 39 * 3..names + 40 * 3].copy_from_slice(b"t05");
    let hash: [u8; 16] = bytes[66 + 5 * 20..][..16].try_into().unwrap();
    bytes[66 + 39 * 20..][..16].copy_from_slice(&hash);
    let bodies = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
    let crc = crc32c::crc32c(&bytes[8..bodies]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    let error = Batch::check(bytes.into(), &LIMITS).unwrap_err();
    assert_eq!(error.field_name(), "batch.topic[39].hash");
}

#[test]
fn bodies_side_by_side_stay_one_part_of_a_slice_and_are_not_copied() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    for topic in ["a", "b", "b", "a", "b"] {
        encoder.push(&message(topic, 10), 0, &LIMITS).unwrap();
    }
    let batch = encoder.finish(&a_target());
    let slice = batch
        .slice(|_, topic| batch.topic(topic).name == "b")
        .unwrap();
    let sizes: Vec<usize> = slice.parts().skip(1).map(Bytes::len).collect();
    assert_eq!(sizes, [20, 10]);
    let whole = batch.bytes().as_ptr_range();
    assert!(
        slice
            .parts()
            .skip(1)
            .all(|part| whole.contains(&part.as_ptr()))
    );
    assert_eq!(slice.to_batch().topics().len(), 1);
    assert!(batch.slice(|_, _| false).is_none());
}

#[test]
fn an_earlier_message_sets_the_batch_s_time() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    encoder.push(&message("t", 1), 900, &LIMITS).unwrap();
    encoder.push(&message("t", 1), 400, &LIMITS).unwrap();
    let batch = encoder.finish(&BatchTarget {
        producer_time: 1000,
        ..a_target()
    });
    assert_eq!(batch.producer_time(), 400);
    assert_eq!(
        batch.iter().map(|record| record.time).collect::<Vec<_>>(),
        [900, 400]
    );
}

#[test]
fn an_extension_too_long_is_refused_and_the_next_batch_has_none() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    assert!(encoder.extension(1, &[0; 256]).is_err());
    encoder.extension(1, &[7; 255]).unwrap();
    encoder.control();
    encoder.push(&message("t", 1), 0, &LIMITS).unwrap();
    let batch = encoder.finish(&a_target());
    assert_eq!(
        batch.extensions().collect::<Vec<_>>(),
        [(1, &[7_u8; 255][..])]
    );
    assert!(batch.is_control());
    encoder.push(&message("t", 1), 0, &LIMITS).unwrap();
    let next = encoder.finish(&a_target());
    assert_eq!(next.extensions().count(), 0);
    assert!(!next.is_control());
}
