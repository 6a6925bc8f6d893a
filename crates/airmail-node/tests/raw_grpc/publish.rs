//! Publishing: one message, batches, plain messages.

use crate::node::{Node, batch, message};
use airmail_proto::v1;
use airmail_proto::v1::publish_batch::Body;
use airmail_proto::v1::publish_request::Kind;

#[tokio::test]
async fn one_message_is_stored_and_found_in_history() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::on(directory.path()).await;
    let stored = node.publish_one("hello", "world").await.unwrap();
    assert_eq!(stored.sequence, 1);
    assert_eq!(stored.held, v1::Durability::Fsync as i32);
    assert!(stored.appended_at_us > 1_600_000_000_000_000);
    assert!(stored.position.starts_with("pos1-"), "{}", stored.position);
    assert_eq!(node.history("hello").await, ["world"]);
    node.stop().await;
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_stop_and_a_start() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let node = Node::on(directory.path()).await;
        let expected: Vec<String> = (0..round).map(|n| n.to_string()).collect();
        assert_eq!(node.history("kept").await, expected);
        node.publish_one("kept", &round.to_string()).await.unwrap();
        node.stop().await;
    }
}

#[tokio::test]
async fn batches_are_acknowledged_in_order_with_their_numbers() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    let hello = publisher.greet().await;
    assert_eq!(hello.protocol, 1);
    assert_eq!(hello.namespaces[0].name, "default");
    let first = batch(&[("a", "1"), ("b", "2")], Some((9, 0)));
    let second = batch(&[("a", "3")], Some((9, 2)));
    let ack = publisher.bytes(5, first.bytes()).await;
    assert_eq!(
        (ack.first, ack.last, ack.duplicate, ack.exact),
        (1, 2, false, true)
    );
    let ack = publisher.bytes(6, second.bytes()).await;
    assert_eq!((ack.first, ack.last), (3, 3));
    let again = publisher.bytes(7, first.bytes()).await;
    assert_eq!((again.first, again.last, again.duplicate), (1, 2, true));
    assert_eq!(node.history("a").await, ["1", "3"]);
    node.stop().await;
}

#[tokio::test]
async fn plain_messages_are_encoded_by_the_node_and_acknowledged_together() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    // More than one batch's worth.
    let payload = "x".repeat(40 << 10);
    let messages = (0..4).map(|n| message("plain", &format!("{n}{payload}")));
    let body = Body::Messages(v1::Messages {
        messages: messages.collect(),
    });
    publisher.publish(3, body).await;
    let ack = publisher.ack().await;
    assert_eq!((ack.request, ack.last), (3, 4));
    assert!(ack.error.is_none());
    assert_eq!(node.history("plain").await.len(), 4);
    node.stop().await;
}

#[tokio::test]
async fn maps_are_told_when_asked_for_and_missing_namespaces_by_name() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let namespaces = vec!["default".to_owned(), "nowhere".to_owned()];
    publisher
        .send(Kind::Resolve(v1::Resolve { namespaces }))
        .await;
    let v1::publish_response::Kind::Maps(maps) = publisher.next().await.unwrap() else {
        panic!("maps expected");
    };
    assert_eq!(maps.namespaces[0].namespace_id, 1);
    assert_eq!(maps.errors[0].name, "NAMESPACE_NOT_FOUND");
    assert_eq!(maps.errors[0].value, "nowhere");
    node.stop().await;
}

#[tokio::test]
async fn a_stream_whose_client_is_done_ends_after_the_last_ack() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    for request in 0..20 {
        let one = batch(&[("done", "x")], None);
        publisher
            .publish(request, Body::Batch(one.bytes().clone()))
            .await;
    }
    drop(publisher.requests);
    let mut acks = 0;
    while let Some(answer) = publisher.answers.message().await.unwrap() {
        if let Some(v1::publish_response::Kind::Acks(some)) = answer.kind {
            acks += some.acks.len();
        }
    }
    assert_eq!(acks, 20);
    node.stop().await;
}
