//! Catch-up readers and who shares them: what is read for several late subscribers.

use crate::behind::{filled, numbers};
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World, batch, topic_in};
use airmail_broker::{SessionId, ShardConfig};
use airmail_model::frame::Start;
use airmail_model::{LogId, NamespaceId, Sequence};
use std::time::Duration;

/// A world whose readers are granted little at a time.
fn in_small_steps() -> (World, SessionId) {
    let config = ShardConfig {
        catch_up_step_bytes: 1_000,
        ..ShardConfig::default()
    };
    let mut world = World::with(config, VecStorage::new());
    let client = world.open(1, PLENTY);
    (world, client)
}

/// Reads on while free time brings more to read.
fn read_on(world: &mut World) {
    for _ in 0..10 {
        world.run();
        world.pass(Duration::from_millis(1));
    }
}

fn topics(count: u32) -> Vec<String> {
    (0..count).map(|n| format!("topic-{n}")).collect()
}

#[test]
fn more_positions_than_readers_all_make_progress() {
    let config = ShardConfig {
        catch_up_readers: 2,
        catch_up_step_bytes: 300,
        catch_up_quantum_bytes: 600,
        catch_up_span: 1,
        ..ShardConfig::default()
    };
    let (mut world, client) = filled(config, 200);
    for n in 0..3 {
        let start = Start::Sequence(Sequence(u64::from(n) * 100 + 1));
        world.add(client, n, "a", start);
    }
    for _ in 0..10_000 {
        let done = (0..3).map(|n| world.client(client).sub(n).got.len());
        if done.min() == Some(2) {
            break;
        }
        world.turn();
    }
    // What may be read at once is used up before all is read; free time brings more.
    for _ in 0..10 {
        world.run();
        world.pass(Duration::from_millis(1));
    }
    for n in 0..3 {
        let from = u64::from(n) * 50;
        assert_eq!(world.client(client).payloads(n), numbers(from..200));
    }
    assert!(world.node.storage().readers_most <= 2 + 2);
    assert!(
        world.node.shard().stats().catch_up_readers_started > 3,
        "they took turns"
    );
}

#[test]
fn a_log_that_gives_nothing_does_not_keep_readers_from_other_logs() {
    let config = ShardConfig {
        catch_up_readers: 2,
        ..ShardConfig::default()
    };
    let (mut world, client) = filled(config, 10);
    let others = [NamespaceId(2), NamespaceId(3), NamespaceId(4)];
    for (n, namespace) in (1..).zip(others) {
        world.create(&namespace.to_string(), 1).expect("made");
        let log = LogId { namespace, ..LOG };
        world.publish_batch(client, batch(log, 1, &[("a", "0"), ("b", "1")]));
        world.run();
        world.node.storage_mut().unread.insert(namespace);
        for (place, name) in (0..).zip(["a", "b"]) {
            let topic = topic_in(namespace, name);
            world.add_in(
                namespace,
                client,
                2 * n + place,
                topic,
                Start::Earliest,
                None,
            );
        }
    }
    world.add(client, 0, "a", Start::Earliest);
    world.run();
    assert_eq!(world.client(client).payloads(0), numbers(0..0));
    for _ in 0..2 {
        world.pass(Duration::from_millis(250));
        world.run();
    }
    assert_eq!(world.client(client).payloads(0), numbers(0..10));
    assert!(world.node.storage().readers_most <= 2 + others.len() + 2);
    world.node.storage_mut().unread.clear();
    read_on(&mut world);
    for n in 2..8 {
        assert_eq!(world.client(client).sub(n).got.len(), 1, "{n}");
    }
}

#[test]
fn many_late_subscribers_share_readers() {
    let (mut world, client) = filled(ShardConfig::default(), 100);
    for n in 0..500 {
        let name = if n % 2 == 0 {
            "a".to_owned()
        } else {
            format!("topic-{n}")
        };
        world.add(client, n, &name, Start::Earliest);
    }
    world.run();
    for n in (0..500).step_by(2) {
        assert_eq!(world.client(client).payloads(n), numbers(0..100));
    }
    assert!(
        world.node.storage().reads < 30,
        "{}",
        world.node.storage().reads
    );
}

#[test]
fn topics_that_share_batches_are_read_once_and_not_once_for_each() {
    let topics = topics(8);
    let (mut world, client) = in_small_steps();
    for n in 0..200 {
        let text = n.to_string();
        let batch: Vec<(&str, &str)> = topics.iter().map(|name| (&**name, &*text)).collect();
        world.publish(client, &batch);
    }
    world.run();
    let read = |world: &World| world.node.shard().stats().catch_up_bytes;
    world.add(client, 0, "topic-0", Start::Earliest);
    world.run();
    let one = read(&world);
    for (n, name) in (1..).zip(&topics) {
        world.add(client, n, name, Start::Earliest);
    }
    read_on(&mut world);
    for n in 1..=8 {
        assert_eq!(world.client(client).payloads(n), numbers(0..200));
    }
    let eight = read(&world) - one;
    assert!(eight < 2 * one, "{eight} bytes, {one} for one topic");
}

#[test]
fn topics_that_share_no_batch_keep_readers_of_their_own() {
    let topics = topics(4);
    let (mut world, client) = in_small_steps();
    for n in 0..100 {
        for name in &topics {
            world.publish(client, &[(name, &n.to_string())]);
        }
        // What nobody wants is left out.
        for _ in 0..20 {
            world.publish(client, &[("other", "x")]);
        }
    }
    world.run();
    for (n, name) in (0..).zip(&topics) {
        world.add(client, n, name, Start::Earliest);
    }
    read_on(&mut world);
    for n in 0..4 {
        assert_eq!(world.client(client).payloads(n), numbers(0..100));
    }
    let (read, stored) = (
        world.node.shard().stats().catch_up_bytes,
        world.node.shard().stats().published_bytes,
    );
    assert!(read * 4 < stored, "{read} bytes of {stored}");
}

#[test]
fn many_who_wait_for_the_same_few_topics_share_a_reader_too() {
    let topics = topics(60);
    let mut world = World::with(ShardConfig::default(), VecStorage::new());
    let client = world.open(1, PLENTY);
    for n in 0..5 {
        for name in &topics {
            world.publish(client, &[(name, &n.to_string())]);
        }
    }
    world.run();
    let wanted = topics.iter().flat_map(|name| [name; 16]);
    for (n, name) in (0..).zip(wanted) {
        world.add(client, n, name, Start::Earliest);
    }
    world.run();
    for n in 0..60 * 16 {
        assert_eq!(world.client(client).payloads(n), numbers(0..5));
    }
    let reads = world.node.storage().reads;
    assert!(reads < 30, "{reads} readers for 60 topics");
}
