//! Streams whose deliveries say for whom each message is: their subscriptions overlap as they like, and their filters change.
//!
//! However little is done in a turn, each gets exactly what the filter in force at a message's number matches.

use crate::client::{Mode, Sub};
use crate::matching_turns::{every_kind_of_turns, priced, publish, world_with};
use crate::world::{LOG, PLENTY, World, batch_of, topic};
use airmail_broker::SessionId;
use airmail_model::frame::{Start, State, Wanted};
use airmail_model::selector::Selector;
use airmail_model::{ErrorCode, Sequence};
use std::sync::Arc;

/// A filter's text, and the prices that it matches.
type Filter = (&'static str, fn(i64) -> bool);

/// Whether topics are wanted.
type Topics = fn(&str) -> bool;

const FILTERS: [Filter; 5] = [
    ("price < 3", |price| price < 3),
    ("price = 7", |price| price == 7),
    ("price >= 0", |_| true),
    ("price in (2, 11)", |price| price == 2 || price == 11),
    ("not has price", |_| false),
];

fn of_topic(name: &str) -> Wanted {
    Wanted::Topic(topic(name))
}

fn selecting(selector: Selector) -> Wanted {
    let selector = Arc::new(selector);
    Wanted::Selected {
        log: None,
        selector,
    }
}

/// Topics that a stream may want, and whether each topic is among them.
fn wishes() -> [(Wanted, Topics); 3] {
    [
        (of_topic("a"), |topic| topic == "a"),
        (selecting(Selector::Prefix("b".into())), |topic| {
            topic == "b"
        }),
        (selecting(Selector::All), |_| true),
    ]
}

/// Topics and prices that a subscriber to everything has got, by number.
fn published(world: &World, plain: SessionId) -> Vec<(Sequence, String, i64)> {
    let got = world.client(plain).sub(0).got.iter();
    let read = got.map(|(number, text)| {
        let (topic, price) = text.split_once(':').expect("topic and price");
        (*number, topic.to_owned(), price.parse().expect("a price"))
    });
    read.collect()
}

/// Asserts that a subscription has got what the filter in force at each number matches. `filters`: the first one, and
/// those of its changes, by generation.
fn check_exact(
    world: &World,
    plain: SessionId,
    sub: &Sub,
    (wants, filters): (Topics, &[Filter]),
    what: &str,
) {
    let begin = sub.first.expect("placed");
    let in_force = |number: Sequence| {
        let changes = sub.changes.iter().rev();
        let mut changes = changes.filter(|(_, from)| from.is_none_or(|from| number >= from));
        let place = changes
            .next()
            .map_or(0, |(generation, _)| generation.0 as usize - 1);
        filters[place].1
    };
    let all = published(world, plain).into_iter();
    let expected = all.filter(|(number, topic, price)| {
        *number >= begin && wants(topic) && in_force(*number)(*price)
    });
    let expected: Vec<(Sequence, String)> = expected
        .map(|(number, topic, price)| (number, format!("{topic}:{price}")))
        .collect();
    assert_eq!(sub.got, expected, "{what}: {:?}", sub.changes);
}

#[test]
fn whatever_overlaps_each_gets_what_is_for_it_and_a_message_comes_once() {
    for turns in every_kind_of_turns() {
        for matches_max in [1, 40, 1 << 16] {
            let mut world = world_with(turns, (matches_max, 16));
            let (publisher, plain) = (world.open(1, PLENTY), world.open(2, PLENTY));
            world.select(plain, 0, (Selector::All, None), Start::Earliest, None);
            let session = world.open(3, PLENTY);
            let mut subs = Vec::new();
            for filter in FILTERS.iter().chain(&FILTERS) {
                for (wanted, wants) in wishes() {
                    let n = u32::try_from(subs.len()).expect("few");
                    world.add_matching(session, n, (wanted, filter.0), Start::Latest);
                    subs.push((n, wants, *filter));
                }
            }
            world.run();
            publish(&mut world, publisher, 4);
            world.run();
            let client = world.client(session);
            for (n, wants, filter) in subs {
                let what = format!("{turns:?}, {matches_max}, {n}");
                check_exact(&world, plain, client.sub(n), (wants, &[filter]), &what);
                assert_eq!(client.sub(n).mode, Mode::Live(LOG), "{what}");
            }
            let of_one_message = FILTERS.len() * 2 * 2;
            assert!(client.named_max <= matches_max.max(of_one_message));
        }
    }
}

#[test]
fn a_changed_filter_is_in_force_from_the_place_on_that_is_told_and_the_one_before_up_to_it() {
    for turns in every_kind_of_turns() {
        for changes_max in [0, 1, 16] {
            let mut world = world_with(turns, (40, changes_max));
            let (publisher, plain) = (world.open(1, PLENTY), world.open(2, PLENTY));
            world.select(plain, 0, (Selector::All, None), Start::Earliest, None);
            publish(&mut world, publisher, 2);
            let (fast, slow) = (world.open(3, PLENTY), world.open(4, 1_000));
            let mut subs = Vec::new();
            for (n, (wanted, wants)) in (0..).zip(wishes()) {
                let first = (wanted.clone(), FILTERS[0].0);
                world.add_matching(fast, n, first, Start::Latest);
                world.add_matching(slow, n, (wanted, FILTERS[0].0), Start::Earliest);
                subs.extend([(fast, n, wants), (slow, n, wants)]);
            }
            world.run();
            for (step, filter) in FILTERS.iter().enumerate().skip(1) {
                publish(&mut world, publisher, 1);
                for _ in 0..step {
                    world.turn();
                }
                for (session, n, _) in &subs {
                    let generation = u32::try_from(step + 1).expect("few");
                    world.change(*session, *n, generation, filter.0);
                    world.turn();
                }
                publish(&mut world, publisher, 1);
                world.credit(slow, 500);
            }
            world.run();
            for _ in 0..20 {
                world.credit(slow, 4_000);
                world.run();
            }
            for (session, n, wants) in subs {
                let sub = world.client(session).sub(n);
                let what = format!("{turns:?}, {changes_max}, {session:?}, {n}");
                check_exact(&world, plain, sub, (wants, &FILTERS), &what);
                let generations: Vec<u32> = sub.changes.iter().map(|(of, _)| of.0).collect();
                assert_eq!(generations, [2, 3, 4, 5], "{what}");
            }
        }
    }
}

#[test]
fn a_change_that_cannot_be_is_refused_by_name_and_the_filter_before_stays() {
    let mut world = World::new();
    let (publisher, session) = (world.open(1, PLENTY), world.open(2, PLENTY));
    let other = world.open(3, PLENTY);
    world.add_matching(session, 0, (of_topic("a"), "price = 1"), Start::Latest);
    world.add_filtered(other, 0, "a", Start::Latest, "price = 1");
    world.run();
    world.change(session, 0, 1, "price = 2");
    world.change(other, 0, 2, "price = 2");
    world.change(session, 7, 2, "price = 2");
    world.run();
    let messages = [1, 2].map(|price| priced("a", price));
    world.publish_batch(publisher, batch_of(LOG, 1, messages));
    world.run();
    for (session, generation) in [(session, 1), (other, 2)] {
        let sub = world.client(session).sub(0);
        let refusals: Vec<(u32, ErrorCode)> = sub
            .refusals
            .iter()
            .map(|(of, code)| (of.0, *code))
            .collect();
        assert_eq!(refusals, [(generation, ErrorCode::SubscriptionInvalid)]);
        assert_eq!(world.client(session).payloads(0), ["a:1"]);
    }
}

#[test]
fn a_stream_names_subscriptions_from_its_first_one_on_or_never_and_all_have_filters() {
    let mut world = World::new();
    let (naming, other) = (world.open(1, PLENTY), world.open(2, PLENTY));
    world.add_matching(naming, 0, (of_topic("a"), "price = 1"), Start::Latest);
    world.add_filtered(naming, 1, "b", Start::Latest, "price = 1");
    world.add_filtered(other, 0, "a", Start::Latest, "price = 1");
    world.add_matching(other, 1, (of_topic("b"), "price = 1"), Start::Latest);
    world.add_filtered(other, 2, "a", Start::Latest, "price = 2");
    world.run();
    let refused = |session, n| match &world.client(session).sub(n).mode {
        Mode::Ended(State::Failed(error)) => Some((error.code(), error.field_name().to_owned())),
        _ => None,
    };
    let invalid = |field: &str| Some((ErrorCode::SubscriptionInvalid, field.to_owned()));
    assert_eq!(refused(naming, 1), invalid("matches"));
    assert_eq!(refused(other, 1), invalid("matches"));
    assert_eq!(refused(other, 2), invalid("filter"));
    assert_eq!((refused(naming, 0), refused(other, 0)), (None, None));
}
