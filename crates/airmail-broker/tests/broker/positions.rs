//! Subscriptions that begin at a position: in its own life of the log, another one, or another log.

use crate::behind::{error, filled, numbers};
use crate::world::{LOG, NS, PLENTY, World};
use airmail_broker::ShardConfig;
use airmail_log::GapWhy;
use airmail_model::frame::{GapReason, Start};
use airmail_model::position::LogPosition;
use airmail_model::{ErrorCode, Extent, Incarnation, MapEpoch, NamespaceId, Position, Sequence};

fn position(incarnation: u64, next: u64) -> Position {
    Position {
        namespace: NS,
        epoch: MapEpoch(1),
        logs: vec![LogPosition {
            log: LOG,
            incarnation: Incarnation(incarnation),
            next: Sequence(next),
        }],
    }
}

#[test]
fn a_position_goes_on_where_it_was() {
    let (mut world, client) = filled(ShardConfig::default(), 10);
    world.add(client, 0, "a", Start::Position(position(7, 9)));
    world.run();
    assert_eq!(world.client(client).payloads(0), numbers(4..10));
}

#[test]
fn a_position_of_another_namespace_or_log_is_refused() {
    let (mut world, client) = filled(ShardConfig::default(), 1);
    let mut other = position(7, 1);
    other.namespace = NamespaceId(9);
    world.add(client, 0, "a", Start::Position(other));
    let mut empty = position(7, 1);
    empty.logs.clear();
    world.add(client, 1, "a", Start::Position(empty));
    world.run();
    for n in 0..2 {
        let mode = &world.client(client).sub(n).mode;
        assert_eq!(error(mode), ErrorCode::PositionInvalid);
    }
}

#[test]
fn a_position_of_an_earlier_life_begins_the_new_one_from_its_first() {
    let (world, _) = filled(ShardConfig::default(), 10);
    let storage = world.node.into_storage().reborn();
    let mut world = World::with(ShardConfig::default(), storage);
    let client = world.open(1, PLENTY);
    world.node.storage_mut().skip(LOG, 5, GapWhy::Unused);
    world.tell(client, "a", "new");
    world.node.storage_mut().trim_now(LOG, Sequence(6));
    world.add(client, 0, "a", Start::Position(position(7, 9)));
    world.run();
    let sub = world.client(client).sub(0);
    assert_eq!(sub.incarnation, Incarnation(8));
    let lost = Extent {
        first: Sequence(1),
        last: Sequence(5),
    };
    assert_eq!(sub.gaps, [(lost, GapReason::Loss)]);
    assert_eq!(sub.got, [(Sequence(6), "new".into())]);
}
