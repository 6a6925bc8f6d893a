//! Messages that expire: judged by the node's clock as the client knows it, in their turn.

use super::*;
use airmail_model::frame::Expired;
use airmail_model::verdict::ClockReading;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A delivery whose messages expire: their log's clock showed `clock` seconds when the node's showed `node`.
fn expiring(previous: u64, topics: &[&str], clock: i64, node: u64) -> Reply {
    let last = previous + topics.len() as u64;
    let delivery = delivery(Channel::Live, previous, last, previous + 1, topics);
    let Reply::Delivery(delivery) = delivery else {
        unreachable!("a delivery");
    };
    Reply::Delivery(Delivery {
        clock: Some(ClockReading {
            clock: AppendTime(clock * 1_000_000),
            at: Mono(node * 1_000_000_000),
        }),
        ..delivery
    })
}

/// The questions for the node's clock that are sent by now.
fn questions(driver: &mut Driver) -> Vec<Mono> {
    driver.poll();
    let sent = driver.sent.drain(..);
    let asked = sent.filter_map(|request| match request {
        Request::Clock { asked } => Some(asked),
        _ => None,
    });
    asked.collect()
}

/// The node's clock is 100 s ahead of the client's.
fn answer(driver: &mut Driver, asked: Mono) {
    let node = asked.plus(SECOND * 100);
    driver.reply(Reply::Clock { asked, node });
}

#[test]
fn what_expires_waits_for_the_nodes_clock_and_all_that_comes_behind_it_waits_too() {
    let mut driver = Driver::connected();
    driver.now = Mono(0).plus(SECOND);
    let (a, b) = (driver.live("a", 1), driver.live("b", 1));
    assert!(questions(&mut driver).is_empty(), "nothing expires");
    driver.deliver(Channel::Live, 0, &["b"]);
    driver.reply(expiring(1, &["a"], 7, 101));
    driver.deliver(Channel::Live, 2, &["b", "a"]);
    assert_eq!(driver.numbers(b), [1]);
    assert_eq!(driver.next(a), Some(2));
    let asked = questions(&mut driver);
    assert_eq!(asked, [driver.now]);
    assert!(questions(&mut driver).is_empty(), "it is asked once");
    driver.now = driver.now.plus(SECOND);
    answer(&mut driver, asked[0]);
    let clocks: Vec<Option<ClockReading>> = driver
        .events
        .iter()
        .filter_map(|(of, event)| match event {
            Event::Messages(received) if *of == a => Some(received.clock),
            _ => None,
        })
        .collect();
    // At most 7 s when the node was at 101 s: at most 8 s now, a second after the question.
    let clock = clocks[0].expect("it expires");
    assert_eq!((clock.at, clock.clock.0 / 1_000_000), (driver.now, 8));
    assert_eq!(clocks[1], None);
    assert_eq!(driver.numbers(a), [2, 4]);
    assert_eq!(driver.numbers(b), [3]);
}

#[test]
fn what_waits_for_the_clock_is_forgotten_with_its_connection_and_asked_for_again() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 1);
    driver.reply(expiring(0, &["a"], 7, 101));
    let asked = questions(&mut driver);
    driver.subscriber.connected();
    // The answer of another node, as it were.
    answer(&mut driver, asked[0]);
    assert!(driver.numbers(a).is_empty());
    assert_eq!(starts_at(&driver.asked()), Some(1));
}

#[test]
fn word_of_what_has_expired_comes_to_its_subscription_and_its_credit_goes_back_once() {
    let mut driver = Driver::connected();
    let (key, add) = driver.detached("a", 1);
    let expired = |generation: u32| Expired {
        subscription: add.subscription,
        generation: Generation(generation),
        log: LOG,
        numbers: vec![Sequence(1), Sequence(3)],
    };
    let now = expired(add.generation.0);
    let cost = now.cost();
    assert_eq!(cost, 2 * 8 + DELIVERY_OVERHEAD_BYTES);
    driver.reply(Reply::Expired(now));
    let told: Vec<(SubscriptionKey, Vec<Sequence>)> = driver
        .events
        .drain(..)
        .filter_map(|(of, event)| match event {
            Event::Expired(seen) => Some((of, seen.numbers)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(key, vec![Sequence(1), Sequence(3)])]);
    assert_eq!(driver.next(key), Some(1), "it moves no range");
    // Of a use of the number that is over nobody is told.
    driver.reply(Reply::Expired(expired(add.generation.0 + 1)));
    assert!(driver.events.is_empty());
    driver.subscriber.consumed(cost);
    assert_eq!(driver.subscriber.credit.returnable, 2 * cost);
}
