//! A subscription's own word: `ready` is a promise, by which programs write out what they have
//! collected.

use crate::node::{Node, PATIENCE, message};
use airmail_client::{Client, Start};
use futures::FutureExt as _;
use std::time::Duration;

/// Publishes a hundred messages to each of the topics.
async fn publish(client: &Client, topics: &[&str]) {
    let messages = (0..100).flat_map(|n| topics.iter().map(move |topic| message(topic, n)));
    let ack = client.publisher().send_all(messages.collect()).await;
    assert_eq!(ack.unwrap().await.unwrap().error, None);
}

/// Reads a subscription of either kind until it has had `count` items, and for a while after that, in which
/// its state may change; whenever it is ready, it must have an item.
macro_rules! read {
    ($subscription:ident, $count:expr) => {
        let mut given = 0;
        let mut quiet = 0;
        while quiet < 10 {
            while $subscription.ready() {
                let next = $subscription.next().now_or_never();
                let next = next.unwrap_or_else(|| panic!("ready, and waits after {given}"));
                assert!(next.unwrap().is_some());
                given += 1;
            }
            let patience = if given < $count {
                PATIENCE
            } else {
                Duration::from_millis(10)
            };
            match tokio::time::timeout(patience, $subscription.next()).await {
                Ok(next) => {
                    assert!(next.unwrap().is_some());
                    given += 1;
                }
                Err(_) => {
                    assert_eq!(given, $count);
                    quiet += 1;
                }
            }
        }
    };
}

#[tokio::test]
async fn who_is_ready_has_an_item_and_need_not_wait() {
    let data = tempfile::tempdir().unwrap();
    let node = Node::on(data.path(), "127.0.0.1:0").await;
    let client = node.client().await;
    publish(&client, &["a", "b"]).await;
    client.close().await.unwrap();
    node.stop().await;
    // What was stored before the stop is read from storage, and so a change of state comes behind it.
    let node = Node::on(data.path(), "127.0.0.1:0").await;
    let client = node.client().await;
    publish(&client, &["a", "b"]).await;
    let one = client.subscribe("a").from(Start::Earliest);
    let mut one = one.open().await.unwrap();
    read!(one, 200);
    let many = client.subscribe_many(["a", "b"]).from(Start::Earliest);
    let mut many = many.open().await.unwrap();
    read!(many, 400);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn history_that_is_ready_has_an_item_and_need_not_wait() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    publish(&client, &["a"]).await;
    for limit in [50, 1_000] {
        let mut history = client.history("a").limit(limit).open().unwrap();
        let mut given = 0;
        loop {
            while history.ready() {
                let next = history.next().now_or_never().expect("ready, and waits");
                assert!(next.unwrap().is_some());
                given += 1;
            }
            if history.next().await.unwrap().is_none() {
                break;
            }
            given += 1;
        }
        assert_eq!(given, limit.min(100));
    }
    client.close().await.unwrap();
    node.stop().await;
}
