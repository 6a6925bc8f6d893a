//! Selections of topics, as users of the SDK see them.

use crate::node::Node;
use airmail_client::{AttributeValue, Client, ErrorCode, Item, Items, Start};
use airmail_testkit::waiting::waiting;
use std::collections::{BTreeMap, BTreeSet};

/// Publishes a message that says its topic and a number.
async fn publish(client: &Client, topic: &str, number: i64) {
    let published = client.publish(topic, format!("{topic} {number}"));
    published
        .attribute("n", AttributeValue::Integer(number))
        .await
        .unwrap();
}

/// A client whose namespace has so many logs.
async fn client_of_many(node: &Node, logs: u16) -> Client {
    let client = node.client().await;
    let admin = client.admin();
    let made = admin.create("many", Some(logs), None, None).await;
    made.unwrap();
    client.close().await.unwrap();
    let client = Client::builder().url(node.url()).namespace("many");
    client.connect().await.unwrap()
}

#[tokio::test]
async fn a_selection_gets_every_topic_of_every_log_also_those_that_are_new() {
    let _waiting = waiting("messages of selected topics");
    let node = Node::in_memory().await;
    let client = client_of_many(&node, 3).await;
    let mut live = client.subscribe_everything().open().await.unwrap();
    let even = client.subscribe_pattern("t/*0").filter("n >= 2");
    let mut even = even.open().await.unwrap();
    let topics: Vec<String> = (0..30).map(|n| format!("t/{n}")).collect();
    for number in 0..4 {
        for topic in &topics {
            publish(&client, topic, number).await;
        }
    }
    let late = client.subscribe_prefix("t/").from(Start::Earliest);
    let mut late = late.open().await.unwrap();
    for subscription in [&mut live, &mut late] {
        let mut got: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for _ in 0..4 * topics.len() {
            match subscription.next().await.unwrap() {
                Some(Item::Message(message)) => {
                    let payload = String::from_utf8(message.payload.to_vec()).unwrap();
                    got.entry(message.topic().to_owned())
                        .or_default()
                        .push(payload);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(got.len(), topics.len());
        for (topic, payloads) in got {
            let expected = (0..4).map(|number| format!("{topic} {number}"));
            assert_eq!(payloads, expected.collect::<Vec<_>>());
        }
    }
    let mut got = BTreeSet::new();
    while got.len() < 6 {
        match even.next_batch().await.unwrap() {
            Some(Items::Messages(messages)) => {
                let payload = |payload: &[u8]| String::from_utf8(payload.to_vec()).unwrap();
                got.extend(messages.iter().map(|(_, record)| payload(record.payload)));
            }
            other => panic!("{other:?}"),
        }
    }
    let expected = ["t/0", "t/10", "t/20"].into_iter();
    let expected = expected.flat_map(|topic| [2, 3].map(|number| format!("{topic} {number}")));
    assert_eq!(got, expected.collect());
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_position_of_a_selection_goes_on_in_every_log_and_a_history_is_in_order_of_time() {
    let _waiting = waiting("messages of selected topics");
    let node = Node::in_memory().await;
    let client = client_of_many(&node, 4).await;
    let topics: Vec<String> = (0..10).map(|n| format!("t/{n}")).collect();
    for number in 0..5 {
        for topic in &topics {
            publish(&client, topic, number).await;
        }
    }
    let mut seen: Vec<String> = Vec::new();
    let payload =
        |message: &airmail_client::Received| String::from_utf8(message.payload.to_vec()).unwrap();
    // The subscription is begun anew behind every seventh message.
    let mut start = Start::Earliest;
    while seen.len() < 5 * topics.len() {
        let subscription = client.subscribe_prefix("t/").from(start);
        let mut subscription = subscription.open().await.unwrap();
        let mut position = None;
        for _ in 0..7.min(5 * topics.len() - seen.len()) {
            match subscription.next().await.unwrap() {
                Some(Item::Message(message)) => {
                    seen.push(payload(&message));
                    assert_eq!(Some(message.position()), subscription.position());
                    position = Some(message.position());
                }
                other => panic!("{other:?}"),
            }
        }
        start = Start::Position(position.unwrap());
    }
    let all: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(all.len(), seen.len(), "nothing comes twice");
    let mut history = client.history_everything().limit(42).open().unwrap();
    let (mut last, mut count) = (0, 0);
    while let Some(item) = history.next().await.unwrap() {
        let Item::Message(message) = item else {
            panic!("{item:?}");
        };
        assert!(message.appended.0 >= last, "in the order of append times");
        (last, count) = (message.appended.0, count + 1);
    }
    assert_eq!(count, 42);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_text_that_is_no_pattern_is_told() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let errors = [
        client.subscribe_pattern("a\\").open().await.unwrap_err(),
        client.history_pattern("a\\").open().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), ErrorCode::SubscriptionInvalid);
        assert_eq!((error.field_name(), error.found()), ("pattern", "a\\"));
    }
    client.close().await.unwrap();
    node.stop().await;
}
