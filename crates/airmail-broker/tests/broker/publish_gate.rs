//! The publish gate's place in the shard: what goes to the storage, what waits, what is refused.

use crate::vec_storage::VecStorage;
use crate::world::World;
use airmail_broker::ShardConfig;
use airmail_flow::{GateSettings, LimiterKind, LimiterSettings};
use airmail_log::Completion;
use airmail_model::ErrorCode;
use std::time::Duration;

/// At most two messages in flight, three in line, for a second.
fn settings() -> GateSettings {
    GateSettings {
        waiting_messages_max: 3,
        wait_ms_max: 1_000,
        limiter: LimiterSettings {
            kind: LimiterKind::Fixed,
            bound_initial: 2,
            ..LimiterSettings::DEFAULT
        },
        ..GateSettings::DEFAULT
    }
}

pub(crate) fn world(config: ShardConfig) -> World {
    let config = ShardConfig {
        publish_gate: Some(settings()),
        ..config
    };
    World::with(config, VecStorage::new())
}

#[test]
fn no_more_is_in_flight_than_the_bound_and_all_goes_in_order() {
    let mut world = world(ShardConfig::default());
    let client = world.open(1, 0);
    world.node.storage_mut().stalled = true;
    let requests: Vec<u64> = (0..5)
        .map(|n| world.publish(client, &[("a", &n.to_string())]))
        .collect();
    world.run();
    assert_eq!(world.node.shard().stats().appends_in_flight, 2);
    world.node.storage_mut().stalled = false;
    world.run();
    let numbers: Vec<u64> = requests.iter().map(|n| world.acked(client, *n).0).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert_eq!(world.node.shard().stats().appends_in_flight, 0);
}

#[test]
fn what_finds_no_place_in_the_line_is_refused_with_a_delay() {
    let mut world = world(ShardConfig::default());
    let client = world.open(1, 0);
    world.node.storage_mut().stalled = true;
    let requests: Vec<u64> = (0..6)
        .map(|n| world.publish(client, &[("a", &n.to_string())]))
        .collect();
    world.node.storage_mut().stalled = false;
    world.run();
    let refused = world.refused(client, requests[5]);
    assert_eq!(refused.code(), ErrorCode::Overloaded);
    assert_eq!(refused.found(), "too many wait");
    assert!(refused.delay().is_some());
    for request in &requests[..5] {
        world.acked(client, *request);
    }
}

#[test]
fn bytes_that_wait_are_bounded_too() {
    let mut world = world(ShardConfig {
        publish_waiting_bytes: 300,
        ..ShardConfig::default()
    });
    let client = world.open(1, 0);
    world.node.storage_mut().stalled = true;
    let requests: Vec<u64> = (0..4)
        .map(|_| world.publish(client, &[("a", &"x".repeat(100))]))
        .collect();
    world.node.storage_mut().stalled = false;
    world.run();
    world.acked(client, requests[2]);
    let refused = world.refused(client, requests[3]);
    assert_eq!(refused.code(), ErrorCode::Overloaded);
}

#[test]
fn who_waits_too_long_is_refused_and_leaves_the_line() {
    let mut world = world(ShardConfig::default());
    let client = world.open(1, 0);
    world.node.storage_mut().stalled = true;
    let requests: Vec<u64> = (0..4)
        .map(|n| world.publish(client, &[("a", &n.to_string())]))
        .collect();
    world.run();
    world.pass(Duration::from_millis(1_001));
    world.run();
    world.node.storage_mut().stalled = false;
    world.run();
    for request in &requests[2..] {
        let refused = world.refused(client, *request);
        assert_eq!(refused.found(), "waited too long");
    }
    let later = world.publish(client, &[("a", "later")]);
    world.run();
    world.acked(client, later);
}

#[test]
fn a_session_that_ends_leaves_its_places_to_others() {
    let mut world = world(ShardConfig::default());
    let (gone, other) = (world.open(1, 0), world.open(2, 0));
    world.node.storage_mut().stalled = true;
    for n in 0..4 {
        world.publish(gone, &[("a", &n.to_string())]);
    }
    let request = world.publish(other, &[("a", "x")]);
    world.run();
    world.close(gone);
    world.node.storage_mut().stalled = false;
    world.run();
    world.acked(other, request);
    assert_eq!(
        world.node.shard().stats().published_batches,
        3,
        "two of them in flight"
    );
}

#[test]
fn what_is_refused_behind_the_publish_gate_gives_its_place_back() {
    let mut world = world(ShardConfig::default());
    let client = world.open(1, 0);
    for _ in 0..10 {
        let stale = crate::world::batch(crate::world::LOG, 7, &[("a", "y")]);
        let request = world.publish_batch(client, stale);
        world.run();
        assert_eq!(world.refused(client, request).code(), ErrorCode::MapStale);
    }
    let request = world.publish(client, &[("a", "x")]);
    world.run();
    world.acked(client, request);
}

#[test]
fn what_waits_behind_a_log_that_is_lost_is_refused_and_nobody_s_turn_is_missed() {
    let mut world = world(ShardConfig::default());
    let client = world.open(1, 0);
    world.node.storage_mut().stalled = true;
    let requests: Vec<u64> = (0..5)
        .map(|n| world.publish(client, &[("a", &n.to_string())]))
        .collect();
    world.run();
    let log = crate::world::LOG;
    world.node.storage_mut().tell(Completion::Lost { log });
    world.run();
    world.node.storage_mut().stalled = false;
    world.run();
    for request in &requests[..2] {
        world.acked(client, *request);
    }
    for request in &requests[2..] {
        assert!(world.refused(client, *request).code().retriable());
    }
}
