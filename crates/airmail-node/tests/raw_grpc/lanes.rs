//! Plain messages of both lanes.

use crate::node::{Node, message};
use airmail_proto::v1;
use airmail_proto::v1::publish_batch::Body;
use airmail_proto::v1::start::At;

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
