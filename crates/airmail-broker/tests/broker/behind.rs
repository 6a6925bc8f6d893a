//! Behind the tail: catching up, going live, history.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World, topic};
use airmail_broker::{SessionId, ShardConfig};
use airmail_log::GapWhy;
use airmail_model::frame::{GapReason, Start, State, Until};
use airmail_model::{AppendTime, ErrorCode, Extent, Sequence};
use std::time::Duration;

pub(crate) fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// A world with `count` messages of topic `a`, numbered from 1 on, each with one of `b` behind it.
pub(crate) fn filled(config: ShardConfig, count: u64) -> (World, SessionId) {
    let mut world = World::with(config, VecStorage::new());
    let client = world.open(1, PLENTY);
    for n in 0..count {
        world.publish(client, &[("a", &n.to_string()), ("b", "other")]);
    }
    world.run();
    (world, client)
}

pub(crate) fn error(state: &Mode) -> ErrorCode {
    match state {
        Mode::Ended(State::Failed(error)) => error.code(),
        other => panic!("{other:?} instead of a failure"),
    }
}

#[test]
fn from_the_earliest_everything_comes_and_then_what_is_new() {
    let (mut world, client) = filled(ShardConfig::default(), 50);
    world.add(client, 0, "a", Start::Earliest);
    world.run();
    assert_eq!(world.client(client).payloads(0), numbers(0..50));
    assert_eq!(world.client(client).sub(0).mode, Mode::Live(LOG));
    world.tell(client, "a", "new");
    assert_eq!(world.client(client).payloads(0).last(), Some(&"new"));
    assert_eq!(
        world.node.storage().readers(),
        2,
        "no reader is left behind"
    );
}

#[test]
fn staggered_starts_each_get_exactly_their_part() {
    let (mut world, client) = filled(ShardConfig::default(), 30);
    for n in 0..30 {
        // Message n has number 2n + 1.
        let start = Start::Sequence(Sequence(2 * u64::from(n) + 1));
        world.add(client, n, "a", start);
    }
    world.run();
    for n in 0..30 {
        assert_eq!(world.client(client).payloads(n), numbers(n.into()..30));
        assert_eq!(world.client(client).sub(n).mode, Mode::Live(LOG));
    }
}

#[test]
fn a_number_inside_a_batch_begins_inside_it() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.publish(client, &[("a", "1"), ("a", "2"), ("b", "3"), ("a", "4")]);
    world.run();
    world.add(client, 0, "a", Start::Sequence(Sequence(2)));
    world.add(client, 1, "a", Start::Sequence(Sequence(3)));
    let until = Some(Until::Sequence(Sequence(2)));
    world.add_until(client, 2, topic("a"), Start::Earliest, until);
    world.run();
    assert_eq!(world.client(client).payloads(0), ["2", "4"]);
    assert_eq!(world.client(client).payloads(1), ["4"]);
    assert_eq!(world.client(client).payloads(2), ["1"]);
    assert_eq!(world.client(client).sub(2).mode, Mode::Complete);
}

#[test]
fn rewinding_one_subscription_does_not_touch_another_that_is_live() {
    let (mut world, client) = filled(ShardConfig::default(), 5);
    let other = world.open(2, PLENTY);
    world.add(other, 0, "a", Start::Latest);
    world.run();
    world.tell(client, "a", "5");
    world.add(client, 0, "a", Start::Sequence(Sequence(5)));
    world.run();
    world.tell(client, "a", "6");
    assert_eq!(world.client(client).payloads(0), numbers(2..7));
    assert_eq!(world.client(other).payloads(0), numbers(5..7));
    assert_eq!(world.client(other).sub(0).history, ["live"]);
}

#[test]
fn rewinding_on_an_empty_topic_ends_live_with_nothing() {
    let (mut world, client) = filled(ShardConfig::default(), 5);
    world.add(client, 0, "nothing", Start::Earliest);
    world.run();
    assert_eq!(world.client(client).sub(0).mode, Mode::Live(LOG));
    assert_eq!(world.client(client).position(0), Sequence(11));
    world.tell(client, "nothing", "at last");
    assert_eq!(world.client(client).payloads(0), ["at last"]);
}

#[test]
fn a_subscription_that_comes_back_to_the_tail_is_live_at_once() {
    let (mut world, client) = filled(ShardConfig::default(), 5);
    world.add(client, 0, "a", Start::Sequence(Sequence(11)));
    world.run();
    assert_eq!(world.client(client).sub(0).history, ["live"]);
    let reads = world.node.storage().reads;
    world.add(client, 1, "a", Start::Sequence(Sequence(11)));
    world.run();
    assert_eq!(world.client(client).sub(1).history, ["live"]);
    assert_eq!(
        world.node.storage().reads,
        reads,
        "without a reader of its own"
    );
}

