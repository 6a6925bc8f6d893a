//! History and topics.

use crate::node::{Node, payloads_of};
use airmail_proto::v1;
use airmail_proto::v1::history_response::Kind;
use airmail_proto::v1::start::At;

async fn history(node: &Node, request: v1::HistoryRequest) -> Vec<String> {
    let mut answers = node.client().history(request).await.unwrap().into_inner();
    let (mut payloads, mut begun) = (Vec::new(), 0);
    while let Some(answer) = answers.message().await.unwrap() {
        match answer.kind {
            Some(Kind::Delivery(delivery)) => payloads.extend(payloads_of(&delivery)),
            Some(Kind::Begin(_)) => begun += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(begun, 1);
    payloads
}

fn asked(topic: &str) -> v1::HistoryRequest {
    v1::HistoryRequest {
        topic: topic.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn history_begins_and_ends_where_it_is_asked_to() {
    let node = Node::in_memory().await;
    for n in 1..=9 {
        node.publish_one("h", &n.to_string()).await.unwrap();
    }
    let at = |sequence| {
        Some(v1::Start {
            at: Some(At::Sequence(sequence)),
            high: String::new(),
        })
    };
    assert_eq!(history(&node, asked("h")).await.len(), 9);
    let middle = v1::HistoryRequest {
        since: at(3),
        until: at(6),
        ..asked("h")
    };
    assert_eq!(history(&node, middle).await, ["3", "4", "5"]);
    let few = v1::HistoryRequest {
        since: at(4),
        limit: 2,
        ..asked("h")
    };
    assert_eq!(history(&node, few).await, ["4", "5"]);
    node.stop().await;
}

#[tokio::test]
async fn history_of_a_topic_that_never_was_is_empty() {
    let node = Node::in_memory().await;
    node.publish_one("other", "x").await.unwrap();
    assert!(history(&node, asked("never")).await.is_empty());
    node.stop().await;
}

#[tokio::test]
async fn history_in_batches_is_cut_at_its_limit() {
    let node = Node::in_memory().await;
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let many: Vec<(&str, &str)> = (0..100).map(|_| ("b", "x")).collect();
    publisher
        .bytes(0, crate::node::batch(&many, None).bytes())
        .await;
    let request = v1::HistoryRequest {
        limit: 30,
        batches: true,
        ..asked("b")
    };
    let mut answers = node.client().history(request).await.unwrap().into_inner();
    let mut records = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        if let Some(Kind::Delivery(delivery)) = answer.kind {
            let Some(v1::delivery::Body::Batch(bytes)) = delivery.body else {
                panic!("a batch expected");
            };
            let (batch, damaged) = airmail_model::Batch::check_stored(bytes).unwrap();
            assert!(damaged.is_empty());
            assert_eq!(delivery.last, 30);
            records += batch.records();
        }
    }
    assert_eq!(records, 30);
    node.stop().await;
}

#[tokio::test]
async fn topics_are_listed_by_page_and_prefix() {
    let node = Node::in_memory().await;
    for topic in ["b/2", "a", "b/1", "b/3", "c"] {
        node.publish_one(topic, "x").await.unwrap();
    }
    let list = async |prefix: &str, after: &str, limit| {
        let request = v1::ListTopicsRequest {
            namespace: String::new(),
            prefix: prefix.into(),
            after: after.into(),
            limit,
        };
        let page = node.client().list_topics(request).await.unwrap();
        let page = page.into_inner();
        let names: Vec<String> = page.topics.into_iter().map(|topic| topic.name).collect();
        (names.join(" "), page.more)
    };
    assert_eq!(list("", "", 0).await, ("a b/1 b/2 b/3 c".into(), false));
    assert_eq!(list("b/", "", 2).await, ("b/1 b/2".into(), true));
    assert_eq!(list("b/", "b/2", 2).await, ("b/3".into(), false));
    node.stop().await;
}
