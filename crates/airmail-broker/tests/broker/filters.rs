//! Subscriptions with filters: each gets what its filter matches, however it comes to it, and is told nothing of the rest.

use crate::client::Mode;
use crate::world::{LOG, PLENTY, World, batch_of, message};
use airmail_broker::{Command, SessionId};
use airmail_model::batch::AttributeValue;
use airmail_model::frame::{DELIVERY_OVERHEAD_BYTES, Start};
use airmail_model::{ErrorCode, Message, RoleId, Sequence};
use std::time::Duration;

fn priced(topic: &str, price: i64) -> Message {
    let price = AttributeValue::Integer(price);
    message(topic, &format!("{topic}{price:?}")).attribute("price", price)
}

/// Messages of two topics with prices 0 to 3 each, and one without a price.
fn quotes() -> Vec<Message> {
    let priced = (0..4).flat_map(|price| [priced("a", price), priced("b", price)]);
    priced.chain([message("a", "none")]).collect()
}

/// Prices of what a subscription has got; -1 where there is none.
fn prices(world: &World, session: SessionId, n: u32) -> Vec<i64> {
    let price = |text: &str| match text.split_once('(') {
        Some((_, price)) => price.trim_end_matches(')').parse().expect("a number"),
        None => -1,
    };
    let payloads = world.client(session).payloads(n).into_iter();
    payloads.map(price).collect()
}

fn state(world: &World, session: SessionId, n: u32) -> Option<ErrorCode> {
    match &world.client(session).sub(n).mode {
        Mode::Ended(airmail_model::frame::State::Failed(error)) => Some(error.code()),
        _ => None,
    }
}

#[test]
fn at_the_tail_each_gets_what_its_filter_matches_beside_those_who_get_all() {
    let mut world = World::new();
    let (publisher, plain) = (world.open(1, PLENTY), world.open(2, PLENTY));
    world.add(plain, 0, "a", Start::Latest);
    world.add(plain, 1, "b", Start::Latest);
    let filters = [
        "price >= 2",
        "price < 1",
        "price > 9",
        "not has price",
        "has price",
    ];
    let expected: [&[i64]; 5] = [&[2, 3], &[0], &[], &[-1], &[0, 1, 2, 3]];
    // Two of each, so that one has what was made for the other.
    let mut sessions = Vec::new();
    for (n, filter) in (10..).zip(filters.iter().chain(&filters)) {
        let session = world.open(n, PLENTY);
        world.add_filtered(session, 0, "a", Start::Latest, filter);
        world.add_filtered(session, 1, "b", Start::Latest, "price = 3");
        sessions.push(session);
    }
    world.run();
    world.publish_batch(publisher, batch_of(LOG, 1, quotes()));
    world.run();
    world.tell(publisher, "a", "none");
    for (session, expected) in sessions.iter().zip(expected.iter().chain(&expected)) {
        let got = prices(&world, *session, 0);
        let last = expected.contains(&-1).then_some(-1);
        let expected: Vec<i64> = expected.iter().copied().chain(last).collect();
        assert_eq!(got, expected);
        assert_eq!(prices(&world, *session, 1), [3]);
        let client = world.client(*session);
        assert!(client.sub(0).gaps.is_empty() && client.sub(0).expired.is_empty());
        assert_eq!(client.sub(0).mode, Mode::Live(LOG));
    }
    assert_eq!(prices(&world, plain, 0), [0, 1, 2, 3, -1, -1]);
    assert_eq!(world.client(plain).wholes, 2);
}

#[test]
fn a_late_one_reads_to_the_end_with_little_credit_though_little_matches() {
    let mut world = World::new();
    let publisher = world.open(1, PLENTY);
    for price in 0..500 {
        world.publish_batch(publisher, batch_of(LOG, 1, [priced("a", price)]));
        world.run();
    }
    // Room for four deliveries, out of five hundred that it would take for all.
    let late = world.open(2, 4 * (DELIVERY_OVERHEAD_BYTES + 150));
    world.add_filtered(late, 0, "a", Start::Earliest, "price in (3, 250, 499)");
    world.run();
    assert_eq!(prices(&world, late, 0), [3, 250, 499]);
    assert_eq!(world.client(late).sub(0).mode, Mode::Live(LOG));
    world.publish_batch(
        publisher,
        batch_of(LOG, 1, [priced("a", 4), priced("a", 3)]),
    );
    world.run();
    assert_eq!(prices(&world, late, 0), [3, 250, 499, 3]);
    assert_eq!(world.client(late).position(0), Sequence(503));
}

#[test]
fn what_is_for_others_is_left_out_before_and_expiry_is_told_of_what_matches_alone() {
    let mut world = World::new();
    let made = world.command(Command::CreateRole { name: "r".into() });
    assert!(made.is_ok());
    let publisher = world.open(1, PLENTY);
    let live = world.open_as(2, &[RoleId(1)]);
    world.add_filtered(live, 0, "a", Start::Latest, "price > 1");
    world.run();
    let soon = |message: Message| Message {
        ttl_ms: Some(1_000),
        ..message
    };
    let messages = [
        soon(priced("a", 1)),
        soon(priced("a", 2)),
        soon(priced("a", 3)).for_roles([RoleId(1)]),
        priced("a", 4).for_roles([RoleId(1)]),
        priced("a", 0).for_roles([RoleId(1)]),
    ];
    world.publish_batch(publisher, batch_of(LOG, 1, messages));
    world.run();
    assert_eq!(prices(&world, live, 0), [2, 3, 4]);
    world.pass(Duration::from_secs(2));
    for (roles, got, expired) in [(&[RoleId(1)][..], &[4][..], &[2, 3][..]), (&[], &[], &[2])] {
        let late = world.open_as(10 + roles.len() as u64, roles);
        world.add_filtered(late, 0, "a", Start::Earliest, "price > 1");
        world.run();
        assert_eq!(prices(&world, late, 0), got);
        let told = world.client(late).sub(0).expired.iter();
        assert_eq!(told.map(|number| number.0).collect::<Vec<_>>(), expired);
    }
}

#[test]
fn a_stream_has_filters_or_none_and_one_subscription_of_a_topic() {
    let mut world = World::new();
    let (filtered, plain) = (world.open(1, PLENTY), world.open(2, PLENTY));
    world.add_filtered(filtered, 0, "a", Start::Latest, "x = 1");
    world.add_filtered(filtered, 1, "a", Start::Latest, "x = 2");
    world.add(filtered, 2, "b", Start::Latest);
    world.add_filtered(filtered, 3, "b", Start::Latest, "x = 1");
    world.add(plain, 0, "a", Start::Latest);
    world.add(plain, 1, "a", Start::Latest);
    world.add_filtered(plain, 2, "b", Start::Latest, "x = 1");
    world.run();
    let invalid = Some(ErrorCode::SubscriptionInvalid);
    let of_filtered = [0, 1, 2, 3].map(|n| state(&world, filtered, n));
    assert_eq!(of_filtered, [None, invalid, invalid, None]);
    let of_plain = [0, 1, 2].map(|n| state(&world, plain, n));
    assert_eq!(of_plain, [None, None, invalid]);
    // A topic is free again when its subscription has ended.
    world.remove(filtered, 0);
    world.add_filtered(filtered, 4, "a", Start::Latest, "x = 2");
    world.run();
    assert_eq!(state(&world, filtered, 4), None);
}