#[test]
fn a_subscriber_without_credit_is_detached_and_the_others_go_on() {
    let mut world = World::new();
    let (slow, quick) = (world.open(1, 1), world.open(2, PLENTY));
    for client in [slow, quick] {
        world.add(client, 0, "a", Start::Latest);
        world.add(client, 1, "quiet", Start::Latest);
    }
    world.run();
    for n in 0..100 {
        world.tell(quick, "a", &n.to_string());
    }
    assert_eq!(world.client(quick).payloads(0), numbers(0..100));
    assert_eq!(
        world.client(slow).payloads(0),
        ["0"],
        "one delivery may overdraw"
    );
    assert_eq!(world.client(slow).sub(0).mode, Mode::Detached);
    assert_eq!(
        world.client(slow).sub(1).mode,
        Mode::Live(LOG),
        "not concerned"
    );
    assert_eq!(world.node.storage().readers(), 2, "nothing is read for it");
    world.credit(slow, 1_000);
    world.run();
    let some = world.client(slow).payloads(0).len();
    assert!(
        (2..100).contains(&some),
        "as far as its credit goes: {some}"
    );
    world.credit(slow, PLENTY);
    world.run();
    assert_eq!(world.client(slow).payloads(0), numbers(0..100));
    assert_eq!(world.client(slow).sub(0).mode, Mode::Live(LOG));
    world.tell(quick, "a", "100");
    assert_eq!(world.client(slow).payloads(0), numbers(0..101));
}

#[test]
fn one_that_never_reads_costs_the_same_however_much_comes() {
    let mut world = World::new();
    let (stuck, other) = (world.open(1, 0), world.open(2, PLENTY));
    world.add(stuck, 0, "a", Start::Earliest);
    world.add(other, 0, "a", Start::Latest);
    world.run();
    for n in 0..300 {
        world.tell(other, "a", &n.to_string());
        world.pass(Duration::from_millis(100));
    }
    world.run();
    assert_eq!(world.client(other).payloads(0).len(), 300);
    assert!(world.client(stuck).payloads(0).is_empty());
    assert_eq!(world.client(stuck).sub(0).history, ["live", "detached"]);
    let stats = world.node.shard().stats();
    assert_eq!((stats.catch_up_readers, stats.detached), (0, 1));
}

#[test]
fn without_a_topic_index_catching_up_reads_everything_and_gives_the_same() {
    let mut storage = VecStorage::new();
    storage.topic_index = false;
    let mut world = World::with(ShardConfig::default(), storage);
    let client = world.open(1, PLENTY);
    for n in 0..20 {
        world.publish(client, &[("a", &n.to_string()), ("b", "x")]);
        world.publish(client, &[("c", "y")]);
    }
    world.add(client, 0, "a", Start::Earliest);
    world.run();
    world.pass(Duration::from_secs(1));
    world.run();
    assert_eq!(world.client(client).payloads(0), numbers(0..20));
    assert_eq!(world.client(client).position(0), Sequence(61));
}

#[test]
fn history_ends_where_the_log_ended_when_asked() {
    let (mut world, client) = filled(ShardConfig::default(), 20);
    world.add_until(client, 0, topic("a"), Start::Earliest, Some(Until::Now));
    world.publish(client, &[("a", "too late")]);
    world.run();
    let sub = world.client(client).sub(0);
    assert_eq!(sub.mode, Mode::Complete);
    assert_eq!(sub.got.len(), 20);
    assert_eq!(sub.history, ["detached", "complete"]);
    world.add_until(client, 1, topic("a"), Start::Latest, Some(Until::Now));
    world.run();
    assert_eq!(world.client(client).sub(1).mode, Mode::Complete);
    assert_eq!(
        world.node.storage().readers(),
        1,
        "history leaves nothing behind"
    );
}

#[test]
fn times_are_of_the_append_and_exact() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    let begin = world.now.wall.0;
    for n in 0..10 {
        world.tell(client, "a", &n.to_string());
        world.pass(Duration::from_secs(1));
    }
    let at = |n: i64| AppendTime(begin + n * 1_000_000);
    world.add(client, 0, "a", Start::Time(at(4)));
    world.add_until(
        client,
        1,
        topic("a"),
        Start::Time(at(2)),
        Some(Until::Time(at(5))),
    );
    world.add_until(
        client,
        2,
        topic("b"),
        Start::Earliest,
        Some(Until::Time(at(5))),
    );
    world.add(client, 3, "a", Start::Time(at(50)));
    world.run();
    assert_eq!(world.client(client).payloads(0), numbers(4..10));
    assert_eq!(world.client(client).payloads(1), numbers(2..5));
    assert_eq!(world.client(client).sub(1).mode, Mode::Complete);
    assert_eq!(world.client(client).sub(2).mode, Mode::Complete);
    assert!(world.client(client).payloads(3).is_empty());
    world.tell(client, "a", "10");
    assert_eq!(world.client(client).payloads(0), numbers(4..11));
}

#[test]
fn what_retention_took_is_told_with_its_exact_edges() {
    let (mut world, client) = filled(ShardConfig::default(), 10);
    world.node.storage_mut().trim_now(LOG, Sequence(9));
    world.add(client, 0, "a", Start::Sequence(Sequence(3)));
    world.add(client, 1, "a", Start::Earliest);
    world.run();
    let trimmed = Extent {
        first: Sequence(3),
        last: Sequence(8),
    };
    assert_eq!(
        world.client(client).sub(0).gaps,
        [(trimmed, GapReason::Retention)]
    );
    assert_eq!(world.client(client).payloads(0), numbers(4..10));
    assert_eq!(world.client(client).sub(1).gaps, []);
    assert_eq!(world.client(client).payloads(1), numbers(4..10));
}

