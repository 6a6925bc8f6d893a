//! Turns in which batches are held against filters: however little is done in one, each gets exactly what its filter matches,
//! in order, and nobody without a filter waits.

use crate::client::Mode;
use crate::vec_storage::VecStorage;
use crate::world::{LOG, PLENTY, World, batch_of, message};
use airmail_broker::{SessionId, ShardConfig};
use airmail_model::batch::AttributeValue;
use airmail_model::frame::Start;
use airmail_model::selector::Selector;
use airmail_model::{ErrorCode, Message};

/// Work of a turn, what is found before it is handed over, and room for what waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    units: u32,
    found: usize,
    bytes: usize,
    few: usize,
}

/// A shard with such turns, whose deliveries name so many subscriptions, and in which so many changes wait.
pub(crate) fn world_with(turns: Turns, (matches_max, changes_max): (usize, usize)) -> World {
    let config = ShardConfig {
        matches_max,
        changes_max,
        matching_units: turns.units,
        matching_found: turns.found,
        matching_bytes: turns.bytes,
        filters_few: turns.few,
        ..ShardConfig::default()
    };
    World::with(config, VecStorage::new())
}

fn world(turns: Turns) -> World {
    world_with(turns, (1 << 16, 1024))
}

pub(crate) fn every_kind_of_turns() -> impl Iterator<Item = Turns> {
    let units = [1, 7, 1 << 16].into_iter();
    let found = units.flat_map(|units| [1, 5, 1 << 16].map(|found| (units, found)));
    let bytes = found.flat_map(|(units, found)| [0, 3_000, 1 << 22].map(|at| (units, found, at)));
    let kinds =
        bytes.flat_map(|(units, found, bytes)| [0, 32].map(|few| (units, found, bytes, few)));
    kinds.map(|(units, found, bytes, few)| Turns {
        units,
        found,
        bytes,
        few,
    })
}

pub(crate) fn priced(topic: &str, price: i64) -> Message {
    let value = AttributeValue::Integer(price);
    message(topic, &format!("{topic}:{price}")).attribute("price", value)
}

/// Batches of two topics, 24 messages each, with prices 0 to 11.
pub(crate) fn publish(world: &mut World, publisher: SessionId, count: usize) {
    for _ in 0..count {
        let messages = (0..12).flat_map(|price| [priced("a", price), priced("b", price)]);
        world.publish_batch(publisher, batch_of(LOG, 1, messages));
    }
}

/// Filters, and the prices that each matches.
const FILTERS: [(&str, &[i64]); 5] = [
    ("price < 3", &[0, 1, 2]),
    ("price = 7", &[7]),
    ("price >= 0", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("price in (2, 11)", &[2, 11]),
    ("not has price", &[]),
];

fn expected(topic: &str, prices: &[i64], batches: usize) -> Vec<String> {
    let all = (0..batches).flat_map(|_| prices);
    all.map(|price| format!("{topic}:{price}")).collect()
}

#[test]
fn each_gets_what_its_filter_matches_however_little_is_done_in_a_turn() {
    for turns in every_kind_of_turns() {
        let mut world = world(turns);
        let (publisher, plain) = (world.open(1, PLENTY), world.open(2, PLENTY));
        world.add(plain, 0, "a", Start::Latest);
        let mut sessions = Vec::new();
        for (n, (filter, prices)) in (10..).zip(FILTERS.iter().chain(&FILTERS)) {
            let session = world.open(n, PLENTY);
            world.add_filtered(session, 0, "a", Start::Latest, filter);
            world.add_filtered(session, 1, "b", Start::Latest, "price = 3");
            let selecting = world.open(n + 100, PLENTY);
            let wanted = (Selector::Prefix("b".into()), Some(*filter));
            world.select(selecting, 0, wanted, Start::Latest, None);
            sessions.push((session, selecting, *prices));
        }
        world.run();
        publish(&mut world, publisher, 6);
        world.run();
        for (session, selecting, prices) in &sessions {
            let client = world.client(*session);
            assert_eq!(client.payloads(0), expected("a", prices, 6), "{turns:?}");
            assert_eq!(client.payloads(1), expected("b", &[3], 6), "{turns:?}");
            let client = world.client(*selecting);
            assert_eq!(client.payloads(0), expected("b", prices, 6), "{turns:?}");
            assert_eq!(client.sub(0).mode, Mode::Live(LOG), "{turns:?}");
        }
        assert_eq!(world.client(plain).payloads(0).len(), 6 * 12);
    }
}

#[test]
fn whoever_leaves_or_has_no_credit_while_something_waits_stands_where_it_has_got_to() {
    for turns in every_kind_of_turns() {
        let mut world = world(turns);
        let publisher = world.open(1, PLENTY);
        let (slow, leaving, late) = (
            world.open(2, 1),
            world.open(3, PLENTY),
            world.open(4, PLENTY),
        );
        world.add_filtered(slow, 0, "a", Start::Latest, "price > 5");
        world.add_filtered(leaving, 0, "a", Start::Latest, "price > 5");
        world.run();
        publish(&mut world, publisher, 3);
        world.remove(leaving, 0);
        world.add_filtered(late, 0, "a", Start::Earliest, "price > 5");
        publish(&mut world, publisher, 2);
        world.run();
        for _ in 0..8 {
            world.credit(slow, 2_000);
            world.run();
        }
        let all = expected("a", &[6, 7, 8, 9, 10, 11], 5);
        for session in [slow, late] {
            assert_eq!(world.client(session).payloads(0), all, "{turns:?}");
        }
        let left = world.client(leaving).payloads(0);
        assert!(
            all.iter().map(String::as_str).take(left.len()).eq(left),
            "{turns:?}"
        );
    }
}

#[test]
fn a_topic_has_very_many_different_filters() {
    let mut world = World::new();
    let publisher = world.open(1, PLENTY);
    let mut sessions = Vec::new();
    for n in 0..2_000 {
        let session = world.open(10 + n, PLENTY);
        world.add_filtered(session, 0, "a", Start::Latest, &format!("price = {n}"));
        sessions.push(session);
    }
    world.run();
    let messages = [3, 1_999, 1_000, 3].map(|price| priced("a", price));
    world.publish_batch(publisher, batch_of(LOG, 1, messages));
    world.run();
    for (n, session) in sessions.iter().enumerate() {
        let count = match n {
            3 => 2,
            1_000 | 1_999 => 1,
            _ => 0,
        };
        assert_eq!(world.client(*session).payloads(0).len(), count, "{n}");
    }
    let refused = |world: &mut World, n: u64| {
        let session = world.open(10_000 + n, PLENTY);
        world.add_filtered(session, 0, "a", Start::Latest, &format!("price != {n}"));
        world.run();
        match &world.client(session).sub(0).mode {
            Mode::Ended(airmail_model::frame::State::Failed(error)) => Some(error.code()),
            _ => None,
        }
    };
    // Every message has to be held against such.
    let first = (0..).find(|n| refused(&mut world, *n).is_some());
    assert_eq!(first, Some(1_024));
    assert_eq!(
        refused(&mut world, 5_000),
        Some(ErrorCode::FilterTooComplex)
    );
}
