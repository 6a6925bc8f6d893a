//! Properties of every batch: the encoded is read again unchanged, damage is found, and a slice has
//! the records that were kept and nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use airmail_model::batch::{AttributeValue, BatchTarget, ProducerStamp, Record};
use airmail_model::{
    Batch, BatchEncoder, Checked, ErrorCode, Lane, Limits, LogId, LogIndex, MapEpoch, Message,
    NamespaceId, ProducerEpoch, ProducerId, ProducerSequence, RoleId, Slice, TopicName,
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
        option::of(1_u32..),
    )
        .prop_map(|(topic, payload, attributes, ttl_ms)| Message {
            ttl_ms,
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
        vec(any::<u32>().prop_map(RoleId), 0..4),
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
        lane: Lane::Normal,
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

/// Whether a batch says that it is expiring, restricted; by its records, and by its header.
fn marks(batch: &Checked<Batch>) -> [(bool, bool); 2] {
    let header = batch.bytes()[11];
    assert_eq!(
        batch.is_plain(),
        !batch.is_expiring() && !batch.is_restricted()
    );
    [
        (batch.is_expiring(), batch.is_restricted()),
        (header & 1 != 0, header & 2 != 0),
    ]
}

/// The marks that a batch of these messages must have.
fn marks_of<'a>(messages: impl Iterator<Item = &'a Message> + Clone) -> [(bool, bool); 2] {
    let expiring = messages.clone().any(|message| message.ttl_ms.is_some());
    let restricted = messages.clone().any(|message| !message.audience.is_empty());
    [(expiring, restricted); 2]
}

/// Orders a message's parts like the encoder does.
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
        prop_assert_eq!(&checked, &batch);
        prop_assert_eq!(marks(&checked), marks_of(messages.iter()));
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
        prop_assert_eq!(&checked, &sliced);
        let kept_messages = expected.iter().map(|&index| &messages[usize::from(index)]);
        prop_assert_eq!(marks(&checked), marks_of(kept_messages));
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
    fn headers_are_the_same_slice_without_payloads_and_no_stored_batch(
        messages in vec(full_message(), 1..12),
        target in target(),
        first: u16,
        second: u16,
    ) {
        let batch = encode(&messages, &target);
        let places = |batch: &Checked<Batch>, mask: u16| -> Vec<u16> {
            let heads = batch.heads().zip(0..);
            let kept = heads.filter(|((index, _), _)| mask & (1 << index) != 0);
            kept.map(|(_, place)| place).collect()
        };
        let kept = places(&batch, first);
        let Some(headers) = batch.headers_of(&kept) else {
            prop_assert!(kept.is_empty());
            return Ok(());
        };
        let sliced = batch.slice_of(&kept).unwrap().to_batch();
        let bytes = headers.to_batch().bytes().clone();
        prop_assert_eq!(bytes.len(), headers.len());
        prop_assert!(Batch::check(bytes.clone(), &LIMITS).is_err());
        prop_assert!(Batch::check_stored(bytes.clone()).is_err());
        let read_again = Batch::check_headers(bytes).unwrap();
        prop_assert_eq!(&read_again, &headers.to_batch());
        prop_assert!(read_again.is_headers() && !sliced.is_headers());
        prop_assert!(read_again.is_sliced());
        prop_assert_eq!(marks(&read_again), marks(&sliced));
        prop_assert_eq!(read_again.producer(), batch.producer());
        prop_assert_eq!(read_again.records(), sliced.records());
        for (left, whole) in read_again.iter().zip(sliced.iter()) {
            prop_assert_eq!((left.index, left.topic), (whole.index, whole.topic));
            prop_assert_eq!(left.time, whole.time);
            let whole = Message { payload: Bytes::new(), ..read(&whole) };
            prop_assert_eq!(read(&left), whole);
        }
        // Whatever comes first, slicing or leaving out, is the same in the end.
        let of_headers = read_again.slice_of(&places(&read_again, second));
        let of_sliced = sliced.headers_of(&places(&sliced, second));
        let both = batch.headers_of(&places(&batch, first & second));
        let whole = |slice: Option<Slice>| slice.map(|slice| slice.to_batch());
        let both = whole(both);
        prop_assert_eq!(&whole(of_headers), &both);
        prop_assert_eq!(&whole(of_sliced), &both);
    }

    #[test]
    fn no_flipped_bit_makes_headers_that_are_taken(
        messages in vec(full_message(), 1..4),
        target in target(),
    ) {
        let batch = encode(&messages, &target);
        let places: Vec<u16> = (0..batch.records()).collect();
        let good = batch.headers_of(&places).unwrap().to_batch().bytes().to_vec();
        for bit in 0..good.len() * 8 {
            let mut flipped = good.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Batch::check_headers(flipped.into()).is_err());
        }
        // Damage that was there before is not made good by the new checksums.
        let bodies = u32::from_le_bytes(batch.bytes()[16..20].try_into().unwrap()) as usize;
        for bit in bodies * 8..batch.bytes().len() * 8 {
            let mut flipped = batch.bytes().to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (stored, damaged) = Batch::check_stored(flipped.into()).unwrap();
            let headers = stored.headers_of(&places).unwrap().to_batch();
            let refused = Batch::check_headers(headers.bytes().clone()).unwrap_err();
            prop_assert_eq!(refused.field_name(), format!("batch.record[{}].body_crc", damaged[0]));
        }
    }

    #[test]
    fn a_header_that_says_what_no_record_does_is_refused_from_a_client_and_not_believed(
        messages in vec(full_message(), 1..6),
        target in target(),
        said in 0_u8..4,
    ) {
        let batch = encode(&messages, &target);
        let mut bytes = batch.bytes().to_vec();
        bytes[11] = said;
        let bodies = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
        let crc = crc32c::crc32c(&bytes[8..bodies]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        let bytes = Bytes::from(bytes);
        let [by_records, _] = marks_of(messages.iter());
        let (stored, _) = Batch::check_stored(bytes.clone()).unwrap();
        let [marks, header] = marks(&stored);
        prop_assert_eq!(marks, by_records);
        prop_assert_eq!(header, (said & 1 != 0, said & 2 != 0));
        // A slice says what is so.
        let places: Vec<u16> = (0..stored.records()).collect();
        let slice = stored.slice_of(&places).unwrap();
        prop_assert_eq!(&slice, &batch.slice_of(&places).unwrap());
        // Other reserved parts are refused before it is looked at.
        let plain = messages.iter().all(|message| {
            let Message { key, deliver_at, version, .. } = message;
            key.is_none() && deliver_at.is_none() && version.is_none()
        });
        let is_so = header == by_records;
        match Batch::check(bytes, &LIMITS) {
            Ok(_) => prop_assert!(plain && is_so),
            Err(error) if plain => {
                prop_assert!(!is_so);
                prop_assert_eq!(error.code(), ErrorCode::BatchMalformed);
                prop_assert_eq!(error.field_name(), "batch.flags");
            }
            Err(error) => prop_assert_eq!(error.code(), ErrorCode::Unimplemented),
        }
    }

    #[test]
    fn no_bytes_at_all_make_a_check_panic(bytes in vec(any::<u8>(), 0..300), records: u8) {
        let mut bytes = bytes;
        // Most random bytes would stop at the magic: get them past it.
        if bytes.len() >= 100 {
            let length = u32::try_from(bytes.len()).unwrap();
            bytes[..4].copy_from_slice(b"AMBT");
            bytes[8..12].copy_from_slice(&[1, 0, records & 4, 0]);
            bytes[12..16].copy_from_slice(&length.to_le_bytes());
            bytes[16..20].copy_from_slice(&90_u32.to_le_bytes());
            bytes[20..24].copy_from_slice(&[records % 3, 0, records % 2, 0]);
            bytes[64..66].copy_from_slice(&[0, 0]);
            let crc = crc32c::crc32c(&bytes[8..90]);
            bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        }
        let bytes = Bytes::from(bytes);
        let _ = Batch::check(bytes.clone(), &LIMITS);
        let _ = Batch::check_stored(bytes.clone());
        let _ = Batch::check_headers(bytes);
    }
}