#[test]
fn a_log_trimmed_to_its_end_tells_the_gap_and_goes_live() {
    let (mut world, client) = filled(ShardConfig::default(), 10);
    world.node.storage_mut().trim_now(LOG, Sequence(21));
    world.add(client, 0, "a", Start::Sequence(Sequence(1)));
    world.run();
    let trimmed = Extent {
        first: Sequence(1),
        last: Sequence(20),
    };
    assert_eq!(
        world.client(client).sub(0).gaps,
        [(trimmed, GapReason::Retention)]
    );
    assert_eq!(world.client(client).sub(0).mode, Mode::Live(LOG));
}

#[test]
fn a_trim_while_catching_up_is_told_from_where_the_subscriber_stood() {
    let config = ShardConfig {
        catch_up_step_bytes: 400,
        ..ShardConfig::default()
    };
    let (mut world, client) = filled(config, 100);
    let slow = world.open(2, 500);
    world.add(slow, 0, "a", Start::Earliest);
    world.run();
    let got = world.client(slow).sub(0).got.len();
    assert!((1..100).contains(&got));
    world.node.storage_mut().trim_now(LOG, Sequence(101));
    world.credit(slow, PLENTY);
    world.run();
    let sub = world.client(slow).sub(0);
    let [(gap, GapReason::Retention)] = sub.gaps[..] else {
        panic!("one gap, not {:?}", sub.gaps);
    };
    assert_eq!(gap.last, Sequence(100));
    assert_eq!(gap.first, Sequence(2 * got as u64 + 1));
    assert_eq!(sub.got.len(), got + 50);
    let _ = client;
}

#[test]
fn a_damaged_batch_is_told_and_its_neighbours_are_served() {
    let (mut world, client) = filled(ShardConfig::default(), 10);
    let lost = world
        .node
        .storage_mut()
        .damage(LOG, Sequence(7))
        .expect("stored");
    world.node.storage_mut().skip(LOG, 4, GapWhy::Unused);
    world.add(client, 0, "a", Start::Earliest);
    world.run();
    let sub = world.client(client).sub(0);
    assert_eq!(sub.gaps, [(lost, GapReason::Loss)]);
    assert_eq!(sub.got.len(), 9);
    world.pass(Duration::from_secs(1));
    world.run();
    assert_eq!(world.client(client).position(0), Sequence(25));
}

#[test]
fn readers_that_fail_are_tried_again_and_nothing_is_missing() {
    let (mut world, client) = filled(ShardConfig::default(), 10);
    let why = airmail_log::Refusal::Io("broken".into());
    world.node.storage_mut().read_failure = Some(why);
    world.add(client, 0, "a", Start::Earliest);
    world.run();
    assert!(world.client(client).payloads(0).is_empty());
    world.node.storage_mut().read_failure = None;
    world.pass(Duration::from_secs(2));
    world.run();
    assert_eq!(world.client(client).payloads(0), numbers(0..10));
}

#[test]
fn a_number_in_use_is_refused_and_the_first_use_goes_on() {
    let mut world = World::new();
    let client = world.open(1, PLENTY);
    world.add(client, 0, "a", Start::Latest);
    world.run();
    let first = world.client(client).sub(0).clone();
    world.add(client, 0, "b", Start::Latest);
    world.run();
    let mode = world.client(client).sub(0).mode.clone();
    assert_eq!(error(&mode), ErrorCode::SubscriptionInvalid);
    let client_of = world.clients.get_mut(&client).expect("open");
    client_of
        .subs
        .insert(airmail_model::frame::SubscriptionId(0), first);
    world.tell(client, "a", "still here");
    assert_eq!(world.client(client).payloads(0), ["still here"]);
}

#[test]
fn a_session_closed_in_the_middle_of_everything_leaves_nothing() {
    let config = ShardConfig {
        catch_up_readers: 2,
        catch_up_step_bytes: 200,
        ..ShardConfig::default()
    };
    let (mut world, _) = filled(config, 100);
    for turns in 0..40 {
        let client = world.open(100 + turns, 5_000);
        for n in 0..20 {
            let start = match n % 4 {
                0 => Start::Latest,
                1 => Start::Earliest,
                2 => Start::Sequence(Sequence(1_000)),
                _ => Start::Time(AppendTime(0)),
            };
            world.add(client, n, "a", start);
        }
        world.publish(client, &[("a", "x")]);
        for _ in 0..turns {
            world.turn();
        }
        world.close(client);
        world.run();
        let stats = world.node.shard().stats();
        let left = (stats.live_subscriptions, stats.detached_subscriptions);
        assert_eq!((left, stats.catch_up_readers, stats.tails), ((0, 0), 0, 0));
        assert_eq!(world.node.storage().readers(), 1);
    }
}
