//! Messages that expire: left out for everybody from then on, by the clock of the log's storage.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World, expiring};
use airmail_broker::ShardConfig;
use airmail_model::Sequence;
use airmail_model::frame::{Request, Start};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_late_subscriber_gets_what_has_not_expired_and_stands_behind_all_of_it() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    let messages = [("a", "old", 500), ("b", "old", 500), ("a", "young", 5_000)];
    world.publish_batch(client, expiring(&messages));
    world.run();
    world.pass(SECOND);
    world.add(client, 0, "a", Start::Earliest);
    world.add_told(client, 1, "a", Start::Earliest);
    world.add_told(client, 2, "b", Start::Earliest);
    world.run();
    let got = world.client(client);
    assert_eq!(got.payloads(0), ["young"]);
    assert_eq!(got.payloads(1), ["young"]);
    assert_eq!(got.payloads(2), [""; 0]);
    assert!(got.sub(0).expired.is_empty());
    assert_eq!(got.sub(1).expired, [Sequence(1)]);
    assert_eq!(got.sub(2).expired, [Sequence(2)]);
    for n in 0..3 {
        assert_eq!(got.sub(n).mode, Mode::Live(LOG));
        assert_eq!(got.position(n), Sequence(4));
    }
}

#[test]
fn a_batch_that_has_grown_old_at_the_tail_is_given_in_part_and_its_range_goes_on() {
    let mut storage = VecStorage::new();
    // Its append times lag behind, as after a commit that took long.
    storage.lag_us = 1_000_000;
    let mut world = World::with(ShardConfig::default(), storage);
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.add_told(client, 1, "a", Start::Latest);
    world.add(client, 2, "b", Start::Latest);
    world.run();
    // The first is judged when the clock is known.
    for _ in 0..2 {
        let messages = [("a", "old", 500), ("a", "young", 5_000), ("b", "old", 1)];
        world.publish_batch(client, expiring(&messages));
        world.run();
    }
    world.tell(client, "b", "plain");
    let got = world.client(client);
    assert_eq!(got.payloads(0), ["young", "young"]);
    assert!(got.sub(0).expired.is_empty());
    assert_eq!(got.sub(1).expired, [Sequence(1), Sequence(4)]);
    assert_eq!(got.payloads(2), ["plain"]);
    assert_eq!(got.sub(0).mode, Mode::Live(LOG));
    assert_eq!(got.position(2), Sequence(8));
}

#[test]
fn what_may_expire_waits_until_the_clock_of_its_log_is_known_and_comes_once() {
    let mut storage = VecStorage::new();
    storage.deaf_to_clock = true;
    let mut world = World::with(ShardConfig::default(), storage);
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.add(client, 1, "b", Start::Latest);
    world.run();
    world.publish_batch(client, expiring(&[("a", "1", 60_000)]));
    world.tell(client, "b", "plain");
    // Who wants nothing that may expire waits for nothing.
    assert_eq!(world.client(client).payloads(1), ["plain"]);
    assert_eq!(world.client(client).payloads(0), [""; 0]);
    world.node.storage_mut().deaf_to_clock = false;
    world.run();
    world.publish_batch(client, expiring(&[("a", "2", 60_000)]));
    world.run();
    assert_eq!(world.client(client).payloads(0), ["1", "2"]);
    assert_eq!(world.client(client).sub(0).mode, Mode::Live(LOG));
}

#[test]
fn a_subscription_that_ends_while_the_clock_is_not_known_leaves_nothing_behind() {
    let mut storage = VecStorage::new();
    storage.deaf_to_clock = true;
    let mut world = World::with(ShardConfig::default(), storage);
    let client = world.open(1, PLENTY);
    world.publish_batch(client, expiring(&[("a", "1", 60_000)]));
    world.add(client, 0, "a", Start::Earliest);
    world.add(client, 1, "a", Start::Earliest);
    world.run();
    world.remove(client, 0);
    world.run();
    let other = world.open(2, PLENTY);
    world.add(other, 0, "a", Start::Earliest);
    world.run();
    world.close(other);
    world.run();
    world.node.storage_mut().deaf_to_clock = false;
    world.run();
    assert_eq!(world.client(client).payloads(0), [""; 0]);
    assert_eq!(world.client(client).payloads(1), ["1"]);
}

#[test]
fn messages_expire_by_the_clock_of_the_storage_whatever_the_gateways_shows() {
    for ahead_us in [-2_000_000, 3_600_000_000] {
        let mut storage = VecStorage::new();
        storage.ahead_us = ahead_us;
        let mut world = World::with(ShardConfig::default(), storage);
        let client = world.open(1, PLENTY);
        world.add(client, 0, "a", Start::Latest);
        world.run();
        world.publish_batch(client, expiring(&[("a", "1", 1_000)]));
        world.run();
        assert_eq!(world.client(client).payloads(0), ["1"]);
        world.pass(SECOND);
        world.add(client, 1, "a", Start::Earliest);
        world.run();
        assert_eq!(world.client(client).payloads(1), [""; 0]);
    }
}

#[test]
fn what_has_expired_for_one_is_not_given_to_another_though_the_clock_is_set_back() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.publish_batch(client, expiring(&[("a", "1", 1_000)]));
    world.run();
    world.pass(SECOND);
    world.add(client, 0, "a", Start::Earliest);
    world.run();
    world.now.wall.0 -= 900_000;
    world.add(client, 1, "a", Start::Earliest);
    world.run();
    assert_eq!(world.client(client).payloads(0), [""; 0]);
    assert_eq!(world.client(client).payloads(1), [""; 0]);
}

#[test]
fn a_question_for_the_nodes_clock_is_answered_in_turn() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    let asked = world.now.mono;
    world.request(client, Request::Clock { asked });
    world.run();
    world.pass(SECOND);
    world.request(client, Request::Clock { asked });
    world.run();
    let clocks = &world.client(client).clocks;
    assert_eq!(clocks[..], [asked, asked.plus(SECOND)]);
}
