//! Batches case by case: at their bounds, and against their encoder's further promises.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use airmail_model::batch::{AttributeValue, BatchTarget, PushError, batches_by_log};
use airmail_model::{
    Batch, BatchEncoder, ErrorCode, Lane, Limits, LogId, LogIndex, LogMap, MapEpoch, Message,
    NamespaceId, RoleId, TopicName,
};
use bytes::Bytes;

const NAMESPACE: NamespaceId = NamespaceId(7);
const LIMITS: Limits = Limits::DEFAULT;

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
    let never_lives = (ErrorCode::InvalidArgument, "ttl".to_owned());
    assert_eq!(with(|message| message.ttl_ms = Some(0)), never_lives);
    assert_eq!(
        with(|message| message.deliver_at = Some(0)),
        reserved("deliver_at")
    );
    assert_eq!(
        with(|message| message.version = Some(0)),
        reserved("version")
    );
}

#[test]
fn a_batch_of_lane_high_is_taken_and_says_which_lane_it_is_of() {
    let urgent = message("t", 1).lane(Lane::High);
    assert!(urgent.check(&LIMITS).is_ok());
    let mut encoder = BatchEncoder::new(NAMESPACE);
    encoder.push(&urgent, 0, &LIMITS).unwrap();
    let mut target = a_target();
    target.log.lane = Lane::High;
    let bytes = encoder.finish(&target).bytes().clone();
    let checked = Batch::check(bytes, &LIMITS).unwrap();
    assert_eq!(checked.log(), target.log);
}

#[test]
fn messages_of_two_lanes_never_share_a_batch_and_each_lane_keeps_its_order() {
    let lanes = [Lane::Normal, Lane::High];
    let messages = (0..20_u8).map(|n| {
        let lane = lanes[usize::from(n % 3 == 0)];
        let payload = Bytes::copy_from_slice(&[n]);
        let topic = TopicName::new("t", &LIMITS).unwrap();
        Ok(Message::new(topic, payload).lane(lane))
    });
    let map = LogMap::even(NAMESPACE, MapEpoch(1), LogIndex(0), 1);
    let batches = batches_by_log(&map, messages, 0, &LIMITS).unwrap();
    let of_lane = |lane| {
        let batch = batches.iter().find(|batch| batch.log().lane == lane);
        let records = batch.unwrap().iter().map(|record| record.payload[0]);
        records.collect::<Vec<u8>>()
    };
    assert_eq!(batches.len(), 2);
    let (high, normal) = (0..20).partition::<Vec<u8>, _>(|n| n % 3 == 0);
    assert_eq!((of_lane(Lane::High), of_lane(Lane::Normal)), (high, normal));
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
fn headers_hold_no_memory_of_the_batch_and_are_one_part_at_most() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    encoder.push(&message("a", 10_000), 0, &LIMITS).unwrap();
    let plain = encoder.finish(&a_target());
    assert_eq!(plain.headers_of(&[0]).unwrap().parts().count(), 1);
    for n in 0..3 {
        let message = message("a", 10_000).attribute("n", AttributeValue::Integer(n));
        encoder.push(&message, 0, &LIMITS).unwrap();
    }
    let batch = encoder.finish(&a_target());
    let headers = batch.headers_of(&[0, 2]).unwrap();
    let sizes: Vec<usize> = headers.parts().skip(1).map(Bytes::len).collect();
    assert_eq!(sizes, [2 * 11]);
    let whole = batch.bytes().as_ptr_range();
    assert!(headers.parts().all(|part| !whole.contains(&part.as_ptr())));
    assert!(batch.headers_of(&[]).is_none());
}

#[test]
fn a_batch_of_headers_is_refused_by_name_where_payloads_belong_and_the_other_way_round() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    encoder.push(&message("a", 3), 0, &LIMITS).unwrap();
    let batch = encoder.finish(&a_target());
    let headers = batch.headers_of(&[0]).unwrap().to_batch();
    let flags = |result: Result<_, airmail_model::Error>| {
        let error = result.err().unwrap();
        assert_eq!(error.code(), ErrorCode::BatchMalformed);
        assert_eq!(error.field_name(), "batch.flags");
        (error.found().to_owned(), error.expected().to_owned())
    };
    let told = |value: &str, limit: &str| (value.to_owned(), limit.to_owned());
    let (only, with) = ("headers only", "batches with their payloads");
    let bytes = headers.bytes().clone();
    let published = Batch::check(bytes.clone(), &LIMITS).map(|_| ());
    assert_eq!(flags(published), told(only, with));
    let stored = Batch::check_stored(bytes).map(|_| ());
    assert_eq!(flags(stored), told(only, with));
    let delivered = Batch::check_headers(batch.bytes().clone()).map(|_| ());
    assert_eq!(flags(delivered), told(with, only));
}

#[test]
fn a_batch_is_plain_again_after_one_that_was_not() {
    let mut encoder = BatchEncoder::new(NAMESPACE);
    let mut marked = message("t", 1);
    marked.ttl_ms = Some(5);
    marked.audience = vec![RoleId(2)];
    encoder.push_reserved(&marked, 0, &LIMITS).unwrap();
    let first = encoder.finish(&a_target());
    assert!(first.is_expiring() && first.is_restricted() && !first.is_plain());
    encoder.push(&message("t", 1), 0, &LIMITS).unwrap();
    assert!(encoder.finish(&a_target()).is_plain());
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
