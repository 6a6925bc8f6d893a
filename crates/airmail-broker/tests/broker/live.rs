//! At the tail.

use crate::client::Mode;
use crate::world::{LOG, PLENTY, World};
use airmail_log::GapWhy;
use airmail_model::frame::{GapReason, Start};
use airmail_model::{Extent, Sequence};
use std::time::Duration;

#[test]
fn a_message_reaches_a_live_subscriber_and_its_ack_has_its_number() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.run();
    assert_eq!(world.client(client).sub(0).mode, Mode::Live(LOG));
    let number = world.tell(client, "a", "one");
    assert_eq!(world.client(client).sub(0).got, [(number, "one".into())]);
}

#[test]
fn a_subscriber_from_the_latest_gets_nothing_from_before() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.tell(client, "a", "before");
    // Acknowledged in the same turn in which the tail reader gives it.
    let request = world.publish(client, &[("a", "between")]);
    world.add(client, 1, "a", Start::Latest);
    world.run();
    world.acked(client, request);
    world.tell(client, "a", "after");
    assert_eq!(
        world.client(client).payloads(0),
        ["before", "between", "after"]
    );
    assert!(world.client(client).payloads(1).ends_with(&["after"]));
    assert!(!world.client(client).payloads(1).contains(&"before"));
}

#[test]
fn two_clients_on_one_topic_get_the_same_in_one_order() {
    let mut world = World::new();
    let (one, other) = (world.open(1, PLENTY), world.open(2, PLENTY));
    world.add(one, 0, "a", Start::Latest);
    world.run();
    world.tell(one, "a", "1");
    world.add(other, 7, "a", Start::Latest);
    world.run();
    world.tell(other, "a", "2");
    world.tell(one, "a", "3");
    assert_eq!(world.client(one).payloads(0), ["1", "2", "3"]);
    assert_eq!(world.client(other).payloads(7), ["2", "3"]);
}

#[test]
fn topics_that_share_a_log_are_told_apart() {
    let mut world = World::new();
    let (one, other) = (world.open(1, PLENTY), world.open(2, PLENTY));
    world.add(one, 0, "a", Start::Latest);
    world.add(other, 0, "b", Start::Latest);
    world.run();
    world.publish(one, &[("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1")]);
    world.publish(one, &[("b", "b2")]);
    world.publish(one, &[("a", "a3")]);
    world.run();
    assert_eq!(world.client(one).payloads(0), ["a1", "a2", "a3"]);
    assert_eq!(world.client(other).payloads(0), ["b1", "b2"]);
    assert_eq!(
        world.client(one).wholes,
        1,
        "only the batch with nothing else"
    );
}

#[test]
fn two_subscriptions_of_one_session_to_one_topic_cost_one_delivery() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.add(client, 1, "a", Start::Latest);
    world.run();
    world.tell(client, "a", "x");
    assert_eq!(world.client(client).deliveries, 1);
    assert_eq!(world.client(client).payloads(0), ["x"]);
    assert_eq!(world.client(client).payloads(1), ["x"]);
}

#[test]
fn nothing_comes_after_the_answer_to_remove() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.add(client, 1, "a", Start::Latest);
    world.run();
    world.tell(client, "a", "1");
    world.remove(client, 0);
    world.tell(client, "a", "2");
    assert_eq!(world.client(client).payloads(0), ["1"]);
    assert_eq!(world.client(client).payloads(1), ["1", "2"]);
    world.remove(client, 1);
    world.run();
    assert_eq!(world.node.storage().readers(), 1, "only log 0 is read");
    let stats = world.node.shard().stats();
    assert_eq!((stats.live_subscriptions, stats.tails), (0, 0));
}

#[test]
fn a_session_that_ends_takes_everything_of_its_own_along() {
    let mut world = World::new();
    let (one, other) = (world.open(1, PLENTY), world.open(2, PLENTY));
    for n in 0..100 {
        world.add(one, n, &format!("t{n}"), Start::Latest);
        world.add(other, n, &format!("t{n}"), Start::Latest);
    }
    world.run();
    world.publish(one, &[("t1", "x")]);
    world.close(one);
    world.run();
    assert_eq!(world.client(other).payloads(1), ["x"]);
    world.close(other);
    world.run();
    let stats = world.node.shard().stats();
    assert_eq!((stats.sessions, stats.live_subscriptions), (0, 0));
    assert_eq!(world.node.storage().readers(), 1);
}

