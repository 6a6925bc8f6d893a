//! Selections: a subscription to all topics of a log that a selector selects gets each of their messages once and in order,
//! live and late, and nothing else.

use crate::client::Mode;
use crate::world::{LOG, PLENTY, World, batch_of, message};
use airmail_broker::SessionId;
use airmail_model::batch::AttributeValue;
use airmail_model::frame::{DELIVERY_OVERHEAD_BYTES, Start, State, Until, Wanted};
use airmail_model::selector::{Glob, Selector};
use airmail_model::{Error, Message, Sequence};
use std::sync::Arc;
use std::time::Duration;

fn prefix(text: &str) -> Selector {
    Selector::Prefix(text.into())
}

fn pattern(text: &str) -> Selector {
    Selector::Pattern(Glob::parse(text).expect("a pattern"))
}

/// Topics that the messages of these tests are of; each message says its topic.
const TOPICS: [&str; 5] = ["a/1", "a/2", "b/1", "a/1/x", "c"];

fn one_of_each() -> Vec<(&'static str, &'static str)> {
    TOPICS.map(|topic| (topic, topic)).to_vec()
}

fn select(world: &mut World, session: SessionId, selector: Selector, start: Start) {
    world.select(session, 0, (selector, None), start, None);
}

fn failure(world: &World, session: SessionId, n: u32) -> Option<Error> {
    match &world.client(session).sub(n).mode {
        Mode::Ended(State::Failed(error)) => Some(error.clone()),
        _ => None,
    }
}

#[test]
fn at_the_tail_each_selection_gets_its_topics_and_the_whole_batch_where_it_wants_all() {
    let mut world = World::new();
    let publisher = world.open(1, PLENTY);
    let plain = world.open(2, PLENTY);
    world.add(plain, 0, "a/1", Start::Latest);
    let cases: [(Selector, &[&str]); 6] = [
        (Selector::All, &TOPICS),
        (prefix(""), &TOPICS),
        (prefix("a/"), &["a/1", "a/2", "a/1/x"]),
        (pattern("*/1"), &["a/1", "b/1"]),
        (pattern("**1**"), &["a/1", "b/1", "a/1/x"]),
        (prefix("d"), &[]),
    ];
    let mut sessions = Vec::new();
    // Two of each, so that one has what was made for the other.
    for (n, (selector, expected)) in (10..).zip(cases.iter().chain(&cases)) {
        let session = world.open(n, PLENTY);
        select(&mut world, session, selector.clone(), Start::Latest);
        sessions.push((session, *expected));
    }
    world.run();
    for _ in 0..2 {
        world.publish(publisher, &one_of_each());
        world.run();
    }
    world.pass(Duration::from_secs(2));
    world.run();
    for (session, expected) in &sessions {
        let client = world.client(*session);
        assert_eq!(client.payloads(0), [*expected, *expected].concat());
        assert_eq!(client.sub(0).mode, Mode::Live(LOG));
        assert_eq!(client.position(0), Sequence(11));
        let wholes = if expected.len() == TOPICS.len() { 2 } else { 0 };
        assert_eq!(client.wholes, wholes);
    }
    assert_eq!(world.client(plain).payloads(0), ["a/1", "a/1"]);
    // Whoever leaves gets nothing more, and the others do.
    for (session, _) in &sessions[1..] {
        world.remove(*session, 0);
    }
    world.run();
    world.publish(publisher, &one_of_each());
    world.run();
    let (first, _) = sessions[0];
    assert_eq!(world.client(first).payloads(0).len(), 15);
}

#[test]
fn a_late_one_reads_to_the_end_with_little_credit_though_little_is_selected() {
    let mut world = World::new();
    let publisher = world.open(1, PLENTY);
    for n in 0..300 {
        let rare = format!("rare/{n}");
        let topics = [
            ("often/1", "no"),
            (rare.as_str(), rare.as_str()),
            ("often/2", "no"),
        ];
        let those = if n % 100 == 7 {
            &topics[..]
        } else {
            &topics[..1]
        };
        world.publish(publisher, those);
        world.run();
    }
    let expected = ["rare/7", "rare/107", "rare/207"];
    let late = world.open(2, 5 * (DELIVERY_OVERHEAD_BYTES + 150));
    select(&mut world, late, prefix("rare/"), Start::Earliest);
    let all = world.open(3, PLENTY);
    select(&mut world, all, Selector::All, Start::Earliest);
    let one = world.open(4, PLENTY);
    world.add(one, 0, "often/2", Start::Earliest);
    let past = world.open(5, PLENTY);
    let wanted = (pattern("rare/*0*"), None);
    world.select(
        past,
        0,
        wanted,
        Start::Sequence(Sequence(50)),
        Some(Until::Now),
    );
    world.run();
    assert_eq!(world.client(late).payloads(0), expected);
    assert_eq!(world.client(late).sub(0).mode, Mode::Live(LOG));
    assert_eq!(world.client(all).payloads(0).len(), 306);
    assert_eq!(world.client(one).payloads(0).len(), 3);
    assert_eq!(world.client(past).payloads(0), ["rare/107", "rare/207"]);
    assert_eq!(world.client(past).sub(0).mode, Mode::Complete);
    world.publish(publisher, &[("often/1", "x"), ("rare/x", "rare/x")]);
    world.run();
    assert_eq!(world.client(late).payloads(0).last(), Some(&"rare/x"));
    assert_eq!(world.client(all).payloads(0).len(), 308);
}

