//! Messages that expire, as users of the SDK see them.

use crate::node::{Node, stored, take};
use airmail_client::{Client, ErrorCode, Item, Items, ManyItem, Start};
use airmail_testkit::waiting::waiting;
use std::time::Duration;
use tokio::time::sleep;

const SOON: Duration = Duration::from_millis(40);
const LATER: Duration = Duration::from_secs(3_600);

/// Publishes four messages, of which the first and the third expire soon, and waits until they have. Numbers 1 and 3.
async fn publish_and_wait(client: &Client) {
    for (payload, ttl) in [("a", SOON), ("b", LATER), ("c", SOON)] {
        client.publish("t", payload).ttl(ttl).await.unwrap();
    }
    client.publish("t", "d").await.unwrap();
    sleep(SOON).await;
}

/// Items of a history: messages by their payloads, and the numbers of those that have expired.
async fn history(client: &Client, tell: bool) -> (Vec<String>, Vec<u64>) {
    let _waiting = waiting("a history");
    let mut history = client.history("t").tell_expired(tell).open().unwrap();
    let (mut payloads, mut expired) = (Vec::new(), Vec::new());
    while let Some(item) = history.next().await.unwrap() {
        match item {
            Item::Message(message) => payloads.push(crate::node::text(&message.payload)),
            Item::Expired(gone) => expired.push(gone.sequence.0),
            Item::Gap(gap) => panic!("{gap:?}"),
        }
    }
    (payloads, expired)
}

#[tokio::test]
async fn what_has_expired_since_it_was_delivered_is_not_handed_over() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut plain = client.subscribe("t").open().await.unwrap();
    let mut batches = client.subscribe("t").open().await.unwrap();
    let mut told = client
        .subscribe("t")
        .tell_expired(true)
        .open()
        .await
        .unwrap();
    let many = client.subscribe_many(["t", "u"]).tell_expired(true);
    let mut many = many.open().await.unwrap();
    publish_and_wait(&client).await;
    assert_eq!(take(&mut plain, 2).await, ["b", "d"]);

    let _waiting = waiting("messages in batches, and those that have expired");
    let mut payloads = Vec::new();
    while payloads.len() < 2 {
        if let Some(Items::Messages(batch)) = batches.next_batch().await.unwrap() {
            let records = batch.iter().map(|(_, record)| record.payload.to_vec());
            payloads.extend(records);
        }
    }
    assert_eq!(payloads, [b"b", b"d"]);
    // Each in its place.
    let mut found = Vec::new();
    while found.len() < 4 {
        found.push(match told.next().await.unwrap() {
            Some(Item::Message(message)) => ("given", message.sequence.0),
            Some(Item::Expired(gone)) => ("expired", gone.sequence.0),
            other => panic!("{other:?}"),
        });
    }
    let in_order = [("expired", 1), ("given", 2), ("expired", 3), ("given", 4)];
    assert_eq!(found, in_order);
    let mut expired = Vec::new();
    while expired.len() < 2 {
        if let Some(ManyItem::Expired(topic, gone)) = many.next().await.unwrap() {
            assert_eq!(&*topic, "t");
            expired.push(gone.sequence.0);
        }
    }
    expired.sort_unstable();
    assert_eq!(expired, [1, 3]);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn what_has_expired_is_in_no_history_and_for_no_late_subscriber() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    publish_and_wait(&client).await;
    let kept = vec!["b".to_owned(), "d".to_owned()];
    assert_eq!(history(&client, false).await, (kept.clone(), vec![]));
    assert_eq!(history(&client, true).await, (kept, vec![1, 3]));
    let late = client.subscribe("t").from(Start::Earliest);
    let mut late = late.open().await.unwrap();
    assert_eq!(take(&mut late, 2).await, ["b", "d"]);
    // It is past them all: its position leads on, and what comes then is new.
    let position = late.position().unwrap();
    client.publish("t", "e").await.unwrap();
    let next = client.subscribe("t").from(Start::Position(position));
    assert_eq!(take(&mut next.open().await.unwrap(), 1).await, ["e"]);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_message_says_how_long_it_lives_and_one_that_never_lives_is_refused() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut subscription = client.subscribe("t").open().await.unwrap();
    client.publish("t", "x").ttl(LATER).await.unwrap();
    let Some(Item::Message(message)) = subscription.next().await.unwrap() else {
        panic!("no message");
    };
    assert_eq!(message.ttl_ms, Some(3_600_000));
    for (ttl, found) in [
        (Duration::ZERO, "0 ms"),
        (Duration::from_millis(1 << 32), "4294967296 ms"),
    ] {
        let error = client.publish("t", "x").ttl(ttl).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert_eq!((error.field_name(), error.found()), ("ttl", found));
    }
    assert_eq!(stored(&client, "t").await, ["x"]);
    client.close().await.unwrap();
    node.stop().await;
}
