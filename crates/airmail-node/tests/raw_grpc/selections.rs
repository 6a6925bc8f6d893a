//! Selections of topics, for clients without an SDK.

use crate::node::{Node, message};
use airmail_model::{ErrorCode, LogId, Position};
use airmail_proto::error::{error_from_proto, error_from_status};
use airmail_proto::v1;
use airmail_proto::v1::add::Selector;
use airmail_proto::v1::start::At;
use airmail_proto::v1::status::State;
use airmail_proto::v1::subscribe_request::Kind;
use std::collections::BTreeSet;

/// Publishes a message that says its topic.
async fn publish(node: &Node, namespace: &str, topic: &str) {
    let request = v1::PublishOneRequest {
        namespace: namespace.into(),
        message: Some(message(topic, topic)),
    };
    node.client().publish_one(request).await.unwrap();
}

fn add(subscription: u32, selector: Selector, at: At) -> v1::Add {
    v1::Add {
        subscription,
        selector: Some(selector),
        start: Some(v1::Start {
            at: Some(at),
            high: String::new(),
        }),
        ..Default::default()
    }
}

#[tokio::test]
async fn plain_messages_of_every_selected_topic_come_live_late_and_from_history() {
    let node = Node::in_memory().await;
    for topic in ["eu/1", "us/1", "eu/2"] {
        publish(&node, "", topic).await;
    }
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let eu = add(0, Selector::Prefix("eu/".into()), At::Earliest(true));
    subscriber.send(Kind::Add(eu)).await;
    let messages = subscriber.messages(2).await;
    let found = messages.iter().map(|of| (&*of.topic, of.sequence));
    assert_eq!(found.collect::<Vec<_>>(), [("eu/1", 1), ("eu/2", 3)]);
    publish(&node, "", "us/2").await;
    publish(&node, "", "eu/3").await;
    let live = subscriber.messages(1).await;
    assert_eq!((&*live[0].topic, live[0].sequence), ("eu/3", 5));
    // Its position goes on behind it, whatever was selected.
    let mut again = node.subscriber().await;
    again.greet().await;
    let position = At::Position(messages[1].position.clone());
    let everything = add(0, Selector::Everything(true), position);
    again.send(Kind::Add(everything)).await;
    let topics = again.messages(2).await;
    let topics = topics.iter().map(|of| &*of.topic);
    assert_eq!(topics.collect::<Vec<_>>(), ["us/2", "eu/3"]);
    let request = v1::HistoryRequest {
        selector: Some(v1::history_request::Selector::Pattern("*/2".into())),
        ..Default::default()
    };
    assert_eq!(node.history_of(request).await, ["eu/2", "us/2"]);
    node.stop().await;
}

#[tokio::test]
async fn of_a_namespace_with_several_logs_each_log_is_selected_from_by_itself() {
    let node = Node::in_memory().await;
    let spec = v1::NamespaceSpec {
        logs: 4,
        ..Default::default()
    };
    let many = v1::CreateNamespaceRequest {
        name: "many".into(),
        spec: Some(spec),
    };
    node.admin().create_namespace(many).await.unwrap();
    let topics: BTreeSet<String> = (0..40).map(|n| format!("t/{n}")).collect();
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let of = |log: Option<u32>, subscription| v1::Add {
        namespace: "many".into(),
        log,
        ..add(subscription, Selector::Everything(true), At::Latest(true))
    };
    subscriber.send(Kind::Add(of(None, 9))).await;
    let State::Failed(error) = subscriber.state().await else {
        panic!("a refusal expected");
    };
    let error = error_from_proto(&error);
    assert_eq!(error.code(), ErrorCode::SubscriptionInvalid);
    assert_eq!((error.field_name(), error.found()), ("log", "none"));
    for log in 0..4 {
        subscriber.send(Kind::Add(of(Some(log), log))).await;
        let state = subscriber.state().await;
        assert!(matches!(state, State::Live(_)), "{state:?}");
    }
    for topic in &topics {
        publish(&node, "many", topic).await;
    }
    let messages = subscriber.messages(topics.len()).await;
    let found: BTreeSet<String> = messages.iter().map(|of| of.topic.clone()).collect();
    assert_eq!(found, topics);
    let log = |of: &v1::StoredMessage| of.position.parse::<Position>().unwrap().logs[0].log;
    let logs: BTreeSet<LogId> = messages.iter().map(log).collect();
    assert_eq!(logs.len(), 4);
    node.stop().await;
}

#[tokio::test]
async fn a_selection_that_is_none_is_refused_by_its_field() {
    let node = Node::in_memory().await;
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let wrong = add(0, Selector::Pattern("a\\".into()), At::Latest(true));
    subscriber.send(Kind::Add(wrong)).await;
    let State::Failed(error) = subscriber.state().await else {
        panic!("a refusal expected");
    };
    let error = error_from_proto(&error);
    assert_eq!(error.code(), ErrorCode::SubscriptionInvalid);
    assert_eq!((error.field_name(), error.found()), ("pattern", "a\\"));
    let request = v1::HistoryRequest {
        topic: "t".into(),
        selector: Some(v1::history_request::Selector::Everything(true)),
        ..Default::default()
    };
    let refused = node.client().history(request).await.unwrap_err();
    let error = error_from_status(&refused);
    assert_eq!((error.field_name(), error.found()), ("topic", "t"));
    node.stop().await;
}
