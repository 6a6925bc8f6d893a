//! Plain messages of both lanes.

use crate::node::{Node, hello, message};
use airmail_model::ErrorCode;
use airmail_proto::error::error_from_proto;
use airmail_proto::v1;
use airmail_proto::v1::history_response::Kind as Told;
use airmail_proto::v1::publish_batch::Body;
use airmail_proto::v1::start::At;
use airmail_proto::v1::status::State;
use airmail_proto::v1::subscribe_request::Kind;

fn in_lane(lane: v1::Lane, payload: &str) -> v1::Message {
    v1::Message {
        lane: lane.into(),
        ..message("lanes", payload)
    }
}

#[tokio::test]
async fn a_plain_message_of_lane_high_is_stored_and_delivered_in_its_lane_by_every_call() {
    let node = Node::in_memory().await;
    let request = v1::PublishOneRequest {
        namespace: String::new(),
        message: Some(in_lane(v1::Lane::High, "one")),
    };
    let stored = node.client().publish_one(request).await.unwrap();
    assert_eq!(stored.into_inner().sequence, 1);
    let mut publisher = node.publisher().await;
    publisher.greet().await;
    let messages = vec![
        in_lane(v1::Lane::Normal, "two"),
        in_lane(v1::Lane::High, "three"),
        in_lane(v1::Lane::Normal, "four"),
    ];
    publisher
        .publish(1, Body::Messages(v1::Messages { messages }))
        .await;
    assert!(publisher.ack().await.error.is_none());

    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    subscriber.add(0, "lanes", At::Earliest(true)).await;
    let received = subscriber.messages(4).await;
    let of_lane = |lane: v1::Lane| {
        let of_lane = received
            .iter()
            .filter(|message| message.lane == lane as i32);
        let told = of_lane.map(|message| (message.sequence, message.payload.as_ref()));
        told.collect::<Vec<(u64, &[u8])>>()
    };
    let (one, two, three, four) = (&b"one"[..], &b"two"[..], &b"three"[..], &b"four"[..]);
    assert_eq!(of_lane(v1::Lane::High), [(1, one), (2, three)]);
    assert_eq!(of_lane(v1::Lane::Normal), [(1, two), (2, four)]);
    node.stop().await;
}

/// Publishes messages, each named by its lane and its number in it.
async fn publish(node: &Node, lanes: &[v1::Lane]) {
    let mut numbers = [0, 0];
    for lane in lanes {
        let number = &mut numbers[*lane as usize];
        *number += 1;
        let letter = ["n", "h"][*lane as usize];
        let request = v1::PublishOneRequest {
            namespace: String::new(),
            message: Some(in_lane(*lane, &format!("{letter}{number}"))),
        };
        node.client().publish_one(request).await.unwrap();
    }
}

fn from(at: At) -> Option<v1::Start> {
    Some(v1::Start {
        at: Some(at),
        high: String::new(),
    })
}

/// The messages of a look into history, each with the position behind it.
async fn history(node: &Node, request: v1::HistoryRequest) -> Vec<(String, String)> {
    let mut answers = node.client().history(request).await.unwrap().into_inner();
    let mut told = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        if let Some(Told::Delivery(delivery)) = answer.kind
            && let Some(v1::delivery::Body::Messages(stored)) = delivery.body
        {
            let told_now = stored.messages.into_iter().map(|message| {
                let payload = String::from_utf8(message.payload.to_vec()).unwrap();
                (payload, message.position)
            });
            told.extend(told_now);
        }
    }
    told
}

fn asked(since: At) -> v1::HistoryRequest {
    v1::HistoryRequest {
        topic: "lanes".into(),
        since: from(since),
        ..Default::default()
    }
}

#[tokio::test]
async fn who_goes_on_from_any_position_of_a_history_of_both_lanes_gets_the_rest_and_nothing_twice()
{
    use v1::Lane::{High, Normal};
    let node = Node::in_memory().await;
    publish(&node, &[Normal, High, Normal, High, Normal]).await;
    let all = history(&node, asked(At::Earliest(true))).await;
    assert_eq!(all.len(), 5);
    for (n, (_, position)) in all.iter().enumerate() {
        let rest = history(&node, asked(At::Position(position.clone()))).await;
        let sorted = |of: &[(String, String)]| {
            let mut payloads: Vec<_> = of.iter().map(|(payload, _)| payload.clone()).collect();
            payloads.sort();
            payloads
        };
        assert_eq!(sorted(&rest), sorted(&all[n + 1..]), "after {}", all[n].0);
    }
    node.stop().await;
}

#[tokio::test]
async fn a_number_in_a_history_of_lane_high_alone_is_one_of_that_lane() {
    use v1::Lane::{High, Normal};
    let node = Node::in_memory().await;
    publish(&node, &[High, Normal, High, High, Normal]).await;
    let request = v1::HistoryRequest {
        until: from(At::Sequence(3)),
        lane: Some(High.into()),
        ..asked(At::Sequence(2))
    };
    let told = history(&node, request).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0, "h2");
    node.stop().await;
}

#[tokio::test]
async fn a_place_in_lane_high_that_says_nothing_is_refused_by_name() {
    let node = Node::in_memory().await;
    publish(&node, &[v1::Lane::High]).await;
    let place = |at| {
        Some(v1::Start {
            at: Some(at),
            high: "pos1-x".into(),
        })
    };
    let requests = [
        ("since.high", place(At::Earliest(true)), None),
        ("until.high", None, place(At::Sequence(3))),
    ];
    for (field, since, until) in requests {
        let request = v1::HistoryRequest {
            since,
            until,
            ..asked(At::Earliest(true))
        };
        let status = node.client().history(request).await.expect_err("refused");
        let error = airmail_proto::error::error_from_status(&status);
        assert_eq!(
            (error.code(), error.field_name()),
            (ErrorCode::InvalidArgument, field)
        );
    }
    let mut subscriber = node.subscriber().await;
    subscriber.greet().await;
    let add = v1::Add {
        topic: "lanes".into(),
        start: place(At::Earliest(true)),
        ..Default::default()
    };
    subscriber.send(Kind::Add(add)).await;
    let State::Failed(error) = subscriber.state().await else {
        panic!("refused");
    };
    let error = error_from_proto(&error);
    assert_eq!(error.field_name(), "start.high");
    node.stop().await;
}

#[tokio::test]
async fn an_older_sdk_is_refused_by_name_at_its_first_add() {
    let node = Node::in_memory().await;
    for (protocol_max, is_told) in [(4, true), (5, false)] {
        let mut subscriber = node.subscriber().await;
        let hello = v1::ClientHello {
            protocol_max,
            ..hello()
        };
        subscriber.greet_with(hello).await;
        let add = v1::Add {
            topic: "lanes".into(),
            batches: true,
            ..Default::default()
        };
        subscriber.send(Kind::Add(add)).await;
        match subscriber.state().await {
            State::Failed(error) if is_told => {
                let error = error_from_proto(&error);
                assert_eq!(error.code(), ErrorCode::ProtocolUnsupported);
                assert_eq!(error.field_name(), "protocol_max");
            }
            State::Live(_) if !is_told => {}
            other => panic!("protocol {protocol_max}: {other:?}"),
        }
    }
    node.stop().await;
}
