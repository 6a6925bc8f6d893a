//! Selections: one subscription for all topics of a log that somebody selects.

use super::*;
use airmail_model::LogIndex;
use airmail_model::frame::Expired;
use airmail_model::selector::Selector;

const OTHER: LogId = LogId {
    index: LogIndex(1),
    ..LOG
};

/// A message that was given: the log, the number there, and the topic.
type Given = (LogId, u64, String);

impl Driver {
    fn select(&mut self, place: u16, start: Start) -> SubscriptionKey {
        self.subscriber.add(SubscriptionSpec {
            namespace: NAMESPACE,
            wanted: Wanted::Selected {
                log: Some(place),
                selector: Arc::new(Selector::All),
            },
            start,
            until: None,
            tell_expired: true,
            filter: None,
            headers_only: false,
        })
    }

    /// A selection that the node has made live in a log, at `next`.
    pub(super) fn live_selection(&mut self, log: LogId, next: u64) -> (SubscriptionKey, Subscribe) {
        let key = self.select(log.index.0, Start::Latest);
        let add = self.asked();
        self.status(&add, State::live(place_in(log, next)));
        self.events.clear();
        (key, add)
    }

    /// Lists the messages that came since the last call, each with its owner.
    fn given(&mut self) -> Vec<(SubscriptionKey, Given)> {
        let mut given = Vec::new();
        for (key, event) in self.events.drain(..) {
            let Event::Messages(received) = event else {
                panic!("{event:?}");
            };
            for (number, record) in received.iter() {
                assert_eq!(received.owner(record.topic), Some(key));
                let topic = record.topic_name.to_owned();
                given.push((key, (received.log, number.0, topic)));
            }
        }
        given
    }

    /// Delivers messages of a log, live, or to a subscription that is detached there.
    fn deliver_in(&mut self, log: LogId, to: Option<&Subscribe>, previous: u64, topics: &[&str]) {
        let channel = to.map_or(Channel::Live, channel_of);
        let last = previous + topics.len() as u64;
        let delivery = delivery(channel, previous, last, previous + 1, topics);
        let Reply::Delivery(delivery) = delivery else {
            unreachable!("a delivery");
        };
        self.reply(Reply::Delivery(Delivery { log, ..delivery }));
    }
}

fn place_in(log: LogId, next: u64) -> LogPosition {
    LogPosition {
        log,
        ..place_at(next)
    }
}

fn detached_in(log: LogId, next: u64) -> State {
    State::Detached {
        log,
        incarnation: LIFE,
        next: Sequence(next),
        resumed: false,
        lost_before: None,
        beside: None,
    }
}

fn message(log: LogId, number: u64, topic: &str) -> Given {
    (log, number, topic.to_owned())
}

/// The place of the log that a request is for.
fn place_of(add: &Subscribe) -> Option<u16> {
    match &add.wanted {
        Wanted::Selected { log, .. } => *log,
        Wanted::Topic(_) => None,
    }
}

#[test]
fn a_selection_is_given_every_topic_of_a_live_batch_once_and_as_one_event() {
    for gathers in [false, true] {
        let mut driver = Driver::connected();
        if gathers {
            driver.subscriber = Subscriber::new(SubscriberConfig::default()).gathering();
            driver.subscriber.connected();
        }
        let (key, _) = driver.live_selection(LOG, 10);
        driver.deliver(Channel::Live, 9, &["a", "b", "a", "c"]);
        assert_eq!(driver.events.len(), 1);
        let given = [(10, "a"), (11, "b"), (12, "a"), (13, "c")];
        let given = given.map(|(number, topic)| (key, message(LOG, number, topic)));
        assert_eq!(driver.given(), given);
        assert_eq!(driver.next(key), Some(14));
    }
}

#[test]
fn each_log_has_a_selection_of_its_own() {
    let mut driver = Driver::connected();
    let (one, _) = driver.live_selection(LOG, 10);
    let (other, _) = driver.live_selection(OTHER, 70);
    driver.deliver_in(OTHER, None, 69, &["b"]);
    driver.deliver_in(LOG, None, 9, &["a", "c"]);
    let given = [
        (other, message(OTHER, 70, "b")),
        (one, message(LOG, 10, "a")),
        (one, message(LOG, 11, "c")),
    ];
    assert_eq!(driver.given(), given);
}

#[test]
fn a_selection_behind_the_tail_is_given_every_topic_and_goes_live_where_it_is() {
    let mut driver = Driver::connected();
    let key = driver.select(0, Start::Earliest);
    let add = driver.asked();
    driver.status(&add, detached_in(LOG, 1));
    driver.events.clear();
    driver.deliver_in(LOG, Some(&add), 0, &["a", "b"]);
    driver.status(&add, State::live(place_at(3)));
    assert_eq!(driver.subscriber.is_live(key), Some(true));
    driver
        .events
        .retain(|(_, event)| matches!(event, Event::Messages(_)));
    driver.deliver(Channel::Live, 1, &["b", "c", "a"]);
    let given = [(1, "a"), (2, "b"), (3, "c"), (4, "a")];
    let given = given.map(|(number, topic)| (key, message(LOG, number, topic)));
    assert_eq!(driver.given(), given, "2 came again, and is dropped");
}

