//! The delivery gate's place in the shard: who takes nothing gets no more, and nobody else waits for it.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World};
use airmail_broker::{SessionId, ShardConfig};
use airmail_flow::{LimiterKind, LimiterSettings, SharesSettings};
use airmail_model::frame::Start;

/// At most so many bytes that connections have not taken.
fn world(bytes: u64) -> World {
    let config = ShardConfig {
        delivery_gate: Some(SharesSettings {
            window: 1_000,
            limiter: LimiterSettings {
                kind: LimiterKind::Fixed,
                bound_initial: bytes,
                ..LimiterSettings::DEFAULT
            },
        }),
        ..ShardConfig::default()
    };
    let mut world = World::with(config, VecStorage::new());
    world.quick = false;
    world
}

fn subscribers(world: &mut World, count: u64) -> Vec<SessionId> {
    let sessions = (1..=count).map(|id| {
        let session = world.open(id, PLENTY);
        world.add(session, 0, "a", Start::Latest);
        session
    });
    let sessions = sessions.collect();
    world.run();
    sessions
}

fn in_flight(world: &World) -> u64 {
    let flow = world.node.shard().flow();
    flow.deliveries.expect("there is a gate").in_flight
}

#[test]
fn who_takes_nothing_is_detached_and_the_others_get_all_at_once() {
    let mut world = world(1_000);
    let sessions = subscribers(&mut world, 2);
    let publisher = world.open(9, 0);
    let [stopped, quick] = sessions[..] else {
        panic!("two");
    };
    for n in 0..100 {
        world.tell(publisher, "a", &n.to_string());
        world.take(quick);
        assert_eq!(world.client(quick).sub(0).mode, Mode::Live(LOG), "{n}");
        assert_eq!(world.client(quick).payloads(0).len(), n + 1);
    }
    assert_eq!(world.client(stopped).sub(0).mode, Mode::Detached);
    let held = in_flight(&world);
    assert!((1_000..1_300).contains(&held), "{held}");
    assert!(world.client(stopped).payloads(0).len() < 30);
    // It takes what it was given, as often as it is given something.
    for _ in 0..200 {
        world.take(stopped);
        world.run();
    }
    assert_eq!(world.client(stopped).payloads(0).len(), 100);
    assert_eq!(world.client(stopped).sub(0).mode, Mode::Live(LOG));
}

#[test]
fn whoever_has_nothing_on_its_way_gets_something_however_little_there_is() {
    let mut world = world(1);
    let sessions = subscribers(&mut world, 20);
    let publisher = world.open(99, 0);
    world.tell(publisher, "a", "0");
    for session in &sessions {
        assert_eq!(world.client(*session).payloads(0), ["0"]);
    }
    world.tell(publisher, "a", "1");
    for session in &sessions {
        assert_eq!(world.client(*session).payloads(0), ["0"]);
    }
    world.quick = true;
    world.take_all();
    world.run();
    for session in &sessions {
        assert_eq!(world.client(*session).payloads(0), ["0", "1"]);
    }
    assert_eq!(in_flight(&world), 0);
}

#[test]
fn a_stream_that_ends_gives_back_what_it_had_on_its_way() {
    let mut world = world(1_000);
    let sessions = subscribers(&mut world, 1);
    let publisher = world.open(9, 0);
    world.tell(publisher, "a", "0");
    assert!(in_flight(&world) > 0);
    world.untaken.clear();
    world.close(sessions[0]);
    world.run();
    assert_eq!(in_flight(&world), 0);
}

#[test]
fn what_is_turned_away_is_counted_and_told_to_be_watched() {
    let mut world = world(10);
    let sessions = subscribers(&mut world, 1);
    let publisher = world.open(9, 0);
    world.tell(publisher, "a", "0");
    world.tell(publisher, "a", "1");
    let flow = world.node.shard().flow();
    assert!(flow.deliveries.is_some_and(|reading| reading.waited > 0));
    assert!(flow.publishes.is_none(), "there is none");
    assert_eq!(world.watched, sessions.into_iter().collect());
}
