//! Subscriptions with filters, as users of the SDK see them.

use crate::node::Node;
use airmail_client::{AttributeValue, Client, ErrorCode, Item, Items, ManyItem, Start};
use airmail_testkit::waiting::waiting;

async fn publish(client: &Client, topic: &str, price: i64) {
    let published = client.publish(topic, price.to_string());
    published
        .attribute("price", AttributeValue::Integer(price))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_subscriber_gets_what_its_filter_matches_by_every_way_it_reads() {
    let _waiting = waiting("messages that filters match");
    let node = Node::in_memory().await;
    let client = node.client().await;
    let filter = "price between 3 and 5 or price = 8";
    let expected = ["3", "4", "5", "8"];
    let mut live = client.subscribe("t").filter(filter).open().await.unwrap();
    let mut batches = client.subscribe("t").filter(filter).open().await.unwrap();
    let many = client.subscribe_many(["t", "u"]).filter("price = 5");
    let mut many = many.open().await.unwrap();
    let mut all = client.subscribe("t").open().await.unwrap();
    for price in 0..10 {
        publish(&client, "t", price).await;
    }
    publish(&client, "u", 5).await;
    let late = client.subscribe("t").from(Start::Earliest).filter(filter);
    let mut late = late.open().await.unwrap();
    for expected in expected {
        for subscription in [&mut live, &mut late] {
            match subscription.next().await.unwrap() {
                Some(Item::Message(message)) => assert_eq!(message.payload, expected),
                other => panic!("{other:?}"),
            }
        }
    }
    let mut got = Vec::new();
    while got.len() < expected.len() {
        match batches.next_batch().await.unwrap() {
            Some(Items::Messages(messages)) => {
                got.extend(messages.iter().map(|(_, record)| record.payload.to_vec()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got, expected.map(|text| text.as_bytes()));
    for topic in ["t", "u"] {
        match many.next().await.unwrap() {
            Some(ManyItem::Message(message)) => {
                assert_eq!((message.topic(), &*message.payload), (topic, &b"5"[..]));
            }
            other => panic!("{other:?}"),
        }
    }
    for number in 1..=10 {
        match all.next().await.unwrap() {
            Some(Item::Message(message)) => assert_eq!(message.sequence.0, number),
            other => panic!("{other:?}"),
        }
    }
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_limit_counts_what_is_given_and_a_position_goes_on_behind_what_is_left_out() {
    let _waiting = waiting("messages that filters match");
    let node = Node::in_memory().await;
    let client = node.client().await;
    for price in 0..10 {
        publish(&client, "t", price).await;
    }
    let mut history = client
        .history("t")
        .filter("price in (3, 4, 5)")
        .limit(2)
        .open()
        .unwrap();
    let mut position = None;
    for expected in ["3", "4"] {
        match history.next().await.unwrap() {
            Some(Item::Message(message)) => {
                assert_eq!(message.payload, expected);
                position = Some(message.position());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(history.next().await.unwrap(), None);
    let rest = client
        .subscribe("t")
        .from(Start::Position(position.unwrap()));
    let mut rest = rest.filter("price > 6").open().await.unwrap();
    for expected in ["7", "8", "9"] {
        match rest.next().await.unwrap() {
            Some(Item::Message(message)) => assert_eq!(message.payload, expected),
            other => panic!("{other:?}"),
        }
    }
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn a_text_that_is_no_filter_is_told_with_its_column() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let errors = [
        client
            .subscribe("t")
            .filter("price >")
            .open()
            .await
            .unwrap_err(),
        client
            .subscribe_many(["t"])
            .filter("price >")
            .open()
            .await
            .unwrap_err(),
        client.history("t").filter("price >").open().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), ErrorCode::FilterInvalid);
        assert_eq!(error.found(), "the end in line 1, column 8");
    }
    client.close().await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn very_many_different_filters_of_a_topic_each_get_what_they_match() {
    let _waiting = waiting("messages that filters match");
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut subscriptions = Vec::new();
    for price in 0..100 {
        let filter = format!("price = {price} or price > 98");
        let subscription = client.subscribe("t").filter(filter).open().await;
        subscriptions.push(subscription.unwrap());
    }
    let mut all = client.subscribe("t").open().await.unwrap();
    for price in 0..100 {
        publish(&client, "t", price).await;
    }
    for (price, subscription) in subscriptions.iter_mut().enumerate() {
        let own = (price < 99).then_some(price);
        for expected in own.into_iter().chain([99]) {
            match subscription.next().await.unwrap() {
                Some(Item::Message(message)) => {
                    assert_eq!(message.payload, expected.to_string());
                }
                other => panic!("{other:?}"),
            }
        }
    }
    for number in 1..=100 {
        match all.next().await.unwrap() {
            Some(Item::Message(message)) => assert_eq!(message.sequence.0, number),
            other => panic!("{other:?}"),
        }
    }
    client.close().await.unwrap();
    node.stop().await;
}
