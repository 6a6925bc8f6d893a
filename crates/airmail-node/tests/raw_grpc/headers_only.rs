//! Messages without their payloads, for clients without an SDK.

use crate::expiry::publish;
use crate::node::Node;
use airmail_proto::v1;
use airmail_proto::v1::start::At;
use airmail_proto::v1::subscribe_request::Kind;

#[tokio::test]
async fn plain_messages_come_without_payloads_on_a_stream_that_asks_for_none_and_in_a_history() {
    let node = Node::in_memory().await;
    publish(&node, "not sent", Some(3_600_000)).await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let add = v1::Add {
        topic: "t".into(),
        start: Some(v1::Start {
            at: Some(At::Earliest(true)),
            high: String::new(),
        }),
        headers_only: true,
        ..Default::default()
    };
    subscriber.send(Kind::Add(add)).await;
    let messages = subscriber.messages(1).await;
    assert_eq!((messages[0].topic.as_str(), messages[0].sequence), ("t", 1));
    assert!(messages[0].payload.is_empty());
    assert!(messages[0].expires_at_us.is_some());

    let request = v1::HistoryRequest {
        topic: "t".into(),
        headers_only: true,
        ..Default::default()
    };
    let mut answers = node.client().history(request).await.unwrap().into_inner();
    let mut payloads = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        if let Some(v1::history_response::Kind::Delivery(delivery)) = answer.kind
            && let Some(v1::delivery::Body::Messages(plain)) = delivery.body
        {
            payloads.extend(plain.messages.into_iter().map(|stored| stored.payload));
        }
    }
    assert_eq!(payloads, [""]);
    node.stop().await;
}
