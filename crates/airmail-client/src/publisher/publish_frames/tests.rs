//! Tests of the frames on the wire: they are plain gRPC, within the node's bound.

use super::*;
use airmail_model::batch::{BatchTarget, PushError};
use airmail_model::{
    Batch, BatchEncoder, Checked, Limits, LogId, MapEpoch, Message, NamespaceId, TopicName,
};
use airmail_proto::v1;
use prost::Message as _;

fn batch(bytes: usize) -> Checked<Batch> {
    let limits = Limits::DEFAULT;
    let mut encoder = BatchEncoder::new(NamespaceId(1));
    let topic = TopicName::new("t", &limits).unwrap();
    let message = Message::new(topic, vec![7; bytes]);
    assert_eq!(encoder.push(&message, 1, &limits), Ok::<(), PushError>(()));
    let log = LogId {
        namespace: NamespaceId(1),
        ..LogId::default()
    };
    encoder.finish(&BatchTarget {
        log,
        epoch: MapEpoch(1),
        producer: None,
        producer_time: 1,
    })
}

/// Takes the pieces apart as a node would: the messages, with their sizes.
fn read(pieces: &VecDeque<Bytes>) -> Vec<(usize, v1::PublishRequest)> {
    let all: Vec<u8> = pieces.iter().flatten().copied().collect();
    let mut rest = &all[..];
    let mut messages = Vec::new();
    while let Some((&[flag, a, b, c, d], after)) = rest.split_first_chunk() {
        assert_eq!(flag, 0);
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let (message, after) = after.split_at(length);
        messages.push((length, v1::PublishRequest::decode(message).unwrap()));
        rest = after;
    }
    assert!(rest.is_empty());
    messages
}

#[test]
fn batches_of_any_size_arrive_whole_in_order_and_within_the_nodes_bound() {
    let sizes = [10, 70_000, 4_000, 1, 300_000, 90_000, 5_000, 60_000, 60_000];
    let sent: Vec<Checked<Batch>> = sizes.iter().map(|bytes| batch(*bytes)).collect();
    for frame_bytes in [3 << 20, 256 << 10, 1] {
        let requests = (0..).zip(&sent).map(|(n, batch)| Request::Publish {
            request: RequestId(n * 300),
            batch: batch.clone(),
            begins_epoch: n % 2 == 0,
        });
        let mut pieces = VecDeque::new();
        encode(requests.collect(), frame_bytes, &mut pieces);
        let mut arrived = Vec::new();
        for (length, message) in read(&pieces) {
            let Some(v1::publish_request::Kind::Batches(batches)) = message.kind else {
                panic!("no batches");
            };
            assert!(length <= frame_bytes || batches.batches.len() == 1);
            arrived.extend(batches.batches);
        }
        assert_eq!(arrived.len(), sent.len());
        for ((n, sent), arrived) in (0..).zip(&sent).zip(arrived) {
            assert_eq!(
                (arrived.request, arrived.begins_epoch),
                (n * 300, n % 2 == 0)
            );
            let body = v1::publish_batch::Body::Batch(sent.bytes().clone());
            assert_eq!(arrived.body, Some(body));
        }
    }
}

#[test]
fn a_large_batch_is_sent_from_the_memory_that_it_was_encoded_in() {
    let batch = batch(50_000);
    let mut pieces = VecDeque::new();
    let request = Request::Publish {
        request: RequestId(1),
        batch: batch.clone(),
        begins_epoch: false,
    };
    encode(vec![request], 3 << 20, &mut pieces);
    assert_eq!(pieces[1].as_ptr(), batch.bytes().as_ptr());
}
