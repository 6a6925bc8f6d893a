//! A node on an older copy of its files: positions from beyond the end.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, NS, PLENTY, World};
use airmail_broker::{SessionId, ShardConfig};
use airmail_log::Refusal;
use airmail_model::frame::{GapReason, Start, State, Until};
use airmail_model::position::LogPosition;
use airmail_model::{ErrorCode, Incarnation, MapEpoch, Position, Sequence};
use std::time::Duration;

/// The life that the storage of vectors begins with.
const FIRST_LIFE: u64 = 7;

fn at(life: u64, next: u64) -> Start {
    Start::Position(Position {
        namespace: NS,
        epoch: MapEpoch(1),
        logs: vec![LogPosition {
            log: LOG,
            incarnation: Incarnation(life),
            next: Sequence(next),
        }],
    })
}

fn words(what: &str, range: std::ops::RangeInclusive<u64>) -> Vec<String> {
    range.map(|n| format!("{what} {n}")).collect()
}

/// Twenty messages, of which the last ten are gone with the files.
fn set_back() -> (World, SessionId) {
    let mut world = World::new();
    let publisher = world.open(1, 0);
    for text in words("old", 1..=20) {
        world.tell(publisher, "a", &text);
    }
    let storage = world.node.into_storage().set_back(LOG, Sequence(11));
    let mut world = World::with(ShardConfig::default(), storage);
    let publisher = world.open(1, 0);
    (world, publisher)
}

fn publish(world: &mut World, publisher: SessionId, range: std::ops::RangeInclusive<u64>) {
    for text in words("new", range) {
        world.tell(publisher, "a", &text);
    }
}

fn failure(world: &World, session: SessionId, n: u32) -> (ErrorCode, bool) {
    match &world.client(session).sub(n).mode {
        Mode::Ended(State::Failed(error)) => (error.code(), error.code().retriable()),
        other => panic!("{other:?} instead of a failure"),
    }
}

#[test]
fn a_position_beyond_the_end_begins_a_new_life_and_gets_all_that_is_there_and_comes() {
    let (mut world, publisher) = set_back();
    publish(&mut world, publisher, 1..=5);
    let client = world.open(2, PLENTY);
    world.add(client, 0, "a", at(FIRST_LIFE, 21));
    world.run();
    let sub = world.client(client).sub(0);
    assert_eq!(sub.incarnation, Incarnation(FIRST_LIFE + 1));
    assert_eq!(
        sub.history,
        ["detached", "live"],
        "told where it stands, once"
    );
    publish(&mut world, publisher, 6..=15);
    let all = [words("old", 1..=10), words("new", 1..=15)].concat();
    assert_eq!(world.client(client).payloads(0), all);
    assert_eq!(world.node.shard().stats().renewed, 1);
    assert_eq!(
        world.node.shard().incarnation(LOG),
        Some(Incarnation(FIRST_LIFE + 1))
    );
}

#[test]
fn after_it_a_stale_position_is_recognised_though_the_numbers_have_caught_up() {
    let (mut world, publisher) = set_back();
    let (client, other) = (world.open(2, PLENTY), world.open(3, PLENTY));
    world.add(client, 0, "a", at(FIRST_LIFE, 21));
    world.run();
    publish(&mut world, publisher, 1..=30);
    world.add(other, 0, "a", at(FIRST_LIFE, 16));
    world.run();
    let all = [words("old", 1..=10), words("new", 1..=30)].concat();
    assert_eq!(world.client(other).payloads(0), all);
    assert_eq!(
        world.client(other).sub(0).incarnation,
        Incarnation(FIRST_LIFE + 1)
    );
    world.add(other, 1, "a", at(FIRST_LIFE + 1, 31));
    world.run();
    assert_eq!(world.client(other).payloads(1), words("new", 21..=30));
}

#[test]
fn what_is_no_longer_kept_is_told_as_lost_with_its_extent() {
    let (mut world, _) = set_back();
    world.node.storage_mut().trim_now(LOG, Sequence(6));
    let client = world.open(2, PLENTY);
    world.add(client, 0, "a", at(FIRST_LIFE, 21));
    world.run();
    let sub = world.client(client).sub(0);
    let gaps: Vec<_> = sub
        .gaps
        .iter()
        .map(|(e, why)| (e.first.0, e.last.0, *why))
        .collect();
    assert_eq!(gaps, [(1, 5, GapReason::Loss)]);
    assert_eq!(world.client(client).payloads(0), words("old", 6..=10));
}

#[test]
fn several_at_once_begin_one_new_life_and_each_gets_everything() {
    let (mut world, publisher) = set_back();
    let clients: Vec<SessionId> = (2..6).map(|n| world.open(n, PLENTY)).collect();
    for (client, next) in clients.iter().zip([21, 12, 13, 21]) {
        world.add(*client, 0, "a", at(FIRST_LIFE, next));
        let history = at(FIRST_LIFE, 21);
        world.add_until(
            *client,
            1,
            crate::world::topic("a"),
            history,
            Some(Until::Now),
        );
    }
    world.run();
    publish(&mut world, publisher, 1..=3);
    let all = [words("old", 1..=10), words("new", 1..=3)].concat();
    for client in clients {
        assert_eq!(world.client(client).payloads(0), all);
        assert_eq!(world.client(client).payloads(1), words("old", 1..=10));
        assert_eq!(world.client(client).sub(1).mode, Mode::Complete);
    }
    assert_eq!(world.node.shard().stats().renewed, 1);
}

