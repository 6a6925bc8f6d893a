//! Subscribing with plain messages, as a client without an SDK does.

use crate::node::{Node, batch};
use airmail_proto::v1;
use airmail_proto::v1::start::At;
use airmail_proto::v1::subscribe_request::Kind;
use airmail_proto::v1::subscribe_response::Kind as Answer;

#[tokio::test]
async fn a_live_subscriber_gets_what_is_published_and_only_its_topic() {
    let node = Node::in_memory().await;
    node.publish_one("wanted", "before").await.unwrap();
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "wanted", At::Latest(true)).await;
    let state = subscriber.state().await;
    assert!(matches!(state, v1::status::State::Live(_)), "{state:?}");
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let mixed = batch(&[("wanted", "1"), ("other", "2"), ("wanted", "3")], None);
    publisher.bytes(0, mixed.bytes()).await;
    node.publish_one("other", "4").await.unwrap();
    node.publish_one("wanted", "5").await.unwrap();
    let messages = subscriber.messages(3).await;
    let seen: Vec<(&[u8], u64)> = messages
        .iter()
        .map(|message| (&*message.payload, message.sequence))
        .collect();
    assert_eq!(seen, [(&b"1"[..], 2), (b"3", 4), (b"5", 6)]);
    node.stop().await;
}

#[tokio::test]
async fn a_late_subscriber_gets_the_past_and_then_what_is_new() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::on(directory.path()).await;
    for n in 0..50 {
        node.publish_one("late", &n.to_string()).await.unwrap();
        node.publish_one("other", "x").await.unwrap();
    }
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "late", At::Earliest(true)).await;
    let messages = subscriber.messages(50).await;
    for n in 50..60 {
        node.publish_one("late", &n.to_string()).await.unwrap();
    }
    let later = subscriber.messages(10).await;
    let payloads: Vec<String> = messages
        .iter()
        .chain(&later)
        .map(|message| String::from_utf8(message.payload.to_vec()).unwrap())
        .collect();
    let expected: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    assert_eq!(payloads, expected);
    node.stop().await;
}

#[tokio::test]
async fn a_position_goes_on_after_its_message() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::on(directory.path()).await;
    for n in 0..5 {
        node.publish_one("p", &n.to_string()).await.unwrap();
    }
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "p", At::Earliest(true)).await;
    let position = subscriber.messages(5).await[2].position.clone();
    drop(subscriber);
    node.stop().await;
    let node = Node::on(directory.path()).await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "p", At::Position(position)).await;
    let payloads = subscriber.messages(2).await;
    assert_eq!(&*payloads[0].payload, b"3");
    assert_eq!(&*payloads[1].payload, b"4");
    node.stop().await;
}

#[tokio::test]
async fn a_client_that_closes_its_sending_side_goes_on_receiving() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "half", At::Latest(true)).await;
    subscriber.state().await;
    let (requests, _) = tokio::sync::mpsc::channel(1);
    drop(std::mem::replace(&mut subscriber.requests, requests));
    node.publish_one("half", "open").await.unwrap();
    assert_eq!(&*subscriber.messages(1).await[0].payload, b"open");
    node.stop().await;
}

#[tokio::test]
async fn a_removed_subscription_gets_nothing_more() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "gone", At::Latest(true)).await;
    subscriber.add(1, "stays", At::Latest(true)).await;
    subscriber.state().await;
    subscriber.state().await;
    let subscription = 0;
    subscriber
        .send(Kind::Remove(v1::Remove { subscription }))
        .await;
    let state = subscriber.state().await;
    assert!(matches!(state, v1::status::State::Removed(_)), "{state:?}");
    node.publish_one("gone", "1").await.unwrap();
    node.publish_one("stays", "2").await.unwrap();
    let messages = subscriber.messages(1).await;
    assert_eq!(messages[0].topic, "stays");
    node.stop().await;
}

