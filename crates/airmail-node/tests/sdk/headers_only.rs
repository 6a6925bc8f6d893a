//! Messages without their payloads, as users of the SDK see them.

use crate::node::Node;
use airmail_client::{AttributeValue, Client, Item, ManyItem, Received, Start};
use airmail_testkit::waiting::waiting;

async fn publish(client: &Client, topic: &str, price: i64) {
    let attribute = AttributeValue::Integer(price);
    let published = client
        .publish(topic, vec![b'x'; 10_000])
        .attribute("price", attribute);
    published.await.unwrap();
}

fn check(message: &Received, number: u64, price: i64) {
    assert_eq!(message.sequence.0, number);
    assert!(message.payload.is_empty());
    let attributes = [("price".to_owned(), AttributeValue::Integer(price))];
    assert_eq!(message.attributes, attributes);
}

#[tokio::test]
async fn a_subscriber_without_payloads_gets_all_else_live_and_late_and_by_history() {
    let _waiting = waiting("messages without payloads");
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut live = client
        .subscribe("t")
        .headers_only(true)
        .open()
        .await
        .unwrap();
    let many = client.subscribe_many(["t", "u"]).headers_only(true);
    let mut many = many.open().await.unwrap();
    for price in 1..=3 {
        publish(&client, "t", price).await;
    }
    let late = client.subscribe("t").from(Start::Earliest);
    let mut late = late.headers_only(true).open().await.unwrap();
    let mut history = client.history("t").headers_only(true).open().unwrap();
    for number in 1..=3 {
        for subscription in [&mut live, &mut late] {
            match subscription.next().await.unwrap() {
                Some(Item::Message(message)) => check(&message, number, number as i64),
                other => panic!("{other:?}"),
            }
        }
        match many.next().await.unwrap() {
            Some(ManyItem::Message(message)) => check(&message, number, number as i64),
            other => panic!("{other:?}"),
        }
        match history.next().await.unwrap() {
            Some(Item::Message(message)) => check(&message, number, number as i64),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(history.next().await.unwrap(), None);
    // Its position is one of any subscription.
    let from = client
        .subscribe("t")
        .from(Start::Position(late.position().unwrap()));
    let mut plain = from.open().await.unwrap();
    publish(&client, "t", 4).await;
    match plain.next().await.unwrap() {
        Some(Item::Message(message)) => assert_eq!(message.payload.len(), 10_000),
        other => panic!("{other:?}"),
    }
    client.close().await.unwrap();
    node.stop().await;
}