#[test]
fn who_began_at_a_position_is_sent_away_to_come_again_and_the_others_go_on_under_the_new_life() {
    let (mut world, publisher) = set_back();
    let (here, back, slow) = (
        world.open(2, PLENTY),
        world.open(3, PLENTY),
        world.open(4, 1),
    );
    world.add(here, 0, "a", Start::Latest);
    world.add(here, 1, "a", Start::Earliest);
    world.add(here, 2, "a", Start::Sequence(Sequence(14)));
    world.add(slow, 0, "a", Start::Latest);
    world.run();
    publish(&mut world, publisher, 1..=2);
    // On this side of the end, but as stale as the other.
    world.add(back, 0, "a", at(FIRST_LIFE, 12));
    world.run();
    assert_eq!(world.client(back).payloads(0), words("new", 2..=2));
    world.add(back, 1, "a", at(FIRST_LIFE, 21));
    world.run();
    assert_eq!(failure(&world, back, 0), (ErrorCode::Overloaded, true));
    world.add(back, 0, "a", at(FIRST_LIFE, 13));
    world.run();
    publish(&mut world, publisher, 3..=6);
    world.credit(slow, PLENTY);
    world.run();
    let all = [words("old", 1..=10), words("new", 1..=6)].concat();
    assert_eq!(world.client(here).payloads(0), words("new", 1..=6));
    assert_eq!(world.client(here).payloads(1), all);
    assert_eq!(world.client(here).payloads(2), words("new", 4..=6));
    assert_eq!(world.client(slow).payloads(0), words("new", 1..=6));
    assert_eq!(world.client(back).payloads(0), all);
    assert_eq!(world.client(back).payloads(1), all);
    for (client, n) in [
        (here, 0),
        (here, 1),
        (here, 2),
        (slow, 0),
        (back, 0),
        (back, 1),
    ] {
        let sub = world.client(client).sub(n);
        assert_eq!(
            sub.incarnation,
            Incarnation(FIRST_LIFE + 1),
            "{n} of {client:?}"
        );
        assert_eq!((&sub.mode, sub.gaps.len()), (&Mode::Live(LOG), 0));
    }
}

#[test]
fn a_position_of_the_new_life_beyond_its_end_is_refused_and_begins_no_other() {
    let (mut world, _) = set_back();
    let client = world.open(2, PLENTY);
    world.add(client, 0, "a", at(FIRST_LIFE, 21));
    world.run();
    world.add(client, 1, "a", at(FIRST_LIFE + 1, 1_000));
    world.run();
    assert_eq!(
        failure(&world, client, 1),
        (ErrorCode::PositionInvalid, false)
    );
    assert_eq!(world.node.shard().stats().renewed, 1);
    assert_eq!(world.client(client).sub(0).mode, Mode::Live(LOG));
}

#[test]
fn a_number_beyond_the_end_is_a_wish_and_what_is_told_of_it_is_no_position_beyond_the_end() {
    let (mut world, publisher) = set_back();
    let client = world.open(2, PLENTY);
    world.add(client, 0, "a", Start::Sequence(Sequence(15)));
    world.run();
    let told = world.client(client).sub(0).first.expect("told");
    assert_eq!(told, Sequence(11));
    world.add(client, 1, "a", at(FIRST_LIFE, told.0));
    world.run();
    publish(&mut world, publisher, 1..=6);
    assert_eq!(world.client(client).payloads(0), words("new", 5..=6));
    assert_eq!(world.client(client).payloads(1), words("new", 1..=6));
    assert_eq!(world.node.shard().stats().renewed, 0);
}

#[test]
fn a_new_life_that_cannot_be_held_is_not_told_and_is_tried_again() {
    let (mut world, publisher) = set_back();
    let client = world.open(2, PLENTY);
    let retry_after = Duration::from_secs(1);
    world.node.storage_mut().renewal_refusal = Some(Refusal::Full { retry_after });
    world.add(client, 0, "a", at(FIRST_LIFE, 21));
    world.run();
    assert_eq!(failure(&world, client, 0), (ErrorCode::StorageFull, true));
    assert_eq!(world.node.shard().stats().renewed, 0);
    world.node.storage_mut().renewal_refusal = None;
    world.add(client, 0, "a", at(FIRST_LIFE, 21));
    world.run();
    publish(&mut world, publisher, 1..=2);
    let all = [words("old", 1..=10), words("new", 1..=2)].concat();
    assert_eq!(world.client(client).payloads(0), all);
}

#[test]
fn whoever_leaves_while_the_new_life_is_begun_leaves_nothing_behind() {
    let (mut world, publisher) = set_back();
    let (gone, stays) = (world.open(2, PLENTY), world.open(3, PLENTY));
    world.add(gone, 0, "a", at(FIRST_LIFE, 21));
    world.add(gone, 1, "a", at(FIRST_LIFE, 21));
    world.add(stays, 0, "a", at(FIRST_LIFE, 21));
    world.remove(gone, 1);
    world.close(gone);
    world.run();
    publish(&mut world, publisher, 1..=2);
    let all = [words("old", 1..=10), words("new", 1..=2)].concat();
    assert_eq!(world.client(stays).payloads(0), all);
    let stats = world.node.shard().stats();
    assert_eq!(
        (stats.live_subscriptions, stats.detached_subscriptions),
        (1, 0)
    );
}

#[test]
fn a_storage_that_knows_more_than_the_shard_is_asked_before_anything_is_held_for_lost() {
    let mut world = World::with(ShardConfig::default(), VecStorage::new());
    let (client, publisher) = (world.open(2, PLENTY), world.open(1, 0));
    publish(&mut world, publisher, 1..=3);
    world
        .node
        .storage_mut()
        .skip(LOG, 7, airmail_log::GapWhy::Unused);
    world.add(client, 0, "a", at(FIRST_LIFE, 11));
    world.run();
    world.tell(publisher, "a", "x");
    assert_eq!(world.client(client).payloads(0), ["x"]);
    assert_eq!(world.node.shard().stats().renewed, 0);
}
