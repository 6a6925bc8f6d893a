//! Lost connections, refusals, ends.

use super::*;

#[test]
fn everything_is_asked_for_again_from_its_place() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    let (b, add) = driver.detached("b", 3);
    driver.deliver(Channel::Live, 9, &["a"]);
    driver.deliver(channel_of(&add), 2, &["b"]);
    driver.subscriber.disconnected();
    assert_eq!((driver.next(a), driver.next(b)), (Some(11), Some(4)));
    driver.subscriber.connected();
    driver.poll();
    let starts: Vec<Option<u64>> = driver
        .sent
        .iter()
        .map(|request| match request {
            Request::Add(add) => starts_at(add),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(starts, [Some(11), Some(4)]);
}

#[test]
fn latest_stays_latest_only_until_the_first_status() {
    let mut driver = Driver::connected();
    driver.add("a", Start::Latest);
    assert_eq!(driver.asked().start, Start::Latest);
    driver.subscriber.connected();
    let add = driver.asked();
    assert_eq!(add.start, Start::Latest);
    driver.status(&add, live_at(10));
    driver.subscriber.connected();
    assert_eq!(starts_at(&driver.asked()), Some(10));
}

#[test]
fn a_subscription_made_or_ended_while_not_connected_takes_effect_at_the_next_connection() {
    let mut driver = Driver::new();
    let gone = driver.add("a", Start::Earliest);
    driver.subscriber.remove(gone);
    driver.add("b", Start::Earliest);
    driver.poll();
    assert!(driver.sent.is_empty());
    driver.subscriber.connected();
    let add = driver.asked();
    let wanted = Wanted::Topic(topic("b"));
    assert_eq!((add.wanted, add.start), (wanted, Start::Earliest));
}

#[test]
fn a_key_is_never_reused_though_its_number_is() {
    let mut driver = Driver::connected();
    let first = driver.live("a", 10);
    driver.subscriber.remove(first);
    let second = driver.add("b", Start::Latest);
    assert_ne!(first, second);
    let add = driver.asked();
    assert_eq!(add.subscription, SubscriptionId(0));
    driver.status(&add, live_at(10));
    assert_eq!((driver.next(first), driver.next(second)), (None, Some(10)));
    driver.subscriber.remove(first);
    assert_eq!(driver.next(second), Some(10));
}

#[test]
fn a_life_that_was_cut_is_told_as_lost_from_the_cut_on_and_no_further() {
    for (stands, first) in [(400, 400), (1_000, 400)] {
        let mut driver = Driver::connected();
        let a = driver.live("a", stands);
        driver.subscriber.connected();
        let add = driver.asked();
        driver.status(
            &add,
            State::Detached {
                log: LOG,
                incarnation: Incarnation(8),
                next: Sequence(400),
                resumed: false,
                lost_before: Some(Sequence(1_200)),
                beside: None,
            },
        );
        let Event::Gap(gap) = &driver.events[0].1 else {
            panic!("{:?}", driver.events);
        };
        let lost = (gap.extent.first, gap.extent.last);
        assert_eq!(lost, (Sequence(first), Sequence(1_199)), "from {stands}");
        assert_eq!((gap.why, gap.incarnation), (GapReason::Loss, LIFE));
        driver.events.clear();
        driver.deliver(channel_of(&add), 399, &["a"]);
        assert_eq!(driver.numbers(a), [400]);
    }
}

#[test]
fn another_life_of_the_log_begins_where_the_node_says_and_the_rest_of_the_old_is_told_as_lost() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 1_000);
    driver.subscriber.connected();
    let add = driver.asked();
    driver.status(
        &add,
        State::Detached {
            log: LOG,
            incarnation: Incarnation(8),
            next: Sequence(1),
            resumed: false,
            lost_before: None,
            beside: None,
        },
    );
    let Event::Gap(gap) = &driver.events[0].1 else {
        panic!("{:?}", driver.events);
    };
    assert_eq!(
        (gap.extent.first, gap.extent.last),
        (Sequence(1_000), Sequence::MAX)
    );
    assert_eq!((gap.why, gap.incarnation), (GapReason::Loss, LIFE));
    driver.events.clear();
    driver.deliver(channel_of(&add), 0, &["a"]);
    assert_eq!(driver.numbers(a), [1]);
    assert_eq!(
        driver.subscriber.position(a).unwrap().logs[0].incarnation,
        Incarnation(8)
    );
}