#[test]
fn a_duplicate_is_dropped_and_what_lies_in_a_hole_is_asked_for_again() {
    let mut driver = Driver::connected();
    let (key, _) = driver.live_selection(LOG, 10);
    let (other, _) = driver.live_selection(OTHER, 70);
    driver.deliver(Channel::Live, 9, &["a", "b"]);
    driver.deliver(Channel::Live, 9, &["a", "b"]);
    assert_eq!(driver.numbers(key), [10, 11]);
    driver.deliver(Channel::Live, 12, &["a"]);
    assert!(driver.numbers(key).is_empty());
    let again = driver.asked();
    assert_eq!((place_of(&again), starts_at(&again)), (Some(0), Some(12)));
    // The other log is not concerned.
    driver.deliver_in(OTHER, None, 69, &["a"]);
    assert_eq!(driver.numbers(other), [70]);
    driver.status(&again, detached_in(LOG, 12));
    driver.deliver_in(LOG, Some(&again), 11, &["c", "a"]);
    assert_eq!(driver.numbers(key), [12, 13]);
}

#[test]
fn after_a_lost_connection_each_log_is_asked_for_again_from_its_own_place() {
    let mut driver = Driver::connected();
    let (one, _) = driver.live_selection(LOG, 10);
    let (other, add) = driver.live_selection(OTHER, 70);
    driver.status(&add, detached_in(OTHER, 70));
    driver.events.clear();
    driver.deliver(Channel::Live, 9, &["a", "b"]);
    driver.deliver_in(OTHER, Some(&add), 69, &["d"]);
    driver.given();
    driver.subscriber.connected();
    assert_eq!(driver.subscriber.is_live(one), None);
    let again = driver.asked_all();
    let again: Vec<_> = again
        .iter()
        .map(|add| (place_of(add), starts_at(add)))
        .collect();
    assert_eq!(again, [(Some(0), Some(12)), (Some(1), Some(71))]);
    let nexts = [one, other].map(|key| driver.next(key));
    assert_eq!(nexts, [Some(12), Some(71)]);
}

#[test]
fn a_selection_follows_its_log_into_the_next_one() {
    let next = LogId {
        index: LogIndex(5),
        ..LOG
    };
    let mut driver = Driver::connected();
    let (key, add) = driver.live_selection(LOG, 10);
    driver.deliver(Channel::Live, 9, &["a"]);
    driver.status(&add, detached_in(next, 1));
    driver.deliver_in(next, Some(&add), 0, &["b"]);
    driver.status(&add, State::live(place_in(next, 2)));
    driver
        .events
        .retain(|(_, event)| matches!(event, Event::Messages(_)));
    driver.deliver_in(next, None, 1, &["a"]);
    // Of the log before nothing counts any more.
    driver.deliver(Channel::Live, 10, &["a"]);
    let given = [(LOG, 10, "a"), (next, 1, "b"), (next, 2, "a")];
    let given = given.map(|(log, number, topic)| (key, message(log, number, topic)));
    assert_eq!(driver.given(), given);
    let places = driver.subscriber.position(key).expect("it has one").logs;
    assert_eq!(places, [place_in(next, 3)]);
}

#[test]
fn a_removed_selection_is_given_nothing_and_its_credit_goes_back() {
    let mut driver = Driver::connected();
    let (key, _) = driver.live_selection(LOG, 10);
    driver.subscriber.remove(key);
    driver.deliver(Channel::Live, 9, &["a"]);
    assert!(driver.events.is_empty());
    assert!(driver.subscriber.credit.returnable > 0);
}

#[test]
fn gaps_and_what_has_expired_are_told_to_the_selection_of_their_log() {
    let mut driver = Driver::connected();
    let (one, _) = driver.live_selection(LOG, 10);
    let (other, add) = driver.live_selection(OTHER, 70);
    driver.reply(gap(Channel::Live, 9, 12, GapReason::Retention));
    driver.reply(Reply::Expired(Expired {
        subscription: add.subscription,
        generation: add.generation,
        log: OTHER,
        numbers: vec![Sequence(70)],
    }));
    let told: Vec<(SubscriptionKey, LogId)> = driver
        .events
        .iter()
        .map(|(key, event)| match event {
            Event::Gap(gap) => (*key, gap.log),
            Event::Expired(seen) => (*key, seen.log),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(one, LOG), (other, OTHER)]);
}

#[test]
fn two_selections_that_a_node_serves_from_one_log_are_both_given_all_of_it() {
    let mut driver = Driver::connected();
    driver.subscriber = Subscriber::new(SubscriberConfig::default()).gathering();
    driver.subscriber.connected();
    let (one, _) = driver.live_selection(LOG, 10);
    let other = driver.select(1, Start::Latest);
    let add = driver.asked();
    driver.status(&add, live_at(11));
    driver.events.clear();
    driver.deliver(Channel::Live, 9, &["a", "b"]);
    let given = [(one, 10, "a"), (one, 11, "b"), (other, 11, "b")];
    let given = given.map(|(key, number, topic)| (key, message(LOG, number, topic)));
    assert_eq!(driver.given(), given);
}