#[tokio::test]
async fn credit_that_is_not_granted_by_the_client_comes_back_by_itself() {
    let node = Node::in_memory().await;
    // More than the default credit of 1 MiB.
    let payload = "x".repeat(200 << 10);
    for _ in 0..15 {
        node.publish_one("big", &payload).await.unwrap();
    }
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "big", At::Earliest(true)).await;
    assert_eq!(subscriber.messages(15).await.len(), 15);
    node.stop().await;
}

#[tokio::test]
async fn a_client_that_counts_its_credit_is_sent_no_more_than_it_granted() {
    let node = Node::in_memory().await;
    let payload = "x".repeat(10 << 10);
    let mut subscriber = node.subscriber().await;
    let hello = v1::ClientHello {
        credit_bytes: 15 << 10,
        ..crate::node::hello()
    };
    subscriber.send(Kind::Hello(hello)).await;
    subscriber.next().await.unwrap();
    subscriber.add(0, "big", At::Latest(true)).await;
    subscriber.state().await;
    for _ in 0..6 {
        node.publish_one("big", &payload).await.unwrap();
    }
    // Two deliveries overdraw the credit; then the subscription is detached and told so.
    assert_eq!(subscriber.messages(2).await.len(), 2);
    let state = subscriber.state().await;
    assert!(matches!(state, v1::status::State::Detached(_)), "{state:?}");
    let bytes = 1 << 20;
    subscriber.send(Kind::Credit(v1::Credit { bytes })).await;
    assert_eq!(subscriber.messages(4).await.len(), 4);
    node.stop().await;
}

#[tokio::test]
async fn a_stream_that_is_not_read_does_not_stop_the_others_of_its_connection() {
    let node = Node::in_memory().await;
    let (mut stuck, mut live) = (node.subscriber().await, node.subscriber().await);
    for subscriber in [&mut stuck, &mut live] {
        subscriber.greet().await;
        // The same number on both: each stream has its own.
        subscriber.add(0, "t", At::Latest(true)).await;
        subscriber.state().await;
    }
    let payload = "x".repeat(100 << 10);
    for n in 0..60 {
        let payload = format!("{n}/{payload}");
        node.publish_one("t", &payload).await.unwrap();
        assert_eq!(&*live.messages(1).await[0].payload, payload.as_bytes());
    }
    let later = stuck.messages(60).await;
    let number = |payload: &[u8]| {
        String::from_utf8_lossy(payload)
            .split('/')
            .next()
            .map(str::to_owned)
    };
    for (n, message) in later.iter().enumerate() {
        assert_eq!(number(&message.payload), Some(n.to_string()));
    }
    node.stop().await;
}

#[tokio::test]
async fn a_quiet_stream_hears_that_the_node_lives_if_its_version_has_that() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    let hello = |protocol_max| v1::ClientHello {
        protocol_max,
        ..crate::node::hello()
    };
    subscriber.send(Kind::Hello(hello(2))).await;
    let Answer::Hello(welcome) = subscriber.next().await.unwrap() else {
        panic!("hello expected");
    };
    assert_eq!(welcome.protocol, 2);
    let mut signs = 0;
    while signs < 3 {
        match subscriber.next().await.unwrap() {
            Answer::Alive(alive) => {
                assert!(alive.within_ms >= welcome.alive_ms);
                signs += 1;
            }
            // Where a node is two, they find each other.
            Answer::Nodes(_) => {}
            other => panic!("a sign of life expected: {other:?}"),
        }
    }
    // One of before hears nothing but what it asked for.
    let mut old = node.subscriber().await;
    old.send(Kind::Hello(hello(1))).await;
    let Answer::Hello(welcome) = old.next().await.unwrap() else {
        panic!("hello expected");
    };
    assert_eq!((welcome.protocol, welcome.alive_ms), (1, 0));
    old.add(0, "t", At::Latest(true)).await;
    old.state().await;
    for _ in 0..3 {
        subscriber.next().await.unwrap();
    }
    node.publish_one("t", "the first").await.unwrap();
    let next = old.next().await.unwrap();
    assert!(matches!(next, Answer::Delivery(_)), "{next:?}");
    node.stop().await;
}
