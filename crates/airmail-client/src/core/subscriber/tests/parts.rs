//! A subscription with a log in each lane.

use super::*;

const HIGH: LogId = LogId {
    lane: Lane::High,
    ..LOG
};

fn high_at(next: u64) -> LogPosition {
    LogPosition {
        log: HIGH,
        ..place_at(next)
    }
}

/// A subscriber with one that is live in both lanes, in the normal one from 10 on, in the high one from 20 on.
fn both() -> (Driver, SubscriptionKey, Subscribe) {
    let mut driver = Driver::connected();
    let key = driver.add("a", Start::Latest);
    let add = driver.asked();
    let places = [place_at(10), high_at(20)].into_iter().collect();
    driver.status(&add, State::Live { places });
    assert_eq!(driver.events.len(), 1, "one status is one event");
    driver.events.clear();
    (driver, key, add)
}

fn in_high(reply: Reply) -> Reply {
    match reply {
        Reply::Delivery(delivery) => Reply::Delivery(Delivery {
            log: HIGH,
            ..delivery
        }),
        other => panic!("{other:?}"),
    }
}

fn stands(driver: &Driver, key: SubscriptionKey) -> Vec<(Lane, u64)> {
    let position = driver.subscriber.position(key).expect("it has one");
    let places = position.logs.iter();
    places.map(|at| (at.log.lane, at.next.0)).collect()
}

fn detached_in_high(next: u64) -> State {
    State::Detached {
        log: HIGH,
        incarnation: LIFE,
        next: Sequence(next),
        resumed: false,
        lost_before: None,
        beside: None,
    }
}

#[test]
fn each_lane_has_a_range_and_a_place_of_its_own() {
    let (mut driver, key, _) = both();
    assert_eq!(driver.subscriber.is_live(key), Some(true));
    driver.reply(in_high(delivery(Channel::Live, 19, 21, 20, &["a", "a"])));
    driver.deliver(Channel::Live, 9, &["a"]);
    assert_eq!(driver.numbers(key), [20, 21, 10]);
    assert_eq!(stands(&driver, key), [(Lane::Normal, 11), (Lane::High, 22)]);
}

#[test]
fn what_comes_live_in_a_lane_is_not_counted_to_one_that_is_detached_there() {
    let (mut driver, key, add) = both();
    driver.status(&add, detached_in_high(20));
    assert_eq!(driver.subscriber.is_live(key), Some(false));
    driver.events.clear();
    // Another subscription of the topic keeps the range.
    let other = driver.add("a", Start::Latest);
    let asked = driver.asked();
    driver.status(&asked, State::live(high_at(20)));
    driver.events.clear();
    driver.reply(in_high(delivery(Channel::Live, 19, 20, 20, &["a"])));
    assert_eq!(driver.numbers(other), [20]);
    assert!(driver.numbers(key).is_empty());
    driver.deliver(Channel::Live, 9, &["a"]);
    assert_eq!(driver.numbers(key), [10], "in the other lane it is live");
    let late = delivery(channel_of(&add), 19, 20, 20, &["a"]);
    driver.reply(in_high(late));
    assert_eq!(driver.numbers(key), [20]);
    driver.status(&add, State::live(high_at(21)));
    assert_eq!(driver.subscriber.is_live(key), Some(true));
}

#[test]
fn after_a_lost_connection_it_is_asked_for_from_its_places_in_both_lanes() {
    let (mut driver, key, add) = both();
    driver.status(&add, detached_in_high(20));
    driver.deliver(Channel::Live, 9, &["a"]);
    let before = stands(&driver, key);
    assert_eq!(before, [(Lane::Normal, 11), (Lane::High, 20)]);
    driver.subscriber.connected();
    assert_eq!(driver.subscriber.is_live(key), None);
    let Start::Position(position) = driver.asked().start else {
        panic!("it has a position");
    };
    assert_eq!(Some(position), driver.subscriber.position(key));
    assert_eq!(stands(&driver, key), before);
}

#[test]
fn a_hole_in_one_lane_has_it_asked_for_again_from_both_places() {
    let (mut driver, key, _) = both();
    driver.deliver(Channel::Live, 9, &["a"]);
    driver.reply(in_high(delivery(Channel::Live, 25, 26, 26, &["a"])));
    assert_eq!(driver.numbers(key), [10]);
    let Start::Position(position) = driver.asked().start else {
        panic!("it has a position");
    };
    let places: Vec<u64> = position.logs.iter().map(|at| at.next.0).collect();
    assert_eq!(places, [11, 20]);
}
