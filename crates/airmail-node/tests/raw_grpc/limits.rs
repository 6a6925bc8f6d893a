//! Limits that a node's settings name, and that keep it upright.

use crate::node::{Node, batch};
use airmail_node::config::Config;
use airmail_proto::v1;
use airmail_proto::v1::publish_batch::Body;

#[tokio::test]
async fn hello_tells_the_limits_that_hold() {
    let mut config = Config {
        log_url: "memory:".into(),
        ..Config::default()
    };
    config.set("limits.message_bytes", "10KiB").unwrap();
    let node = Node::with(config).await;
    let mut publisher = node.publisher().await;
    let limits = publisher.greet().await.limits.unwrap();
    assert_eq!(limits.message_bytes, 10 << 10);
    let large = node.publish_one("t", &"x".repeat(11 << 10)).await;
    assert!(large.unwrap_err().message().contains("MESSAGE_TOO_LARGE"));
    node.publish_one("t", &"x".repeat(9 << 10)).await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_publisher_that_takes_no_acks_is_held_back_and_loses_nothing() {
    let mut config = Config {
        log_url: "memory:".into(),
        ..Config::default()
    };
    config.set("limits.unacked_bytes", "64KiB").unwrap();
    let node = Node::with(config).await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let payload = "x".repeat(8 << 10);
    let total = 400;
    let requests = publisher.requests.clone();
    let send = tokio::spawn(async move {
        for request in 0..total {
            let batch = v1::PublishBatch {
                request,
                body: Some(Body::Batch(batch(&[("t", &payload)], None).bytes().clone())),
                namespace: String::new(),
                begins_epoch: false,
            };
            let batches = vec![batch];
            let kind = v1::publish_request::Kind::Batches(v1::PublishBatches { batches });
            let request = v1::PublishRequest { kind: Some(kind) };
            requests.send(request).await.unwrap();
        }
    });
    let mut acknowledged = Vec::new();
    while acknowledged.len() < total as usize {
        if let v1::publish_response::Kind::Acks(acks) = publisher.next().await.unwrap() {
            acknowledged.extend(acks.acks.iter().map(|ack| ack.request));
        }
    }
    send.await.unwrap();
    assert_eq!(acknowledged, (0..total).collect::<Vec<u64>>());
    assert_eq!(node.history("t").await.len(), total as usize);
    node.stop().await;
}
