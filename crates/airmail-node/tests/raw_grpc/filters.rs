//! Subscriptions with filters, for clients without an SDK.

use crate::node::{Node, message};
use airmail_model::ErrorCode;
use airmail_proto::error::{error_from_proto, error_from_status};
use airmail_proto::v1;
use airmail_proto::v1::add::Selector;
use airmail_proto::v1::start::At;
use airmail_proto::v1::status::State;
use airmail_proto::v1::subscribe_request::Kind;
use airmail_proto::v1::subscribe_response::Kind as Answer;

async fn publish(node: &Node, payload: &str, price: i64) {
    let value = Some(v1::attribute::Value::Integer(price));
    let attributes = [("price".to_owned(), v1::Attribute { value })];
    let request = v1::PublishOneRequest {
        namespace: String::new(),
        message: Some(v1::Message {
            attributes: attributes.into(),
            ..message("t", payload)
        }),
    };
    node.client().publish_one(request).await.unwrap();
}

fn add(subscription: u32, filter: &str) -> v1::Add {
    v1::Add {
        subscription,
        topic: "t".into(),
        start: Some(v1::Start {
            at: Some(At::Earliest(true)),
            high: String::new(),
        }),
        filter: filter.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn plain_messages_come_that_a_filter_matches_live_late_and_from_history() {
    let node = Node::in_memory().await;
    publish(&node, "dear", 30).await;
    publish(&node, "cheap", 10).await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let filter = "price > 20 AND NOT has sold";
    subscriber.send(Kind::Add(add(0, filter))).await;
    let messages = subscriber.messages(1).await;
    assert_eq!(
        (&*messages[0].payload, messages[0].sequence),
        (&b"dear"[..], 1)
    );
    publish(&node, "cheap", 11).await;
    publish(&node, "dear too", 31).await;
    let messages = subscriber.messages(1).await;
    assert_eq!(
        (&*messages[0].payload, messages[0].sequence),
        (&b"dear too"[..], 4)
    );
    let request = v1::HistoryRequest {
        topic: "t".into(),
        filter: "price < 20".into(),
        limit: 1,
        ..Default::default()
    };
    assert_eq!(node.history_of(request).await, ["cheap"]);
    node.stop().await;
}

#[tokio::test]
async fn a_filter_that_is_too_complex_is_told_which_bound_it_exceeds() {
    let node = Node::in_memory().await;
    let values: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let filter = format!("price in ({})", values.join(", "));
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.send(Kind::Add(add(0, &filter))).await;
    let Answer::Status(status) = subscriber.event().await else {
        panic!("a status expected");
    };
    let Some(State::Failed(error)) = status.state else {
        panic!("a refusal expected");
    };
    let error = error_from_proto(&error);
    assert_eq!(error.code(), ErrorCode::FilterTooComplex);
    assert_eq!((error.field_name(), error.expected()), ("filter", "256"));
    let request = v1::HistoryRequest {
        topic: "t".into(),
        filter,
        ..Default::default()
    };
    let refused = node.client().history(request).await.unwrap_err();
    assert_eq!(
        error_from_status(&refused).code(),
        ErrorCode::FilterTooComplex
    );
    node.stop().await;
}

/// Another subscription of a stream that is told for whom each message is.
fn add_matching(subscription: u32, selector: Option<Selector>, filter: &str) -> v1::Add {
    let topic = if selector.is_some() { "" } else { "t" };
    v1::Add {
        subscription,
        generation: 1,
        topic: topic.into(),
        filter: filter.into(),
        selector,
        matches: true,
        ..Default::default()
    }
}

#[tokio::test]
async fn plain_messages_come_once_with_the_subscriptions_that_they_are_for() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let all = Some(Selector::Everything(true));
    for (n, selector, filter) in [
        (4, None, "price > 20"),
        (7, None, "price < 40"),
        (2, all, "has price"),
    ] {
        let add = add_matching(n, selector, filter);
        subscriber.send(Kind::Add(add)).await;
        subscriber.live(n).await;
    }
    for (payload, price) in [("cheap", 10), ("fair", 30), ("dear", 50)] {
        publish(&node, payload, price).await;
    }
    let told = |message: &v1::StoredMessage| (message.sequence, message.subscriptions.clone());
    let messages = subscriber.messages(3).await;
    let told: Vec<_> = messages.iter().map(told).collect();
    assert_eq!(told, [(1, vec![2, 7]), (2, vec![2, 4, 7]), (3, vec![2, 4])]);
    node.stop().await;
}

#[tokio::test]
async fn a_filter_is_changed_on_a_stream_and_what_is_none_is_refused_and_changes_nothing() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let add = add_matching(4, None, "price > 20");
    subscriber.send(Kind::Add(add)).await;
    subscriber.live(4).await;
    publish(&node, "dear", 30).await;
    assert_eq!(subscriber.messages(1).await[0].sequence, 1);
    for (generation, filter) in [(2, "price >"), (1, "price < 20"), (3, "price < 20")] {
        let change = v1::Change {
            subscription: 4,
            generation,
            filter: filter.into(),
        };
        subscriber.send(Kind::Change(change)).await;
        let Answer::Status(status) = subscriber.event().await else {
            panic!("a status expected");
        };
        assert_eq!((status.subscription, status.generation), (4, generation));
        match status.state {
            Some(State::Unchanged(error)) if generation < 3 => {
                let field = ["generation", "filter"][generation as usize - 1];
                assert_eq!(error_from_proto(&error).field_name(), field);
            }
            Some(State::Changed(changed)) => assert_eq!(changed.places[0].next, 2),
            other => panic!("{other:?}"),
        }
    }
    publish(&node, "dear", 30).await;
    publish(&node, "cheap", 10).await;
    let messages = subscriber.messages(1).await;
    assert_eq!(
        (messages[0].sequence, &*messages[0].payload),
        (3, &b"cheap"[..])
    );
    node.stop().await;
}
