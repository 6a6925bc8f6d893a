//! Lanes: what is published to lane high reaches whoever subscribes, whenever that was.

use crate::world::{LOG, PLENTY, World, batch, topic};
use airmail_broker::SessionId;
use airmail_model::frame::{Start, Until};
use airmail_model::{Lane, LogId};

const HIGH: LogId = LogId {
    lane: Lane::High,
    ..LOG
};

/// Publishes to lane high, and waits for the ack.
fn publish_high(world: &mut World, client: SessionId, text: &str) {
    let request = world.publish_batch(client, batch(HIGH, 1, &[("a", text)]));
    world.run();
    world.acked(client, request);
}

fn in_high(world: &World, client: SessionId, n: u32) -> Vec<&str> {
    let high = world.client(client).high.as_deref();
    high.map_or_else(Vec::new, |high| high.payloads(n))
}

#[test]
fn the_first_publish_to_lane_high_makes_its_logs_and_reaches_who_was_there_before() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 1, "a", Start::Latest);
    world.run();
    publish_high(&mut world, client, "urgent");
    world.publish(client, &[("a", "plain")]);
    world.run();
    assert_eq!(in_high(&world, client, 1), ["urgent"]);
    assert_eq!(world.client(client).payloads(1), ["plain"]);
    let stats = world.node.shard().stats();
    let high = stats.high;
    assert_eq!((stats.published_messages, high.published_messages), (2, 1));
    assert_eq!((stats.delivered_messages, high.delivered_messages), (2, 1));
    assert_eq!(high.appends_in_flight_bytes, 0);
}

#[test]
fn who_comes_later_begins_in_both_lanes_where_it_asked_to() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    publish_high(&mut world, client, "old");
    world.publish(client, &[("a", "plain")]);
    world.run();
    world.add(client, 1, "a", Start::Latest);
    world.add(client, 2, "a", Start::Earliest);
    let until = Some(Until::Now);
    world.add_until(client, 3, topic("a"), Start::Earliest, until);
    world.run();
    publish_high(&mut world, client, "new");
    assert_eq!(in_high(&world, client, 1), ["new"]);
    assert_eq!(in_high(&world, client, 2), ["old", "new"]);
    assert_eq!(in_high(&world, client, 3), ["old"]);
    assert_eq!(world.client(client).payloads(3), ["plain"]);
    let history = world.client(client).sub(3).history.last();
    assert_eq!(history, Some(&"complete"));
}

#[test]
fn the_logs_of_lane_high_go_with_their_namespace() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    publish_high(&mut world, client, "old");
    assert!(world.node.shard().incarnation(HIGH).is_some());
    let delete = airmail_broker::Command::DeleteNamespace {
        name: "default".to_owned(),
        based_on: None,
    };
    world.command(delete).expect("deleted");
    world.run();
    assert!(
        !world.node.storage().logs().contains(&HIGH),
        "nothing is left of it"
    );
}
