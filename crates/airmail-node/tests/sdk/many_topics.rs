//! One subscription to many topics.

use crate::node::{Node, PATIENCE, Wire, text};
use airmail_client::{Client, ErrorCode, ManyItem, ManyItems, ManySubscription, Standing, Start};
use std::collections::BTreeMap;
use tokio::time::timeout;

/// The next `count` messages: the payloads of each topic, in order.
async fn take(many: &mut ManySubscription, count: usize) -> BTreeMap<String, Vec<String>> {
    let mut taken: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for _ in 0..count {
        let next = timeout(PATIENCE, many.next()).await.unwrap();
        let Some(ManyItem::Message(message)) = next.unwrap() else {
            panic!("no message");
        };
        let payloads = taken.entry(message.topic().to_owned()).or_default();
        payloads.push(text(&message.payload));
    }
    taken
}

async fn publish(client: &Client, topics: &[&str], payload: &str) {
    let publisher = client.publisher();
    for topic in topics {
        publisher.publish(topic, payload.to_owned()).await.unwrap();
    }
}

fn expected(topics: &[&str], payloads: &[&str]) -> BTreeMap<String, Vec<String>> {
    let payloads: Vec<String> = payloads.iter().map(|&p| p.to_owned()).collect();
    let each = topics.iter().map(|&t| (t.to_owned(), payloads.clone()));
    each.collect()
}

#[tokio::test]
async fn each_topic_begins_where_it_was_asked_to_and_goes_on_live() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    publish(&client, &["a", "b", "c", "d"], "old").await;
    let many = client.subscribe_many(["a", "b"]);
    let mut many = many.topic("c", Start::Earliest).open().await.unwrap();
    assert_eq!(take(&mut many, 1).await, expected(&["c"], &["old"]));
    publish(&client, &["a", "b", "c", "d"], "1").await;
    publish(&client, &["c", "b", "a", "d"], "2").await;
    let all = expected(&["a", "b", "c"], &["1", "2"]);
    assert_eq!(take(&mut many, 6).await, all);
    assert!((0..2).all(|topic| many.standing(topic) == Some(Standing::Live)));
    assert_eq!(many.standing(3), None);
    assert_eq!(many.topics().collect::<Vec<_>>(), ["a", "b", "c"]);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_batch_of_many_topics_is_read_as_one_and_each_message_tells_its_topic() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let names: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
    let asked = names.iter().map(String::as_str);
    let mut many = client.subscribe_many(asked).open().await.unwrap();
    let messages = (0..1000).map(|n| crate::node::message(&names[n % 100], n));
    let publisher = client.publisher();
    let sent = publisher.send_all(messages.collect()).await.unwrap();
    assert_eq!(sent.await.unwrap().stored, 1000);
    let (mut batches, mut told) = (0, vec![Vec::new(); 100]);
    while told.iter().map(Vec::len).sum::<usize>() < 1000 {
        let next = timeout(PATIENCE, many.next_batch()).await.unwrap();
        let Some(ManyItems::Messages(batch)) = next.unwrap() else {
            panic!("no messages");
        };
        batches += 1;
        for (topic, _, record) in batch.iter_topics() {
            assert_eq!(record.topic_name, names[topic]);
            told[topic].push(text(record.payload));
        }
    }
    assert!(batches < 100, "{batches} arrivals of 1000 messages");
    for (topic, told) in told.iter().enumerate() {
        let numbers = (topic..1000).step_by(100).map(|n| n.to_string());
        assert_eq!(*told, numbers.collect::<Vec<_>>());
    }
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_position_of_a_topic_is_after_what_was_given_of_it() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut many = client.subscribe_many(["a", "b"]).open().await.unwrap();
    publish(&client, &["a", "b", "a", "b"], "x").await;
    take(&mut many, 3).await;
    let [a, b] = [0, 1].map(|topic| many.position(topic).unwrap());
    drop(many);
    let many = client.subscribe_many::<&str>([]);
    let many = many.topic("a", Start::Position(a));
    let many = many.topic("b", Start::Position(b));
    let mut many = many.open().await.unwrap();
    assert_eq!(take(&mut many, 1).await, expected(&["b"], &["x"]));
    publish(&client, &["a"], "y").await;
    assert_eq!(take(&mut many, 1).await, expected(&["a"], &["y"]));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn many_topics_go_on_where_they_were_after_a_lost_connection() {
    let node = Node::in_memory().await;
    let wire = Wire::to(node.address).await;
    let url = format!("airmail://{}", wire.address);
    let reader = Client::connect(&url).await.unwrap();
    let client = node.client().await;
    let mut many = reader.subscribe_many(["a", "b"]).open().await.unwrap();
    publish(&client, &["a", "b"], "1").await;
    take(&mut many, 1).await;
    wire.cutter().cut();
    publish(&client, &["b", "a"], "2").await;
    let rest = take(&mut many, 3).await;
    assert_eq!(rest["a"].last().unwrap(), "2");
    assert_eq!(rest["b"], ["1", "2"]);
    reader.close().await.unwrap();
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn no_topic_and_a_topic_twice_are_refused() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    for topics in [&[][..], &["a", "b", "a"]] {
        let topics = topics.iter().copied();
        let refused = client.subscribe_many(topics).open().await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidArgument);
    }
    client.close().await.unwrap();
    node.stop().await;
}
