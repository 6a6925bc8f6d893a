//! Messages that expire, for clients without an SDK.

use crate::node::{Node, Subscriber, hello, message};
use airmail_model::ErrorCode;
use airmail_proto::error::error_from_status;
use airmail_proto::v1;
use airmail_proto::v1::start::At;
use airmail_proto::v1::subscribe_request::Kind;
use airmail_proto::v1::subscribe_response::Kind as Answer;
use std::time::Duration;
use tokio::time::sleep;

const SOON_MS: u32 = 40;

pub(crate) async fn publish(
    node: &Node,
    payload: &str,
    ttl_ms: Option<u32>,
) -> v1::PublishOneResponse {
    let request = v1::PublishOneRequest {
        namespace: String::new(),
        message: Some(v1::Message {
            ttl_ms,
            ..message("t", payload)
        }),
    };
    let answer = node.client().publish_one(request).await;
    answer.unwrap().into_inner()
}

/// Publishes two messages, and waits until the first has expired.
async fn publish_and_wait(node: &Node) {
    publish(node, "old", Some(SOON_MS)).await;
    publish(node, "new", Some(3_600_000)).await;
    sleep(Duration::from_millis(SOON_MS.into())).await;
}

async fn add(subscriber: &Subscriber, subscription: u32, tell_expired: bool) {
    let add = v1::Add {
        subscription,
        topic: "t".into(),
        start: Some(v1::Start {
            at: Some(At::Earliest(true)),
            high: String::new(),
        }),
        tell_expired,
        ..Default::default()
    };
    subscriber.send(Kind::Add(add)).await;
}

#[tokio::test]
async fn a_plain_message_says_when_it_expires_and_comes_no_more_from_then_on() {
    let node = Node::in_memory().await;
    publish_and_wait(&node).await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    add(&subscriber, 0, false).await;
    let messages = subscriber.messages(1).await;
    assert_eq!(&*messages[0].payload, b"new");
    let lives_us = messages[0].expires_at_us.unwrap() - messages[0].appended_at_us;
    assert_eq!(lives_us, 3_600_000_000);
    assert_eq!(node.history("t").await, ["new"]);
    publish(&node, "for ever", None).await;
    let messages = subscriber.messages(1).await;
    assert_eq!(messages[0].expires_at_us, None);
    node.stop().await;
}

#[tokio::test]
async fn who_asks_is_told_of_what_has_expired_and_nobody_else() {
    let node = Node::in_memory().await;
    publish_and_wait(&node).await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    add(&subscriber, 0, false).await;
    add(&subscriber, 1, true).await;
    let (mut told, mut given) = (Vec::new(), 0);
    while given < 2 {
        match subscriber.event().await {
            Answer::Expired(expired) => {
                assert!(expired.cost > 0);
                told.push((expired.subscription, expired.numbers));
            }
            Answer::Delivery(_) => given += 1,
            _ => {}
        }
    }
    assert_eq!(told, [(1, vec![1])]);
    let request = v1::HistoryRequest {
        topic: "t".into(),
        tell_expired: true,
        ..Default::default()
    };
    let mut answers = node.client().history(request).await.unwrap().into_inner();
    let mut told = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        if let Some(v1::history_response::Kind::Expired(expired)) = answer.kind {
            told.extend(expired.numbers);
        }
    }
    assert_eq!(told, [1]);
    node.stop().await;
}

#[tokio::test]
async fn a_node_answers_a_question_for_its_clock_on_the_stream_on_which_it_was_asked() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    let newest = v1::ClientHello {
        protocol_max: 3,
        ..hello()
    };
    subscriber.send(Kind::Hello(newest)).await;
    let Answer::Hello(greeting) = subscriber.next().await.unwrap() else {
        panic!("no hello");
    };
    assert_eq!(greeting.protocol, 3);
    let mut before = 0;
    for asked_ns in [7, 8] {
        subscriber
            .send(Kind::AskClock(v1::AskClock { asked_ns }))
            .await;
        loop {
            if let Answer::Clock(clock) = subscriber.next().await.unwrap() {
                assert_eq!(clock.asked_ns, asked_ns);
                assert!(clock.node_ns >= before);
                before = clock.node_ns;
                break;
            }
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn a_message_that_never_lives_is_refused() {
    let node = Node::in_memory().await;
    let request = v1::PublishOneRequest {
        namespace: String::new(),
        message: Some(v1::Message {
            ttl_ms: Some(0),
            ..message("t", "x")
        }),
    };
    let refused = node.client().publish_one(request).await.unwrap_err();
    let error = error_from_status(&refused);
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!(
        (error.field_name(), error.found(), error.expected()),
        ("ttl", "0 ms", "at least 1 ms")
    );
    node.stop().await;
}