#[test]
fn a_refusal_that_may_pass_is_tried_again_after_its_delay() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    driver.subscriber.connected();
    let add = driver.asked();
    let delay = std::time::Duration::from_secs(2);
    let busy = Error::new(ErrorCode::Overloaded).retry_after(delay);
    driver.status(&add, State::Failed(busy));
    assert!(driver.events.is_empty());
    let wake = driver.poll().unwrap();
    assert!(driver.sent.is_empty() && wake >= driver.now.plus(delay));
    driver.now = wake;
    assert_eq!(starts_at(&driver.asked()), Some(10));
    assert_eq!(driver.next(a), Some(10));
}

#[test]
fn a_final_refusal_is_told_and_frees_the_key() {
    let mut driver = Driver::connected();
    let key = driver.add("a", Start::Latest);
    let add = driver.asked();
    driver.status(&add, State::Failed(Error::new(ErrorCode::PermissionDenied)));
    assert_eq!(driver.events.len(), 1);
    assert!(matches!(
        &driver.events[0].1,
        Event::Status(State::Failed(_))
    ));
    assert_eq!(driver.next(key), None);
    driver.subscriber.connected();
    driver.poll();
    assert!(driver.sent.is_empty());
}

#[test]
fn a_refusal_is_waited_for_or_told_as_the_table_says() {
    for &code in ErrorCode::ALL {
        let mut driver = Driver::connected();
        driver.add("a", Start::Latest);
        let add = driver.asked();
        driver.status(&add, State::Failed(Error::new(code)));
        assert_eq!(driver.events.is_empty(), code.waited_for(), "{code:?}");
        let said = driver.subscriber.refused().map(Error::code);
        assert_eq!(said, code.waited_for().then_some(code));
    }
}

#[test]
fn a_look_into_history_ends_with_complete() {
    let mut driver = Driver::connected();
    let key = driver.subscriber.add(SubscriptionSpec {
        namespace: NAMESPACE,
        wanted: Wanted::Topic(topic("a")),
        start: Start::Earliest,
        until: Some(Until::Now),
        tell_expired: false,
        filter: None,
        headers_only: false,
    });
    let add = driver.asked();
    assert_eq!(add.until, Some(Until::Now));
    driver.status(&add, detached_at(1));
    driver.deliver(channel_of(&add), 0, &["a"]);
    driver.status(&add, State::complete(place_at(2)));
    assert!(matches!(
        driver.events[2].1,
        Event::Status(State::Complete { .. })
    ));
    assert_eq!(driver.next(key), None);
}

#[test]
fn nothing_is_told_of_a_subscription_after_its_removal() {
    let mut driver = Driver::connected();
    let a = driver.live("a", 10);
    let (b, add) = driver.detached("b", 1);
    driver.subscriber.remove(a);
    driver.subscriber.remove(b);
    driver.deliver(Channel::Live, 9, &["a"]);
    driver.deliver(channel_of(&add), 0, &["b"]);
    driver.status(&add, State::Removed);
    assert!(driver.events.is_empty());
    driver.poll();
    let removes = driver
        .sent
        .iter()
        .filter(|request| matches!(request, Request::Remove { .. }));
    assert_eq!(removes.count(), 2);
}

#[test]
fn many_subscriptions_are_asked_for_in_bounded_steps() {
    let mut driver = Driver::new();
    for n in 0..10_000 {
        driver.add(&format!("t{n}"), Start::Latest);
    }
    driver.subscriber.connected();
    assert_eq!(driver.poll(), Some(driver.now));
    assert_eq!(driver.sent.len(), 4_096);
    driver.poll();
    assert_eq!(driver.poll(), None);
    assert_eq!(driver.sent.len(), 10_000);
}

