//! Subscriptions that come, go and come again, at every side of an edge.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World};
use airmail_broker::ShardConfig;
use airmail_model::frame::{GapReason, Start, State};
use airmail_model::{ErrorCode, Extent, Limits, Sequence};
use std::time::Duration;

#[test]
fn a_topic_followed_again_from_the_latest_gives_nothing_from_between() {
    let mut world = World::new();
    let (client, publisher) = (world.open(1, PLENTY), world.open(2, 0));
    for round in ["1", "2", "3"] {
        world.tell(publisher, "a", "before");
        world.add(client, 0, "a", Start::Latest);
        world.run();
        assert!(world.client(client).payloads(0).is_empty());
        world.tell(publisher, "a", round);
        assert_eq!(world.client(client).payloads(0), [round]);
        world.remove(client, 0);
        world.run();
    }
}

#[test]
fn a_start_on_each_side_of_a_trim_is_told_exactly_what_it_missed() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    for n in 1..=10 {
        world.tell(client, "a", &n.to_string());
    }
    world.node.storage_mut().trim_now(LOG, Sequence(6));
    for n in 1..=11 {
        world.add(client, n, "a", Start::Sequence(Sequence(n.into())));
    }
    world.run();
    for n in 1..=11 {
        let sub = world.client(client).sub(n);
        let missed = Extent {
            first: Sequence(n.into()),
            last: Sequence(5),
        };
        let told = (n <= 5).then_some((missed, GapReason::Retention));
        assert_eq!(sub.gaps, Vec::from_iter(told), "from {n}");
        let kept = (n.max(6)..=10).map(|n| n.to_string());
        assert_eq!(world.client(client).payloads(n), Vec::from_iter(kept));
        assert_eq!(sub.mode, Mode::Live(LOG));
    }
}

#[test]
fn one_who_waited_for_the_far_future_and_comes_back_gets_what_is_new() {
    let mut world = World::new();
    let (client, publisher) = (world.open(1, PLENTY), world.open(2, 0));
    world.tell(publisher, "a", "1");
    let future = Start::Sequence(Sequence(1_000_000));
    world.add(client, 0, "a", future);
    world.run();
    world.tell(publisher, "a", "2");
    assert!(world.client(client).payloads(0).is_empty());
    world.remove(client, 0);
    world.add(client, 0, "a", Start::Latest);
    world.run();
    world.tell(publisher, "a", "3");
    assert_eq!(world.client(client).payloads(0), ["3"]);
    world.remove(client, 0);
    world.add(client, 0, "a", Start::Sequence(Sequence::FIRST));
    world.run();
    assert_eq!(world.client(client).payloads(0), ["1", "2", "3"]);
}

#[test]
fn subscriptions_are_counted_as_they_come_and_go() {
    let mut world = World::new();
    let (one, other) = (world.open(1, PLENTY), world.open(2, PLENTY));
    let counts = |world: &World| {
        let stats = world.node.shard().stats();
        (
            stats.sessions,
            stats.live_subscriptions,
            stats.detached_subscriptions,
        )
    };
    world.run();
    assert_eq!(counts(&world), (2, 0, 0));
    world.add(one, 0, "a", Start::Latest);
    world.add(one, 1, "b", Start::Latest);
    world.add(other, 0, "a", Start::Latest);
    world.add(other, 1, "a", Start::Sequence(Sequence(1_000)));
    world.run();
    assert_eq!(counts(&world), (2, 3, 1));
    world.remove(one, 1);
    world.run();
    assert_eq!(counts(&world), (2, 2, 1));
    world.close(other);
    world.run();
    assert_eq!(counts(&world), (1, 1, 0));
}

#[test]
fn one_subscription_too_many_is_refused_and_the_others_go_on() {
    let limits = Limits {
        subscriptions: 2,
        ..Limits::DEFAULT
    };
    let config = ShardConfig {
        limits,
        ..ShardConfig::default()
    };
    let mut world = World::with(config, VecStorage::new());
    let (client, other) = (world.open(1, PLENTY), world.open(2, PLENTY));
    for n in 0..3 {
        world.add(client, n, "a", Start::Latest);
    }
    world.add(other, 0, "a", Start::Latest);
    world.run();
    let Mode::Ended(State::Failed(error)) = &world.client(client).sub(2).mode else {
        panic!("{:?}", world.client(client).sub(2));
    };
    assert_eq!(error.code(), ErrorCode::SubscriptionInvalid);
    assert_eq!((error.found(), error.expected()), ("3", "2"));
    world.tell(client, "a", "x");
    assert_eq!(world.client(client).payloads(0), ["x"]);
    assert_eq!(world.client(client).payloads(1), ["x"]);
    assert_eq!(world.client(other).payloads(0), ["x"], "each has its own");
    world.remove(client, 0);
    world.add(client, 2, "a", Start::Latest);
    world.run();
    assert_eq!(world.client(client).sub(2).mode, Mode::Live(LOG));
}

#[test]
fn with_every_bound_at_its_smallest_everything_still_arrives() {
    let config = ShardConfig {
        catch_up_readers: 1,
        catch_up_step_bytes: 1,
        catch_up_quantum_bytes: 1,
        catch_up_span: 1,
        tail_window_bytes: 1,
        parked_bytes: 1,
        commands: 1,
        listings: 1,
        ..ShardConfig::default()
    };
    let mut world = World::with(config, VecStorage::new());
    let (client, slow) = (world.open(1, PLENTY), world.open(2, 1));
    for n in 0..3 {
        world.add(client, n, "a", Start::Latest);
    }
    world.add(slow, 0, "a", Start::Latest);
    world.run();
    for n in 0..30 {
        world.publish(client, &[("a", &n.to_string()), ("b", "other")]);
    }
    for n in 3..6 {
        world.add(client, n, "a", Start::Earliest);
    }
    world.run();
    for _ in 0..40 {
        world.credit(slow, 1_000);
        world.run();
        world.pass(Duration::from_secs(1));
        world.run();
    }
    let all: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    for n in 0..6 {
        assert_eq!(world.client(client).payloads(n), all);
    }
    assert_eq!(world.client(slow).payloads(0), all);
}
