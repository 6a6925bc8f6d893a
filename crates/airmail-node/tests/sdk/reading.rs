//! Subscriptions and history.

use crate::node::{Node, PATIENCE, message, numbers, stored, take, text};
use airmail_client::{
    AttributeValue, Client, ErrorCode, Gap, GapReason, Item, Position, Standing, Start, Until,
};
use airmail_model::Sequence;
use std::time::Duration;

#[tokio::test]
async fn a_message_arrives_with_all_that_it_was_published_with() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut subscription = client.subscribe("t").open().await.unwrap();
    assert_eq!(subscription.standing(), Standing::Live);
    let publish = client
        .publish("t", "x")
        .attribute("n", 7)
        .attribute("a", "b");
    let published = publish.await.unwrap();
    let Some(Item::Message(message)) = subscription.next().await.unwrap() else {
        panic!("no message");
    };
    assert_eq!((message.topic(), message.namespace()), ("t", "default"));
    assert_eq!(
        (message.sequence, message.appended),
        (published.sequence, published.appended)
    );
    let attributes = [
        ("a".to_owned(), AttributeValue::String("b".into())),
        ("n".to_owned(), AttributeValue::Integer(7)),
    ];
    assert_eq!(message.attributes, attributes);
    assert_eq!(subscription.position(), Some(message.position()));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn every_start_begins_where_it_says() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    for n in 0..10 {
        client.publish("t", n.to_string()).await.unwrap();
    }
    let mut history = client.history("t").open().unwrap();
    let mut messages = Vec::new();
    while let Some(Item::Message(message)) = history.next().await.unwrap() {
        messages.push(message);
    }
    let starts = [
        (Start::Earliest, 0),
        (Start::Sequence(messages[4].sequence), 4),
        (Start::Time(messages[7].appended), 7),
        (Start::Position(messages[2].position()), 3),
    ];
    for (start, first) in starts {
        let mut subscription = client.subscribe("t").from(start).open().await.unwrap();
        assert_eq!(
            take(&mut subscription, 10 - first).await,
            numbers(first..10)
        );
    }
    let mut latest = client.subscribe("t").open().await.unwrap();
    client.publish("t", "10").await.unwrap();
    assert_eq!(take(&mut latest, 1).await, ["10"]);
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_look_into_history_keeps_its_bounds_and_its_limit() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let messages = (0..2_000).map(|n| message("t", n)).collect();
    client
        .publisher()
        .send_all(messages)
        .await
        .unwrap()
        .await
        .unwrap();
    let read = async |since: Start, until: Until, limit: Option<u64>| {
        let mut request = client.history("t").since(since).until(until);
        if let Some(limit) = limit {
            request = request.limit(limit);
        }
        let mut history = request.open().unwrap();
        let mut payloads = Vec::new();
        while let Some(Item::Message(message)) = history.next().await.unwrap() {
            payloads.push((message.sequence.0, text(&message.payload)));
        }
        payloads
    };
    let all = read(Start::Earliest, Until::Now, None).await;
    assert_eq!(all.len(), 2_000);
    let at = |n: usize| Sequence(all[n].0);
    assert_eq!(read(Start::Earliest, Until::Now, Some(7)).await, all[..7]);
    assert_eq!(
        read(Start::Sequence(at(5)), Until::Sequence(at(9)), None).await,
        all[5..9]
    );
    assert_eq!(
        read(Start::Sequence(at(1_990)), Until::Now, Some(100)).await,
        all[1_990..]
    );
    assert!(
        read(Start::Sequence(Sequence(1 << 40)), Until::Now, None)
            .await
            .is_empty()
    );
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn one_who_does_not_read_gets_everything_later_and_holds_nobody_up() {
    let node = Node::in_memory().await;
    let builder = Client::builder().url(node.url()).credit_bytes(64 << 10);
    let slow_client = builder.connect().await.unwrap();
    let mut slow = slow_client.subscribe("t").open().await.unwrap();
    let client = node.client().await;
    let mut live = client.subscribe("t").open().await.unwrap();
    let filler = "x".repeat(1_000);
    let publisher = client.publisher();
    for round in 0..20 {
        let messages = (0..200)
            .map(|n| message("t", format!("{round}/{n}/{filler}")))
            .collect();
        publisher.send_all(messages).await.unwrap().await.unwrap();
        assert_eq!(take(&mut live, 200).await.len(), 200);
    }
    let all = stored(&client, "t").await;
    assert_eq!(all.len(), 4_000);
    assert_eq!(take(&mut slow, 4_000).await, all);
    slow_client.close().await.unwrap();
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn asking_for_the_next_can_be_given_up_at_any_moment() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut subscription = client
        .subscribe("t")
        .from(Start::Earliest)
        .open()
        .await
        .unwrap();
    let mut payloads = Vec::new();
    for n in 0..300 {
        client.publish("t", n.to_string()).await.unwrap();
        let patience = Duration::from_micros(n % 7 * 50);
        while let Ok(item) = tokio::time::timeout(patience, subscription.next()).await {
            let Some(Item::Message(message)) = item.unwrap() else {
                panic!("no message");
            };
            payloads.push(text(&message.payload));
        }
    }
    payloads.extend(take(&mut subscription, 300 - payloads.len()).await);
    assert_eq!(payloads, numbers(0..300));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn each_of_many_short_subscriptions_to_one_topic_gets_what_is_its_own() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut all = client.subscribe("t").open().await.unwrap();
    let mut left = None;
    for n in 0..100 {
        let mut latest = client.subscribe("t").open().await.unwrap();
        // The one before is given up unread, or in the middle of its answer.
        drop(left.take());
        client.publish("t", n.to_string()).await.unwrap();
        assert_eq!(take(&mut latest, 1).await, numbers(n..n + 1));
        left = Some(
            client
                .subscribe("t")
                .from(Start::Earliest)
                .open()
                .await
                .unwrap(),
        );
        if let (Some(whole), true) = (&mut left, n % 10 == 0) {
            assert_eq!(take(whole, n + 1).await, numbers(0..n + 1));
        }
    }
    assert_eq!(take(&mut all, 100).await, numbers(0..100));
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn what_a_position_was_owed_by_a_log_that_is_gone_is_told_as_lost() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    for n in 0..3 {
        client.publish("t", n.to_string()).await.unwrap();
    }
    let mut subscription = client
        .subscribe("t")
        .from(Start::Earliest)
        .open()
        .await
        .unwrap();
    take(&mut subscription, 2).await;
    let position = subscription.position().unwrap();
    client.close().await.unwrap();
    node.stop().await;
    let node = Node::reborn_in_memory().await;
    let client = node.client().await;
    client.publish("t", "new").await.unwrap();
    let start = Start::Position(position.clone());
    let mut subscription = client.subscribe("t").from(start).open().await.unwrap();
    let before = subscription.position();
    assert_eq!(
        before.as_ref(),
        Some(&position),
        "the gap has not been given yet"
    );
    // Asked for again and again without patience: neither gap nor message goes missing.
    let mut items = Vec::new();
    let all = async {
        while items.len() < 2 {
            let patience = Duration::from_micros(50);
            if let Ok(item) = tokio::time::timeout(patience, subscription.next()).await {
                items.push(item.unwrap().unwrap());
            }
        }
    };
    let all = tokio::time::timeout(PATIENCE, all).await;
    assert!(all.is_ok(), "only {items:?}");
    let lost = Gap {
        log: position.logs[0].log,
        first: Sequence(3),
        last: Sequence::MAX,
        reason: GapReason::Loss,
    };
    assert_eq!(items[0], Item::Gap(lost));
    let Item::Message(message) = &items[1] else {
        panic!("{items:?}");
    };
    assert_eq!(text(&message.payload), "new");
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn what_cannot_be_subscribed_to_is_refused_when_it_is_opened() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    client
        .admin()
        .create("other", None, None, None)
        .await
        .unwrap();
    client.publish("t", "x").namespace("other").await.unwrap();
    let mut there = client
        .subscribe("t")
        .namespace("other")
        .from(Start::Earliest);
    let mut subscription = there.open().await.unwrap();
    take(&mut subscription, 1).await;
    let position: Position = subscription.position().unwrap();
    there = client.subscribe("t").from(Start::Position(position));
    let error = there.open().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::PositionInvalid);
    let error = client
        .subscribe("t")
        .namespace("nowhere")
        .open()
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.found()),
        (ErrorCode::NamespaceNotFound, "nowhere")
    );
    let error = client.subscribe("").open().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TopicInvalid);
    client.close().await.unwrap();
    node.stop().await;
}