#[test]
fn one_without_credit_is_detached_once_for_a_batch_of_many_topics_and_misses_nothing() {
    let mut world = World::new();
    let publisher = world.open(1, PLENTY);
    let slow = world.open(2, 1);
    select(&mut world, slow, prefix("a/"), Start::Latest);
    world.run();
    for _ in 0..5 {
        world.publish(publisher, &one_of_each());
        world.run();
    }
    // The first delivery overdraws; from the second batch on it is behind.
    assert_eq!(world.client(slow).payloads(0).len(), 3);
    assert_eq!(world.client(slow).sub(0).history, ["live", "detached"]);
    world.credit(slow, PLENTY);
    world.run();
    assert_eq!(world.client(slow).payloads(0).len(), 15);
    assert_eq!(world.client(slow).sub(0).mode, Mode::Live(LOG));
}

#[test]
fn a_filter_and_expiry_count_within_what_is_selected() {
    let mut world = World::new();
    let publisher = world.open(1, PLENTY);
    let filtered = world.open(2, PLENTY);
    let wanted = (prefix("a/"), Some("price > 1"));
    world.select(filtered, 0, wanted.clone(), Start::Latest, None);
    world.run();
    let priced = |topic: &str, price: i64| {
        let value = AttributeValue::Integer(price);
        message(topic, &format!("{topic} {price}")).attribute("price", value)
    };
    let soon = |message: Message| Message {
        ttl_ms: Some(1_000),
        ..message
    };
    let messages = [
        priced("a/1", 1),
        priced("a/2", 2),
        priced("b/1", 3),
        soon(priced("a/1", 4)),
        soon(priced("a/1", 0)),
        soon(priced("b/1", 5)),
        message("a/2", "none"),
    ];
    world.publish_batch(publisher, batch_of(LOG, 1, messages));
    world.run();
    assert_eq!(world.client(filtered).payloads(0), ["a/2 2", "a/1 4"]);
    world.pass(Duration::from_secs(5));
    let late = world.open(3, PLENTY);
    world.select(late, 0, wanted, Start::Earliest, None);
    world.run();
    let got = world.client(late).sub(0);
    assert_eq!(world.client(late).payloads(0), ["a/2 2"]);
    // It is told of the one that it would have got, and of no other.
    assert_eq!(got.expired, [Sequence(4)]);
}

#[test]
fn a_stream_is_of_topics_or_of_selections_and_has_one_of_each_log() {
    let mut world = World::new();
    let topics = world.open(1, PLENTY);
    world.add(topics, 0, "a", Start::Latest);
    world.select(topics, 1, (Selector::All, None), Start::Latest, None);
    let selections = world.open(2, PLENTY);
    world.select(selections, 0, (prefix("a"), None), Start::Latest, None);
    world.add(selections, 1, "a", Start::Latest);
    world.select(selections, 2, (prefix("b"), None), Start::Latest, None);
    world.run();
    let limit = |session, n| failure(&world, session, n).map(|error| error.to_string());
    for (session, n, says) in [
        (topics, 1, "those before it on its stream are to topics"),
        (
            selections,
            1,
            "those before it on its stream are selections",
        ),
        (selections, 2, "one selection of a log on a stream"),
    ] {
        let said = limit(session, n).expect("refused");
        assert!(
            said.contains("SUBSCRIPTION_INVALID") && said.contains(says),
            "{said}"
        );
    }
    assert_eq!(limit(topics, 0), None);
    // A place that is free again is taken.
    world.remove(selections, 0);
    world.select(selections, 3, (prefix("b"), None), Start::Latest, None);
    world.run();
    assert_eq!(failure(&world, selections, 3), None);
}

#[test]
fn a_selection_names_a_log_of_its_namespace() {
    let mut world = World::new();
    let session = world.open(1, PLENTY);
    let all = |log| Wanted::Selected {
        log,
        selector: Arc::new(Selector::All),
    };
    world.add_wanted(session, 0, all(Some(1)), Start::Latest);
    world.add_wanted(session, 1, all(Some(0)), Start::Latest);
    world.run();
    let error = failure(&world, session, 0).expect("refused").to_string();
    assert!(error.contains("(log: 1, limit: at most 0)"), "{error}");
    assert_eq!(failure(&world, session, 1), None);
}
