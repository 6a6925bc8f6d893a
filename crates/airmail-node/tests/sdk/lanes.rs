//! Lanes as users of the SDK see them.

use crate::node::{Node, message, text};
use airmail_client::{Item, Lane};
use airmail_testkit::waiting::waiting;
use std::collections::BTreeMap;

#[tokio::test]
async fn a_message_is_delivered_in_the_lane_that_it_was_published_to_and_each_lane_in_order() {
    let node = Node::in_memory().await;
    let client = node.client().await;
    let mut subscription = client.subscribe("t").open().await.unwrap();
    let urgent = client.publish("t", "0").lane(Lane::High).await.unwrap();
    assert_eq!(urgent.log.lane, Lane::High);
    let publisher = client.publisher();
    let lane_of = |number: u32| {
        if number.is_multiple_of(5) {
            Lane::High
        } else {
            Lane::Normal
        }
    };
    let mut acks = Vec::new();
    for number in 1..100 {
        let message = message("t", number).lane(lane_of(number));
        acks.push(publisher.send(message).await.unwrap());
    }
    for (ack, number) in acks.into_iter().zip(1..) {
        assert_eq!(ack.await.unwrap().log.lane, lane_of(number), "{number}");
    }
    let both = [100, 101].map(|number| message("t", number).lane(lane_of(number)));
    let summary = publisher.send_all(both.into()).await.unwrap();
    assert_eq!(summary.await.unwrap().stored, 2);

    let _waiting = waiting("messages of both lanes");
    let mut received: BTreeMap<Lane, Vec<u32>> = BTreeMap::new();
    for _ in 0..=101 {
        match subscription.next().await.unwrap() {
            Some(Item::Message(message)) => {
                let number = text(&message.payload).parse().unwrap();
                received.entry(message.lane).or_default().push(number);
            }
            other => panic!("{other:?}"),
        }
    }
    for lane in Lane::ALL {
        let expected = (0..=101).filter(|number| lane_of(*number) == lane);
        assert_eq!(received[&lane], expected.collect::<Vec<_>>(), "{lane}");
    }
    client.close().await.unwrap();
    node.stop().await;
}