#[test]
fn thousands_of_topics_cost_one_reader_and_no_marks_of_their_own() {
    let mut world = World::new();
    let (client, publisher) = (world.open(1, PLENTY), world.open(2, 0));
    for n in 0..5_000 {
        world.add(client, n, &format!("topic-{n}"), Start::Latest);
    }
    world.run();
    assert_eq!(world.node.storage().readers(), 2);
    for n in (0..5_000).step_by(100) {
        let name = format!("topic-{n}");
        world.publish(publisher, &[(&name, &name), ("elsewhere", "x")]);
    }
    world.run();
    for n in 0..5_000 {
        let got = world.client(client).payloads(n);
        let name = format!("topic-{n}");
        let all = [name.as_str()];
        assert_eq!(got, if n % 100 == 0 { &all[..] } else { &[] });
    }
    world.publish(publisher, &[("elsewhere", "y")]);
    world.run();
    world.pass(Duration::from_secs(2));
    world.run();
    assert_eq!(world.client(client).marks, 1);
}

#[test]
fn a_quiet_subscription_learns_by_marks_how_far_the_log_is() {
    let mut world = World::new();
    let (client, publisher) = (world.open(1, PLENTY), world.open(2, 0));
    world.add(client, 0, "quiet", Start::Latest);
    world.run();
    let last = world.tell(publisher, "loud", "x");
    assert_eq!(world.client(client).position(0), last);
    world.pass(Duration::from_secs(1));
    world.run();
    assert_eq!(world.client(client).position(0), last.plus(1));
    world.pass(Duration::from_secs(5));
    world.run();
    assert_eq!(world.client(client).marks, 1, "nothing new, nothing said");
}

#[test]
fn what_is_lost_at_the_tail_is_told_with_its_exact_edges() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.run();
    world.tell(client, "b", "not for it");
    let lost = world.node.storage_mut().skip(LOG, 5, GapWhy::Loss);
    world.node.storage_mut().skip(LOG, 3, GapWhy::Unused);
    world.tell(client, "a", "after");
    let sub = world.client(client).sub(0);
    assert_eq!(sub.gaps, [(lost, GapReason::Loss)]);
    assert_eq!(sub.got, [(lost.next().plus(3), "after".into())]);
    assert_eq!(world.node.shard().stats().gaps_loss, 1);
}

#[test]
fn a_number_that_is_still_to_come_is_waited_for() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Sequence(Sequence(4)));
    world.run();
    assert_eq!(world.client(client).sub(0).mode, Mode::Detached);
    world.add(client, 1, "a", Start::Latest);
    world.run();
    world.publish(client, &[("a", "1"), ("a", "2")]);
    world.publish(client, &[("a", "3"), ("a", "4"), ("a", "5")]);
    world.run();
    assert_eq!(world.client(client).payloads(0), ["4", "5"]);
    assert_eq!(world.client(client).payloads(1), ["1", "2", "3", "4", "5"]);
    assert_eq!(world.client(client).sub(0).history, ["detached", "live"]);
    world.remove(client, 0);
    world.add(client, 0, "a", Start::Earliest);
    world.run();
    assert_eq!(world.client(client).payloads(0), ["1", "2", "3", "4", "5"]);
}

#[test]
fn nothing_is_delivered_before_it_is_durable() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.run();
    world.node.storage_mut().stalled = true;
    let request = world.publish(client, &[("a", "x")]);
    world.run();
    assert!(world.client(client).acks.is_empty());
    assert!(world.client(client).payloads(0).is_empty());
    assert_eq!(world.node.shard().stats().appends_in_flight, 1);
    world.node.storage_mut().stalled = false;
    world.run();
    let first = world.acked(client, request);
    assert_eq!(world.client(client).sub(0).got, [(first, "x".into())]);
    assert_eq!(world.node.shard().stats().appends_in_flight_bytes, 0);
}

#[test]
fn a_tail_whose_reader_fails_goes_on_where_it_was() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.run();
    world.tell(client, "a", "1");
    let why = airmail_log::Refusal::Io("broken".into());
    world.node.storage_mut().read_failure = Some(why);
    world.tell(client, "a", "2");
    world.node.storage_mut().read_failure = None;
    assert_eq!(world.client(client).payloads(0), ["1"]);
    world.pass(Duration::from_secs(2));
    world.run();
    assert_eq!(world.client(client).payloads(0), ["1", "2"]);
}

#[test]
fn ranges_of_a_session_stay_whole_when_its_last_subscription_ends_and_another_begins() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.run();
    world.tell(client, "a", "1");
    world.remove(client, 0);
    world.run();
    world.tell(client, "a", "2");
    world.add(client, 1, "a", Start::Latest);
    world.run();
    let number = world.tell(client, "a", "3");
    assert_eq!(world.client(client).payloads(1), ["3"]);
    let at = Extent::starting_at(number, 1);
    assert_eq!(world.client(client).position(1), at.next());
}