#[test]
fn who_resumes_in_another_life_of_the_log_loses_nothing_and_keeps_its_own_count() {
    let mut driver = Driver::connected();
    let key = driver.add("a", Start::Latest);
    let add = driver.asked();
    driver.status(&add, live_at(10));
    driver.events.clear();
    driver.deliver(Channel::Live, 9, &["a", "a"]);
    assert_eq!(driver.numbers(key), [10, 11]);
    driver.status(
        &add,
        State::Detached {
            log: LOG,
            incarnation: Incarnation(8),
            next: Sequence(10),
            resumed: true,
            lost_before: None,
            beside: None,
        },
    );
    let gaps = driver
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Gap(_)));
    assert_eq!(gaps.count(), 0);
    let place = driver.subscriber.position(key).unwrap().logs[0];
    assert_eq!(
        (place.incarnation, place.next),
        (Incarnation(8), Sequence(12))
    );
    driver.deliver(channel_of(&add), 9, &["a", "a", "a"]);
    assert_eq!(driver.numbers(key), [12], "what it has had is dropped");
}

#[test]
fn a_number_that_the_log_has_not_got_to_is_no_position_and_is_asked_for_again_as_a_number() {
    let mut driver = Driver::connected();
    let wish = Start::Sequence(Sequence(500));
    let key = driver.add("a", wish.clone());
    let add = driver.asked();
    assert_eq!(add.start, wish);
    driver.status(&add, detached_at(10));
    assert_eq!(driver.next(key), None);
    driver.subscriber.connected();
    let add = driver.asked();
    assert_eq!(add.start, wish);
    driver.status(&add, detached_at(400));
    driver.reply(gap(channel_of(&add), 399, 499, GapReason::Unused));
    driver.status(&add, live_at(500));
    assert_eq!(driver.next(key), Some(500));
    driver.deliver(Channel::Live, 499, &["a"]);
    assert_eq!(driver.numbers(key), [500]);
    driver.subscriber.connected();
    assert_eq!(starts_at(&driver.asked()), Some(501));
}

#[test]
fn a_number_that_the_log_has_not_got_to_waits_on_in_another_life_and_loses_nothing() {
    let mut driver = Driver::connected();
    let wish = Start::Sequence(Sequence(500));
    let key = driver.add("a", wish.clone());
    let add = driver.asked();
    driver.status(&add, detached_at(10));
    driver.subscriber.connected();
    let add = driver.asked();
    assert_eq!(add.start, wish);
    driver.status(
        &add,
        State::Detached {
            log: LOG,
            incarnation: Incarnation(8),
            next: Sequence(5),
            resumed: false,
            lost_before: None,
            beside: None,
        },
    );
    let is_gap = |event: &Event| matches!(event, Event::Gap(_));
    assert!(!driver.events.iter().any(|(_, event)| is_gap(event)));
    assert_eq!(driver.next(key), None);
    driver.subscriber.connected();
    assert_eq!(driver.asked().start, wish);
}

#[test]
fn a_number_that_the_log_has_got_to_is_a_position_from_then_on() {
    for live in [true, false] {
        let mut driver = Driver::connected();
        let key = driver.add("a", Start::Sequence(Sequence(500)));
        let add = driver.asked();
        let (state, channel) = if live {
            (live_at(400), Channel::Live)
        } else {
            (detached_at(400), channel_of(&add))
        };
        driver.status(&add, state);
        assert_eq!(driver.next(key), None);
        driver.reply(delivery(channel, 399, 501, 500, &["a", "a"]));
        assert_eq!(driver.numbers(key), [500, 501]);
        assert_eq!(driver.next(key), Some(502));
        driver.subscriber.connected();
        assert_eq!(starts_at(&driver.asked()), Some(502), "not from 500 again");
    }
}
